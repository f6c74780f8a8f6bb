"""On what models are compared: the tasks that all of them have under one protocol, and the scores
there.

`common_tasks` decides the task set of every verdict, on the command line and on the board.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from operator import attrgetter

from biobench.comparison.cells import Cell, on_common_splits
from biobench.comparison.conditions import (
    Runs,
    differences,
    not_the_full_runs,
    same_conditions,
)
from biobench.data.catalog import SUITES
from biobench.errors import UsageError
from biobench.reporting.entrants import Entrant
from biobench.reporting.escape import plain
from biobench.reporting.footnotes import remark
from biobench.reporting.groups import RunGroup
from biobench.reporting.results import Results, metric_of
from biobench.reporting.row import AverageName
from biobench.reporting.tasks import NEEDLE, TaskInfo
from biobench.schema.strict import suggest

RunsOf = Mapping[str, Runs]
"""Task -> the runs of the models on it."""
MetricOf = Mapping[str, str]
"""Task -> the score that is compared."""
GroupsOf = Mapping[str, Sequence[RunGroup]]
"""Model's label -> its runs on all compared tasks."""


@dataclass(frozen=True, slots=True)
class CommonTasks:
    """What is compared. Tasks of one corpus follow each other.

    labels: of the models, in the order in which they were asked for.
    cells: task -> model's label -> its scores, with all its seeds.
    """

    labels: tuple[str, ...]
    tasks: tuple[TaskInfo, ...]
    metrics: MetricOf
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
        return [self.cells[info.id][label] for info in self.tasks]

    @property
    def protocol(self) -> str:
        """What the runs were made with in the place of the full protocol, in words; empty for full
        runs. What one model alone has stands behind its name.
        """
        variants_of: dict[str, set[str]] = defaultdict(set)
        for cells in self.cells.values():
            for label, cell in cells.items():
                if cell.group is not None:
                    variants_of[label].add(cell.group.variant)
        if not variants_of:
            return ""
        shared = set.intersection(*variants_of.values()) | {""}
        words = sorted(shared - {""})
        for label in sorted(variants_of):
            for variant in sorted(variants_of[label] - shared):
                # a name that was given with its bracket says it already
                if f"[{variant}]" not in label:
                    words.append(f"{label}: {variant}")
        return "; ".join(words)


@dataclass(slots=True)
class Selection:
    """Tasks that are left, and a note for each reason why others are not."""

    tasks: list[TaskInfo] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def leave_out(self, excluded: Collection[str], note: str) -> None:
        """Take out the tasks of these ids, if there are any, for the reason in `note`."""
        if excluded:
            self.tasks = [info for info in self.tasks if info.id not in excluded]
            self.notes.append(note)


def common_tasks(
    entrants: Sequence[Entrant],
    results: Results,
    average: AverageName,
    *,
    suite: str | None,
    tasks: Sequence[str],
) -> CommonTasks:
    """The comparable part of what is known of the models.

    suite, tasks: what was asked for; without either variants and needle tasks are left out.

    Raises UsageError where nothing is shared, and where a model's runs on a task were made under
    other conditions than another's (another spec or override, other data, a limit, another track or
    engine).
    """
    asked = asked_tasks(results, suite, tasks)
    metrics = {info.id: metric_of(info, average) for info in asked}
    selection = shared_tasks(entrants, asked, metrics)
    if suite is None and not tasks:
        leave_out_variants_and_needle(selection)
    refused = refusals(entrants, results, metrics)
    selection.notes += refused
    if not selection.tasks:
        raise _nothing_shared(entrants, average, refused)
    runs_of = {info.id: same_conditions(entrants, info.id) for info in selection.tasks}
    leave_out_limited(selection, runs_of)
    leave_out_incomparable(selection, runs_of, metrics)
    compared = by_corpus(selection.tasks)
    runs_of = {info.id: runs_of[info.id] for info in compared}
    groups_of = by_model(runs_of.values())
    refuse_several_checkpoints(groups_of)
    refuse_same_scores(entrants, groups_of)
    notes: list[str] = []
    for entrant in sorted(entrants, key=attrgetter("label")):
        notes += entrant.notes
    notes += selection.notes
    notes += not_the_full_runs(entrants, runs_of)
    notes += _notes_on_runs(compared, runs_of)
    cells: dict[str, Mapping[str, Cell]] = {}
    for info in compared:
        stored = _cells(entrants, runs_of[info.id], info, metrics[info.id])
        paired = on_common_splits(stored)
        cells[info.id] = paired
        if paired != stored:
            splits = max(len(cell.seeds) for cell in paired.values())
            notes.append(f"{info.id}: compared on the {splits} common splits")
    return CommonTasks(
        labels=tuple(entrant.label for entrant in entrants),
        tasks=tuple(compared),
        metrics={info.id: metrics[info.id] for info in compared},
        cells=cells,
        notes=tuple(dict.fromkeys(notes)),
    )


