"""The table of a study: arms against the reference, over pretraining seeds and test sets."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from statistics import fmean, stdev

import numpy as np

from biobench.data.catalog import load_task
from biobench.reporting.evidence import LEAST_SEEDS
from biobench.stats import (
    Answer,
    Estimand,
    HolmStep,
    LeftOut,
    TaskNoise,
    holm,
    mean_variances,
    seed_part,
    task_weights,
    these_tasks,
)
from biobench.stats.types import FloatArray, is_zero
from biobench.workflows.study import Study, StudyRun


@dataclass(frozen=True, slots=True)
class ArmRow:
    """One arm at one budget; scores and differences are fractions.

    scores: the mean over tasks (over the corpora of their tasks' means), by pretraining seed.
    difference: to the reference arm, over the pretraining seeds that both have; None for the
    reference. low, high: its interval, at the level at which Holm's correction over all arms and
    budgets decided about it; p, p_corrected: without and with that correction; shown: what it
    decided. All None for fewer than three common seeds and for equal differences. test_sets:
    whether the noise of test sets is in them, beside that of pretraining seeds.
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
UNKNOWN: RunDocuments = {}


def table(
    study: Study, runs: Sequence[StudyRun], scores: RunScores, documents: RunDocuments = UNKNOWN
) -> list[ArmRow]:
    """One row an arm and budget, corrected for all of them (Holm).

    A run counts where all tasks of the study have a score. Without `documents`, the noise of test
    sets is unknown, and intervals are over pretraining seeds alone.
    """
    outcome = StudyOutcome.of(study, scores, documents)
    rows: list[ArmRow] = []
    answers: list[Answer | None] = []
    for budget, arm in product(study.budgets, study.arms):
        arm_runs = outcome.whole_runs(runs, arm, budget)
        if not arm_runs:
            continue
        row = ArmRow(arm, budget, {seed: outcome.mean(run) for seed, run in arm_runs.items()})
        answer = None
        pairs: RunPairs = []
        if arm != study.reference:
            pairs = _paired(arm_runs, outcome.whole_runs(runs, study.reference, budget))
        if pairs:
            row = replace(row, difference=fmean(outcome.differences(pairs)))
            answer = outcome.answer(pairs)
        rows.append(row)
        answers.append(answer)
    steps = holm([None if answer is None else answer.p for answer in answers])
    for number, (answer, step) in enumerate(zip(answers, steps, strict=True)):
        if answer is not None and step is not None:
            rows[number] = _with_answer(rows[number], answer, step)
    return rows


RunPairs = Sequence[tuple[str, str]]
"""A run of an arm and the reference's run of the same pretraining seed."""


def _paired(arm_runs: Mapping[int, str], reference_runs: Mapping[int, str]) -> RunPairs:
    """The runs of the pretraining seeds that both have."""
    return [(run, reference_runs[seed]) for seed, run in arm_runs.items() if seed in reference_runs]


@dataclass(frozen=True, slots=True)
class StudyOutcome:
    """The primary outcome of a study: the mean over its tasks, each corpus counting once."""

    tasks: tuple[str, ...]
    corpora: tuple[str, ...]
    scores: RunScores
    documents: RunDocuments
    test_documents: tuple[int, ...]
    """Of each task; 0 where its spec does not say."""

    @classmethod
    def of(cls, study: Study, scores: RunScores, documents: RunDocuments) -> StudyOutcome:
        """The declared outcome on what is known of the runs."""
        tasks = []
        corpora = []
        counts = []
        for name in study.benchmark.tasks:
            task = load_task(name).spec
            tasks.append(task.id)
            corpora.append(task.corpus_id)
            counts.append(task.counts.get("test", {}).get("documents", 0))
        return cls(tuple(tasks), tuple(corpora), scores, documents, tuple(counts))

    @property
    def weights(self) -> FloatArray:
        """Of each task in the mean, (tasks,)."""
        return task_weights(self.corpora)

    @property
    def resolution(self) -> float:
        """The step of a difference: one test document of each task, of two runs."""
        counts = np.array(self.test_documents, float)
        counted = counts > 0
        steps = self.weights[counted] / counts[counted]
        squares = float(steps @ steps)
        return math.sqrt(2 * squares)

    def whole_runs(self, runs: Sequence[StudyRun], arm: str, budget: int) -> dict[int, str]:
        """Pretraining seed -> run, of those with a score on every task."""
        whole = {}
        for run in runs:
            scored = self.scores.get(run.name, {})
            if (run.arm, run.budget) == (arm, budget) and set(self.tasks) <= scored.keys():
                whole[run.seed] = run.name
        return whole

    def mean(self, run: str) -> float:
        """A run's mean over the tasks."""
        return float(self.weights @ self._by_task(run))

    def differences(self, pairs: RunPairs) -> list[float]:
        """Arm minus reference, one a pretraining seed."""
        differences = []
        for run, reference in pairs:
            by_task = self._by_task(run) - self._by_task(reference)
            differences.append(float(self.weights @ by_task))
        return differences

    def _by_task(self, run: str) -> FloatArray:
        """A run's scores, (tasks,)."""
        return np.array([self.scores[run][task] for task in self.tasks])

    def answer(self, pairs: RunPairs) -> Answer | None:
        """The mean difference over pretraining seeds, which pair: the arms of one seed see the
        same data in the same order. None for fewer than three, and for equal differences, which
        leave the spread over further seeds unknown.
        """
        by_seed = self.differences(pairs)
        if len(by_seed) < LEAST_SEEDS or is_zero(stdev(by_seed), max(map(abs, by_seed))):
            return None
        noises = []
        for corpus, task in zip(self.corpora, self.tasks, strict=True):
            documents = self._left_out(task, pairs)
            noises.append(TaskNoise(corpus, seeds=(), documents=documents))
        over_documents = mean_variances(noises, self.weights)
        seeds = seed_part(by_seed, resolution=self.resolution)
        variances = replace(over_documents, seeds=(seeds,))
        return these_tasks(fmean(by_seed), variances)

    def _left_out(self, task: str, pairs: RunPairs) -> tuple[LeftOut, ...] | None:
        """Arm's and reference's scores without each group of documents, a column a pretraining
        seed; None where those of a run are unknown.
        """
        sides = []
        for runs in zip(*pairs, strict=True):
            columns = []
            for run in runs:
                left_out = self.documents.get(run, {}).get(task)
                if left_out is None:
                    return None
                columns.append(left_out)
            full = [column.full.mean() for column in columns]
            without = [column.without.mean(axis=1) for column in columns]
            groups = columns[0].groups
            side = LeftOut(np.array(full), np.stack(without, axis=1), groups)
            sides.append(side)
        return tuple(sides)


def _with_answer(row: ArmRow, answer: Answer, step: HolmStep) -> ArmRow:
    interval = answer.interval(1 - step.alpha)
    return replace(
        row,
        low=interval.low,
        high=interval.high,
        level=interval.level,
        p=answer.p,
        p_corrected=step.adjusted,
        shown=step.passed,
        test_sets=answer.estimand is Estimand.THESE_TASKS,
    )
