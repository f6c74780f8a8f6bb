"""The numbers of a comparison: each pair on its own seeds and counts, corrected for the pairs that are spoken of."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from biobench.comparison.contest import Contest, Match
from biobench.comparison.evidence import Evidence, Numbers
from biobench.comparison.result import FailedRun, PairResult, TaskLine, differing
from biobench.report.tasks import TaskInfo
from biobench.schema.kind import is_numeric
from biobench.stats import (
    Interaction,
    ManyComparison,
    Pair,
    RankInterval,
    SuiteComparison,
    TaskComparison,
    TaskPool,
    TaskRuns,
    WithinTasks,
    compare_seeds,
    compare_suite,
    compare_task,
    document_pools,
    gather_pairs,
    holm,
    interaction_of,
    rank_intervals,
    score_pool,
    seeds_needed,
    suite_draws,
    suite_means,
    task_weights,
    tost,
    variance_shares,
    within_tasks,
    within_tasks_seeds,
    without_each,
)
from biobench.stats.correlation import compare_numbers
from biobench.stats.types import FloatArray

#: Pairs that a note names, where it is not true of all.
MOST_NAMED = 4
#: Corpora below which nothing is said about ranks on tasks in general.
FEWEST_RANKED = 4
#: Types of task that ask the same kind of question.
KINDS = {"token_ner": "entities", "span_ner": "entities", "single_label": "classes", "multi_label": "classes"}


@dataclass(frozen=True, slots=True)
class Options:
    """As of `compare`. pooled: speak of several languages as one."""

    rope: float
    alpha: float
    wanted: float
    pooled: bool = False


@dataclass(frozen=True, slots=True)
class Duel:
    """A match and the counts behind it. runs: task -> counts. reasons: task -> why there are none, in words."""

    match: Match
    runs: Mapping[str, TaskRuns]
    reasons: Mapping[str, str]
    numbers: Mapping[str, Numbers] = field(default_factory=dict)
    """Regression tasks have predicted numbers in place of counts."""

    @property
    def is_counted(self) -> bool:
        """Whether the counts of every task are at hand."""
        return len(self.runs) == len(self.match.tasks)


def duel_of(match: Match, source: Evidence | None) -> Duel:
    """source: None where no predictions are to be read."""
    if source is None:
        return Duel(match, {}, {info.id: "not computed" for info in match.tasks})
    evidence = {info.id: source.task_runs(match, info) for info in match.tasks}
    reasons = {task: reason for task, reason in evidence.items() if isinstance(reason, str)}
    numbers: dict[str, Numbers] = {}
    for info in match.tasks:
        if info.id in reasons and is_numeric(info.type) and len(match.cells) == 2:
            predicted = source.numbers(match, info)
            if isinstance(predicted, str):
                reasons[info.id] = predicted
            else:
                numbers[info.id] = predicted
                del reasons[info.id]
    return Duel(match, {t: runs for t, runs in evidence.items() if not isinstance(runs, str)}, reasons, numbers)


def grouped_notes(pairs: Sequence[tuple[str, str]], texts: Sequence[Mapping[str, str]]) -> Iterator[str]:
    """What is to be said of tasks, one line for the tasks and pairs of which the same is said.

    said: for each pair, task -> words. Pairs are named where it is not said of all.
    """
    where: dict[tuple[str, str], tuple[tuple[str, str], ...]] = {}
    for pair, words in zip(pairs, texts, strict=True):
        for task, text in words.items():
            where[task, text] = (*where.get((task, text), ()), pair)
    lines: dict[tuple[str, tuple[tuple[str, str], ...]], list[str]] = {}
    for (task, text), of in where.items():
        lines.setdefault((text, of), []).append(task)
    for (text, of), tasks in lines.items():
        shown = [f"{a} and {b}" for a, b in of[:MOST_NAMED]]
        more = f"; {len(of) - MOST_NAMED} more pairs" if len(of) > MOST_NAMED else ""
        values = {"task": ", ".join(tasks), "reason": text}
        if len(of) == len(pairs):
            yield "{task}: {reason}".format(**values)
        else:
            yield "{task}: {reason} ({pairs}{more})".format(**values, pairs="; ".join(shown), more=more)


@dataclass(slots=True)
class Measured:
    """The pairs of one contest. lines: (first, second, task) -> what was found, kept for contests over parts of it."""

    contest: Contest
    pairs: tuple[PairResult, ...]
    many: ManyComparison
    shares: Mapping[str, float]


def measured(
    contest: Contest,
    duels: Sequence[Duel],
    options: Options,
    planned: Sequence[bool] | None = None,
    lines: dict[tuple[str, str, str], TaskLine] | None = None,
) -> Measured:
    """Every pair tested on tasks like these and on these tasks, and corrected.

    duels: the pairs. planned: which of them a plan declared; they are corrected for each other, the rest for all.
    lines: filled with what was found task by task, and taken from where it is there already.
    """
    labels = [e.label for e in contest.entrants]
    names = [(d.match.entrants[0].label, d.match.entrants[1].label) for d in duels]
    within = [_within(contest, d, options) for d in duels]
    suites = [_suite(contest, d, w, options) for d, w in zip(duels, within, strict=True)]
    parts = [_interactions(contest, s) for s in suites]
    unspoken = [n for n, p in zip(names, parts, strict=True) if differing(p, options.alpha)]
    scores = [[mine[info.id].scores for info in contest.tasks] for mine in contest.cells]
    resolution = max(d.match.resolution for d in duels)

    def gathered(chosen: Sequence[bool]) -> ManyComparison:
        compared = {n: s for n, s, take in zip(names, suites, chosen, strict=True) if take}
        return gather_pairs(
            scores, labels, compared, clusters=contest.clusters, alpha=options.alpha, resolution=resolution,
            unspoken=unspoken,
        )  # fmt: skip

    many = gathered([True] * len(names))
    by_pair = {(p.first, p.second): p for p in many.pairs}
    local = dict(zip(names, holm([w.test.p if w.test else None for w in within]), strict=True))
    if planned is not None and any(planned):
        by_pair |= {(p.first, p.second): p for p in gathered(planned).pairs}
        declared = [w.test.p if w.test and take else None for w, take in zip(within, planned, strict=True)]
        local |= {n: p for n, p, take in zip(names, holm(declared), planned, strict=True) if take}
    cache = {} if lines is None else lines
    pairs = []
    for place, (name, duel, one) in enumerate(zip(names, duels, within, strict=True)):
        for info in contest.tasks:
            if (*name, info.id) not in cache:
                cache[*name, info.id] = _line(info.id, info.corpus, duel, options)
        tasks = tuple(cache[*name, info.id] for info in contest.tasks)
        result = _result(
            by_pair[name],
            tasks,
            one,
            within_p=local[name],
            parts=parts[place],
            options=options,
            resolution=duel.match.resolution,
        )
        pairs.append(replace(result, exploratory=planned is not None and not planned[place]))
    shares = variance_shares(_means(scores), task_weights(contest.clusters))
    ids = [info.id for info in contest.tasks]
    return Measured(
        contest, tuple(pairs), many, dict(zip(ids, map(float, shares), strict=True)) if len(labels) > 2 else {}
    )


def _means(scores: Sequence[Sequence[Sequence[float]]]) -> FloatArray:
    return np.array([suite_means(model) for model in scores])


def _within(contest: Contest, duel: Duel, options: Options) -> WithinTasks:
    match, level = duel.match, 1 - options.alpha
    if duel.is_counted:
        return within_tasks([duel.runs[info.id] for info in contest.tasks], 0, 1, level=level)
    if all(info.id in duel.runs or info.id in duel.numbers for info in contest.tasks):
        shown = [_shown(info.id, duel, level) for info in contest.tasks]
        drawn = [c.documents for c in shown if c is not None and c.documents is not None]
        if len(drawn) == len(shown) and all(d.se is not None and d.df is not None for d in drawn):
            parts = [((d.se or 0.0) ** 2, d.df or 0.0) for d in drawn]
            return seeds_alone(contest, match, level, parts)
    return seeds_alone(contest, match, level)


def seeds_alone(
    contest: Contest,
    match: Match,
    level: float = 0.95,
    documents: Sequence[tuple[float, float]] | None = None,
    weights: Mapping[str, float] | None = None,
) -> WithinTasks:
    """First minus second on these tasks and test sets, other seeds; with `documents` also other test sets.

    weights: of each task (1 where it has none), in the place of the mean over corpora.
    """
    return within_tasks_seeds(
        match.scores(0),
        match.scores(1),
        clusters=contest.clusters,
        paired_seeds=all(match.paired.values()),
        level=level,
        resolutions=[match.unit(info.id) for info in match.tasks],
        documents=documents,
        weights=None if weights is None else [weights.get(info.id, 1.0) for info in match.tasks],
        ratios=[match.ratio(info.id) for info in match.tasks],
    )


def _suite(contest: Contest, duel: Duel, within: WithinTasks, options: Options) -> SuiteComparison:
    match = duel.match
    suite = compare_suite(
        match.scores(0),
        match.scores(1),
        tasks=[info.id for info in contest.tasks],
        clusters=contest.clusters,
        rope=options.rope,
        level=1 - options.alpha,
        resolution=match.resolution,
        paired_seeds=all(match.paired.values()),
    )
    if any(match.ratio(info.id) for info in match.tasks):
        suite = replace(suite, variance=None)  # splits are no seeds of which more could be run
    return suite.hardened(within.test, within.se_documents)


def _interactions(contest: Contest, suite: SuiteComparison) -> dict[str, Interaction]:
    """Over languages and kinds of task, where there are several: one value a corpus."""
    interactions = {}
    for name, of in (("language", _language), ("kind", _kind)):
        parts = [_only({of(info) for info in contest.tasks if info.corpus == corpus}) for corpus in suite.clusters]
        if len(set(parts)) > 1:
            interactions[name] = interaction_of(suite.cluster_differences, parts)
    return interactions


def _language(info: TaskInfo) -> str:
    return info.language


def _kind(info: TaskInfo) -> str:
    return KINDS.get(info.type, info.type)


def _only(values: set[str]) -> str:
    return next(iter(values)) if len(values) == 1 else "mixed"


def _result(
    pair: Pair,
    lines: tuple[TaskLine, ...],
    within: WithinTasks,
    *,
    within_p: float | None,
    parts: Mapping[str, Interaction],
    options: Options,
    resolution: float,
) -> PairResult:
    suite, rope = pair.comparison, options.rope
    same = tost(suite.test, rope) if rope else None
    here = tost(within.test, rope) if rope and within.test is not None else None
    if same is not None and here is not None:
        same = max(same, here)
    return PairResult(
        pair,
        lines,
        within,
        None if suite.variance is None else seeds_needed(options.wanted, suite.variance, alpha=options.alpha),
        within_p=within_p,
        interactions=parts,
        without=without_each(suite.cluster_differences, resolution),
        same=same,
        same_here=here,
    )


def failed_in(contest: Contest, floors: Mapping[tuple[str, str], float]) -> tuple[FailedRun, ...]:
    """The failed runs among those compared. floors: (task, metric) -> what the best policy without skill scores."""
    runs = []
    for entrant, cells in zip(contest.entrants, contest.cells, strict=True):
        for info in contest.tasks:
            cell = cells[info.id]
            if cell.group is None:
                continue
            lost = cell.group.failed(contest.metrics[info.id], floors)
            runs += [
                FailedRun(entrant.label, info.id, seed, score)
                for seed, score, gone in zip(cell.seeds, cell.scores, lost, strict=True)
                if gone
            ]
    return tuple(runs)


def _shown(task: str, duel: Duel, level: float) -> TaskComparison | None:
    """The task's seed and test-set noise, from counts or from numbers; None without either."""
    runs, numbers = duel.runs.get(task), duel.numbers.get(task)
    if runs is not None:
        return compare_task(
            runs.models[0],
            runs.models[1],
            runs.average,
            evaluated=runs.evaluated,
            paired_seeds=runs.paired_seeds,
            level=level,
            resolution=runs.resolution,
        )
    if numbers is None:
        return None
    return compare_numbers(
        numbers.gold,
        numbers.first,
        numbers.second,
        numbers.groups,
        numbers.measure,
        paired_seeds=duel.match.paired[task],
        level=level,
    )


