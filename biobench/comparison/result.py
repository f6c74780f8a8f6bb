"""What a comparison found: the numbers, which the verdict, the tables and the board put into words.

Scores and differences are fractions; what each interval is about is its `estimand`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from biobench.comparison.contest import Refused
from biobench.comparison.twins import Twins
from biobench.report.row import AverageName
from biobench.stats import (
    Estimand,
    Interaction,
    Interval,
    MeanTest,
    Pair,
    RankInterval,
    SeedPlan,
    Standing,
    WithinTasks,
)
from biobench.store import UnusableFile


@dataclass(frozen=True, slots=True)
class TaskLine:
    """First minus second model on one task.

    seeds: other seeds, this test set. documents: these runs, another test set (None without predictions).
    total: both. Each is None where it is unknown; `note` says why. groups: independent documents of the test
    split. detectable: smallest true difference found with 80% power, by the total.
    """

    task: str
    corpus: str
    metric: str
    first: float
    second: float
    difference: float
    n_first: int
    n_second: int
    published: bool
    paired: bool
    seeds: MeanTest
    documents: MeanTest | None
    total: MeanTest | None
    groups: int | None
    detectable: float | None
    note: str | None
    same: float | None = None
    """p of "outside the rope", of the most that may vary; None without a rope."""

    @property
    def widest(self) -> Interval | None:
        """The widest-reaching interval that is known: seeds and test sets, else test sets, else seeds."""
        return next((t.interval for t in (self.total, self.documents, self.seeds) if t and t.interval), None)


@dataclass(frozen=True, slots=True)
class FailedRun:
    """A run far below the other seeds of its model and task, or no better than no skill. score: a fraction."""

    model: str
    task: str
    seed: int
    score: float


@dataclass(frozen=True, slots=True)
class PairResult:
    """One pair. pair: the suite test with its corrected p. within: these tasks alone, held fixed; within_p: its p,
    corrected over all pairs spoken of (Holm). plan: seeds that a wanted difference needs, None without seeds.

    interactions: part of the suite ("kind", "language") -> how the difference varies over it, where there are two.
    without: for each corpus the p of the suite test on the others. same, same_here: p of "outside the rope" on tasks
    like these and on these tasks; None without a rope. exploratory: not a pair of the declared plan.
    """

    pair: Pair
    tasks: tuple[TaskLine, ...]
    within: WithinTasks
    plan: SeedPlan | None
    within_p: float | None = None
    interactions: Mapping[str, Interaction] = field(default_factory=dict)
    without: tuple[float | None, ...] = ()
    same: float | None = None
    same_here: float | None = None
    exploratory: bool = False

    def unspoken(self, alpha: float) -> str | None:
        """The part of the suite over which the difference varies beyond chance: no one number stands for all."""
        return differing(self.interactions, alpha)


@dataclass(frozen=True, slots=True)
class SuiteStanding:
    """The suite's own means on the tasks that all models have.

    needed: tasks of the suite; with fewer in `tasks` a mean is none of the suite's. means: model -> mean, a fraction.
    tests: (first, second) -> difference of the means with its interval on these tasks, None where a task's noise is
    unknown.
    """

    name: str
    mean: str
    needed: int
    tasks: int
    means: Mapping[str, float]
    tests: Mapping[tuple[str, str], MeanTest | None]

    @property
    def is_whole(self) -> bool:
        """Whether no task of the suite is missing."""
        return self.tasks == self.needed


@dataclass(frozen=True, slots=True)
class Compared:
    """What a comparison found. pairs: first named against second and so on; standings: best first.

    published, policies: which of the models are known from print alone, or are policies of the gate; perfect:
    which of these returns the gold and so errs on no test set. ranks: bootstrap intervals of the ranks, for
    three models or more. notes: what a reader must know; findings: damaged records; refused: runs left out because
    their task fails its gate.
    """

    models: tuple[str, ...]
    average: AverageName
    tasks: tuple[str, ...]
    clusters: tuple[str, ...]
    metrics: Mapping[str, str]
    published: tuple[str, ...]
    policies: tuple[str, ...]
    perfect: tuple[str, ...]
    pairs: tuple[PairResult, ...]
    standings: tuple[Standing, ...]
    ranks: tuple[RankInterval, ...]
    twins: tuple[Twins, ...]
    alpha: float
    estimand: Estimand
    notes: tuple[str, ...]
    findings: tuple[UnusableFile, ...]
    refused: tuple[Refused, ...] = ()
    shares: Mapping[str, float] = field(default_factory=dict)
    """Task -> its share of the variance of the suite mean over the models; empty for fewer than three."""
    failed: tuple[FailedRun, ...] = ()
    language: str = ""
    """Of all tasks, empty where there are several."""
    parts: tuple[Compared, ...] = ()
    """One comparison a language, where there are several and no pooled verdict was asked for."""
    declared: SuiteStanding | None = None
    """By a declared suite's own mean, where one was asked for."""
    plan: str = ""
    """Hash of the plan that was declared before looking."""


def differing(interactions: Mapping[str, Interaction], alpha: float) -> str | None:
    """The first part of a suite over which a difference varies at this level."""
    return next((name for name, i in interactions.items() if i.p is not None and i.p <= alpha), None)
