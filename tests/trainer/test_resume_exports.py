"""A run that was killed between a checkpoint and what is made of it ends with the files of an
unbroken one.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

import trainer.export
import trainer.pretrain
from tests.helpers.trainer_make import train
from trainer.ledger import read_ledger

EXPORTING = ["checkpoints.every=1500", "checkpoints.export=true"]
OF_THE_MOMENT = {"README.md", "ledger.json"}
"""They hold the time at which the run ended."""


class Killed(BaseException):
    """Stands for SIGKILL: nothing in the trainer catches it."""


def results(out: Path) -> dict[str, bytes]:
    """Name to content of all that the run is for; checkpoints, the start and the metrics are left
    out.
    """
    files = {f.relative_to(out): f for f in out.rglob("*") if f.is_file()}
    apart = {"checkpoints", "start", "metrics.jsonl", "recipe.json"}
    read = {name: b"" if f.name in OF_THE_MOMENT else f.read_bytes() for name, f in files.items()}
    return {str(name): content for name, content in read.items() if name.parts[0] not in apart}


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory, small: list[str]) -> Path:
    out = tmp_path_factory.mktemp("runs") / "reference"
    assert train(out, [*small, *EXPORTING]).status == "done"
    return out


def killed_before(number: int, call: Callable[..., None]) -> Callable[..., None]:
    """`call`, but the process dies at the start of call number `number` (from 1)."""
    left = [number]

    def killing(*a: object, **k: object) -> None:
        left[0] -= 1
        if left[0] == 0:
            raise Killed
        call(*a, **k)

    return killing


@pytest.mark.parametrize(
    ("module", "name", "number", "lost"),
    [
        (trainer.pretrain, "export", 1, "exports/step-00000004"),
        (trainer.export, "_both_spellings", 2, "exports/step-00000008"),
        (trainer.export, "_both_spellings", 3, "phases/detour"),
        (trainer.pretrain, "export", 5, "model"),
    ],
)
def test_a_kill_before_or_during_an_export_loses_nothing(
    module: object,
    name: str,
    number: int,
    lost: str,
    reference: Path,
    small: list[str],
    tmp_path: Path,
) -> None:
    out = tmp_path / "run"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, name, killed_before(number, getattr(module, name)))
        with pytest.raises(Killed):
            train(out, [*small, *EXPORTING])
    assert not (out / lost).exists()
    (out / "checkpoints" / "step-00000009.tmp" / "inside").mkdir(parents=True)
    (out / "ledger.json.123.tmp").write_text("{")
    assert train(out, [*small, *EXPORTING], resume=True).status == "done"
    assert results(out) == results(reference)
    assert (
        read_ledger(out / "ledger.json").model_hash
        == read_ledger(reference / "ledger.json").model_hash
    )
    assert not list(out.rglob("*.tmp"))


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("ledger.json", b"{}"),
        ("model/ledger.json", b"{}"),
        ("model/model.safetensors", b"x"),
        ("model/config.json", None),
    ],
)
def test_a_damaged_ledger_or_model_is_written_again(
    name: str, content: bytes | None, reference: Path, small: list[str], tmp_path: Path
) -> None:
    out = shutil.copytree(reference, tmp_path / "run")
    (out / name).unlink() if content is None else (out / name).write_bytes(content)
    assert train(out, [*small, *EXPORTING], resume=True).status == "done"
    assert results(out) == results(reference)
    assert read_ledger(out / "ledger.json") == read_ledger(out / "model" / "ledger.json")
    if name != "ledger.json":
        assert read_ledger(out) == read_ledger(reference), "the end is not now"
