"""Page one of the board: everybody on a suite's shared tasks, who is best, where the runs rank,
what is shown of it.

Each task counts by the average that published scores of it are printed in (`metric.paper`): the
only one under which published models and runs may share a ranking. Runs under another protocol
share none.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from biobench.comparison.compare import Comparison, compare
from biobench.comparison.pairs import KINDS, corrected
from biobench.comparison.result import PairResult
from biobench.comparison.verdict import ends, joined, points
from biobench.errors import UsageError
from biobench.report.averages import suite_averages
from biobench.report.baselines import no_skill
from biobench.report.entrants import line_name
from biobench.report.frame import cells
from biobench.report.groups import Source
from biobench.report.results import Results
from biobench.report.row import Row
from biobench.report.tasks import TaskInfo
from biobench.schema.kind import is_error
from biobench.stats import task_weights

TESTABLE = ("run", "external", "submitted")
"""Sources whose lines have runs or predictions of ours to test; published lines are printed."""
VIEWS = {"fr": "French", "en": "English", "needle": "Needle"}
"""The suites that ship, in the order of the page."""
PROTOCOLS = {"small protocol": "small protocol: at most 2,000 training texts"}
MOST = 4
"""Models whose documents are read for a verdict: the best run and its nearest rivals."""

Line = tuple[str, str, Source]


@dataclass(frozen=True, slots=True)
class Entry:
    """A line of the table. protocol: "" for the full one; mean: over the shared tasks; rank: among
    the lines that have them all under the protocol that is ranked; kinds: kind of task -> mean of
    the shared ones; parameters: where known.
    """

    model: str
    variant: str
    source: Source
    protocol: str
    cells: Mapping[str, Row]
    mean: Row | None
    rank: int | None
    kinds: Mapping[str, Row]
    parameters: int | None
    mark: str = ""
    """Of a submission: reproduced, re-scored or claimed."""

    @property
    def name(self) -> str:
        """As `compare` and the link know it."""
        return line_name(self.model, self.variant)

    @property
    def is_run(self) -> bool:
        """Whether it is a result of this folder, not of a publication."""
        return self.source != "published"


@dataclass(frozen=True, slots=True)
class BestRun:
    """The best of the runs here under one protocol, over the `tasks` that most of them have.

    rivals: the others with these tasks, best first. published: printed models with these tasks,
    best first, only under the full protocol. above: tasks where it is above the best baseline, of
    so many `judged`; guessing: its mean is not above what a policy without skill reaches.
    """

    name: str
    protocol: str
    tasks: tuple[str, ...]
    mean: Row
    rivals: tuple[str, ...]
    published: tuple[Row, ...]
    above: int
    judged: int
    guessing: bool


@dataclass(frozen=True, slots=True)
class Ranking:
    """One view. columns: tasks with scores; shared: those that the ranking is over; entries: ranked
    ones first, best first, then those that lack a shared task or are of another protocol; baseline:
    the best one of each task.
    """

    view: str
    protocol: str
    columns: tuple[TaskInfo, ...]
    shared: tuple[str, ...]
    entries: tuple[Entry, ...]
    baseline: Mapping[str, Row]
    best_runs: tuple[BestRun, ...]

    @property
    def title(self) -> str:
        """As the page heads it."""
        return title_of(self.view)

    @property
    def published(self) -> list[Entry]:
        """The ranked published models, best first."""
        return [e for e in self.entries if e.rank is not None and not e.is_run]

    @property
    def baseline_mean(self) -> float | None:
        """Mean of the best baselines over the shared tasks; None where one of them has none."""
        corpus = {info.id: info.corpus for info in self.columns}
        if not self.shared or not set(self.shared) <= set(self.baseline):
            return None
        weights = task_weights([corpus[task] for task in self.shared])
        return float(
            sum(w * self.baseline[task].mean for w, task in zip(weights, self.shared, strict=True))
        )


def view_of(info: TaskInfo) -> str:
    """The view that shows a task: its suite, or its suite's other tasks where it counts in none."""
    return info.suite if info.in_suite else f"other {info.suite}"


def title_of(view: str) -> str:
    """``French``; ``English, other tasks``."""
    suite = view.removeprefix("other ")
    return VIEWS.get(suite, suite) + (", other tasks" if view != suite else "")


def views(results: Results) -> list[str]:
    """The views with scores of models, shipped suites first."""
    models = [
        row for row in cells(results, "paper").rows if row.source not in ("baseline", "oracle")
    ]
    scored = {view_of(results.infos[row.task]) for row in models}
    return sorted(
        scored, key=lambda view: (list(VIEWS).index(view) if view in VIEWS else len(VIEWS), view)
    )


