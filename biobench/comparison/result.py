"""What a comparison shows: the numbers, which the verdict, the tables and the board put into
words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from biobench.report.row import AverageName
from biobench.stats import Interval, MeanTest, task_weights
from biobench.store import UnusableFile

Word = Literal["shown", "not shown", "not tested"]


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
    None where it is unknown. n_first, n_second: seeds, 0 for a printed score. groups: independent
    documents of the test split.
    """

    task: str
    corpus: str
    metric: str
    first: float
    second: float
    difference: float
    n_first: int
    n_second: int
    paired: bool
    seeds: MeanTest
    documents: MeanTest | None
    total: MeanTest | None
    groups: int | None

    @property
    def widest(self) -> Interval | None:
        """The widest-reaching interval that is known: seeds and test sets, else test sets, else
        seeds.
        """
        return next(
            (t.interval for t in (self.total, self.documents, self.seeds) if t and t.interval), None
        )


@dataclass(frozen=True, slots=True)
class KindPart:
    """The mean difference over the corpora of one kind of task, a fraction."""

    difference: float
    corpora: int


@dataclass(frozen=True, slots=True)
class PairResult:
    """First minus second model. here: the mean of these tasks, other seeds and test sets; beyond:
    tasks like these.

    runs: the same mean over test sets alone, where some task has one seed; each is None where it is
    unknown. p_here,
    p_beyond: corrected over the `tested` pairs (Holm). parts: by kind of task, where there are
    several.
    same_p: of "outside the margin", on these tasks and on tasks like these; None without a margin
    or where too few runs may say so. detectable: the true difference found in 4 of 5 cases by
    `here`. reason: why nothing is tested, in words. verdict: what follows.
    """

    first: str
    second: str
    language: str
    tasks: tuple[TaskLine, ...]
    difference: float
    here: MeanTest | None
    beyond: MeanTest | None
    runs: MeanTest | None
    p_here: float | None
    p_beyond: float | None
    parts: Mapping[str, KindPart]
    rope: float
    same_p: tuple[float | None, float | None]
    detectable: float | None
    reason: str
    verdict: Verdict
    tested: int
    exploratory: bool = False

    @property
    def wins(self) -> int:
        """Tasks on which the first model is better, by more than the margin."""
        return sum(line.difference > self.rope + 1e-9 for line in self.tasks)

    @property
    def losses(self) -> int:
        """Tasks on which it is worse."""
        return sum(line.difference < -self.rope - 1e-9 for line in self.tasks)

    @property
    def ties(self) -> int:
        """Tasks on which neither is better."""
        return len(self.tasks) - self.wins - self.losses

    @property
    def means(self) -> tuple[float, float]:
        """Of the first and the second model, the mean over corpora of their tasks' means."""
        weights = task_weights([line.corpus for line in self.tasks])
        return float(weights @ [line.first for line in self.tasks]), float(
            weights @ [x.second for x in self.tasks]
        )

    @property
    def higher(self) -> int:
        """Tasks on which the model with the higher mean scores higher, whatever the margin."""
        sign = 1 if self.difference >= 0 else -1
        return sum(sign * line.difference > 1e-9 for line in self.tasks)

    @property
    def better(self) -> str:
        """The model with the higher mean."""
        return self.first if self.difference >= 0 else self.second

    @property
    def worse(self) -> str:
        """The other one."""
        return self.second if self.difference >= 0 else self.first


@dataclass(frozen=True, slots=True)
class RankedModel:
    """score: mean over corpora of their tasks' means; task_mean: plain mean over tasks; both
    fractions.

    rank: by score, 1 is best, ties share the best. mean_rank: of the ranks within tasks, mean over
    corpora. ranks: best and worst that the Holm-corrected pairs leave possible on these tasks.
    guessing: the model is not above a baseline without skill.
    """

    model: str
    score: float
    task_mean: float
    rank: int
    mean_rank: float
    ranks: tuple[int, int]
    guessing: bool

    @property
    def shown_ranks(self) -> str:
        """``2`` or ``1–3``."""
        low, high = self.ranks
        return str(low) if low == high else f"{low}–{high}"


@dataclass(frozen=True, slots=True)
class FailedRun:
    """A run far below the other seeds of its model and task, or no better than no skill. score: a
    fraction.
    """

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
    the plan that was declared before looking.
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

    @property
    def pairs(self) -> tuple[PairResult, ...]:
        """Of all parts."""
        return tuple(pair for part in self.parts for pair in part.pairs)

    @property
    def ranking(self) -> tuple[RankedModel, ...]:
        """Of all parts."""
        return tuple(model for part in self.parts for model in part.ranking)

    @property
    def tasks(self) -> tuple[str, ...]:
        """Of all parts."""
        return tuple(line.task for part in self.parts for line in part.pairs[0].tasks)