def asked_tasks(results: Results, suite: str | None, tasks: Sequence[str]) -> list[TaskInfo]:
    """The tasks that were asked for: all without a suite or ids. Raises UsageError for an unknown
    one.
    """
    infos = results.infos
    if suite not in (None, *SUITES, "all"):
        raise UsageError(f"unknown suite '{suite}'", hint=suggest(str(suite), [*SUITES, "all"]))
    for task in tasks:
        if task not in infos:
            raise UsageError(f"unknown task '{plain(task)}'", hint=suggest(task, list(infos)))
    asked = [infos[task] for task in dict.fromkeys(tasks or infos)]
    if suite in (None, "all"):
        return asked
    if not tasks:
        asked = [info for info in asked if info.in_suite]
    return [info for info in asked if info.suite == suite]


def shared_tasks(
    entrants: Sequence[Entrant], asked: Sequence[TaskInfo], metrics: MetricOf
) -> Selection:
    """The tasks of which every entrant has runs, or a printed score of the compared average."""
    selection = Selection()
    lonely: list[str] = []
    unread: dict[str, None] = {}
    for info in asked:
        scored = 0
        for entrant in entrants:
            printed = entrant.published.get(info.id)
            if info.id in entrant.groups:
                scored += 1
            elif printed is None or printed.comparable is None:
                continue
            elif printed.comparable == metrics[info.id]:
                scored += 1
            else:
                unread[info.id] = None
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
    variants = []
    needle = []
    for info in selection.tasks:
        if info.spec is not None and info.spec.variant_of in ids:
            variants.append(info.id)
        elif info.suite == NEEDLE:
            needle.append(info.id)
    selection.leave_out(
        variants,
        f"variants of tasks compared here are excluded (--task names them): {', '.join(variants)}",
    )
    if len(needle) < len(selection.tasks):
        selection.leave_out(
            needle, "needle tasks are excluded, they ask another kind of question (--suite needle)"
        )


def refusals(
    entrants: Sequence[Entrant], results: Results, asked_ids: Collection[str]
) -> list[str]:
    """A note a task whose runs of these models the gate refuses."""
    models = {(entrant.model, entrant.source) for entrant in entrants}
    notes: dict[str, None] = {}
    for refusal in results.refusals:
        group = refusal.group
        if group.task in asked_ids and (group.model, group.source) in models:
            reasons = "; ".join(refusal.reasons)
            notes[f"{group.task} fails its gate, its runs are not compared: {reasons}"] = None
    return list(notes)


def leave_out_limited(selection: Selection, runs_of: RunsOf) -> None:
    """Limited and overridden runs, where other tasks have full ones: they are never mixed."""
    limited: list[str] = []
    variants: set[str] = set()
    for task, runs in runs_of.items():
        variants |= {group.variant for group in runs.values()}
        if not all(group.is_full for group in runs.values()):
            limited.append(task)
    if len(limited) == len(runs_of):
        selection.notes.append(
            f"no full run among these, all are limited or overridden: {'; '.join(sorted(variants))}"
        )
        return
    selection.leave_out(
        limited,
        f"only limited or overridden runs on {', '.join(limited)}: excluded, they are never mixed "
        f"with full runs",
    )


def leave_out_incomparable(selection: Selection, runs_of: RunsOf, metrics: MetricOf) -> None:
    """Needle tasks of which the models' windows hold other lengths, and tasks where some record
    does not have the compared score. Raises UsageError where no task is left.
    """
    excluded = []
    for info in list(selection.tasks):
        reason = _why_incomparable(runs_of[info.id], metrics[info.id])
        if reason:
            note = f"{info.id}: excluded, {reason}"
            excluded.append(note)
            selection.leave_out([info.id], note)
    if not selection.tasks:
        raise UsageError("no task has the scores to compare", hint="; ".join(excluded))


