"""The numbers of a comparison, which the verdict, the tables and the board put into words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Literal, TypeVar

import numpy as np

from biobench.reporting.row import AverageName
from biobench.stats import Answer, Interval, task_weights
from biobench.stats.types import FloatArray
from biobench.store import UnusableFile

Value = TypeVar("Value")
Word = Literal["shown", "not shown", "not tested"]

TIE = 1e-9
"""Differences closer to zero than this come from float subtraction, not from the scores."""


@dataclass(frozen=True, slots=True)
class Conclusion:
    """A tested question: the answer, corrected for all pairs that were asked together.

    p: as it stands alone. p_corrected: after Holm's correction. interval: at the level at which
    Holm passed this pair or stopped, so that it leaves out zero (of sameness: lies within the
    margin, at 1 - 2 alpha) exactly where the claim is shown; never narrower than the interval of
    the narrower question.
    """

    answer: Answer
    p_corrected: float
    interval: Interval
    is_shown: bool

    @property
    def p(self) -> float:
        """Uncorrected, of a difference."""
        return self.answer.p


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a pair shows of the mean of these tasks, and of tasks like these; same: within the
    margin, None without one.

    equal: the scores of both models are the same on every task. guessing: the better model is not
    above a baseline without skill, so it leads nobody.
    """

    here: Word = "not tested"
    beyond: Word = "not tested"
    same: Word | None = None
    equal: bool = False
    guessing: bool = False


@dataclass(frozen=True, slots=True)
class TaskLine:
    """First minus second model on one task; scores and differences are fractions.

    seeds: other seeds, this test set. documents: these runs, another test set. total: both. Each is
    None where it is unknown. n_first, n_second: seeds, 0 for a printed score. splits: whether the
    runs are several splits of one corpus, paired by split. groups: independent documents of the
    test split.
    """

    task: str
    corpus: str
    metric: str
    first: float
    second: float
    difference: float
    n_first: int
    n_second: int
    splits: bool
    seeds: Answer | None
    documents: Answer | None
    total: Answer | None
    groups: int | None

    @property
    def is_printed(self) -> bool:
        """Whether a side is known from print alone."""
        return not (self.n_first and self.n_second)

    @property
    def widest(self) -> Interval | None:
        """The 95% interval of the answer that covers most of what varies."""
        answer = self.total or self.documents or self.seeds
        return None if answer is None else answer.interval()


@dataclass(frozen=True, slots=True)
class KindPart:
    """The mean difference over the corpora of one kind of task, a fraction."""

    difference: float
    corpora: int


@dataclass(frozen=True, slots=True)
class PairResult:
    """First minus second model. `pairs` makes it, and `correction` adds what depends on the other
    pairs: the claims, sameness, `detectable` and the verdict.

    difference: a fraction, of the means over corpora. answer: the mean of these tasks, other seeds
    and test sets; wider_answer: tasks like these; runs: these tasks over test sets alone, where the
    spread over seeds is unknown. Each is None where it is unknown, for the reason in words. parts:
    by kind of task, where there are several. tasks_shown: on how many tasks each model is shown to
    be better, after Holm's correction over the tasks. guessed: the tasks on which neither is above
    guessing. untrained: models without seeds to vary.
    printed: whether a side is known from print, so that test-set noise is in no answer.
    """

    first: str
    second: str
    language: str
    tasks: tuple[TaskLine, ...]
    difference: float
    answer: Answer | None
    wider_answer: Answer | None
    runs: Answer | None
    reason: str
    parts: Mapping[str, KindPart]
    tasks_shown: tuple[int, int]
    guessed: tuple[str, ...]
    untrained: tuple[str, ...]
    printed: bool
    here: Conclusion | None = None
    """On these tasks."""
    beyond: Conclusion | None = None
    """On tasks like these."""
    tested: int = 0
    """Pairs that were corrected together."""
    rope: float = 0.0
    """The margin of sameness, a fraction; 0 for none."""
    same: Conclusion | None = None
    """That they are the same within the margin; None without one, and where too few runs may say
    so.
    """
    detectable: float | None = None
    """The true difference that `here` would show in 4 of 5 cases, corrected for all pairs."""
    verdict: Verdict = Verdict()
    exploratory: bool = False
    """Whether a plan was declared (`Compared.plan`) that does not name this pair."""

    @property
    def differences(self) -> FloatArray:
        """First minus second model on each task, (tasks,), fractions."""
        return np.array([line.difference for line in self.tasks])

    @property
    def wins(self) -> int:
        """Tasks on which the first model is better, by more than the margin."""
        return int((self.differences > self.rope + TIE).sum())

    @property
    def losses(self) -> int:
        """Tasks on which it is worse."""
        return int((self.differences < -self.rope - TIE).sum())

    @property
    def ties(self) -> int:
        """Tasks on which neither is better."""
        return len(self.tasks) - self.wins - self.losses

    @property
    def corpora(self) -> int:
        """How many the tasks are of; each counts the same in the means."""
        return len({line.corpus for line in self.tasks})

    @property
    def means(self) -> tuple[float, float]:
        """Of the first and the second model, the mean over corpora of their tasks' means."""
        weights = task_weights([line.corpus for line in self.tasks])
        of_first, of_second = zip(*((line.first, line.second) for line in self.tasks), strict=True)
        return float(weights @ of_first), float(weights @ of_second)

    @property
    def is_tied(self) -> bool:
        """Whether both means are the same."""
        return abs(self.difference) <= TIE

    @property
    def is_reversed(self) -> bool:
        """Whether the second model is `better`: it has the higher mean or, of two equal ones, the
        name that sorts first, so that nothing depends on which model was asked for first.
        """
        return is_reversed(self.first, self.second, self.difference)

    @property
    def sign(self) -> int:
        """Of the better model minus the other one, in first minus second: -1 where reversed."""
        return -1 if self.is_reversed else 1

    def better_first(self, of_first: Value, of_second: Value) -> tuple[Value, Value]:
        """What is of the first and of the second model, in order of the better and the other."""
        if self.is_reversed:
            return of_second, of_first
        return of_first, of_second

    def ends(self, interval: Interval) -> tuple[float, float]:
        """Low and high end of the better model minus the other one."""
        return self.better_first(self.sign * interval.low, self.sign * interval.high)

    @property
    def higher(self) -> int:
        """Tasks on which the model with the higher mean scores higher, whatever the margin."""
        return int((self.sign * self.differences > TIE).sum())

    @property
    def better(self) -> str:
        """The model with the higher mean."""
        return self.better_first(self.first, self.second)[0]

    @property
    def worse(self) -> str:
        """The other one."""
        return self.better_first(self.first, self.second)[1]


