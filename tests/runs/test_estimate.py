"""How long a plan takes, told from stored runs and from those it has made."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from biobench.core.progress import in_words
from biobench.runs.estimate import Pace, work
from biobench.runs.options import RunRequest
from biobench.runs.plan import Item, RunPlan, make_plan
from tests.helpers.checkpoints import make_checkpoint
from tests.helpers.cli_make import FAST, Said, call


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A BERT and a ModernBERT."""
    folder = tmp_path_factory.mktemp("families")
    return make_checkpoint("bert", folder / "bert"), make_checkpoint("modernbert", folder / "modern")


@pytest.fixture
def plan(models: tuple[Path, Path], tmp_path: Path) -> RunPlan:
    """Two models on two tasks, one seed, nothing stored."""
    return make_plan(
        RunRequest(
            tuple(map(str, models)), tasks=("demo_ner", "demo_topic"), seeds="1", results_dir=tmp_path / "r",
            device="cpu",
        )
    )  # fmt: skip


def item(plan: RunPlan, model: int, task: str) -> Item:
    """The item of that model and task."""
    return next(i for i in plan.items if i.task.id == task and i.checkpoint is plan.checkpoints[model])


def test_work_counts_characters_epochs_and_trials(plan: RunPlan) -> None:
    own = item(plan, 0, "demo_topic")
    data, recipe = own.task.data, own.task.loaded.spec.training
    assert data is not None
    train, validation, test = (sum(len(d.text) for d in data.documents[s]) for s in ("train", "validation", "test"))
    assert recipe.epochs is not None
    assert work(own) == recipe.epochs * (3 * train + validation) + test


def test_the_nearest_kind_of_run_tells_the_time(plan: RunPlan, monkeypatch: pytest.MonkeyPatch) -> None:
    pace = Pace()
    ner, topic = item(plan, 0, "demo_ner"), item(plan, 0, "demo_topic")
    assert pace.seconds(ner) is None
    assert pace.total(plan.items) is None
    own = ner.checkpoint.parameters
    assert own is not None
    pace.add(ner, 10.0, own)
    assert pace.seconds(ner) == pytest.approx(10.0)
    assert pace.seconds(topic) == pytest.approx(10.0 * work(topic) / work(ner))
    other = item(plan, 1, "demo_ner")
    assert other.checkpoint.parameters is not None
    assert pace.seconds(other) == pytest.approx(10.0 * other.checkpoint.parameters / own), "in proportion to weights"
    monkeypatch.setattr("biobench.models.loading.Checkpoint.parameters", None)
    assert pace.seconds(other) is None, "a file of weights that cannot be counted"


def test_parameters_are_read_from_the_files(plan: RunPlan) -> None:
    from biobench.finetune.engine import load_encoder

    for checkpoint in plan.checkpoints:
        loaded = load_encoder(checkpoint, plan.device).parameters
        assert checkpoint.parameters is not None
        assert loaded <= checkpoint.parameters < 1.2 * loaded, "the files hold a pooler too"


def test_a_dry_run_and_a_run_tell_how_long_the_rest_takes(
    models: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)

    def biobench(*arguments: str | Path) -> Said:
        return call(monkeypatch, capfd, *arguments)

    base = ("run", models[0], "--task", "demo_topic", *FAST)
    assert "no timings on this device yet" in biobench(*base, "--seeds", "1-3", "--dry-run").out
    made = biobench(*base, "--seeds", "1-2", "--json")
    assert len([line for line in made.err.splitlines() if line.endswith(" left")]) == 1
    rows = biobench(*base, "--seeds", "1-4", "--dry-run", "--json").json()
    took = sorted(row["seconds"] for row in made.json())
    expected = [row["seconds_expected"] for row in rows if row["status"] == "planned"]
    assert len(expected) == 2
    assert all(took[0] - 0.06 <= seconds <= took[1] + 0.06 for seconds in expected)
    assert "2 runs to make: about" in biobench(*base, "--seeds", "1-4", "--dry-run").out


def test_times_in_words() -> None:
    assert [in_words(s) for s in (45, 700, 12_000)] == ["45 s", "12 min", "3 h 20 min"]


def test_tokens_are_those_of_all_texts_that_a_run_reads(plan: RunPlan) -> None:
    from biobench.models.loading import load_tokenizer
    from biobench.runs.estimate import TokensRead

    own, read = item(plan, 1, "demo_topic"), TokensRead()
    data, recipe = own.task.data, own.task.loaded.spec.training
    assert data is not None
    tokenizer = load_tokenizer(own.checkpoint)
    exact = {
        split: sum(len(tokenizer(d.text, add_special_tokens=False)["input_ids"]) for d in data.documents[split])
        for split in ("train", "validation", "test")
    }
    assert recipe.epochs is not None
    whole = recipe.epochs * (exact["train"] + exact["validation"]) + exact["test"]
    assert read.of(own) == pytest.approx(whole, rel=0.1)
    assert read.of(replace(own, track="frozen")) == pytest.approx(sum(exact.values()), rel=0.1)