def _why_incomparable(runs: Runs, metric: str) -> str:
    """Why no score of these runs may be compared; empty where all may be."""
    lengths = {label: group.lengths for label, group in runs.items()}
    if len(set(lengths.values())) > 1:
        each = [f"{label}: {', '.join(map(str, held))}" for label, held in lengths.items()]
        return f"the windows hold other lengths ({'; '.join(each)})"
    if any(group.scores(metric) is None for group in runs.values()):
        return f"some record has no {metric}; `biobench rescore` computes it"
    return ""


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
        tasks_of: dict[str, list[str]] = defaultdict(list)
        for group in groups:
            if group.source != "external":
                tasks_of[_checkpoint_words(group)].append(group.task)
        if len(tasks_of) > 1:
            each = [f"{checkpoint} on {', '.join(ids)}" for checkpoint, ids in tasks_of.items()]
            raise UsageError(
                f"'{label}' stands for several checkpoints: {'; '.join(each)}",
                hint="name one as the report does, or tasks of one with --task (repeatable)",
            )


def _checkpoint_words(group: RunGroup) -> str:
    """``1a2b3c4d``, ``1a2b3c4d (ready-made)``."""
    brief = group.briefs[0]
    weights = brief.weights[:8]
    return f"{weights} (ready-made)" if brief.origin == "checkpoint" else weights


def refuse_same_scores(entrants: Sequence[Entrant], groups_of: GroupsOf) -> None:
    """Raise UsageError where two names stand for the same runs on all tasks, or the same printed
    values: their difference of nothing would stand among the answers.
    """
    called: dict[tuple[object, ...], list[Entrant]] = defaultdict(list)
    for entrant in entrants:
        runs = groups_of.get(entrant.label, ())
        keys = [brief.key for group in runs for brief in group.briefs]
        called[*keys, *entrant.published.values()].append(entrant)
    for same in called.values():
        if len(same) == 1:
            continue
        names = " and ".join(sorted(entrant.label for entrant in same))
        has_bracket = {"[" in entrant.label for entrant in same}
        stored = chain.from_iterable(entrant.groups.values() for entrant in same)
        if len(has_bracket) > 1 and any(len(groups) > 1 for groups in stored):
            raise UsageError(
                f"{names} name runs of one model under several protocols, which are never compared",
                hint="name two models, both under one protocol",
            )
        raise UsageError(
            f"{names} stand for the same scores on these tasks", hint="leave one of them out"
        )


def by_corpus(tasks: Sequence[TaskInfo]) -> list[TaskInfo]:
    """In the order given, but tasks of one corpus after each other."""
    corpora = [info.corpus for info in tasks]
    return sorted(tasks, key=lambda info: corpora.index(info.corpus))


def _cells(entrants: Sequence[Entrant], runs: Runs, info: TaskInfo, metric: str) -> dict[str, Cell]:
    """The scores of all entrants on a task, by their labels."""
    cells = {}
    for entrant in entrants:
        group = runs.get(entrant.label)
        if group is None:
            printed = entrant.published[info.id]
            cells[entrant.label] = Cell(info, metric, (printed.value,), None, printed)
        else:
            scores = group.scores(metric) or ()
            cells[entrant.label] = Cell(info, metric, scores, group, seeds=group.seeds)
    return cells


def _notes_on_runs(tasks: Sequence[TaskInfo], runs_of: RunsOf) -> list[str]:
    """What is known of the groups; then a line a difference between them, its tasks first."""
    notes: list[str] = []
    tasks_of: dict[str, list[str]] = defaultdict(list)
    for info in tasks:
        for group in runs_of[info.id].values():
            notes += [*group.notes, *remark(group)]
        for difference in differences(runs_of[info.id]):
            tasks_of[difference].append(info.id)
    for difference, ids in tasks_of.items():
        notes.append(f"{', '.join(ids)}: {difference}")
    return notes


def _nothing_shared(
    entrants: Sequence[Entrant], average: AverageName, refused: Sequence[str]
) -> UsageError:
    hint = "; ".join(refused) or "run both on the same tasks; `biobench report` shows what there is"
    if average != "paper" and any(entrant.is_published for entrant in entrants):
        hint = "published scores are compared with --average paper"
    names = " and ".join(f"'{entrant.label}'" for entrant in entrants)
    return UsageError(f"{names} share no task with comparable scores ({average})", hint=hint)
