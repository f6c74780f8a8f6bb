"""On what models are compared: the tasks that all of them have under one protocol, and the scores there.

`common_tasks` decides the task set of every verdict, on the command line and on the board.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from biobench.data.catalog import SUITES
from biobench.errors import UsageError
from biobench.report.entrants import Entrant
from biobench.report.escape import plain
from biobench.report.footnotes import remark
from biobench.report.groups import Condition, RunGroup
from biobench.report.results import Results, metric_of
from biobench.report.row import AverageName
from biobench.report.tasks import NEEDLE, TaskInfo
from biobench.schema.strict import suggest

CONDITION = ("protocol", "test data", "limit", "track", "engine version", "split")
"""The fields of a `Condition`, in words."""
PAIRS = 3
"""Common seeds for which others are dropped: two pairs have one degree of freedom."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One model on one task. scores: fractions, one a seed; without a group of runs, a published mean alone."""

    scores: tuple[float, ...]
    seeds: tuple[int, ...] = ()
    group: RunGroup | None = None

    @property
    def mean(self) -> float:
        """Over the seeds."""
        return sum(self.scores) / len(self.scores)


@dataclass(frozen=True, slots=True)
class PairedTask:
    """Paired scores of two models on one task. first, second: with common seeds alone where they pair. together:
    whether seed i of one model goes with seed i of the other. note: what became of the seeds. itself: it is one model.
    """

    info: TaskInfo
    itself: bool
    first: Cell
    second: Cell
    together: bool
    note: str

    @property
    def groups(self) -> list[RunGroup]:
        """The runs of the two models."""
        return [cell.group for cell in (self.first, self.second) if cell.group is not None]

    @property
    def unit(self) -> float:
        """The coarsest unit of the scores; a model and itself agree exactly, however coarse it is."""
        return 0.0 if self.itself else max((group.unit for group in self.groups), default=0.0)

    @property
    def ratio(self) -> float:
        """Test to training documents where the runs are several splits of one corpus; 0 elsewhere."""
        return max((group.ratio for group in self.groups), default=0.0)


@dataclass(frozen=True, slots=True)
class CommonTasks:
    """cells: (entrants) task -> cell, with all its seeds. Tasks of one corpus stand together."""

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
        """What the runs were made with in the place of the full protocol, in words; empty for full runs."""
        variants = {cell.group.variant for cells in self.cells for cell in cells.values() if cell.group is not None}
        return "; ".join(sorted(variants - {""}))

    def pair(self, a: int, b: int) -> list[PairedTask]:
        """Two entrants, made fit to be tested with each other; what others lack takes nothing from them."""
        itself = len({(self.entrants[i].model, self.entrants[i].source) for i in (a, b)}) == 1
        rows = [(info, self.cells[a][info.id], self.cells[b][info.id]) for info in self.tasks]
        return [PairedTask(info, itself, *_common_seeds(first, second)) for info, first, second in rows]


