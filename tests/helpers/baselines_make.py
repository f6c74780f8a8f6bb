"""Gate records made by hand."""

from __future__ import annotations

from pathlib import Path

from biobench.reporting.tasks import shipped
from biobench.schema.baseline import BaselineRecord, GateCheck, PolicyScores
from biobench.store.baselines import save_baseline


def play(
    results: Path,
    task: str,
    score: float,
    data: str = "d",
    made: str = "2026-01-01T00:00:00+00:00",
    why: str = "",
) -> None:
    """A gate record with an oracle and one baseline; why: the question that it fails."""
    rows = (("oracle", "ceiling", 1.0), ("majority", "floor", score))
    averages = ("macro_f1", "micro_f1", "weighted_f1")
    policies = tuple(
        PolicyScores(
            name=name, words="w", kind=kind, draws=1, scores=dict.fromkeys(averages, value)
        )
        for name, kind, value in rows
    )
    labels, checks = (
        ("A", "B"),
        (GateCheck(name="surface", passed=False, words=why),) if why else (),
    )
    record = BaselineRecord(
        task=task,
        task_version=1,
        task_hash=next(iter(shipped()[task].hashes.values())),
        data_hash=data,
        source="s",
        type="single_label",
        labels=labels,
        gold_labels=labels,
        expect="text_informative",
        passed=not why,
        policies=policies,
        checks=checks,
        test_documents=60,
        test_groups=60,
        seed=0,
        permutations=10,
        seconds=1.0,
        biobench="0.1.0",
        packages={},
        made=made,
    )
    save_baseline(results, record)
