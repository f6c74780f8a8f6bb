"""Where each model of a suite may stand: from the pairs, each exactly as `compare` sees it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from biobench.comparison.contest import contest
from biobench.comparison.measure import seeds_alone
from biobench.errors import UsageError
from biobench.report.entrants import Entrant, find_entrants
from biobench.report.rows import AverageName
from biobench.report.table import Results
from biobench.stats import WithinTasks

MOST = 30
"""Models up to which all pairs are looked at."""


@dataclass(frozen=True, slots=True)
class Placing:
    """best, worst: the ranks between which the model stands, 1 the highest. alike: models not told apart from it."""

    best: int
    worst: int
    alike: tuple[str, ...]


def differ_within(within: WithinTasks) -> bool:
    """Whether the interval of a pair's difference on these tasks leaves out zero; not where it is unknown."""
    interval = None if within.test is None else within.test.interval
    return interval is not None and not interval.low <= 0 <= interval.high


def _seeds_alone(
    pair: tuple[Entrant, Entrant],
    results: Results,
    average: AverageName,
    suite: str | None,
    tasks: Sequence[str] | None,
    weights: Mapping[str, float] | None,
) -> WithinTasks | None:
    """First minus second on the tasks that both have: other seeds, these tasks and test sets.

    None where `compare` refuses the pair, whose runs were made under other conditions.
    """
    try:
        shared = contest(pair, results, average, suite=suite, tasks=tasks)
    except UsageError:
        return None
    return seeds_alone(shared, shared.match(0, 1), weights=weights)


def place(
    results: Results,
    models: Sequence[str],
    average: AverageName,
    *,
    suite: str | None = None,
    tasks: Sequence[str] | None = None,
    weights: Mapping[str, float] | None = None,
) -> Mapping[str, Placing]:
    """Model -> where it stands among these, the best of which come first; each pair at 95%, none corrected.

    weights: of tasks (1 where one has none), in the place of the mean over corpora; None for that mean.
    Only the first 30 are placed, among themselves. A rank is lost to each model that is told apart and ahead.
    Raises UsageError for a name that the results do not hold.
    """
    ahead: dict[str, set[str]] = {name: set() for name in models[:MOST]}
    behind: dict[str, set[str]] = {name: set() for name in models[:MOST]}
    names = list(ahead)
    entrants = dict(zip(names, find_entrants(names, results, results.floors), strict=True))
    asked = (average, suite, None if tasks is None else tuple(tasks), None if weights is None else (*weights.items(),))
    for first, second in combinations(names, 2):
        key = (first, second, *asked)
        if key not in results.pairs:
            within = _seeds_alone((entrants[first], entrants[second]), results, average, suite, tasks, weights)
            apart = within is not None and differ_within(within)
            results.pairs[key] = (1 if within.difference > 0 else -1) if apart and within is not None else None
        lead = results.pairs[key]
        if lead is None:
            continue
        better, worse = (first, second) if lead > 0 else (second, first)
        ahead[worse].add(better)
        behind[better].add(worse)
    return {
        name: Placing(
            1 + len(ahead[name]),
            len(names) - len(behind[name]),
            tuple(other for other in names if other != name and other not in ahead[name] | behind[name]),
        )
        for name in names
    }