def common_tasks(
    entrants: Sequence[Entrant],
    results: Results,
    average: AverageName,
    *,
    suite: str | None = None,
    tasks: Sequence[str] | None = None,
) -> CommonTasks:
    """The comparable part of what is known of the models.

    Raises UsageError where nothing is shared, and where a model's runs on a task were made under other
    conditions than another's (another spec or override, other data, a limit, another track or engine).
    """
    wanted = _wanted(results, suite, tasks)
    notes = [line for e in entrants for line in e.notes]
    shared, lonely, unread = [], [], []
    for info in wanted:
        metric = metric_of(info, average)
        printed = [value for e in entrants if (value := e.published.get(info.id)) is not None]
        if any(value.comparable != metric for value in printed):
            unread.append(info.id)
        has = [
            bool(e.groups.get(info.id)) or (info.id in e.published and e.published[info.id].comparable == metric)
            for e in entrants
        ]
        if all(has):
            shared.append(info)
        elif any(has):
            lonely.append(info.id)
    if tasks is None and suite is None:
        ids = {info.id for info in shared}
        doubles = [i.id for i in shared if i.spec is not None and i.spec.variant_of in ids]
        shared = [i for i in shared if i.id not in doubles]
        if doubles:
            notes.append(f"variants of tasks compared here are excluded (--task names them): {', '.join(doubles)}")
        if len({i.suite == NEEDLE for i in shared}) > 1:
            notes.append("needle tasks are excluded, they ask another kind of question (--suite needle)")
            shared = [i for i in shared if i.suite != NEEDLE]
    if lonely:
        notes.append(f"not compared, some model has no result there: {', '.join(lonely)}")
    if unread:
        notes.append(f"published values of {', '.join(unread)} are not known to be this average and are excluded")
    ids = {info.id for info in wanted}
    models = {(e.model, e.source) for e in entrants}
    refused = dict.fromkeys(
        f"{r.group.task} fails its gate, its runs are not compared: {'; '.join(r.reasons)}"
        for r in results.refusals
        if r.group.task in ids and (r.group.model, r.group.source) in models
    )
    notes += refused
    if not shared:
        hint = "; ".join(refused) or "run both on the same tasks; `biobench report` shows what there is"
        if average != "paper" and any(e.is_published for e in entrants):
            hint = "published scores are compared with --average paper"
        names = " and ".join(f"'{e.label}'" for e in entrants)
        raise UsageError(f"{names} share no task with comparable scores ({average})", hint=hint)
    picked = {info.id: same_conditions(entrants, info.id) for info in shared}
    full = [info for info in shared if all(g is None or g.is_full for g in picked[info.id])]
    if full and len(full) < len(shared):
        names = ", ".join(info.id for info in shared if info not in full)
        notes.append(f"only limited or overridden runs on {names}: excluded, they are never mixed with full runs")
        shared = full
    elif not full:
        variants = sorted({g.variant for groups in picked.values() for g in groups if g is not None})
        notes.append(f"no full run among these, all are limited or overridden: {'; '.join(variants)}")
    order = list(dict.fromkeys(info.corpus for info in shared))
    shared.sort(key=lambda info: order.index(info.corpus))
    return _with_scores(entrants, shared, average, picked, notes)


def _with_scores(
    entrants: Sequence[Entrant],
    shared: Sequence[TaskInfo],
    average: AverageName,
    picked: Mapping[str, Sequence[RunGroup | None]],
    notes: list[str],
) -> CommonTasks:
    """The tasks on which every model has the score, over the same documents."""
    cells: list[dict[str, Cell]] = [{} for _ in entrants]
    kept, metrics = [], {}
    unlike: dict[str, list[str]] = {}
    excluded = []
    for info in shared:
        metric = metric_of(info, average)
        runs = [(e.label, g) for e, g in zip(entrants, picked[info.id], strict=True) if g is not None]
        if len({g.lengths for _, g in runs}) > 1:
            each = "; ".join(f"{label}: {', '.join(map(str, g.lengths))}" for label, g in runs)
            excluded.append(f"{info.id}: excluded, the windows hold other lengths ({each})")
            continue
        scores = [
            (e.published[info.id].value,) if g is None else g.scores(metric)
            for e, g in zip(entrants, picked[info.id], strict=True)
        ]
        if None in scores:
            notes.append(f"{info.id}: excluded, some record has no {metric}; `biobench rescore` computes it")
            continue
        notes += [line for _, g in runs for line in (*g.notes, *remark(g))]
        for text in _differences(runs):
            unlike.setdefault(text, []).append(info.id)
        for mine, group, values in zip(cells, picked[info.id], scores, strict=True):
            mine[info.id] = Cell(values or (), () if group is None else group.seeds, group)
        kept.append(info)
        metrics[info.id] = metric
    if not kept:
        hint = "; ".join(excluded) or "run `biobench rescore`, or choose another --average"
        raise UsageError("no task has the scores to compare", hint=hint)
    notes += [*excluded, *(f"{', '.join(tasks)}: {text}" for text, tasks in unlike.items())]
    return CommonTasks(tuple(entrants), tuple(kept), metrics, tuple(cells), tuple(dict.fromkeys(notes)))


def _wanted(results: Results, suite: str | None, tasks: Sequence[str] | None) -> list[TaskInfo]:
    infos = results.infos
    if suite is not None and suite not in (*SUITES, "all"):
        raise UsageError(f"unknown suite '{suite}'", hint=suggest(suite, [*SUITES, "all"]))
    for task in tasks or ():
        if task not in infos:
            raise UsageError(f"unknown task '{plain(task)}'", hint=suggest(task, list(infos)))
    wanted = [infos[t] for t in dict.fromkeys(tasks)] if tasks else list(infos.values())
    return [i for i in wanted if suite in (None, "all") or (i.suite == suite and (i.in_suite or tasks is not None))]


