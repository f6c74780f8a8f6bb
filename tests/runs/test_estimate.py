"""How long a plan takes, judged by stored runs, and the order in which its runs are claimed."""

from __future__ import annotations

from dataclasses import replace
from operator import attrgetter
from pathlib import Path
from typing import Any

import pytest

from biobench.core.progress import about, in_words
from biobench.models.loading import load_tokenizer
from biobench.runs import estimate
from biobench.runs.estimate import Pace, Rate, characters, longest_first, steps_of, tokens_read
from biobench.runs.options import RunRequest
from biobench.runs.plan import Item, RunPlan, make_plan
from tests.helpers.checkpoints import make_checkpoint
from tests.helpers.cli_make import FAST, call


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> RunPlan:
    """A BERT and a ModernBERT on two tasks, one seed, nothing stored."""
    folder = tmp_path_factory.mktemp("families")
    models = [str(make_checkpoint(name, folder / name)) for name in ("bert", "modernbert")]
    tasks = ("demo_ner", "demo_topic")
    return make_plan(
        RunRequest(models, tasks=tasks, seeds="1", results_dir=folder / "r", device="cpu")
    )


def item(plan: RunPlan, model: int, task: str) -> Item:
    """The item of that model and task."""
    return next(
        i for i in plan.items if i.task.id == task and i.checkpoint is plan.checkpoints[model]
    )


def test_characters_and_tokens_are_those_of_all_texts_that_a_run_reads(plan: RunPlan) -> None:
    one = item(plan, 1, "demo_topic")
    data, recipe = one.task.data, one.task.loaded.spec.training
    tokenizer = load_tokenizer(one.checkpoint)

    def tokens(text: str) -> int:
        return len(tokenizer(text, add_special_tokens=False)["input_ids"])

    for counted, size, near in (
        (characters, len, 0.02),
        (lambda i: tokens_read([i])[i.key], tokens, 0.1),
    ):
        train, validation, test = (
            sum(size(d.text) for d in documents) for documents in data.documents.values()
        )
        assert counted(one) == pytest.approx(recipe.epochs * (train + validation) + test, rel=near)
        assert counted(replace(one, track="frozen")) == pytest.approx(
            train + validation + test, rel=near
        )


def test_steps_are_those_of_epochs_trials_and_probes(plan: RunPlan) -> None:
    one = item(plan, 0, "demo_topic")
    data, spec = one.task.data, one.task.loaded.spec
    batches = -(-len(data.train) // spec.training.batch_size)
    assert steps_of(one) == (spec.training.epochs or 0) * batches
    assert steps_of(replace(one, track="tuned")) == len(spec.training.grid) * steps_of(one)
    capped = spec.model_copy(
        update={"training": spec.training.model_copy(update={"train_documents": 17})}
    )
    small = replace(one, task=replace(one.task, loaded=replace(one.task.loaded, spec=capped)))
    assert steps_of(small) == (spec.training.epochs or 0) * 2, "17 documents in batches of 16"
    assert characters(small) < characters(one)


def test_the_nearest_kind_of_run_tells_the_time(
    plan: RunPlan, monkeypatch: pytest.MonkeyPatch
) -> None:
    pace = Pace(plan)
    ner, topic, other = (
        item(plan, 0, "demo_ner"),
        item(plan, 0, "demo_topic"),
        item(plan, 1, "demo_ner"),
    )
    assert pace.seconds(ner, 1000) is None
    size = ner.checkpoint.parameters or 0
    pace.tokens_of_all = [Rate(size // 2, 0.001), Rate(size * 100, 9.0), Rate(size // 100, 9.0)]
    assert pace.seconds(ner, 1000) == pytest.approx(2.0), (
        "of another model of its size, task, limit or recipe"
    )
    pace.by_tokens[ner.checkpoint.hash] = [0.004]
    assert pace.seconds(ner, 1000) == pytest.approx(4.0), "of the same model"
    assert pace.seconds(replace(ner, track="frozen"), 1000) is None, "it trains no encoder"
    other_size = other.checkpoint.parameters or 0
    rate = 10.0 / characters(ner)
    pace.by_characters.update(
        {
            (ner.checkpoint.hash, "demo_ner"): [rate],
            (ner.checkpoint.hash,): [rate],
        }
    )
    pace.characters_of_all = [Rate(size, rate)]
    assert pace.seconds(ner, 1000) == pytest.approx(10.0)
    assert pace.seconds(topic, 1000) == pytest.approx(
        10.0 * characters(topic) / characters(ner), abs=0.06
    )
    assert pace.seconds(other, 1000) == pytest.approx(10.0 * other_size / size, abs=0.06), (
        "in proportion to weights"
    )
    monkeypatch.setattr("biobench.models.loading.Checkpoint.parameters", None)
    assert pace.seconds(other, 1000) is None, "a file of weights that cannot be counted"


def test_parameters_are_read_from_the_files(plan: RunPlan) -> None:
    from biobench.finetune.engine import load_encoder

    for checkpoint in plan.checkpoints:
        loaded = load_encoder(checkpoint, plan.device).parameters
        assert loaded <= checkpoint.parameters < 1.2 * loaded, "the files hold a pooler too"


def test_a_dry_run_tells_how_long_the_rest_takes(
    tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)

    def biobench(*arguments: str) -> Any:
        return call(monkeypatch, capfd, "run", tiny, "--task", "demo_topic", *FAST, *arguments)

    biobench("--seeds 1 --track frozen").ok()  # a probe does not tell how long an encoder takes
    assert "no timings of models of this size on this" in biobench("--seeds 1-3 --dry-run").out
    took = sorted(row["seconds"] for row in biobench("--seeds 1-2 --json").json())
    rows = biobench("--seeds 1-4 --dry-run --json").json()
    expected = [row["seconds_expected"] for row in rows if row["status"] == "planned"]
    assert len(expected) == 2
    assert all(took[0] - 0.06 <= seconds <= took[1] + 0.06 for seconds in expected)
    assert "2 runs to make: " in biobench("--seeds 1-4 --dry-run").out
    longer = biobench("--seeds 1 --set training.epochs=9 --dry-run").out
    assert "1 run to make: " in longer
    assert "judged by stored runs on this device" in longer, "by the speed of another recipe"


def test_times_in_words() -> None:
    assert [in_words(s) for s in (45, 700, 12_000)] == ["45 s", "12 min", "3 h 20 min"]
    assert [about(s) for s in (0.4, 45)] == ["under a second", "about 45 s"]


def test_the_order_of_claims(plan: RunPlan, monkeypatch: pytest.MonkeyPatch) -> None:
    """By characters times parameters; seeds of one checkpoint and task stay together."""
    sizes = {"demo_ner": 1.0, "demo_topic": 1.001}
    monkeypatch.setattr(estimate, "characters", lambda one: sizes[one.task.id])
    seeds = [replace(one, seed=seed) for seed in (1, 2) for one in plan.items]
    models = sorted(plan.checkpoints, key=attrgetter("parameters"), reverse=True)
    order = [(one.checkpoint.id, one.task.id, one.seed) for one in longest_first(seeds)]
    assert order == [
        (checkpoint.id, task, seed)
        for checkpoint in models
        for task in ("demo_topic", "demo_ner")
        for seed in (1, 2)
    ]