def protocols(results: Results) -> dict[Line, str]:
    """Line -> under what its runs were made, in words; "" for full runs on the shipped protocol."""
    return {
        (g.model, g.variant, g.source): ""
        if g.departures.whole
        else str(replace(g.departures, weights="", submission="", unlike=()))
        for g in results.groups
    }


def means(results: Results, rows: Iterable[Row], tasks: Collection[str]) -> dict[Line, Row]:
    """Line -> mean over the corpora of these tasks, of the lines that have them all on whole test
    splits.
    """
    of = [
        row
        for row in rows
        if row.task in tasks and not row.partial and row.source not in ("baseline", "oracle")
    ]
    if len(tasks) == 1:
        return {row.line: row for row in of}
    infos = {task: replace(results.infos[task], in_suite=True) for task in tasks}
    return {row.line: row for row in suite_averages(of, infos)[0]}


def shared_tasks(
    lines: Mapping[Line, Collection[str]], order: Iterable[str], chosen: Collection[str] = ()
) -> tuple[str, ...]:
    """`chosen`, else the set of tasks with the most scores, tasks times the lines that have all of
    them; then the most lines. In `order`, as `compare` takes them where none is named: what it
    draws depends on it.
    """
    sets = {frozenset(tasks) for tasks in lines.values()}
    best: tuple[int, int, list[str]] = (0, 0, sorted(chosen))
    for tasks in sets | {a & b for a in sets for b in sets} if not chosen else ():
        count = sum(tasks <= set(have) for have in lines.values())
        best = max(best, (count * len(tasks), count, sorted(tasks)))
    return tuple(task for task in order if task in best[2])


def ranking(
    results: Results, view: str, tasks: Sequence[str] = (), protocol: str | None = None
) -> Ranking:
    """Everybody in a view. tasks: those to rank over; without them all of the suite where some line
    has them all, else those that most lines share. protocol: which runs are ranked; the full one
    where anybody has scores under it.
    """
    infos = results.infos
    everything = [row for row in cells(results, "paper").rows if view_of(infos[row.task]) == view]
    rows = [row for row in everything if row.source not in ("baseline", "oracle")]
    baseline: dict[str, Row] = {}
    for row in everything:
        if row.source == "baseline":
            baseline[row.task] = max(baseline.get(row.task, row), row, key=lambda r: r.mean)
    under = protocols(results)
    marks: dict[Line, str] = {
        (g.model, g.variant, g.source): g.mark for g in results.groups if g.source == "submitted"
    }
    lines: dict[Line, dict[str, Row]] = {}
    for row in rows:
        lines.setdefault(row.line, {})[row.task] = row
    if protocol is None:
        known = [under.get(line, "") for line in lines]
        protocol = "" if "" in known else max(sorted(set(known)), key=known.count, default="")
    eligible = {line: have for line, have in lines.items() if under.get(line, "") == protocol}
    columns = tuple(
        info for task, info in infos.items() if any(task in have for have in lines.values())
    )
    shared = tuple(task for task in tasks if task in {c.id for c in columns})
    if not shared:
        suite = tuple(i.id for i in infos.values() if i.in_suite and i.suite == view)
        whole = suite and any({*suite} <= have.keys() for have in eligible.values())
        shared = suite if whole else shared_tasks(eligible, infos)
    by_kind: dict[str, dict[Line, Row]] = {}
    for kind in dict.fromkeys(
        KINDS[info.type] for info in columns if info.id in shared and info.type in KINDS
    ):
        by_kind[kind] = means(
            results, rows, [i.id for i in columns if i.id in shared and KINDS.get(i.type) == kind]
        )
    mean_of = means(results, rows, shared)
    order = sorted(
        (line for line in mean_of if line in eligible), key=lambda line: -mean_of[line].mean
    )
    rest = sorted(
        (line for line in lines if line not in order),
        key=lambda n: (under.get(n, ""), -len(lines[n]), n),
    )
    entries = tuple(
        Entry(
            *line,
            under.get(line, ""),
            lines[line],
            mean_of.get(line),
            place if line in order else None,
            {kind: of[line] for kind, of in by_kind.items() if line in of and len(by_kind) > 1},
            next((row.parameters for row in lines[line].values() if row.parameters), None),
            marks.get(line, ""),
        )
        for place, line in enumerate([*order, *rest], 1)
    )
    best_runs = []
    for one in sorted({under[line] for line in lines if line in under}):
        candidates = {
            line: have
            for line, have in lines.items()
            if under.get(line) == one and line[2] in TESTABLE
        }
        complete = any({*shared} <= have.keys() for have in candidates.values())
        over = shared_tasks(candidates, infos, shared if complete else ())
        mean_of = means(results, rows, over)
        best_first = sorted(
            (line for line in mean_of if line in candidates), key=lambda line: -mean_of[line].mean
        )
        if not best_first:
            continue
        first, *rivals = best_first
        scores, mean = lines[first], mean_of[first]
        judged = [task for task in over if task in baseline and not is_error(scores[task].metric)]
        # on a needle no policy has skill: chance is the best of them
        bars = no_skill(results.baselines)
        bars |= {(t, baseline[t].metric): baseline[t].mean for t in judged if view == "needle"}
        bounds = [
            bar for task in over if (bar := bars.get((task, scores[task].metric))) is not None
        ]
        low = mean.mean if mean.low is None else mean.low
        best_runs.append(
            BestRun(
                line_name(*first[:2]),
                one,
                over,
                mean,
                tuple(line_name(*line[:2]) for line in rivals),
                tuple(
                    sorted(
                        (r for line, r in mean_of.items() if line[2] == "published"),
                        key=lambda r: -r.mean,
                    )
                ),
                sum(scores[task].mean > baseline[task].mean for task in judged),
                len(judged),
                guessing=len(bounds) == len(over) and (low or 0.0) <= sum(bounds) / len(bounds),
            )
        )
    return Ranking(view, protocol, columns, shared, entries, baseline, tuple(best_runs))


