"""A checkpoint that cannot be written or read says why."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest
import torch
from torch.distributed.checkpoint.api import CheckpointException

from biobench.errors import StoreError
from trainer.train import checkpoint
from trainer.train.checkpoint import Progress, latest_checkpoint, prune, save_checkpoint
from trainer.train.distributed import World

WORLD = World(0, 1, torch.device("cpu"))
FULL = OSError(errno.ENOSPC, "No space left on device")


def failure(inner: BaseException) -> CheckpointException:
    return CheckpointException("write", {0: (inner, None)})  # type: ignore[dict-item]


def during(cause: BaseException | None) -> RuntimeError:
    """What torch's writer raises when it is closed after a write failed with `cause`."""
    error = RuntimeError("[enforce fail at inline_container.cc:672] . unexpected pos 704 vs 598")
    error.__context__ = cause
    return error


def saved(folder: Path, error: BaseException, patch: pytest.MonkeyPatch) -> StoreError:
    def fail(*_: object, checkpoint_id: Path, **__: object) -> None:
        checkpoint_id.mkdir()
        (checkpoint_id / "part").write_bytes(b"x" * 100)
        raise error

    patch.setattr(checkpoint, "save", fail)
    model = torch.nn.Linear(100, 100)
    with pytest.raises(StoreError) as caught:
        save_checkpoint(folder, WORLD, model, torch.optim.AdamW(model.parameters()), Progress(), name="step-1")
    assert not list((folder / "checkpoints").iterdir()), "nothing half-written stays"
    assert "\n" not in str(caught.value)
    return caught.value


@pytest.mark.parametrize("error", [FULL, failure(FULL), failure(during(FULL)), during(FULL)])
def test_a_full_disk_is_said_however_deep_it_stands(
    error: BaseException, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = saved(tmp_path, error, monkeypatch)
    assert found.what == "the disk is full"
    assert "free space" in found.hint
    assert found.file == str(tmp_path / "checkpoints" / "step-1")


def test_another_failure_says_its_own_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = saved(tmp_path, failure(during(None)), monkeypatch)
    assert found.what.startswith("the checkpoint cannot be written: [enforce fail at inline_container.cc:672]")


@pytest.mark.parametrize(
    ("keep", "phases", "latest", "left"),
    [
        (2, True, "step-100000000", ["end-1-a", "step-00000020", "step-100000000"]),
        (2, False, "step-100000000", ["step-00000020", "step-100000000"]),
        (1, True, "step-00000003", ["end-1-a", "step-00000003", "step-100000000"]),
    ],
)
def test_the_newest_checkpoints_are_kept_and_the_latest_always(
    keep: int, phases: bool, latest: str, left: list[str], tmp_path: Path
) -> None:
    """By number of steps, which outgrows its zeros in long runs; what is under way is left alone."""
    folder = tmp_path / "checkpoints"
    for name in ("end-1-a", "step-00000003", "step-00000020", "step-100000000", "step-00000001.tmp"):
        (folder / name).mkdir(parents=True)
        (folder / name / "progress.json").write_text("{}")
    (folder / "latest").write_text(latest)
    prune(tmp_path, keep, keep_phases=phases)
    assert sorted(f.name for f in folder.iterdir() if f.is_dir()) == sorted([*left, "step-00000001.tmp"])
    prune(tmp_path, keep, keep_phases=phases)
    assert latest_checkpoint(tmp_path) == folder / latest
