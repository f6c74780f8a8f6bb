"""What can go wrong outside is one clear line, and nothing that was there is lost."""

from __future__ import annotations

import errno
import json
import math
import os
from pathlib import Path
from typing import Any

import pytest
import torch

from biobench.errors import BioBenchError, ModelError, StoreError, TrainingError, UsageError
from tests.helpers.pretrain_models import tiny
from tests.helpers.trainer_make import numbered
from trainer import api
from trainer.model.network import load_model
from trainer.model.tokens import check_fit
from trainer.pretrain import PretrainingResult, State, _Clock, _report
from trainer.recipe.library import load_recipe
from trainer.train.checkpoint import Progress
from trainer.train.distributed import World
from trainer.train.progress import Metrics, Tick, TrainingDisplay, before_training, read_metrics, silent
from trainer.train.run_folder import claimed, read_recipe


def train(out: Path, overrides: list[str], *, resume: bool = False) -> PretrainingResult:
    return api.pretrain("toy_detour", out=out, overrides=overrides, resume=resume, progress="none")


def one_line(error: BioBenchError) -> None:
    assert "\n" not in str(error)
    assert error.hint


def test_a_full_disk_keeps_the_last_checkpoint(
    small: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The device fills up while the second checkpoint is written; space comes back, the run goes on."""
    out = tmp_path / "run"
    sync, left = os.fsync, [12]

    def full(handle: Any) -> None:
        if (out / "checkpoints" / "latest").is_file():
            left[0] -= 1
            if left[0] < 0:
                raise OSError(errno.ENOSPC, "No space left on device")
        sync(handle)

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(StoreError, match="the disk is full") as caught:
            train(out, [*small, "checkpoints.every=800"])
    one_line(caught.value)
    latest = (out / "checkpoints" / "latest").read_text()
    assert (out / "checkpoints" / latest / "progress.json").is_file()
    assert not list((out / "checkpoints").glob("*.tmp"))
    assert train(out, [*small, "checkpoints.every=800"], resume=True).status == "done"


def test_a_folder_takes_one_process_at_a_time(small: list[str], tmp_path: Path) -> None:
    out = tmp_path / "run"
    with claimed(out), pytest.raises(UsageError, match="another process is at work in"):
        train(out, small)
    assert [p.name for p in out.iterdir()] == [".lock"]
    with claimed(out):
        pass


def test_a_phase_end_that_is_not_there_cannot_be_reused(small: list[str], tmp_path: Path) -> None:
    donor = tmp_path / "donor"
    train(donor, [*small, "checkpoints.keep_phases=false"])
    with pytest.raises(UsageError, match="has no state at the end of phase 'detour'") as caught:
        train(tmp_path / "branch", [*small, f"reuse={{run: {donor}, through: detour}}"])
    assert "checkpoints.keep_phases=true" in caught.value.hint


@pytest.mark.parametrize("content", [None, "{", "{}"])
def test_a_recipe_that_cannot_be_read_is_one_line(content: str | None, tmp_path: Path) -> None:
    if content is not None:
        (tmp_path / "recipe.json").write_text(content)
    with pytest.raises(StoreError, match="recipe cannot be read") as caught:
        read_recipe(tmp_path)
    one_line(caught.value)


def test_a_recipe_of_an_earlier_run_is_read(tmp_path: Path) -> None:
    recipe = load_recipe("toy_detour")
    fields = recipe.model_dump(mode="json")
    fields["logging"]["tracker"] = "none"
    (tmp_path / "recipe.json").write_text(json.dumps(fields))
    assert read_recipe(tmp_path) == recipe


def test_a_start_that_failed_leaves_its_folder_free(small: list[str], tmp_path: Path) -> None:
    with pytest.raises(ModelError):
        train(tmp_path / "run", [*small, "base.config.hidden_size=33"])
    assert train(tmp_path / "run", small).status == "done"


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("base={model: /nowhere/at/all}", "not at hand|cannot be loaded"),
        ("base.config={model_type: t5}", "model type 't5' cannot be pretrained"),
        ("base.config.hidden_size=33", "not a modernbert config"),
        ("phases.0.freeze={layers: '0-9'}", "layer 9 cannot be frozen"),
        ("base.config.max_position_embeddings=32", "longer than the model's 32 positions"),
    ],
)
def test_bases_that_cannot_be_are_one_line(override: str, message: str, small: list[str], tmp_path: Path) -> None:
    first = [o for o in small if not o.startswith(override.split("=")[0] + ".")]
    with pytest.raises(ModelError, match=message) as caught:
        train(tmp_path / "run", [*first, override])
    one_line(caught.value)


def test_a_loss_that_is_not_finite_stops_before_it_is_saved(small: list[str], tmp_path: Path) -> None:
    with pytest.raises(TrainingError, match="not finite") as caught:
        train(tmp_path / "run", [*small, "optimizer.learning_rate=1e30", "checkpoints.every=384"])
    one_line(caught.value)
    saved = sorted((tmp_path / "run" / "checkpoints").glob("step-*"))
    assert all(line["loss"] == line["loss"] for line in read_metrics(tmp_path / "run" / "metrics.jsonl"))
    assert len(saved) <= 2


def test_processes_that_cannot_share_a_step_are_refused(small: list[str], tmp_path: Path) -> None:
    from trainer.pretrain import pretrain
    from trainer.train.distributed import StopFlag

    class Three(World):
        def same(self, text: str, what: str) -> None:
            pass

    recipe = load_recipe("toy_detour", small)
    run = State(recipe, tmp_path / "run", Three(0, 3, torch.device("cpu")), silent, StopFlag())
    with pytest.raises(UsageError, match="8 windows a step cannot be shared by 3 processes"):
        pretrain(run, resume=False)


def test_metrics_drop_what_a_resume_repeats(tmp_path: Path) -> None:
    file = tmp_path / "metrics.jsonl"
    lines = [json.dumps({"event": "train", "total_step": n}) + "\n" for n in range(5)]
    file.write_text("".join(lines) + '{"ev')
    Metrics(tmp_path, from_step=2).write({"event": "train", "total_step": 3, "loss": 0.5})
    assert [line["total_step"] for line in read_metrics(file)] == [0, 1, 2, 3]


def test_a_model_or_tokenizer_without_what_masks_need_is_refused(tmp_path: Path) -> None:
    model = tiny("modernbert")
    model.model.save_pretrained(tmp_path)
    with pytest.raises(ModelError, match="lacks weights"):
        load_model(tmp_path)
    tokenizer = numbered(5)
    with pytest.raises(ModelError, match="no mask token"):
        check_fit(model, tokenizer, masked=True)
    check_fit(model, tokenizer, masked=False)
    with pytest.raises(ModelError, match="does not fit the model: it has ids up to 97, the model 97 rows"):
        check_fit(model, numbered(97), masked=False)


def test_a_missing_gpu_is_named(small: list[str], tmp_path: Path) -> None:
    if not torch.cuda.is_available():
        with pytest.raises(UsageError, match="no CUDA device"):
            train(tmp_path / "run", [*small, "engine.device=cuda"])
    with pytest.raises(UsageError, match="no figures for GPU 'Z80'"):
        api.plan("toy_detour", gpu="Z80")


def test_plain_lines_where_there_is_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    terminal = TrainingDisplay()
    for step in range(1, 41):
        terminal(Tick("phase 1/1 x", step, 40, loss=1.5, tokens_per_second=1000.0, seconds_left=4.0))
    terminal.close()
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 11
    assert lines[-1] == "phase 1/1 x 40/40  loss 1.500  1,000 tokens/s  4 s left"


def test_the_logged_speed_leaves_out_what_is_no_training(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr("trainer.pretrain.time.perf_counter", lambda: now[0])
    clock = _Clock(0.0, 0)
    now[0] = 4.0
    with clock.paused():  # an evaluation, a probe or a checkpoint
        now[0] = 1000.0
    now[0] = 1006.0
    assert clock.steps_a_second(10) == 1.0
    now[0] = 1008.0
    assert clock.steps_a_second(11) == 0.5


def test_a_long_build_says_how_far_it_is(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0.0]
    monkeypatch.setattr("trainer.train.progress.time.monotonic", lambda: clock[0])
    show = TrainingDisplay()
    for part in range(1, 201):
        clock[0] += 0.25
        show(before_training(f"tokenising fr: {2000 * part:,} documents", part / 200, 40))
    for part in range(1, 9):
        clock[0] += 10
        show(before_training(f"tokenising hub: {2000 * part:,} documents", float("nan"), 40))
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "tokenising fr: 2,000 documents 0%"
    assert lines[5] == "tokenising fr: 200,000 documents 50%"
    assert len(lines) == 13, "the start, ten tenths, and the hub's source twice: at its start and after a minute"
    assert lines[-2:] == ["tokenising hub: 2,000 documents", "tokenising hub: 16,000 documents"]


@pytest.mark.parametrize(("loss", "norm"), [(math.nan, 1.0), (math.inf, 1.0), (5.0, math.inf), (5.0, math.nan)])
def test_a_loss_or_a_gradient_alone_stops_the_run(loss: float, norm: float, tmp_path: Path) -> None:
    recipe = load_recipe("toy_detour")
    run = State(recipe, tmp_path, World(0, 1, torch.device("cpu")), silent, lambda: False)
    run.progress = Progress(step=1, total_steps=1)
    figures = {"targets": 10, "rate": 1e-3, "speed": 1.0, "cost": 1.0}
    _report(run, recipe.phases[0], 5.0, 1.0, **figures)  # type: ignore[arg-type]
    with pytest.raises(TrainingError, match="phase 'detour' is not finite at step 1"):
        _report(run, recipe.phases[0], loss, norm, **figures)  # type: ignore[arg-type]
