"""Page one of the board: everybody on the shared tasks of a suite, and the best of the runs here.

Each task counts by the average that its published scores are printed in (`metric.paper`), or by
the one that is asked for. Runs under another protocol share no ranking.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from biobench.comparison.compare import compare
from biobench.errors import UsageError
from biobench.reporting.entrants import line_name
from biobench.reporting.frame import cells
from biobench.reporting.groups import Source
from biobench.reporting.results import Results
from biobench.reporting.row import AverageName, Row
from biobench.reporting.tasks import TASK_FAMILIES, TaskInfo
from biobench.stats import task_weights
from leaderboard.best_runs import BestRun, best_runs
from leaderboard.lines import (
    NOT_MODELS,
    TESTABLE,
    Line,
    Lines,
    ViewRows,
    rows_of_view,
    shared_tasks,
)

MOST_RANKED = 12
"""Models up to which the error rates of possible ranks were measured (docs/statistics.md)."""
VIEWS = {"fr": "French", "en": "English", "needle": "Needle"}
"""The suites that ship, in the order of the page."""
PROTOCOLS = {"small protocol": "small protocol: at most 2,000 training texts"}


@dataclass(frozen=True, slots=True)
class Entry:
    """A line of the table. protocol: "" for the full one; mean: over the shared tasks; rank: among
    the lines that have them all under the protocol that is ranked; kinds: kind of task -> mean of
    the shared ones.
    """

    model: str
    variant: str
    source: Source
    protocol: str
    cells: Mapping[str, Row]
    mean: Row | None
    rank: int | None
    kinds: Mapping[str, Row]
    mark: str = ""
    """Of a submission: reproduced, re-scored or claimed."""

    @property
    def name(self) -> str:
        """As `compare` and the link know it."""
        return line_name(self.model, self.variant)

    @property
    def line(self) -> Line:
        """What names it in a wide table."""
        return self.model, self.variant, self.source

    @property
    def is_run(self) -> bool:
        """Whether it is a result of this folder, not of a publication."""
        return self.source != "published"

    @property
    def parameters(self) -> int | None:
        """Where a row says."""
        return next((row.parameters for row in self.cells.values() if row.parameters), None)

    @property
    def known_parameters(self) -> int | None:
        """Of a submission only where a run was made again: else it is a claim."""
        is_claim = self.source == "submitted" and not self.mark.startswith("reproduced")
        return None if is_claim else self.parameters


@dataclass(frozen=True, slots=True)
class Ranking:
    """One view. shared: the tasks that the ranking is over; columns: these and then the others with
    scores, by kind; entries: ranked ones first, best first, then those that lack a shared task or
    are of another protocol; baseline: the best one of each task.
    """

    view: str
    average: AverageName
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
    def key(self) -> tuple[object, ...]:
        """What stands for it in a cache."""
        return self.view, self.average, self.shared, self.protocol

    @property
    def shared_columns(self) -> tuple[TaskInfo, ...]:
        """The tasks that the ranking is over."""
        return self.columns[: len(self.shared)]

    @property
    def ranked(self) -> list[Entry]:
        """The ranked entries, best first."""
        return [entry for entry in self.entries if entry.rank is not None]

    @property
    def published(self) -> list[Entry]:
        """The ranked published models, best first."""
        return [entry for entry in self.ranked if not entry.is_run]

    def scores_on(self, task: str, protocol: str) -> list[Row]:
        """The rows of a task under a protocol."""
        rows = []
        for entry in self.entries:
            if entry.protocol == protocol and task in entry.cells:
                rows.append(entry.cells[task])
        return rows

    @property
    def baseline_mean(self) -> float | None:
        """Mean of the best baselines over the shared tasks; None where one of them has none."""
        if not self.shared or not self.baseline.keys() >= {*self.shared}:
            return None
        weights = task_weights([info.corpus for info in self.shared_columns])
        return float(weights @ [self.baseline[info.id].mean for info in self.shared_columns])

    def of_entries(self, is_shown: Callable[[Entry], bool]) -> Ranking:
        """The same ranking with these entries alone, and without columns that no entry is left
        for; those of the shared tasks stay.
        """
        entries = tuple(filter(is_shown, self.entries))
        tasks = set(self.shared).union(*(entry.cells for entry in entries))
        columns = tuple(info for info in self.columns if info.id in tasks)
        return replace(self, entries=entries, columns=columns)


def view_of(info: TaskInfo) -> str:
    """The view that shows a task: its suite, or its suite's other tasks where it counts in none."""
    return info.suite if info.in_suite else f"other {info.suite}"


def title_of(view: str) -> str:
    """``French``; ``English, other tasks``."""
    suite = view.removeprefix("other ")
    return VIEWS.get(suite, suite) + (", other tasks" if view != suite else "")


def views(results: Results) -> list[str]:
    """The views with scores of models, shipped suites first."""
    scored = set()
    for row in cells(results, "paper").rows:
        if row.source not in NOT_MODELS:
            scored.add(view_of(results.infos[row.task]))
    return sorted(scored, key=lambda view: ([*VIEWS, view].index(view), view))


