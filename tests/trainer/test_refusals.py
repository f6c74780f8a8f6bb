"""What can go wrong outside is one clear line, and nothing that was there is lost; options of the
engine.
"""

from __future__ import annotations

import errno
import json
import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor
from torch.distributed.checkpoint.api import CheckpointException

import trainer.pretrain
from biobench.core.checkpoint_safety import PICKLE
from biobench.errors import TrainingError, UsageError
from tests.helpers.pretrain_models import tiny
from tests.helpers.trainer_make import numbered, refusal, train, write
from trainer import api
from trainer.corpus.builder import build
from trainer.corpus.embedded import documents
from trainer.corpus.shards import train_tokenizer
from trainer.model.network import load_model, new_model
from trainer.model.tokens import check_fit
from trainer.pretrain import State, _report, _Step
from trainer.recipe.library import load_recipe
from trainer.train import checkpoint
from trainer.train.checkpoint import Progress, latest_checkpoint, prune, save_checkpoint
from trainer.train.distributed import StoppedError, World
from trainer.train.progress import Metrics, Tick, TrainingDisplay, read_metrics, silent
from trainer.train.run_folder import claimed, read_recipe

CPU = World(0, 1, torch.device("cpu"))


def test_a_folder_takes_one_process_at_a_time(small: list[str], tmp_path: Path) -> None:
    out = tmp_path / "run"
    with claimed(out), pytest.raises(UsageError, match="another process is at work in"):
        train(out, small)
    assert [p.name for p in out.iterdir()] == [".lock"]
    with claimed(out):
        pass


def test_a_phase_end_that_is_not_there_cannot_be_reused(small: list[str], tmp_path: Path) -> None:
    train(tmp_path / "donor", [*small, "checkpoints.keep_phases=false"])
    branch = [*small, f"reuse={{run: {tmp_path / 'donor'}, through: detour}}"]
    held = refusal("has no state at the end of phase 'detour'", train, tmp_path / "branch", branch)
    assert "checkpoints.keep_phases=true" in held.hint


@pytest.mark.parametrize("content", [None, "{", "{}"])
def test_a_recipe_that_cannot_be_read_is_one_line(content: str | None, tmp_path: Path) -> None:
    if content is not None:
        (tmp_path / "recipe.json").write_text(content)
    refusal("recipe cannot be read", read_recipe, tmp_path)


def test_a_recipe_of_an_earlier_run_is_read(tmp_path: Path) -> None:
    recipe = load_recipe("toy_detour")
    fields = recipe.model_dump(mode="json")
    fields["logging"]["tracker"] = "none"
    (tmp_path / "recipe.json").write_text(json.dumps(fields))
    assert read_recipe(tmp_path) == recipe


def test_a_start_that_failed_is_one_line_and_leaves_its_folder_free(
    small: list[str], tmp_path: Path
) -> None:
    nowhere = [*(o for o in small if not o.startswith("base.")), "base={model: /nowhere/at/all}"]
    refusal("cannot be loaded", train, tmp_path / "run", nowhere)
    assert train(tmp_path / "run", small).status == "done"


def test_metrics_drop_what_a_resume_repeats(tmp_path: Path) -> None:
    file = tmp_path / "metrics.jsonl"
    lines = [json.dumps({"event": "train", "total_step": n}) + "\n" for n in range(5)]
    file.write_text("".join(lines) + '{"ev')
    Metrics(tmp_path, from_step=2).write({"event": "train", "total_step": 3, "loss": 0.5})
    assert [line["total_step"] for line in read_metrics(file)] == [0, 1, 2, 3]


def test_a_model_or_tokenizer_without_what_masks_need_is_refused(tmp_path: Path) -> None:
    model = tiny("modernbert")
    model.model.save_pretrained(tmp_path)
    refusal("lacks weights", load_model, tmp_path)
    refusal("no mask token", check_fit, model, numbered(5), masked=True)
    check_fit(model, numbered(5), masked=False)
    what = "does not fit the model: it has ids up to 97, the model 97 rows"
    refusal(what, check_fit, model, numbered(97), masked=False)
    endless = numbered(5)
    endless.eos_token = endless.sep_token = None
    what = "neither an end-of-sequence nor a separator token"
    refusal(what, check_fit, model, endless, masked=False)
    refusal(what, build, load_recipe("toy_detour").corpus, endless, tmp_path / "corpora")


