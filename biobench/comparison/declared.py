"""The mean that a declared suite takes of its tasks, beside what a comparison says of corpora."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence

from biobench.comparison.contest import Contest
from biobench.comparison.result import PairResult, SuiteStanding
from biobench.report.suite import suite_mean
from biobench.schema.suite import Member, SuiteSpec
from biobench.stats import MeanTest
from biobench.stats.means import pooled_df, t_from_se
from biobench.stats.types import Estimand


def suite_standing(
    suite: SuiteSpec, members: Mapping[str, Member], contest: Contest, pairs: Sequence[PairResult], alpha: float
) -> SuiteStanding:
    """members: task id -> member of the suite. pairs: with the lines of the contest's tasks.

    A difference of means has the tasks' variances by the squares of their weights, tasks being taken as independent.
    """
    present = {info.id: members[info.id] for info in contest.tasks}
    types = Counter(member.type if suite.mean == "types" else member.name for member in present.values())
    weights = {
        task: 1 / (len(types) * types[member.type if suite.mean == "types" else member.name])
        for task, member in present.items()
    }
    means = {
        entrant.label: suite_mean(suite, {present[info.id].name: cells[info.id].mean for info in contest.tasks})
        for entrant, cells in zip(contest.entrants, contest.cells, strict=True)
    }
    tests = {(p.pair.first, p.pair.second): _test(p, weights, alpha) for p in pairs}
    return SuiteStanding(suite.name or suite.id, suite.mean, len(suite.tasks), len(present), means, tests)


def _test(result: PairResult, weights: Mapping[str, float], alpha: float) -> MeanTest | None:
    parts: list[tuple[float, float]] = []
    both = True
    for line in result.tasks:
        noise = line.seeds if line.total is None else line.total
        if noise.se is None or (line.total is None and min(line.n_first, line.n_second) < 2):
            return None
        both = both and line.total is not None
        parts.append(((weights[line.task] * noise.se) ** 2, math.inf if noise.df is None else noise.df))
    return t_from_se(
        math.fsum(weights[line.task] * line.difference for line in result.tasks),
        math.sqrt(math.fsum(variance for variance, _ in parts)),
        pooled_df(parts),
        n=len(parts),
        estimand=Estimand.THESE_TASKS if both else Estimand.THESE_TEST_SETS,
        level=1 - alpha,
        method="t on variances summed over tasks",
    )
