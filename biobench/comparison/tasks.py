"""On what models are compared: the tasks that all of them have under one protocol, and the scores
there.

`common_tasks` decides the task set of every verdict, on the command line and on the board.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import attrgetter

from biobench.comparison.cells import Cell, on_common_splits
from biobench.comparison.conditions import Runs, differences, same_conditions
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

RunsOf = Mapping[str, Runs]
"""Task -> the runs of the models on it."""
GroupsOf = Mapping[str, Sequence[RunGroup]]
"""Model's label -> its runs on all compared tasks."""


@dataclass(frozen=True, slots=True)
class CommonTasks:
    """cells: model's label -> task -> cell, with all its seeds; models in the order in which they
    were asked for. Tasks of one corpus follow each other.
    """

    tasks: tuple[TaskInfo, ...]
    metrics: Mapping[str, str]
    cells: Mapping[str, Mapping[str, Cell]]
    notes: tuple[str, ...]

    def of_language(self, language: str) -> CommonTasks:
        """The tasks in one language."""
        return replace(self, tasks=tuple(info for info in self.tasks if info.language == language))

    @property
    def language(self) -> str:
        """The language of all tasks; empty where there are several."""
        languages = {info.language for info in self.tasks}
        return languages.pop() if len(languages) == 1 else ""

    def cells_of(self, label: str) -> list[Cell]:
        """The model's scores on every task."""
        return [self.cells[label][info.id] for info in self.tasks]

    @property
    def protocol(self) -> str:
        """What the runs were made with in the place of the full protocol, in words; empty for full
        runs. What one model alone has stands behind its name.
        """
        variants_of: dict[str, set[str]] = {}
        for label, cells in self.cells.items():
            groups = [cell.group for cell in cells.values() if cell.group is not None]
            if groups:
                variants_of[label] = {group.variant for group in groups} - {""}
        if not variants_of:
            return ""
        shared = set.intersection(*variants_of.values())
        words = sorted(shared)
        for label, variants in sorted(variants_of.items()):
            for variant in sorted(variants - shared):
                # a name that was given with its bracket says it already
                if f"[{variant}]" not in label:
                    words.append(f"{label}: {variant}")
        return "; ".join(words)


