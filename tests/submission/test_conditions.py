"""What may be submitted: full runs under the conditions that the board shows, and every shipped
run.
"""

import time
from collections import Counter
from pathlib import Path

import pytest

from biobench.data.catalog import load_task
from biobench.data.hashing import task_hash, task_identity
from biobench.errors import UsageError
from biobench.reporting.entrants import line_name
from biobench.reporting.results import load
from biobench.schema.protocols import FROZEN, protocol_overrides
from biobench.schema.record import Trial
from biobench.store import Store
from biobench.submission.pack import submit
from biobench.submission.verify import examine
from tests.helpers.processor import budget
from tests.helpers.submission_make import TASK, checked, codes, honest_run, save_rekeyed

RESULTS = Path(__file__).resolve().parents[2] / "results"
TRIAL = Trial(factor=1.0, learning_rate=1e-5, validation=0.9, best_step=1)
LORA = ("training.adapter.method=lora", "training.adapter.rank=16", "training.learning_rate=3e-4")


def under(
    results: Path, overrides: tuple[str, ...], track: str = "fixed", seed: int = 42, **training
) -> None:
    """A run under these conditions, with the hashes and the key that follow."""
    run, task = honest_run(results, seed), load_task(TASK, overrides)
    identity = run.task.model_copy(update={"hash": task_hash(task, run.task.source)})
    conditions = {"task": identity, "overrides": overrides, "track": track}
    conditions |= {"protocol": task_identity(task, run.task.source)}
    training = {"training": run.training.model_copy(update=training)}
    gold, predictions = Store(results).load_predictions(run)
    (results / "runs" / TASK / f"{run.key}.json").unlink()
    save_rekeyed(results, run.model_copy(update=conditions | training), predictions, gold)


@pytest.mark.parametrize(
    ("overrides", "track", "training", "shown"),
    [
        (
            protocol_overrides("small", kind="single_label", unit="sentence"),
            "fixed",
            {},
            "small protocol",
        ),
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
    assert len(examine(alone).runs) == 1, "without brackets the runs of the spec as it is are meant"
    pack = submit(
        f"org/tiny [{shown}]", tmp_path / "results", tmp_path / "board" / "submitted" / "mine"
    )
    found = examine(pack)
    assert (found.state, len(found.runs)) == ("verified", 2), found.checks
    (group,) = load(tmp_path / "board").groups
    assert (group.source, group.variant) == ("submitted", shown)


@pytest.mark.parametrize(
    "overrides", [("training.epochs=99",), ("metric.primary=micro_f1",), (*LORA, "unit=line")]
)
def test_other_changes_of_the_spec_are_not(tmp_path, overrides):
    under(tmp_path / "results", overrides)
    with pytest.raises(UsageError, match="of the spec; submissions set adapters"):
        submit("org/tiny", tmp_path / "results", tmp_path / "pack")


def test_conditions_that_were_not_those_of_the_run(tmp_path):
    """A run of the spec as it is that names an adapter."""
    made = honest_run(tmp_path / "results")
    Store(tmp_path / "results").update(made.model_copy(update={"overrides": LORA}))
    assert codes(checked(tmp_path / "results")) == {"T02"}


RUNS = Counter[str]()
"""Shipped runs by the line of the report that they are in."""
for group in load(RESULTS).groups:
    RUNS[line_name(group.model, group.variant)] += len(group.briefs) * (
        group.source in ("run", "frozen")
    )


@pytest.mark.parametrize("line", RUNS)
def test_every_shipped_run_passes_once_it_is_submitted(tmp_path, line):
    pack = submit(line, RESULTS, tmp_path / "pack")
    began = time.process_time()
    verification = examine(pack, tmp_path / "no-data")
    assert (time.process_time() - began) / len(verification.runs) < budget(2.0), (
        "seconds of a quiet core a run"
    )
    assert verification.accepted, [c for c in verification.checks if c.grade != "warning"]
    assert (verification.count("refused"), len(verification.runs)) == (0, RUNS[line])


def test_all_shipped_runs_are_among_these():
    assert RUNS.total() == len(list(RESULTS.glob("runs/*/*.json")))


@pytest.mark.real
def test_the_shipped_runs_are_scored_again_on_the_data(tmp_path, data_dir):
    (line,) = (line for line in RUNS if line.startswith("causal-detour"))
    found = examine(submit(line, RESULTS, tmp_path / "pack"), data_dir)
    assert (found.state, found.mark) == ("verified", "re-scored"), found.checks
