"""On what models are compared: the tasks that all of them have under one protocol, and the scores
there.

`common_tasks` decides the task set of every verdict, on the command line and on the board.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import attrgetter

from biobench.comparison.cells import Cell, PairedTask, on_common_splits, paired_task
from biobench.comparison.conditions import differences, same_conditions
from biobench.data.catalog import SUITES
from biobench.errors import UsageError
from biobench.report.entrants import Entrant
from biobench.report.escape import plain
from biobench.report.footnotes import remark
from biobench.report.groups import RunGroup
from biobench.report.results import Results, metric_of
from biobench.report.row import AverageName
from biobench.report.tasks import NEEDLE, TaskInfo
from biobench.schema.strict import suggest

Groups = Mapping[str, Sequence[RunGroup | None]]
"""Task -> the group of each entrant."""


@dataclass(frozen=True, slots=True)
class CommonTasks:
    """cells: (entrants) task -> cell, with all its seeds. Tasks of one corpus follow each other."""

    entrants: tuple[Entrant, ...]
    tasks: tuple[TaskInfo, ...]
    metrics: Mapping[str, str]
    cells: tuple[Mapping[str, Cell], ...]
    notes: tuple[str, ...]

    def of_language(self, language: str) -> CommonTasks:
        """The tasks in one language."""
        return replace(self, tasks=tuple(info for info in self.tasks if info.language == language))

    @property
    def protocol(self) -> str:
        """What the runs were made with in the place of the full protocol, in words; empty for full
        runs. What one model alone has stands behind its name.
        """
        variants_of: dict[str, set[str]] = {}
        for entrant, cells in zip(self.entrants, self.cells, strict=True):
            groups = [cell.group for cell in cells.values() if cell.group is not None]
            if groups:
                variants_of[entrant.label] = {group.variant for group in groups} - {""}
        if not variants_of:
            return ""
        shared = set.intersection(*variants_of.values())
        words = sorted(shared)
        for label, variants in sorted(variants_of.items()):
            # a name that was given with its bracket says it already
            own = {variant for variant in variants - shared if f"[{variant}]" not in label}
            words += [f"{label}: {variant}" for variant in sorted(own)]
        return "; ".join(words)

    def pair(self, first: int, second: int) -> list[PairedTask]:
        """Two entrants on every task; what others lack takes nothing from them."""
        return [
            paired_task(
                info,
                self.metrics[info.id],
                self.cells[first][info.id],
                self.cells[second][info.id],
            )
            for info in self.tasks
        ]


@dataclass(slots=True)
class Selection:
    """Tasks that are left, and a note for each reason why others are not."""

    tasks: list[TaskInfo]
    notes: list[str] = field(default_factory=list)

    @property
    def ids(self) -> set[str]:
        """Of the tasks that are left."""
        return {info.id for info in self.tasks}

    def narrow(self, wanted: Callable[[TaskInfo], bool]) -> str:
        """Leave out the tasks that are not wanted; gives their ids, empty where there is none."""
        dropped = [info for info in self.tasks if not wanted(info)]
        for info in dropped:
            self.tasks.remove(info)
        return ", ".join(info.id for info in dropped)

    def drop(self, task: TaskInfo, note: str) -> None:
        """Leave out one task and say why."""
        self.tasks.remove(task)
        self.notes.append(note)


def common_tasks(
    entrants: Sequence[Entrant],
    results: Results,
    average: AverageName,
    *,
    suite: str | None = None,
    tasks: Sequence[str] | None = None,
) -> CommonTasks:
    """The comparable part of what is known of the models.

    Raises UsageError where nothing is shared, and where a model's runs on a task were made under
    other conditions than another's (another spec or override, other data, a limit, another track or
    engine).
    """
    asked = asked_tasks(results, suite, tasks)
    selection = shared_tasks(entrants, asked, average)
    if tasks is None and suite is None:
        leave_out_variants(selection)
        leave_out_needle(selection)
    refused = refusals(entrants, results, asked)
    selection.notes += refused
    if not selection.tasks:
        raise _nothing_shared(entrants, average, refused)
    groups = {info.id: same_conditions(entrants, info.id) for info in selection.tasks}
    leave_out_limited(selection, groups)
    window_notes = leave_out_other_windows(selection, entrants, groups)
    leave_out_missing_scores(selection, groups, average)
    if not selection.tasks:
        raise UsageError(
            "no task has the scores to compare",
            hint="; ".join(window_notes) or "run `biobench rescore`, or choose another --average",
        )
    compared = by_corpus(selection.tasks)
    refuse_several_checkpoints(compared, entrants, groups)
    metrics = {info.id: metric_of(info, average) for info in compared}
    notes: list[str] = []
    for entrant in sorted(entrants, key=attrgetter("label")):
        notes += entrant.notes
    notes += selection.notes
    notes += _notes_on_runs(compared, entrants, groups)
    notes += same_runs(compared, entrants, groups)
    cells: list[dict[str, Cell]] = [{} for _ in entrants]
    for info in compared:
        stored = _cells(entrants, groups[info.id], info, metrics[info.id])
        paired = on_common_splits(stored)
        for position, cell in enumerate(paired):
            cells[position][info.id] = cell
        if paired != stored:
            splits = max(len(cell.seeds) for cell in paired)
            notes.append(f"{info.id}: compared on the {splits} common splits")
    return CommonTasks(
        entrants=tuple(entrants),
        tasks=tuple(compared),
        metrics=metrics,
        cells=tuple(cells),
        notes=tuple(dict.fromkeys(notes)),
    )


def asked_tasks(results: Results, suite: str | None, tasks: Sequence[str] | None) -> list[TaskInfo]:
    """The tasks that were asked for: all without a suite or ids. Raises UsageError for an unknown
    one.
    """
    infos = results.infos
    if suite is not None and suite not in (*SUITES, "all"):
        raise UsageError(f"unknown suite '{suite}'", hint=suggest(suite, [*SUITES, "all"]))
    for task in tasks or ():
        if task not in infos:
            raise UsageError(f"unknown task '{plain(task)}'", hint=suggest(task, list(infos)))
    asked = [infos[task] for task in dict.fromkeys(tasks)] if tasks else list(infos.values())
    if suite in (None, "all"):
        return asked
    return [info for info in asked if info.suite == suite and (info.in_suite or tasks is not None)]


def shared_tasks(
    entrants: Sequence[Entrant], asked: Sequence[TaskInfo], average: AverageName
) -> Selection:
    """The tasks of which every entrant has runs, or a printed score of the compared average."""
    selection = Selection([])
    lonely, unread = [], []
    for info in asked:
        metric = metric_of(info, average)
        scored = 0
        for entrant in entrants:
            printed = entrant.published.get(info.id)
            if entrant.groups.get(info.id) or (printed and printed.comparable == metric):
                scored += 1
            if printed and printed.comparable not in (None, metric) and info.id not in unread:
                unread.append(info.id)
        if scored == len(entrants):
            selection.tasks.append(info)
        elif scored:
            lonely.append(info.id)
    if lonely:
        selection.notes.append(f"not compared, some model has no result there: {', '.join(lonely)}")
    if unread:
        selection.notes.append(
            f"published values of {', '.join(unread)} are not known to be this average and are "
            f"excluded"
        )
    return selection


def leave_out_variants(selection: Selection) -> None:
    """A variant of a task that is compared itself would count its corpus twice."""
    ids = selection.ids
    dropped = selection.narrow(lambda info: info.spec is None or info.spec.variant_of not in ids)
    if dropped:
        selection.notes.append(
            f"variants of tasks compared here are excluded (--task names them): {dropped}"
        )


def leave_out_needle(selection: Selection) -> None:
    """Beside other tasks; alone, needle tasks are compared."""
    if all(info.suite == NEEDLE for info in selection.tasks):
        return
    if selection.narrow(lambda info: info.suite != NEEDLE):
        selection.notes.append(
            "needle tasks are excluded, they ask another kind of question (--suite needle)"
        )


def refusals(entrants: Sequence[Entrant], results: Results, asked: Sequence[TaskInfo]) -> list[str]:
    """A note a task whose runs of these models the gate refuses."""
    ids = {info.id for info in asked}
    models = {(entrant.model, entrant.source) for entrant in entrants}
    notes = [
        f"{refusal.group.task} fails its gate, its runs are not compared: "
        f"{'; '.join(refusal.reasons)}"
        for refusal in results.refusals
        if refusal.group.task in ids and (refusal.group.model, refusal.group.source) in models
    ]
    return list(dict.fromkeys(notes))


def leave_out_limited(selection: Selection, groups: Groups) -> None:
    """Limited and overridden runs, where other tasks have full ones: they are never mixed."""
    full = {task for task in selection.ids if all(group.is_full for group in _runs(groups, task))}
    if full:
        dropped = selection.narrow(lambda info: info.id in full)
        if dropped:
            selection.notes.append(
                f"only limited or overridden runs on {dropped}: excluded, they are never mixed "
                f"with full runs"
            )
        return
    variants = {group.variant for task in selection.ids for group in _runs(groups, task)}
    selection.notes.append(
        f"no full run among these, all are limited or overridden: {'; '.join(sorted(variants))}"
    )


def leave_out_other_windows(
    selection: Selection, entrants: Sequence[Entrant], groups: Groups
) -> list[str]:
    """Needle tasks of which the models' windows hold other lengths; gives a note for each."""
    notes = []
    for info in list(selection.tasks):
        runs = _labelled(entrants, groups[info.id])
        if len({group.lengths for _, group in runs}) > 1:
            lengths = "; ".join(
                f"{label}: {', '.join(map(str, group.lengths))}" for label, group in runs
            )
            notes.append(f"{info.id}: excluded, the windows hold other lengths ({lengths})")
            selection.drop(info, notes[-1])
    return notes