def is_reversed(first: str, second: str, difference: float) -> bool:
    """Whether the second model is named before the first: see `PairResult.is_reversed`."""
    if abs(difference) <= TIE:
        return second < first
    return difference < 0


@dataclass(frozen=True, slots=True)
class RankedModel:
    """score: mean over corpora of their tasks' means, a fraction.

    rank: by score, 1 is best, ties share the best. ranks: best and worst that the Holm-corrected
    pairs leave possible on these tasks. guessing: the model is not above a baseline without skill.
    """

    model: str
    score: float
    rank: int
    ranks: tuple[int, int]
    guessing: bool

    @property
    def shown_ranks(self) -> str:
        """``2`` or ``1–3``."""
        low, high = self.ranks
        return str(low) if low == high else f"{low}–{high}"


@dataclass(frozen=True, slots=True)
class FailedRun:
    """A run far below the other seeds of its model and task. score: a fraction."""

    model: str
    task: str
    seed: int
    score: float


@dataclass(frozen=True, slots=True)
class ComparedPart:
    """The common tasks in one language (of several: in all, where one verdict over them was asked
    for).

    pairs: first named against second and so on; ranking: best first.
    """

    language: str
    pairs: tuple[PairResult, ...]
    ranking: tuple[RankedModel, ...]


@dataclass(frozen=True, slots=True)
class Compared:
    """What a comparison shows. Scores and differences are fractions.

    protocol: what the runs were made with in the place of the full protocol. published: which of
    the models are known from print alone. parts: one a language. matched: what training ledgers
    say, a sentence a pair. notes: what a reader must know; findings: damaged records. plan: hash of
    the plan that was declared before looking. slice: the part of the gold that is scored
    (`score.slices`); empty: all of it.
    """

    models: tuple[str, ...]
    average: AverageName
    alpha: float
    protocol: str
    metrics: Mapping[str, str]
    published: tuple[str, ...]
    parts: tuple[ComparedPart, ...]
    matched: tuple[str, ...]
    failed: tuple[FailedRun, ...]
    notes: tuple[str, ...]
    findings: tuple[UnusableFile, ...]
    plan: str = ""
    slice: str = ""

    @property
    def pairs(self) -> tuple[PairResult, ...]:
        """Of all parts."""
        return tuple(chain.from_iterable(section.pairs for section in self.parts))

    @property
    def ranking(self) -> tuple[RankedModel, ...]:
        """Of all parts."""
        return tuple(chain.from_iterable(section.ranking for section in self.parts))

    @property
    def tasks(self) -> tuple[str, ...]:
        """Of all parts."""
        lines = chain.from_iterable(section.pairs[0].tasks for section in self.parts)
        return tuple(line.task for line in lines)
