"""Models compared: paired task by task, tested over the suite, corrected for the number of pairs.

`compared` has the numbers, `verdict` and `compare_render` the words.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

from biobench.comparison.contest import Contest, Match, contest
from biobench.comparison.evidence import Evidence
from biobench.comparison.render import to_json, to_text
from biobench.comparison.result import Compared, PairResult, TaskLine
from biobench.comparison.twins import compare_ledgers, find_ledgers
from biobench.comparison.verdict import verdict
from biobench.data.catalog import load_task
from biobench.errors import UsageError
from biobench.report.entrants import find_entrants
from biobench.report.notes import Note, note
from biobench.report.rows import AverageName
from biobench.report.table import load
from biobench.stats import (
    Pair,
    RankInterval,
    TaskPool,
    TaskRuns,
    compare_seeds,
    compare_suite,
    compare_task,
    document_pools,
    gather_pairs,
    rank_intervals,
    score_pool,
    seeds_needed,
    suite_draws,
    within_tasks,
    within_tasks_seeds,
)
from biobench.store.floors import scan_floors

#: A difference in F1 that is worth finding unless told otherwise: one point.
WANTED = 0.01
#: Pairs for which test-set noise is computed task by task; with more, the pairs have the suite test alone.
MOST_DETAILED = 15
#: Pairs that a note names, where it is not true of all.
MOST_NAMED = 4


class Comparison(Compared):
    """What `compare` gives: the numbers, and how they read."""

    __slots__ = ()

    @property
    def verdict(self) -> tuple[str, ...]:
        """Plain sentences, the most important first."""
        return verdict(self)

    def text(self) -> str:
        """The verdict, then the tables; differences in points (percent)."""
        return to_text(self)

    def as_json(self) -> dict[str, Any]:
        """Plain data, numbers as fractions, nothing that is not JSON."""
        return to_json(self)


def compare(
    models: str | Path | Sequence[str | Path],
    *others: str | Path,
    results_dir: str | Path = "results",
    data_dir: str | Path | None = None,
    suite: str | None = None,
    tasks: str | Sequence[str] | None = None,
    average: AverageName | None = None,
    rope: float = 0.0,
    alpha: float = 0.05,
    wanted: float = WANTED,
    ledgers: Mapping[str, str | Path] | None = None,
    documents: bool = True,
    against_first: bool = False,
) -> Comparison:
    """Compare two models or more on the tasks that all of them have.

    models: names as in the report, folders, or published models. suite, tasks (ids or YAML paths): keep only
    these; the path of a spec of one's own also finds gold under an agreement in `data_dir`. average: macro, micro,
    weighted or paper; by default macro, or paper where a model is known from a publication alone. rope:
    differences up to this (a fraction) count as ties in win/tie/loss. alpha: of the corrected tests; intervals
    have level 1 - alpha. wanted: the difference to compute the needed seeds for. ledgers: model -> training
    ledger, besides those found in the models' folders. documents: read the stored predictions for test-set noise.
    against_first: test the first model against each other one only.
    Raises UsageError where a name is unknown, where the runs may not be compared or nothing is shared, and
    StoreError for a damaged ledger. Damaged records become findings.
    """
    given = [str(m) for m in (*([models] if isinstance(models, str | Path) else models), *others)]
    _check(given, rope, alpha, wanted)
    results = load(results_dir)
    floors, damaged = scan_floors(results_dir)
    entrants = find_entrants(given, results, floors)
    twins = compare_ledgers(find_ledgers(given, entrants, ledgers))
    named = [tasks] if isinstance(tasks, str) else list(tasks or ())
    specs = {t: load_task(t) for t in named if t.endswith((".yaml", ".yml"))}
    chosen = [specs[t].id if t in specs else t for t in named]
    held = contest(entrants, results, average, suite=suite, tasks=chosen or None)
    labels = [e.label for e in entrants]
    everyone = range(len(entrants))
    pairs = [(0, b) for b in everyone[1:]] if against_first else list(combinations(everyone, 2))
    detailed = len(pairs) <= MOST_DETAILED
    paths = {spec.id: spec.path for spec in specs.values()}
    source = Evidence(None if data_dir is None else Path(data_dir), paths) if documents else None
    # what one pair shows does not depend on the others: each is tested on the seeds and counts of its two
    duels = [_duel(held.match(a, b), source if detailed else None) for a, b in pairs]
    names = [(labels[a], labels[b]) for a, b in pairs]
    many = gather_pairs(
        [[mine[info.id].scores for info in held.tasks] for mine in held.cells],
        labels,
        {
            pair: compare_suite(
                duel.match.scores(0),
                duel.match.scores(1),
                tasks=[info.id for info in held.tasks],
                clusters=held.clusters,
                rope=rope,
                level=1 - alpha,
                resolution=duel.match.resolution,
                paired_seeds=all(duel.match.paired.values()),
            )
            for pair, duel in zip(names, duels, strict=True)
        },
        clusters=held.clusters,
        alpha=alpha,
    )
    notes = [*held.notes, *many.notes, *_told(names, [duel.match.said for duel in duels])]
    if not detailed:
        form = "{count} pairs: test-set noise task by task is computed up to {most} pairs"
        notes.append(note(form, count=len(many.pairs), most=MOST_DETAILED))
    elif documents:
        reasons = _told(names, [duel.reasons for duel in duels])
        notes += [note("test-set noise is unknown on {task_and_reason}", task_and_reason=line) for line in reasons]
    return Comparison(
        models=tuple(labels),
        average=held.average,
        tasks=tuple(info.id for info in held.tasks),
        clusters=tuple(dict.fromkeys(held.clusters)),
        metrics=held.metrics,
        published=tuple(e.label for e in entrants if e.is_published),
        policies=tuple(e.label for e in entrants if e.is_policy),
        perfect=tuple(label for i, label in enumerate(labels) if _perfect(held, i)),
        pairs=tuple(_pair(p, duel, held, alpha, wanted) for p, duel in zip(many.pairs, duels, strict=True)),
        standings=many.standings,
        ranks=_ranks(_duel(held.match(*everyone), source), labels, alpha) if len(labels) > 2 else (),
        twins=twins,
        alpha=alpha,
        estimand=many.estimand,
        notes=tuple(dict.fromkeys(notes)),
        findings=tuple(dict.fromkeys((*results.findings, *damaged))),
        refused=held.refused,
    )


def _perfect(held: Contest, entrant: int) -> bool:
    """The gate's oracle, where the score compared gives it 1."""
    is_oracle = held.entrants[entrant].is_policy and held.entrants[entrant].source == "ceiling"
    return is_oracle and all(cell.mean == 1.0 for cell in held.cells[entrant].values())


