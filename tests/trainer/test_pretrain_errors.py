"""What can go wrong outside is one clear line, and nothing that was there is lost."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
import torch

from biobench.errors import BioBenchError, ModelError, StoreError, TrainingError, UsageError
from tests.helpers.pretrain_models import tiny
from tests.helpers.trainer_make import numbered, train
from trainer.model.network import load_model
from trainer.model.tokens import check_fit
from trainer.pretrain import State, _Clock, _report
from trainer.recipe.library import load_recipe
from trainer.train.checkpoint import Progress
from trainer.train.distributed import World
from trainer.train.progress import Metrics, Tick, TrainingDisplay, read_metrics, silent
from trainer.train.run_folder import claimed, read_recipe


def one_line(error: BioBenchError) -> None:
    assert "\n" not in str(error)
    assert error.hint


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


def test_a_base_that_is_not_there_is_one_line(small: list[str], tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="cannot be loaded") as caught:
        train(tmp_path / "run", [*(o for o in small if not o.startswith("base.")), "base={model: /nowhere/at/all}"])
    one_line(caught.value)


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


@pytest.mark.parametrize(("loss", "norm"), [(math.nan, 1.0), (math.inf, 1.0), (5.0, math.inf), (5.0, math.nan)])
def test_a_loss_or_a_gradient_alone_stops_the_run(loss: float, norm: float, tmp_path: Path) -> None:
    recipe = load_recipe("toy_detour")
    run = State(recipe, tmp_path, World(0, 1, torch.device("cpu")), silent, lambda: False)
    run.progress = Progress(step=1, total_steps=1)
    figures = {"targets": 10, "rate": 1e-3, "speed": 1.0, "cost": 1.0}
    _report(run, recipe.phases[0], 5.0, 1.0, **figures)  # type: ignore[arg-type]
    with pytest.raises(TrainingError, match="phase 'detour' is not finite at step 1"):
        _report(run, recipe.phases[0], loss, norm, **figures)  # type: ignore[arg-type]
