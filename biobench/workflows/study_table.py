"""The table of a study: arms against the reference, over pretraining seeds and test sets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from statistics import fmean, stdev

import numpy as np

from biobench.data.catalog import load_task
from biobench.report.evidence import LEAST_SEEDS
from biobench.stats import (
    Answer,
    Estimand,
    LeftOut,
    TaskNoise,
    Variances,
    holm,
    mean_variances,
    seed_part,
    task_weights,
    these_tasks,
)
from biobench.workflows.study import Study, StudyRun


@dataclass(frozen=True, slots=True)
class ArmRow:
    """One arm at one budget; scores and differences are fractions.

    scores: the mean over tasks (over the corpora of their tasks' means), by pretraining seed.
    difference: to the reference arm, over the pretraining seeds that both have; None for the
    reference. low, high: its interval, at the level at which Holm's correction over all arms and
    budgets decided about it; p, p_corrected: without and with that correction; shown: what it
    decided. All None for fewer than three common seeds. test_sets: whether the noise of test sets
    is in them, beside that of pretraining seeds.
    """

    arm: str
    budget: int
    scores: dict[int, float]
    difference: float | None = None
    low: float | None = None
    high: float | None = None
    level: float | None = None
    p: float | None = None
    p_corrected: float | None = None
    shown: bool | None = None
    test_sets: bool = False

    @property
    def mean(self) -> float:
        """Over pretraining seeds."""
        return fmean(self.scores.values())

    @property
    def spread(self) -> float | None:
        """Standard deviation over pretraining seeds; None for one."""
        return stdev(self.scores.values()) if len(self.scores) > 1 else None


RunScores = Mapping[str, Mapping[str, float]]
"""Run -> task -> score, a fraction, the mean over fine-tuning seeds."""
RunDocuments = Mapping[str, Mapping[str, LeftOut]]
"""Run -> task -> that mean without each group of test documents, where gold can be read."""


def table(
    study: Study, runs: Sequence[StudyRun], scores: RunScores, documents: RunDocuments | None = None
) -> list[ArmRow]:
    """One row an arm and budget, corrected for all of them (Holm).

    A run counts where all tasks of the study have a score. Without `documents`, the noise of test
    sets is unknown, and intervals are over pretraining seeds alone.
    """
    tasks = study.benchmark.all_ids[: len(study.benchmark.tasks)]
    corpora = [load_task(task).spec.corpus_id for task in study.benchmark.tasks]
    weights = task_weights(corpora)
    rows: list[ArmRow] = []
    answers: list[Answer | None] = []
    for budget, arm in product(study.budgets, study.arms):
        of_arm = _whole_runs(runs, scores, tasks, arm, budget)
        if not of_arm:
            continue
        means = {
            seed: float(weights @ [scores[name][task] for task in tasks])
            for seed, name in of_arm.items()
        }
        row, answer = ArmRow(arm, budget, means), None
        of_reference = _whole_runs(runs, scores, tasks, study.reference, budget)
        pairs = [(name, of_reference[s]) for s, name in of_arm.items() if s in of_reference]
        if arm != study.reference and pairs:
            by_seed = []
            for name, reference in pairs:
                gaps = [scores[name][task] - scores[reference][task] for task in tasks]
                by_seed.append(float(weights @ gaps))
            noises = [
                _documents(corpus, task, pairs, documents or {})
                for corpus, task in zip(corpora, tasks, strict=True)
            ]
            answer = _answer(by_seed, mean_variances(noises, weights))
            row = replace(row, difference=fmean(by_seed))
        rows.append(row)
        answers.append(answer)
    return _corrected(rows, answers)


def _corrected(rows: Sequence[ArmRow], answers: Sequence[Answer | None]) -> list[ArmRow]:
    """The rows with their answers, after Holm's correction for all of them."""
    steps = holm([None if answer is None else answer.p for answer in answers])
    corrected = []
    for row, answer, step in zip(rows, answers, steps, strict=True):
        if answer is None or step is None:
            corrected.append(row)
            continue
        interval = answer.interval(1 - step.alpha)
        decided = replace(
            row,
            low=interval.low,
            high=interval.high,
            level=interval.level,
            p=answer.p,
            p_corrected=step.adjusted,
            shown=step.passed,
            test_sets=answer.estimand is Estimand.THESE_TASKS,
        )
        corrected.append(decided)
    return corrected


def _whole_runs(
    runs: Sequence[StudyRun], scores: RunScores, tasks: Sequence[str], arm: str, budget: int
) -> dict[int, str]:
    """Pretraining seed -> run, of those with a score on every task."""
    of_arm = [run for run in runs if (run.arm, run.budget) == (arm, budget)]
    return {run.seed: run.name for run in of_arm if set(tasks) <= set(scores.get(run.name, {}))}


def _documents(
    corpus: str, task: str, pairs: Sequence[tuple[str, str]], documents: RunDocuments
) -> TaskNoise:
    """The task's scores without each group of documents, a column a pretraining seed."""
    sides = []
    for names in zip(*pairs, strict=True):
        readable = [name for name in names if task in documents.get(name, {})]
        if len(readable) < len(names):
            return TaskNoise(corpus, seeds=(), documents=None)
        columns = [documents[name][task] for name in names]
        sides.append(
            LeftOut(
                full=np.array([column.full.mean() for column in columns]),
                without=np.stack([column.without.mean(axis=1) for column in columns], axis=1),
                groups=columns[0].groups,
            )
        )
    return TaskNoise(corpus, seeds=(), documents=tuple(sides))


def _answer(by_seed: Sequence[float], over_documents: Variances) -> Answer | None:
    """The mean difference over pretraining seeds, which pair: the arms of one seed see the same
    data in the same order. None for fewer than three.
    """
    if len(by_seed) < LEAST_SEEDS:
        return None
    variances = replace(over_documents, seeds=(seed_part(by_seed),))
    return these_tasks(fmean(by_seed), variances)