def _check(given: Sequence[str], rope: float, alpha: float, wanted: float) -> None:
    if len(given) < 2:
        raise UsageError("a comparison needs two models or more", hint="for example: biobench compare A B")
    if not 0 < alpha < 0.5:
        raise UsageError(f"alpha {alpha} is not between 0 and 0.5", hint="0.05 is usual")
    if not 0 <= rope < 1:
        raise UsageError(f"rope {rope} is not a difference of scores", hint="zero or more, one point is 0.01")
    if not 0 < wanted < 1:
        raise UsageError(f"wanted difference {wanted} is not one of scores", hint="above zero, one point is 0.01")


@dataclass(frozen=True, slots=True)
class _Duel:
    """A match and the counts behind it. runs: task -> counts. reasons: task -> why there are none, in words."""

    match: Match
    runs: Mapping[str, TaskRuns]
    reasons: Mapping[str, str]

    @property
    def is_counted(self) -> bool:
        """Whether the counts of every task are at hand."""
        return len(self.runs) == len(self.match.tasks)


def _duel(match: Match, source: Evidence | None) -> _Duel:
    """source: None where no predictions are to be read."""
    if source is None:
        return _Duel(match, {}, {info.id: "not computed" for info in match.tasks})
    found = {info.id: source.task_runs(match, info) for info in match.tasks}
    return _Duel(
        match,
        {task: runs for task, runs in found.items() if not isinstance(runs, str)},
        {task: reason for task, reason in found.items() if isinstance(reason, str)},
    )


def _told(pairs: Sequence[tuple[str, str]], said: Sequence[Mapping[str, str]]) -> Iterator[Note]:
    """What is to be said of tasks, one line for the tasks and pairs of which the same is said.

    said: for each pair, task -> words. Pairs are named where it is not said of all.
    """
    where: dict[tuple[str, str], tuple[tuple[str, str], ...]] = {}
    for pair, words in zip(pairs, said, strict=True):
        for task, text in words.items():
            where[task, text] = (*where.get((task, text), ()), pair)
    lines: dict[tuple[str, tuple[tuple[str, str], ...]], list[str]] = {}
    for (task, text), of in where.items():
        lines.setdefault((text, of), []).append(task)
    for (text, of), tasks in lines.items():
        shown = [note("{first} and {second}", first=a, second=b) for a, b in of[:MOST_NAMED]]
        more = note("; {count} more pairs", count=len(of) - MOST_NAMED) if len(of) > MOST_NAMED else ""
        told = {"task": ", ".join(tasks), "reason": text}
        if len(of) == len(pairs):
            yield note("{task}: {reason}", **told)
        else:
            yield note("{task}: {reason} ({pairs}{more})", **told, pairs=shown, more=more)


def _pair(pair: Pair, duel: _Duel, held: Contest, alpha: float, wanted: float) -> PairResult:
    match = duel.match
    lines = tuple(_line(info.id, info.corpus, duel, alpha) for info in match.tasks)
    if duel.is_counted:
        within = within_tasks([duel.runs[info.id] for info in match.tasks], 0, 1, level=1 - alpha)
    else:
        within = within_tasks_seeds(
            match.scores(0),
            match.scores(1),
            clusters=held.clusters,
            paired_seeds=all(match.paired.values()),
            level=1 - alpha,
            resolutions=[match.unit(info.id) for info in match.tasks],
        )
    variance = pair.comparison.variance
    return PairResult(pair, lines, within, None if variance is None else seeds_needed(wanted, variance, alpha=alpha))


def _line(task: str, corpus: str, duel: _Duel, alpha: float) -> TaskLine:
    match, runs = duel.match, duel.runs.get(task)
    first, second = (cells[task] for cells in match.cells)
    step = max(first.step, second.step, match.unit(task))
    paired = match.paired[task]
    seeds = compare_seeds(first.scores, second.scores, paired=paired, level=1 - alpha, resolution=step).test
    shown = None
    if runs is not None:
        shown = compare_task(
            runs.models[0],
            runs.models[1],
            runs.average,
            evaluated=runs.evaluated,
            paired_seeds=runs.paired_seeds,
            level=1 - alpha,
            resolution=runs.resolution,
        )
    notes = list(shown.notes) if shown is not None else [duel.reasons[task]]
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
        total=None if shown is None else shown.total,
        groups=None if runs is None else runs.models[0].n_groups,
        detectable=None if shown is None else shown.detectable,
        note="; ".join(notes) or None,
    )


def _ranks(everyone: _Duel, labels: Sequence[str], alpha: float) -> tuple[RankInterval, ...]:
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
