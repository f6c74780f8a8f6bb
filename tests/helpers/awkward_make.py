"""A results folder of awkward runs: few seeds, other seeds, gaps, ties, failed runs, several splits, coarse scores."""

from __future__ import annotations

import random
from collections.abc import Mapping
from pathlib import Path

from biobench.report.tasks import shipped
from biobench.schema.record import Resampling
from tests.helpers.report_make import run_of
from tests.helpers.store_make import write_runs

Scores = Mapping[str, Mapping[str, Mapping[int, float]]]
"""Model -> task -> seed -> score, a fraction."""

TASKS = tuple(i.id for i in shipped().values() if i.suite == "fr" and i.in_suite)
ANSWERS = {task: (4.0, 60.0, 3000.0)[place % 3] for place, task in enumerate(TASKS)}
"""Gold answers of each task: from a score that moves in quarters to a fine one."""
SPLITS = TASKS[-1]
"""The task whose runs are several splits of one corpus."""
TEST, TRAIN = 3, 12
"""Documents of a split."""


def awkward_scores(chance: random.Random) -> Scores:
    """Models on the French suite; on `SPLITS` all have the same splits."""
    level = {task: chance.uniform(0.3, 0.7) for task in TASKS}

    def drawn(ahead: float, seeds: range, noise: float = 0.01) -> dict[str, dict[int, float]]:
        return {
            task: {
                seed: level[task] + ahead + chance.gauss(0, noise) for seed in (range(5) if task == SPLITS else seeds)
            }
            for task in TASKS
        }

    steady = drawn(0.05, range(5))
    lacking = drawn(0.02, range(5))
    failed = drawn(0.04, range(5))
    failed[TASKS[0]][2] = 0.01
    return {
        "steady": steady,
        "tied": {task: dict(runs) for task, runs in steady.items()},
        "ahead": {task: {s: v + 0.03 for s, v in runs.items()} for task, runs in steady.items()},
        "equal": {task: dict.fromkeys(runs, level[task]) for task, runs in steady.items()},
        "noisy": drawn(0.03, range(5), 0.05),
        "single": drawn(0.1, range(1)),
        "lacking": {task: lacking[task] for task in TASKS[2:]},
        "elsewhere": {task: lacking[task] for task in TASKS[:2]},
        "shifted": drawn(-0.03, range(2, 7)),
        "foreign": drawn(-0.05, range(40, 44)),
        "many": drawn(0.0, range(9)),
        "failed": failed,
    }


def save_awkward(results: Path, scores: Scores) -> None:
    """Store the runs, without fsync so that it is quick; `limited` is a model of limited runs alone."""
    runs = [
        run_of(
            *(model, task, seed, score),
            resampling=Resampling(fold=seed, folds=10, train_documents=TRAIN) if task == SPLITS else None,
        )
        for model, tasks in scores.items()
        for task, seeds in tasks.items()
        for seed, score in seeds.items()
    ]
    runs += [run_of("limited", task, 0, 0.9, limit=16) for task in TASKS[:3]]
    rows = [{"Drug": {"f1": run.scores["macro_f1"], "support": ANSWERS[run.task.id]}} for run in runs]
    write_runs(results, (run.model_copy(update={"per_label": row}) for run, row in zip(runs, rows, strict=True)))