def same_conditions(entrants: Sequence[Entrant], task: str) -> list[RunGroup | None]:
    """For each entrant the group on this task, all under one condition; None for a published score."""
    options: list[dict[Condition, list[RunGroup]]] = []
    for entrant in entrants:
        mine: dict[Condition, list[RunGroup]] = {}
        for group in entrant.groups.get(task, ()):
            mine.setdefault(group.condition, []).append(group)
        options.append(mine)
    runs = [(e, mine) for e, mine in zip(entrants, options, strict=True) if mine]
    if not runs:
        return [None] * len(entrants)
    best = [c for c in runs[0][1] if all(c in mine for _, mine in runs)]
    for preferred in (lambda g: g.is_full, lambda g: not g.variant):
        best = [c for c in best if all(map(preferred, runs[0][1][c]))] or best
    if not best:
        sides = [(e, *next(iter(mine.items()))) for e, mine in runs]
        other = next((side for side in sides[1:] if side[1] != sides[0][1]), None)
        if other is None:
            raise UsageError(f"{task}: no condition is shared by all models", hint="compare fewer models")
        what = next(name for name, x, y in zip(CONDITION, sides[0][1], other[1], strict=True) if x != y)
        each = [
            f"'{e.label}' was run {f'with {g[0].variant}' if g[0].variant else 'in full'} "
            f"(spec {condition[0][:8]}, data {condition[1][:8]})"
            for e, condition, g in (sides[0], other)
        ]
        raise UsageError(
            f"{task}: {' and '.join(each)}: not the same {what}, so not comparable",
            hint="run both the same way, or name the other tasks with --task (repeatable)",
        )
    if len(best) > 1:
        names = sorted({g.variant or "full" for c in best for g in runs[0][1][c]})
        raise UsageError(f"{task}: runs under {len(best)} conditions are stored", hint=f"name one: {', '.join(names)}")
    for entrant, mine in runs:
        if len(mine[best[0]]) > 1:
            names = [f"'{plain(g.model)} [{g.variant}]'" for g in mine[best[0]]]
            raise UsageError(
                f"{task}: '{entrant.label}' has runs of different weights", hint=f"name one: {', '.join(names)}"
            )
    return [mine[best[0]][0] if mine else None for mine in options]


def _differences(runs: Sequence[tuple[str, RunGroup]]) -> list[str]:
    """What is not part of the protocol, yet may explain a difference of (model, group): precision and the window."""
    briefs = [(label, g.briefs[0]) for label, g in runs if g.source != "external"]
    notes = []
    if len({b.precision for _, b in briefs}) > 1:
        each = [f"{label} in {b.precision}" for label, b in briefs]
        notes.append(f"trained in different precision ({'; '.join(each)})")
    if len({(b.max_length, b.lost_gold) for _, b in briefs if b.type != NEEDLE}) > 1:
        cut = [f"{label} {b.max_length} tokens, {b.lost_gold} lost" for label, b in briefs]
        notes.append(f"windows cut the test documents differently, gold beyond them is missed ({'; '.join(cut)})")
    return notes


def _common_seeds(a: Cell, b: Cell) -> tuple[Cell, Cell, bool, str]:
    """The cells (with the common seeds alone if seeds pair), whether they do, and, in words, what was dropped.

    Seeds pair where both models were run with them: the same head and data order. With fewer than three in
    common and others besides, all are kept and treated as independent.
    """
    if a.group is None or b.group is None:
        return a, b, False, ""
    common = sorted({*a.seeds} & {*b.seeds})
    if list(a.seeds) == list(b.seeds) == common:
        return a, b, True, ""
    resampled = a.group.folds or b.group.folds
    if not common and resampled:
        raise UsageError(
            "the models have no split in common", hint="run both on all splits; several splits are never independent"
        )
    if len(common) < PAIRS and not resampled:
        return a, b, False, "fewer than three common seeds, all seeds are compared as independent"
    first, second = (
        replace(c, scores=tuple(c.scores[c.seeds.index(seed)] for seed in common), seeds=tuple(common)) for c in (a, b)
    )
    return first, second, True, f"compared on the {len(common)} common seeds"