@dataclass(slots=True)
class Selection:
    """Tasks that are left, and a note for each reason why others are not."""

    tasks: list[TaskInfo] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def keep(self, wanted: Callable[[TaskInfo], bool], note: str) -> None:
        """Leave out the tasks that are not wanted. note: why, with {} for their ids."""
        dropped = [info for info in self.tasks if not wanted(info)]
        for info in dropped:
            self.drop(info)
        if dropped:
            self.notes.append(note.format(", ".join(info.id for info in dropped)))

    def drop(self, task: TaskInfo, *notes: str) -> None:
        """Leave out one task and say why."""
        self.tasks.remove(task)
        self.notes += notes


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
        leave_out_variants_and_needle(selection)
    refused = refusals(entrants, results, asked)
    selection.notes += refused
    if not selection.tasks:
        raise _nothing_shared(entrants, average, refused)
    runs_of = {info.id: same_conditions(entrants, info.id) for info in selection.tasks}
    leave_out_limited(selection, runs_of)
    leave_out_incomparable(selection, runs_of, average)
    compared = by_corpus(selection.tasks)
    groups_of = by_model(runs_of[info.id] for info in compared)
    refuse_several_checkpoints(groups_of)
    notes: list[str] = []
    for entrant in sorted(entrants, key=attrgetter("label")):
        notes += entrant.notes
    notes += selection.notes
    notes += _notes_on_runs(compared, runs_of)
    notes += same_runs(groups_of)
    cells: dict[str, dict[str, Cell]] = {entrant.label: {} for entrant in entrants}
    for info in compared:
        stored = _cells(entrants, runs_of[info.id], info, metric_of(info, average))
        paired = on_common_splits(stored)
        for entrant, cell in zip(entrants, paired, strict=True):
            cells[entrant.label][info.id] = cell
        if paired != stored:
            splits = max(len(cell.seeds) for cell in paired)
            notes.append(f"{info.id}: compared on the {splits} common splits")
    return CommonTasks(
        tasks=tuple(compared),
        metrics={info.id: metric_of(info, average) for info in compared},
        cells=cells,
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
    asked = [infos[task] for task in dict.fromkeys(tasks or infos)]
    if suite in (None, "all"):
        return asked
    return [info for info in asked if info.suite == suite and (info.in_suite or tasks is not None)]


def shared_tasks(
    entrants: Sequence[Entrant], asked: Sequence[TaskInfo], average: AverageName
) -> Selection:
    """The tasks of which every entrant has runs, or a printed score of the compared average."""
    selection = Selection()
    lonely, unread = [], []
    for info in asked:
        metric = metric_of(info, average)
        scored = 0
        for entrant in entrants:
            printed = entrant.published.get(info.id)
            if entrant.groups.get(info.id) or (printed and printed.comparable == metric):
                scored += 1
            elif printed and printed.comparable is not None and info.id not in unread:
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


def leave_out_variants_and_needle(selection: Selection) -> None:
    """A variant of a task that is compared itself would count its corpus twice; needle tasks are
    compared alone.
    """
    ids = {info.id for info in selection.tasks}
    selection.keep(
        lambda info: info.spec is None or info.spec.variant_of not in ids,
        "variants of tasks compared here are excluded (--task names them): {}",
    )
    if any(info.suite != NEEDLE for info in selection.tasks):
        selection.keep(
            lambda info: info.suite != NEEDLE,
            "needle tasks are excluded, they ask another kind of question (--suite needle)",
        )


def refusals(entrants: Sequence[Entrant], results: Results, asked: Sequence[TaskInfo]) -> list[str]:
    """A note a task whose runs of these models the gate refuses."""
    ids = {info.id for info in asked}
    models = {(entrant.model, entrant.source) for entrant in entrants}
    notes: dict[str, None] = {}
    for refusal in results.refusals:
        group = refusal.group
        if group.task in ids and (group.model, group.source) in models:
            reasons = "; ".join(refusal.reasons)
            notes[f"{group.task} fails its gate, its runs are not compared: {reasons}"] = None
    return list(notes)


def leave_out_limited(selection: Selection, runs_of: RunsOf) -> None:
    """Limited and overridden runs, where other tasks have full ones: they are never mixed."""
    full: set[str] = set()
    variants: set[str] = set()
    for info in selection.tasks:
        groups = runs_of[info.id].values()
        if all(group.is_full for group in groups):
            full.add(info.id)
        variants |= {group.variant for group in groups}
    if full:
        selection.keep(
            lambda info: info.id in full,
            "only limited or overridden runs on {}: excluded, they are never mixed with full runs",
        )
    else:
        selection.notes.append(
            f"no full run among these, all are limited or overridden: {'; '.join(sorted(variants))}"
        )


def leave_out_incomparable(selection: Selection, runs_of: RunsOf, average: AverageName) -> None:
    """Needle tasks of which the models' windows hold other lengths, and tasks where some record
    does not have the compared score. Raises UsageError where no task is left.
    """
    excluded = []
    for info in list(selection.tasks):
        runs, metric = runs_of[info.id], metric_of(info, average)
        note = ""
        if len({group.lengths for group in runs.values()}) > 1:
            lengths = "; ".join(
                f"{label}: {', '.join(map(str, group.lengths))}" for label, group in runs.items()
            )
            note = f"{info.id}: excluded, the windows hold other lengths ({lengths})"
        elif any(group.scores(metric) is None for group in runs.values()):
            remedy = "`biobench rescore` computes it"
            note = f"{info.id}: excluded, some record has no {metric}; {remedy}"
        if note:
            excluded.append(note)
            selection.drop(info, note)
    if not selection.tasks:
        raise UsageError("no task has the scores to compare", hint="; ".join(excluded))


def by_model(runs_of_tasks: Iterable[Runs]) -> GroupsOf:
    """The runs of each model on the tasks."""
    groups_of: dict[str, list[RunGroup]] = defaultdict(list)
    for runs in runs_of_tasks:
        for label, group in runs.items():
            groups_of[label].append(group)
    return groups_of


def refuse_several_checkpoints(groups_of: GroupsOf) -> None:
    """Raise UsageError where one name stands for a checkpoint on a task and for another on the
    next: their mean would be of no model.
    """
    for label, groups in groups_of.items():
        tasks_of: dict[str, list[str]] = {}
        for group in groups:
            brief = group.briefs[0]
            ready = " (ready-made)" if brief.origin == "checkpoint" else ""
            if group.source != "external":
                tasks_of.setdefault(f"{brief.weights[:8]}{ready}", []).append(group.task)
        if len(tasks_of) > 1:
            each = "; ".join(f"{weights} on {', '.join(ids)}" for weights, ids in tasks_of.items())
            raise UsageError(
                f"'{label}' stands for several checkpoints: {each}",
                hint="name one as the report does, or tasks of one with --task (repeatable)",
            )


def same_runs(groups_of: GroupsOf) -> list[str]:
    """A note a pair of names that stand for the same runs on all tasks."""
    labels_of: dict[tuple[str, ...], list[str]] = {}
    for label, groups in groups_of.items():
        keys = tuple(brief.key for group in groups for brief in group.briefs)
        labels_of.setdefault(keys, []).append(label)
    alike = [sorted(labels) for labels in labels_of.values() if len(labels) > 1]
    return [f"{' and '.join(labels)} are the same runs here" for labels in alike]


def by_corpus(tasks: Sequence[TaskInfo]) -> list[TaskInfo]:
    """In the order given, but tasks of one corpus after each other."""
    corpora = list(dict.fromkeys(info.corpus for info in tasks))
    return sorted(tasks, key=lambda info: corpora.index(info.corpus))


def _cells(entrants: Sequence[Entrant], runs: Runs, info: TaskInfo, metric: str) -> list[Cell]:
    """The scores of all entrants on a task."""
    cells = []
    for entrant in entrants:
        group = runs.get(entrant.label)
        if group is None:
            printed = entrant.published[info.id]
            cells.append(Cell(info, metric, (printed.value,), None, printed))
        else:
            scores = group.scores(metric) or ()
            cells.append(Cell(info, metric, scores, group, seeds=group.seeds))
    return cells


def _notes_on_runs(tasks: Sequence[TaskInfo], runs_of: RunsOf) -> list[str]:
    """What is known of the groups; then a line a difference between them, its tasks first."""
    notes: list[str] = []
    tasks_of: dict[str, list[str]] = {}
    for info in tasks:
        for group in runs_of[info.id].values():
            notes += [*group.notes, *remark(group)]
        for difference in differences(runs_of[info.id]):
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