def ranking(
    results: Results,
    view: str,
    tasks: Sequence[str] = (),
    protocol: str | None = None,
    average: AverageName = "paper",
) -> Ranking:
    """Everybody in a view.

    tasks: those to rank over; without them all of the suite where some line has them all, else
    those that most lines share.
    protocol: which runs are ranked; the full one where anybody has scores under it.
    average: of each task; published models have the tasks that were printed under it.
    """
    infos = results.infos
    in_view = [row for row in cells(results, average).rows if view_of(infos[row.task]) == view]
    view_rows = rows_of_view(results, in_view)
    if protocol is None:
        protocol = _common_protocol(Counter(view_rows.protocols.values()))
    scored_tasks = set().union(*view_rows.lines.values())
    shared = tuple(filter(scored_tasks.__contains__, tasks))
    if not shared:
        shared = _shared_of_suite(results, view, view_rows.of_protocol(protocol))
    types = [*TASK_FAMILIES, *(infos[task].type for task in scored_tasks)]
    columns = sorted(
        (info for task, info in infos.items() if task in scored_tasks),
        key=lambda info: (info.id not in shared, types.index(info.type)),
    )
    # Publications print few tasks under another average; the runs here have each, and are judged on
    # the same tasks whatever the average.
    of_runs = shared
    if average != "paper":
        of_runs = ranking(results, view, tasks, protocol).shared
    return Ranking(
        view=view,
        average=average,
        protocol=protocol,
        columns=tuple(columns),
        shared=shared,
        entries=_entries(view_rows, protocol, shared),
        baseline=view_rows.baseline,
        best_runs=best_runs(view_rows, of_runs),
    )


def _common_protocol(lines: Counter[str]) -> str:
    """The full protocol where any line has it, else the commonest. lines: protocol -> how many."""
    if "" in lines:
        return ""
    return max(sorted(lines), key=lines.__getitem__, default="")


def _shared_of_suite(results: Results, view: str, eligible: Lines) -> tuple[str, ...]:
    """All tasks of the suite where some line has them all, else those that most lines share."""
    suite = [info.id for info in results.infos.values() if info.in_suite and info.suite == view]
    for scored in eligible.values():
        if suite and scored.keys() >= {*suite}:
            return tuple(suite)
    return shared_tasks(eligible, results.infos)


def _entries(view_rows: ViewRows, protocol: str, shared: Sequence[str]) -> tuple[Entry, ...]:
    """Ranked lines, best first; then the others, by protocol and number of tasks."""
    mean_of = view_rows.means(shared)
    ranked = sorted(
        filter(mean_of.__contains__, view_rows.of_protocol(protocol)),
        key=lambda line: -mean_of[line].mean,
    )
    rank_of = {line: rank for rank, line in enumerate(ranked, 1)}
    unranked = sorted(
        view_rows.lines.keys() - rank_of.keys(),
        key=lambda line: (view_rows.protocols[line], -len(view_rows.lines[line]), line),
    )
    kinds: dict[Line, dict[str, Row]] = defaultdict(dict)
    for kind, tasks in _tasks_by_kind(view_rows, shared).items():
        for line, row in view_rows.means(tasks).items():
            kinds[line][kind] = row
    entries = []
    for line in (*ranked, *unranked):
        model, variant, source = line
        entries.append(
            Entry(
                model=model,
                variant=variant,
                source=source,
                protocol=view_rows.protocols[line],
                cells=view_rows.lines[line],
                mean=mean_of.get(line),
                rank=rank_of.get(line),
                kinds=kinds[line],
                mark=view_rows.marks.get(line, ""),
            )
        )
    return tuple(entries)


def _tasks_by_kind(view_rows: ViewRows, shared: Sequence[str]) -> dict[str, list[str]]:
    """Kind of task -> its shared tasks; empty where all are of one kind."""
    tasks_of: dict[str, list[str]] = defaultdict(list)
    for task in shared:
        tasks_of[TASK_FAMILIES.get(view_rows.results.infos[task].type, "")].append(task)
    tasks_of.pop("", None)
    return tasks_of if len(tasks_of) > 1 else {}


def possible_ranks(results: Results, view_ranking: Ranking) -> dict[str, str]:
    """Name -> ``1–3``: the ranks among the runs here that `compare` leaves possible.

    Of the ranked lines with runs or predictions; empty for fewer than two of them, for more than
    `MOST_RANKED`, and where they cannot be compared.
    """
    names = [entry.name for entry in view_ranking.ranked if entry.source in TESTABLE]
    # of two lines with one name `compare` knows one
    if not 2 <= len(set(names)) == len(names) <= MOST_RANKED:
        return {}
    try:
        comparison = compare(
            names,
            results_dir=results,
            tasks=view_ranking.shared,
            average=view_ranking.average,
            pooled=True,
        )
    except UsageError:  # runs under other conditions share no comparison
        return {}
    return {model.model: model.shown_ranks for model in comparison.ranking}


def first_pair(
    results: Results, average: AverageName = "paper"
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The pair that page one names, and its tasks: the best run and the next, else the best run and
    the best published model; else the best pair under another protocol, else the two best published
    models.
    """
    # priority, names, tasks
    pairs: list[tuple[int, tuple[str, ...], tuple[str, ...]]] = []
    for position, view in enumerate(views(results)):
        view_ranking = ranking(results, view, average=average)
        for best in view_ranking.best_runs:
            if best.rivals:
                pairs.append((2 if best.protocol else 0, (best.name, best.rivals[0]), best.tasks))
            if best.published:
                pairs.append((1, (best.name, best.published[0].name), best.tasks))
        published = tuple(entry.name for entry in view_ranking.published[:2])
        if len(published) == 2:
            pairs.append((3 + position, published, view_ranking.shared))
    _, names, tasks = min(pairs, key=lambda pair: (pair[0], -len(pair[2])), default=(0, (), ()))
    return names, tasks
