"""What a comparison found: the numbers, which the verdict, the tables and the board put into words.

Scores and differences are fractions; what each interval is about is its `estimand`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from biobench.comparison.contest import Refused
from biobench.comparison.twins import Twins
from biobench.report.rows import AverageName
from biobench.stats import Estimand, MeanTest, Pair, RankInterval, SeedPlan, Standing, WithinTasks
from biobench.store import Finding


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


@dataclass(frozen=True, slots=True)
class PairResult:
    """One pair. pair: the suite test with its corrected p. within: these tasks alone, held fixed.
    plan: seeds that a wanted difference needs, None without seeds."""

    pair: Pair
    tasks: tuple[TaskLine, ...]
    within: WithinTasks
    plan: SeedPlan | None


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
    findings: tuple[Finding, ...]
    refused: tuple[Refused, ...] = ()
