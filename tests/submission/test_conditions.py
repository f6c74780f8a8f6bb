"""What may be submitted: full runs under the conditions that the board shows, and every shipped run."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from biobench.data.catalog import load_task
from biobench.data.hashing import task_hash, task_identity
from biobench.errors import UsageError
from biobench.report.entrants import line_name
from biobench.report.table import load
from biobench.schema.protocols import FROZEN, SMALL
from biobench.schema.record import Trial
from biobench.store import Store, run_key
from biobench.submission.pack import submit
from biobench.submission.verify import examine
from tests.helpers.submission_make import TASK, codes, honest_run

RESULTS = Path(__file__).resolve().parents[2] / "results"
TRIAL = Trial(factor=1.0, learning_rate=1e-5, validation=0.9, best_step=1)
LORA = ("training.adapter.method=lora", "training.adapter.rank=16", "training.learning_rate=3e-4")


def under(results: Path, overrides: tuple[str, ...], track: str = "fixed", seed: int = 42, **training) -> None:
    """A run under these conditions, with the hashes and the key that follow."""
    store = Store(results)
    made = honest_run(results, seed)
    task = load_task(TASK, overrides)
    digest = task_hash(task, made.task.source)
    key = run_key(
        model_hash=made.model.hash,
        task_hash=digest,
        data_hash=made.task.data_hash,
        seed=seed,
        precision="fp32",
        track=track,
    )
    gold, said = store.load_predictions(made)
    (results / "runs" / TASK / f"{made.key}.json").unlink()
    store.save(
        made.model_copy(
            update={
                "key": key,
                "task": made.task.model_copy(update={"hash": digest}),
                "overrides": overrides,
                "track": track,
                "protocol": task_identity(task, made.task.source),
                "training": made.training.model_copy(update=training),
            }
        ),
        gold,
        said,
    )


@pytest.mark.parametrize(
    ("overrides", "track", "training", "shown"),
    [
        (SMALL.of(kind="single_label", unit="sentence"), "fixed", {}, "small protocol"),
        (FROZEN, "frozen", {}, "frozen"),
        ((), "tuned", {"trials": (TRIAL,)}, "tuned"),
        (LORA, "fixed", {"trained_parameters": 9}, ", ".join(sorted(LORA))),
        (("training.top_layers=2",), "fixed", {"trained_parameters": 9}, "training.top_layers=2"),
    ],
    ids=["small", "frozen", "tuned", "adapter", "top layers"],
)
def test_runs_are_submitted_under_their_own_conditions(tmp_path, overrides, track, training, shown):
    """Before, every track but fixed and every override was refused."""
    for seed in (42, 43):
        under(tmp_path / "results", overrides, track, seed, **training)
    honest_run(tmp_path / "results", 42)
    alone = submit("org/tiny", tmp_path / "results", tmp_path / "full")
    assert examine(alone).records == 1, "without brackets the runs of the spec as it is are meant"
    pack = submit(f"org/tiny [{shown}]", tmp_path / "results", tmp_path / "board" / "submitted" / "mine")
    found = examine(pack)
    assert (found.state, found.records) == ("verified", 2), found.checks
    (group,) = load(tmp_path / "board").groups
    assert (group.source, group.variant) == ("submitted", shown)


@pytest.mark.parametrize("overrides", [("training.epochs=99",), ("metric.primary=micro_f1",), (*LORA, "unit=line")])
def test_other_changes_of_the_spec_are_not(tmp_path, overrides):
    under(tmp_path / "results", overrides)
    with pytest.raises(UsageError, match="of the spec; submissions set adapters"):
        submit("org/tiny", tmp_path / "results", tmp_path / "pack")


def test_conditions_that_were_not_those_of_the_run(tmp_path):
    """A run of the spec as it is that names an adapter."""
    made = honest_run(tmp_path / "results")
    Store(tmp_path / "results").update(made.model_copy(update={"overrides": LORA}))
    pack = submit("org/tiny", tmp_path / "results", tmp_path / "pack")
    assert codes(pack) == {"T02"}


def lines(results: Path) -> list[str]:
    return sorted({line_name(g.model, g.variant) for g in load(results).groups if g.source in ("run", "frozen")})


@pytest.mark.parametrize("line", lines(RESULTS))
def test_every_shipped_run_passes_once_it_is_submitted(tmp_path, line):
    pack = submit(line, RESULTS, tmp_path / "pack")
    began = time.process_time()
    found = examine(pack, tmp_path / "no-data")
    assert (time.process_time() - began) / found.records < 2, "seconds of a quiet core a run"
    assert found.accepted, [c for c in found.checks if c.grade != "warning"]
    assert found.count("refused") == 0


def test_all_shipped_runs_are_among_these(tmp_path):
    packs = [submit(line, RESULTS, tmp_path / str(i)) for i, line in enumerate(lines(RESULTS))]
    assert sum(len(list(pack.glob("runs/*/*.json"))) for pack in packs) == len(list(RESULTS.glob("runs/*/*.json")))


@pytest.mark.real
def test_the_shipped_runs_are_scored_again_on_the_data(tmp_path, data_dir):
    (line,) = (line for line in lines(RESULTS) if line.startswith("causal-detour"))
    found = examine(submit(line, RESULTS, tmp_path / "pack"), data_dir)
    assert (found.state, found.mark) == ("verified", "re-scored"), found.checks