def test_plain_lines_where_there_is_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    terminal = TrainingDisplay()
    for step in range(1, 41):
        terminal(
            Tick("phase 1/1 x", step, 40, loss=1.5, tokens_per_second=1000.0, seconds_left=4.0)
        )
    terminal.close()
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 11
    assert lines[-1] == "phase 1/1 x 40/40  loss 1.500  1,000 tokens/s  4 s left"


def test_the_logged_speed_excludes_what_is_no_training(
    small: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A clock on which a step takes 2 s, a validation 1000 s and a checkpoint 500 s."""
    now = [0.0]

    def lasting(name: str, seconds: float) -> None:
        call = getattr(trainer.pretrain, name)
        monkeypatch.setattr(
            trainer.pretrain,
            name,
            lambda *a, **k: (call(*a, **k), now.append(now[-1] + seconds))[0],
        )

    for name, seconds in (("train_step", 2.0), ("_evaluate", 1000.0), ("_save", 500.0)):
        lasting(name, seconds)
    monkeypatch.setattr(trainer.pretrain, "time", SimpleNamespace(perf_counter=lambda: now[-1]))
    out = tmp_path / "run"
    train(out, [*small, "logging.every=3", "logging.evaluate=768", "checkpoints.every=1536"])
    lines = [line for line in read_metrics(out / "metrics.jsonl") if line["event"] == "train"]
    assert len(lines) > 6
    assert {line["tokens_per_second"] for line in lines} == {8 * 48 / 2}


@pytest.mark.parametrize(
    ("loss", "norm"), [(math.nan, 1.0), (math.inf, 1.0), (5.0, math.inf), (5.0, math.nan)]
)
def test_a_loss_or_a_gradient_alone_stops_the_run(loss: float, norm: float, tmp_path: Path) -> None:
    run = State(load_recipe("toy_detour"), tmp_path, CPU, silent, lambda: False)
    run.progress = Progress(step=1, total_steps=1)

    def report(loss: float, norm: float) -> None:
        step = _Step(torch.tensor(50.0), torch.tensor(norm), targets=10, rate=1e-3, stops=False)
        _report(run, run.recipe.phases[0], loss, step, speed=1.0, cost=1.0)

    report(5.0, 1.0)
    with pytest.raises(TrainingError, match="phase 'detour' is not finite at step 1"):
        report(loss, norm)


@pytest.mark.parametrize(("device", "within"), [("cuda", "high"), ("cpu", "highest")])
def test_a_run_on_a_gpu_multiplies_in_tf32_and_leaves_the_setting_as_it_was(
    device: str, within: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    precisions: list[str] = []

    def stopped(*_: Any, **__: Any) -> None:
        precisions.append(torch.get_float32_matmul_precision())
        raise StoppedError

    monkeypatch.setattr(trainer.pretrain, "_setup", stopped)
    run = State(
        load_recipe("toy_detour"),
        tmp_path,
        World(0, 1, torch.device(device)),
        silent,
        lambda: False,
    )
    assert trainer.pretrain.pretrain(run, resume=False).status == "preempted"
    assert [*precisions, torch.get_float32_matmul_precision()] == [within, "highest"]


FULL = OSError(errno.ENOSPC, "No space left on device")


def failure(inner: BaseException) -> CheckpointException:
    return CheckpointException("write", {0: (inner, None)})  # type: ignore[dict-item]


def during(cause: BaseException | None) -> RuntimeError:
    """What torch's writer raises when it is closed after a write failed with `cause`."""
    error = RuntimeError("[enforce fail at inline_container.cc:672] . unexpected pos 704 vs 598")
    error.__context__ = cause
    return error


DISK = "the disk is full"


@pytest.mark.parametrize(
    ("error", "what"),
    [
        (FULL, DISK),
        (failure(FULL), DISK),
        (failure(during(FULL)), DISK),
        (during(FULL), DISK),
        (failure(during(None)), "cannot be written: [enforce fail at inline_container.cc:672]"),
    ],
)
def test_a_full_disk_is_named_however_deep_it_stands_and_nothing_half_written_stays(
    error: BaseException, what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, checkpoint_id: Path, **__: object) -> None:
        checkpoint_id.mkdir()
        (checkpoint_id / "part").write_bytes(b"x" * 100)
        raise error

    monkeypatch.setattr(checkpoint, "save", fail)
    model = torch.nn.Linear(100, 100)
    optimizer = torch.optim.AdamW(model.parameters())
    caught = refusal(
        what, save_checkpoint, tmp_path, CPU, model, optimizer, Progress(), name="step-1"
    )
    assert not list((tmp_path / "checkpoints").iterdir())
    assert caught.what.startswith(what)
    assert ("free space" in caught.hint) == (what == DISK)
    assert caught.file == str(tmp_path / "checkpoints" / "step-1")


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
    """By number of steps, which outgrows its zeros in long runs; what is under way is left
    alone."""
    folder = tmp_path / "checkpoints"
    for name in (
        "end-1-a",
        "step-00000003",
        "step-00000020",
        "step-100000000",
        "step-00000001.tmp",
    ):
        (folder / name).mkdir(parents=True)
        (folder / name / "progress.json").write_text("{}")
    (folder / "latest").write_text(latest)
    prune(tmp_path, keep, keep_phases=phases)
    assert sorted(f.name for f in folder.iterdir() if f.is_dir()) == sorted(
        [*left, "step-00000001.tmp"]
    )
    prune(tmp_path, keep, keep_phases=phases)
    assert latest_checkpoint(tmp_path) == folder / latest


def test_a_step_waits_for_no_gpu_to_count_targets(monkeypatch: pytest.MonkeyPatch) -> None:
    """Several processes: the counts pass as CPU tensors through the host's group, never through the
    device's.
    """
    sent: list[tuple[torch.device, object]] = []

    def all_reduce(tensor: Tensor, op: object = None, group: object = None) -> None:
        sent.append((tensor.device, group))
        tensor *= 2

    monkeypatch.setattr("torch.distributed.all_reduce", all_reduce)
    group: Any = object()
    assert World(0, 2, torch.device("cuda", 0), group).sums(21, 0) == [42, 0]
    assert sent == [(torch.device("cpu"), group)]
    assert CPU.sums(3, 1) == [3, 1]


TEXTS = list(documents(60, seed=5))
TOKENIZER = train_tokenizer(TEXTS, 400, 64)
SIZES = {
    "model_type": "modernbert",
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
}


@pytest.mark.parametrize(
    ("field", "what", "hint"),
    [
        (
            "hiden_size=32",
            "base.config.hiden_size is no field of a modernbert config",
            "did you mean 'hidden_size'?",
        ),
        ("num_attention_heads=0", "base.config.num_attention_heads is 0", "1 or more"),
        (
            "num_hidden_layers=two",
            "Field 'num_hidden_layers' expected int, got str",
            "check the value",
        ),
        ("hidden_size=33", "not a multiple of the number of attention heads", "check the value"),
        ("hidden_activation=gelux", "gelux", "check the value"),
        (
            "model_type=modernbart",
            "model type 'modernbart' cannot be pretrained here",
            "modernbert",
        ),
    ],
)
def test_names_and_values_of_the_config(
    field: str,
    what: str,
    hint: str,
    small: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert (
        hint
        in refusal(what, api.plan, "toy_detour", overrides=[*small, f"base.config.{field}"]).hint
    )


def test_ids_of_a_config_must_be_the_tokenizer_s() -> None:
    what = "sep_token_id is 2 by base.config and 3 by the tokenizer"
    refusal(what, new_model, {**SIZES, "sep_token_id": 2}, TOKENIZER, 1)
    assert new_model({**SIZES, "sep_token_id": 3}, TOKENIZER, 1).config.sep_token_id == 3


def test_pickled_weights_load_by_name_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bases and analysed checkpoints come from others too: no pickle is loaded that nobody
    named."""
    monkeypatch.delenv(PICKLE, raising=False)
    folder = write(tmp_path / "strange", seed=1)
    load_model(folder)
    torch.save(load_file(folder / "model.safetensors"), folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()
    assert f"{PICKLE}=strange" in refusal("the weights are a pickle file", load_model, folder).hint
    monkeypatch.setenv(PICKLE, "other, strange")
    load_model(folder)