def leave_out_missing_scores(selection: Selection, groups: Groups, average: AverageName) -> None:
    """Tasks where some record does not have the compared score."""
    for info in list(selection.tasks):
        metric = metric_of(info, average)
        if any(group.scores(metric) is None for group in _runs(groups, info.id)):
            selection.drop(
                info,
                f"{info.id}: excluded, some record has no {metric}; `biobench rescore` computes it",
            )


def refuse_several_checkpoints(
    tasks: Sequence[TaskInfo], entrants: Sequence[Entrant], groups: Groups
) -> None:
    """Raise UsageError where one name stands for a checkpoint on a task and for another on the
    next: their mean would be of no model.
    """
    for position, entrant in enumerate(entrants):
        tasks_of: dict[str, list[str]] = {}
        for info in tasks:
            group = groups[info.id][position]
            if group is None or group.source == "external":
                continue
            brief = group.briefs[0]
            ready = " (ready-made)" if brief.origin == "checkpoint" else ""
            tasks_of.setdefault(f"{brief.weights[:8]}{ready}", []).append(info.id)
        if len(tasks_of) > 1:
            each = "; ".join(f"{weights} on {', '.join(ids)}" for weights, ids in tasks_of.items())
            raise UsageError(
                f"'{entrant.label}' stands for several checkpoints: {each}",
                hint="name one as the report does, or tasks of one with --task (repeatable)",
            )