def _line(task: str, corpus: str, duel: Duel, options: Options) -> TaskLine:
    match, runs, alpha = duel.match, duel.runs.get(task), options.alpha
    first, second = (cells[task] for cells in match.cells)
    step = max(first.step, second.step, match.unit(task))
    paired = match.paired[task]
    ratio = match.ratio(task)
    seeds = compare_seeds(
        first.scores, second.scores, paired=paired, level=1 - alpha, resolution=step, ratio=ratio
    ).test
    shown = _shown(task, duel, 1 - alpha)
    notes = list(shown.notes) if shown is not None else [duel.reasons[task]]
    total = seeds if ratio else None if shown is None else shown.total
    most = seeds if total is None else total
    return TaskLine(
        task=task,
        corpus=corpus,
        metric=match.metrics[task],
        first=first.mean,
        second=second.mean,
        difference=first.mean - second.mean,
        n_first=0 if first.policy else len(first.seeds),
        n_second=0 if second.policy else len(second.seeds),
        published=bool(first.step or second.step),
        paired=paired,
        seeds=seeds,
        documents=None if shown is None else shown.documents,
        total=total,
        groups=_groups(runs, duel.numbers.get(task)),
        detectable=None if shown is None else shown.detectable,
        note="; ".join(notes) or None,
        same=tost(most, options.rope) if options.rope else None,
    )


def _groups(runs: TaskRuns | None, numbers: Numbers | None) -> int | None:
    """Independent documents of the test split."""
    if runs is not None:
        return runs.models[0].n_groups
    return None if numbers is None else len(set(numbers.groups))


def ranks_of(everyone: Duel, labels: Sequence[str], alpha: float) -> tuple[RankInterval, ...]:
    """Over tasks like these; documents are redrawn too where the counts of every task are at hand."""
    match = everyone.match
    pools: list[TaskPool]
    if everyone.is_counted:
        pools = document_pools(everyone.runs[info.id] for info in match.tasks)
    else:
        pools = [
            score_pool(
                info.id,
                [mine[info.id].scores for mine in match.cells],
                cluster=info.corpus,
                paired_seeds=match.paired[info.id],
            )
            for info in match.tasks
        ]
    return rank_intervals(suite_draws(pools), labels, level=1 - alpha)
