"""Where each model of a suite may stand: from the pairs, each exactly as `compare` sees it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import combinations
from typing import Any

import numpy as np

from biobench.comparison.contest import Contest, Match, contest
from biobench.comparison.measure import Options, duel_of, measured, seeds_alone
from biobench.errors import UsageError
from biobench.report.conditions import condition_of, is_full, lengths_read
from biobench.report.entrants import Entrant, find_entrants
from biobench.report.groups import RunGroup
from biobench.report.results import Results, metric_of
from biobench.report.row import AverageName
from biobench.stats import Estimand, WithinTasks, mean_test

ALPHA = 0.05
"""Of `compare` unless told otherwise."""
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


def _kind(entrant: Entrant, results: Results, average: AverageName) -> tuple[Any, ...]:
    """All that `contest` asks of a model's runs: with any other model, two of one kind have the same tasks in common.

    Of models without runs each is a kind by itself.
    """
    return tuple(
        (task, *((*_seen(g), g.scores(metric_of(results.infos[task], average)) is None) for g in groups))
        for task, groups in entrant.groups.items()
    ) or (entrant.label,)


def _seen(group: RunGroup) -> tuple[Any, ...]:
    return condition_of(group), is_full(group), not group.variant, lengths_read(group.briefs[0])


def _leads(
    pairs: Sequence[tuple[str, str]],
    results: Results,
    average: AverageName,
    suite: str | None,
    tasks: Sequence[str] | None,
    weights: Mapping[str, float] | None,
) -> Iterator[int | None]:
    """Of each pair on the tasks that both have, other seeds: 1 the first is ahead, -1 the second, None: not told apart.

    None too where `compare` refuses the pair, whose runs were made under other conditions.
    """
    names = list(dict.fromkeys(name for pair in pairs for name in pair))
    entrants = dict(zip(names, find_entrants(names, results, results.floors), strict=True))
    numbers: dict[tuple[Any, ...], int] = {}
    kinds = {name: numbers.setdefault(_kind(e, results, average), len(numbers)) for name, e in entrants.items()}

    @cache
    def contest_of(first: int, second: int) -> tuple[Contest, list[str]] | None:
        """Of all models of these kinds, and their names in its order."""
        together = [name for kind in dict.fromkeys((first, second)) for name in names if kinds[name] == kind]
        try:
            return contest([entrants[name] for name in together], results, average, suite=suite, tasks=tasks), together
        except UsageError:
            return None

    for first, second in pairs:
        shared = contest_of(kinds[first], kinds[second])
        if shared is None:
            yield None
            continue
        both, order = shared
        try:
            match = both.match(order.index(first), order.index(second))
        except UsageError:
            yield None
            continue
        within = seeds_alone(both, match, weights=weights)
        yield (1 if within.difference > 0 else -1) if differ_within(within) else None


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
    asked = (average, suite, None if tasks is None else tuple(tasks), None if weights is None else (*weights.items(),))
    unknown = [pair for pair in combinations(names, 2) if (*pair, *asked) not in results.pairs]
    for pair, lead in zip(unknown, _leads(unknown, results, average, suite, tasks, weights), strict=True):
        results.pairs[*pair, *asked] = lead
    for first, second in combinations(names, 2):
        lead = results.pairs[first, second, *asked]
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


def holds_elsewhere(
    results: Results,
    first: str,
    others: Sequence[str],
    average: AverageName,
    *,
    suite: str | None = None,
    tasks: Sequence[str] | None = None,
) -> bool | None:
    """Whether `compare` shows the first model's lead over each of the others on tasks like these, pair by pair.

    None where it has nothing to say: no others, one corpus, several languages, or runs under other conditions.
    """
    try:
        leader, *rivals = find_entrants([first, *others], results)
    except UsageError:
        return None
    for rival in rivals:
        try:
            both = contest([leader, rival], results, average, suite=suite, tasks=tasks)
            match = both.match(0, 1)
        except UsageError:
            return None
        if len(set(both.clusters)) < 2 or len({info.language for info in both.tasks}) > 1:
            return None
        if not _may_hold(both, match):
            return False
        (pair,) = measured(both, [duel_of(match, None)], Options(0.0, ALPHA, ALPHA)).pairs
        if pair.unspoken(ALPHA) or not pair.pair.different or pair.pair.comparison.difference <= 0:
            return False
    return True if rivals else None


def _may_hold(both: Contest, match: Match) -> bool:
    """Whether the plain t over corpora shows the lead: the test of `compare` is never surer, and dearer."""
    corpora: dict[str, list[float]] = {}
    for info in both.tasks:
        first, second = (cells[info.id].mean for cells in match.cells)
        corpora.setdefault(info.corpus, []).append(first - second)
    means = np.array([sum(each) / len(each) for each in corpora.values()])
    test = mean_test(means, estimand=Estimand.TASKS_LIKE_THESE, resolution=match.resolution)
    return test.p is not None and test.p <= ALPHA and test.estimate > 0