def same_runs(tasks: Sequence[TaskInfo], entrants: Sequence[Entrant], groups: Groups) -> list[str]:
    """A note a pair of names that stand for the same runs on all tasks."""
    runs_of: dict[tuple[str, ...], list[str]] = {}
    for position, entrant in enumerate(entrants):
        keys: list[str] = []
        for info in tasks:
            group = groups[info.id][position]
            if group is not None:
                keys += (brief.key for brief in group.briefs)
        if keys:
            runs_of.setdefault(tuple(keys), []).append(entrant.label)
    return [
        f"{' and '.join(sorted(labels))} are the same runs here"
        for labels in runs_of.values()
        if len(labels) > 1
    ]


def by_corpus(tasks: Sequence[TaskInfo]) -> list[TaskInfo]:
    """In the order given, but tasks of one corpus after each other."""
    corpora = list(dict.fromkeys(info.corpus for info in tasks))
    return sorted(tasks, key=lambda info: corpora.index(info.corpus))


def _runs(groups: Groups, task: str) -> list[RunGroup]:
    """The runs on a task, of the entrants that are not known from print alone."""
    return [group for group in groups[task] if group is not None]


def _cells(
    entrants: Sequence[Entrant], groups: Sequence[RunGroup | None], info: TaskInfo, metric: str
) -> list[Cell]:
    """The scores of all entrants on a task."""
    cells = []
    for entrant, group in zip(entrants, groups, strict=True):
        if group is None:
            printed = entrant.published[info.id]
            cells.append(Cell((printed.value,), printed=printed))
        else:
            cells.append(Cell(group.scores(metric) or (), group.seeds, group))
    return cells


def _labelled(
    entrants: Sequence[Entrant], groups: Sequence[RunGroup | None]
) -> list[tuple[str, RunGroup]]:
    """The runs with their model's name, in order of the names whichever was asked for first."""
    labelled = [
        (entrant.label, group)
        for entrant, group in zip(entrants, groups, strict=True)
        if group is not None
    ]
    return sorted(labelled, key=lambda run: run[0])


def _notes_on_runs(
    tasks: Sequence[TaskInfo], entrants: Sequence[Entrant], groups: Groups
) -> list[str]:
    """What is known of the groups; then a line a difference between them, its tasks first."""
    notes: list[str] = []
    tasks_of: dict[str, list[str]] = {}
    for info in tasks:
        runs = _labelled(entrants, groups[info.id])
        for _, group in runs:
            notes += [*group.notes, *remark(group)]
        for difference in differences(runs):
            tasks_of.setdefault(difference, []).append(info.id)
    return notes + [f"{', '.join(ids)}: {text}" for text, ids in tasks_of.items()]


def _nothing_shared(
    entrants: Sequence[Entrant], average: AverageName, refused: Sequence[str]
) -> UsageError:
    hint = "; ".join(refused) or "run both on the same tasks; `biobench report` shows what there is"
    if average != "paper" and any(entrant.is_published for entrant in entrants):
        hint = "published scores are compared with --average paper"
    names = " and ".join(f"'{entrant.label}'" for entrant in entrants)
    return UsageError(f"{names} share no task with comparable scores ({average})", hint=hint)