def verdict_on(results: Results, best: BestRun) -> tuple[Comparison, PairResult] | None:
    """The best run against the next one, as `compare` gives it, corrected over its nearest rivals
    (Holm).

    None without a rival that it may be compared with, and where the tasks are of several languages.
    """
    against = []
    for other in best.rivals[: MOST - 1]:
        with suppress(UsageError):  # runs under other conditions are no rival
            against.append(compare(best.name, other, results_dir=results, tasks=best.tasks))
    # tasks of several languages have a verdict each, which Compare shows
    if not against or len(against[0].parts) > 1:
        return None
    return against[0], corrected([one.pairs[0] for one in against], against[0].alpha)[0]


def first_pair(results: Results) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The pair that page one names, and its tasks: the best run and the next, else the best run and
    the best published model; else the best pair under another protocol, else the two best published
    models.
    """
    rankings = [ranking(results, view) for view in views(results)]
    runs = sorted(
        (best for one in rankings for best in one.best_runs),
        key=lambda b: (bool(b.protocol), -len(b.tasks)),
    )
    full = [best for best in runs if not best.protocol]
    pairs = [((best.name, best.rivals[0]), best.tasks) for best in full if best.rivals]
    pairs += [((best.name, best.published[0].name), best.tasks) for best in full if best.published]
    pairs += [((best.name, best.rivals[0]), best.tasks) for best in runs if best.rivals]
    pairs += [
        ((one.published[0].name, one.published[1].name), one.shared)
        for one in rankings
        if one.published[1:]
    ]
    return pairs[0] if pairs else ((), ())


def best_run_sentence(best: BestRun) -> str:
    """Where the best of the runs here ranks: its mean, the distance to the best published, and the
    baselines.
    """
    margin = (
        ""
        if best.mean.margin is None or best.mean.n_seeds < 3
        else f" ±{100 * best.mean.margin:.1f}"
    )
    start = f"Best run here under the {best.protocol}" if best.protocol else "Best run here"
    parts = ["not above guessing"] if best.guessing else []
    if best.published:
        top = best.published[0]
        gap = 100 * (best.mean.mean - top.mean)
        where = f"{abs(gap):.1f} points {'above' if gap > 0 else 'below'} the best published there"
        parts.append(f"{where} ({line_name(top.model, top.variant)}, {100 * top.mean:.1f})")
        beaten = sum(best.mean.mean > other.mean for other in best.published)
        parts.append(f"above {beaten} of {len(best.published)} published models")
    if best.judged:
        parts.append(f"above the best baseline on {best.above} of {best.judged}")
    tasks = joined(best.tasks) if len(best.tasks) <= 4 else f"{len(best.tasks)} tasks"
    score = f"{100 * best.mean.mean:.1f}{margin} on {tasks}"
    return f"{start}: {best.name}, {score}{': ' if parts else ''}{', '.join(parts)}."


def rival_sentence(pair: PairResult) -> str:
    """The best run against the next one: the difference and its interval, those of `compare`."""
    interval = (
        ""
        if pair.here is None or pair.here.interval is None
        else f", 95% interval {ends(pair, pair.here.interval)}"
    )
    why = f" ({pair.reason.partition(' on ')[0]})" if pair.here is None and pair.reason else ""
    guessing = ", not above guessing" if pair.verdict.guessing else ""
    return (
        f"{pair.better} is {points(abs(pair.difference))} above {pair.worse}, the next "
        f"run{interval}{why}{guessing}:"
    )
