"""On what models are compared: the tasks that all of them have under one protocol, and the scores
there.

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
    """One model on one task. scores: fractions, one a seed; without a group of runs, a published
    mean alone.
    """

    scores: tuple[float, ...]
    seeds: tuple[int, ...] = ()
    group: RunGroup | None = None

    @property
    def mean(self) -> float:
        """Over the seeds."""
        return sum(self.scores) / len(self.scores)


@dataclass(frozen=True, slots=True)
class PairedTask:
    """Paired scores of two models on one task. first, second: with common seeds alone where they
    pair. together: whether seed i of one model goes with seed i of the other. note: what became of
    the seeds.

    unit: the coarsest of the scores; 0 for a model and itself, which agree exactly however coarse
    it is. ratio: test to training documents where the runs are several splits of one corpus; 0
    elsewhere.
    """

    info: TaskInfo
    unit: float
    ratio: float
    first: Cell
    second: Cell
    together: bool
    note: str


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
        runs.
        """
        variants = {
            cell.group.variant
            for cells in self.cells
            for cell in cells.values()
            if cell.group is not None
        }
        return "; ".join(sorted(variants - {""}))

    def pair(self, a: int, b: int) -> list[PairedTask]:
        """Two entrants, made fit to be tested with each other; what others lack takes nothing from
        them.
        """
        itself = len({(self.entrants[i].model, self.entrants[i].source) for i in (a, b)}) == 1
        rows = []
        for info in self.tasks:
            first, second = self.cells[a][info.id], self.cells[b][info.id]
            groups = [cell.group for cell in (first, second) if cell.group is not None]
            unit, ratio = (
                max(sizes, default=0.0)
                for sizes in ([g.unit for g in groups], [g.ratio for g in groups])
            )
            rows.append(
                PairedTask(info, 0.0 if itself else unit, ratio, *_common_seeds(first, second))
            )
        return rows


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
    wanted = _wanted(results, suite, tasks)
    notes = [line for e in entrants for line in e.notes]
    shared, lonely, unread = [], [], []
    for info in wanted:
        metric = metric_of(info, average)
        printed = [
            e.published[info.id].comparable if info.id in e.published else None for e in entrants
        ]
        if {*printed} - {None, metric}:
            unread.append(info.id)
        has = [
            bool(e.groups.get(info.id)) or score == metric
            for e, score in zip(entrants, printed, strict=True)
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
            notes.append(
                f"variants of tasks compared here are excluded (--task names them): "
                f"{', '.join(doubles)}"
            )
        if len({i.suite == NEEDLE for i in shared}) > 1:
            notes.append(
                "needle tasks are excluded, they ask another kind of question (--suite needle)"
            )
            shared = [i for i in shared if i.suite != NEEDLE]
    if lonely:
        notes.append(f"not compared, some model has no result there: {', '.join(lonely)}")
    if unread:
        notes.append(
            f"published values of {', '.join(unread)} are not known to be this average and are "
            f"excluded"
        )
    ids = {info.id for info in wanted}
    models = {(e.model, e.source) for e in entrants}
    refused = dict.fromkeys(
        f"{r.group.task} fails its gate, its runs are not compared: {'; '.join(r.reasons)}"
        for r in results.refusals
        if r.group.task in ids and (r.group.model, r.group.source) in models
    )
    notes += refused
    if not shared:
        hint = (
            "; ".join(refused)
            or "run both on the same tasks; `biobench report` shows what there is"
        )
        if average != "paper" and any(e.is_published for e in entrants):
            hint = "published scores are compared with --average paper"
        names = " and ".join(f"'{e.label}'" for e in entrants)
        raise UsageError(f"{names} share no task with comparable scores ({average})", hint=hint)
    picked = {info.id: same_conditions(entrants, info.id) for info in shared}
    full = [info for info in shared if all(g is None or g.is_full for g in picked[info.id])]
    if full and len(full) < len(shared):
        names = ", ".join(info.id for info in shared if info not in full)
        notes.append(
            f"only limited or overridden runs on {names}: excluded, they are never mixed with "
            f"full runs"
        )
        shared = full
    elif not full:
        variants = sorted(
            {g.variant for groups in picked.values() for g in groups if g is not None}
        )
        notes.append(
            f"no full run among these, all are limited or overridden: {'; '.join(variants)}"
        )
    order = list(dict.fromkeys(info.corpus for info in shared))
    cells: list[dict[str, Cell]] = [{} for _ in entrants]
    kept, metrics = [], {}
    unlike: dict[str, list[str]] = {}
    excluded = []
    for info in sorted(shared, key=lambda info: order.index(info.corpus)):
        metric = metric_of(info, average)
        pairs = list(zip(entrants, picked[info.id], strict=True))
        runs = [(e.label, g) for e, g in pairs if g is not None]
        if len({g.lengths for _, g in runs}) > 1:
            each = "; ".join(f"{label}: {', '.join(map(str, g.lengths))}" for label, g in runs)
            excluded.append(f"{info.id}: excluded, the windows hold other lengths ({each})")
            continue
        scores = [
            (e.published[info.id].value,) if g is None else g.scores(metric) for e, g in pairs
        ]
        if None in scores:
            notes.append(
                f"{info.id}: excluded, some record has no {metric}; `biobench rescore` computes it"
            )
            continue
        notes += [line for _, g in runs for line in (*g.notes, *remark(g))]
        for text in _differences(runs):
            unlike.setdefault(text, []).append(info.id)
        for mine, (_, group), values in zip(cells, pairs, scores, strict=True):
            mine[info.id] = Cell(values or (), () if group is None else group.seeds, group)
        kept.append(info)
        metrics[info.id] = metric
    if not kept:
        hint = "; ".join(excluded) or "run `biobench rescore`, or choose another --average"
        raise UsageError("no task has the scores to compare", hint=hint)
    notes += [*excluded, *(f"{', '.join(tasks)}: {text}" for text, tasks in unlike.items())]
    return CommonTasks(
        tuple(entrants), tuple(kept), metrics, tuple(cells), tuple(dict.fromkeys(notes))
    )


def _wanted(results: Results, suite: str | None, tasks: Sequence[str] | None) -> list[TaskInfo]:
    infos = results.infos
    if suite is not None and suite not in (*SUITES, "all"):
        raise UsageError(f"unknown suite '{suite}'", hint=suggest(suite, [*SUITES, "all"]))
    for task in tasks or ():
        if task not in infos:
            raise UsageError(f"unknown task '{plain(task)}'", hint=suggest(task, list(infos)))
    wanted = [infos[t] for t in dict.fromkeys(tasks)] if tasks else list(infos.values())
    return [
        i
        for i in wanted
        if suite in (None, "all") or (i.suite == suite and (i.in_suite or tasks is not None))
    ]


def same_conditions(entrants: Sequence[Entrant], task: str) -> list[RunGroup | None]:
    """For each entrant the group on this task, all under one condition; None for a published
    score."""
    options: list[dict[Condition, list[RunGroup]]] = [{} for _ in entrants]
    for entrant, mine in zip(entrants, options, strict=True):
        for group in entrant.groups.get(task, ()):
            mine.setdefault(group.condition, []).append(group)
    runs = [(e.label, mine) for e, mine in zip(entrants, options, strict=True) if mine]
    if not runs:
        return [None] * len(entrants)
    first = runs[0][1]
    best = [c for c in first if all(c in mine for _, mine in runs)]
    if not best:
        sides = [(label, *next(iter(mine.items()))) for label, mine in runs]
        sides = [sides[0], next(side for side in sides if side[1] != sides[0][1])]
        what = next(
            name for name, x, y in zip(CONDITION, sides[0][1], sides[1][1], strict=True) if x != y
        )
        protocols = [f"with {g[0].variant}" if g[0].variant else "in full" for _, _, g in sides]
        each = [
            f"'{label}' was run {how} (spec {c[0][:8]}, data {c[1][:8]})"
            for (label, c, _), how in zip(sides, protocols, strict=True)
        ]
        raise UsageError(
            f"{task}: {' and '.join(each)}: not the same {what}, so not comparable",
            hint="run both the same way, or name the other tasks with --task (repeatable)",
        )
    for preferred in (lambda g: g.is_full, lambda g: not g.variant):
        best = [c for c in best if all(map(preferred, first[c]))] or best
    names = [g.variant or "full" for c in best for g in first[c]]
    what = f"runs under {len(best)} conditions are stored"
    if len(best) == 1:
        label, several = next(
            ((label, mine[best[0]]) for label, mine in runs if len(mine[best[0]]) > 1), ("", [])
        )
        what, names = (
            f"'{label}' has runs of different weights",
            [f"'{plain(g.model)} [{g.variant}]'" for g in several],
        )
    if names:
        raise UsageError(f"{task}: {what}", hint=f"name one: {', '.join(sorted(set(names)))}")
    return [mine[best[0]][0] if mine else None for mine in options]


def _differences(runs: Sequence[tuple[str, RunGroup]]) -> list[str]:
    """What is not part of the protocol, yet may explain a difference of (model, group): precision
    and the window.
    """
    briefs = [(label, g.briefs[0]) for label, g in runs if g.source != "external"]
    notes = []
    if len({b.precision for _, b in briefs}) > 1:
        each = [f"{label} in {b.precision}" for label, b in briefs]
        notes.append(f"trained in different precision ({'; '.join(each)})")
    if len({(b.max_length, b.lost_gold) for _, b in briefs if b.type != NEEDLE}) > 1:
        cut = [f"{label} {b.max_length} tokens, {b.lost_gold} lost" for label, b in briefs]
        notes.append(
            f"windows cut the test documents differently, gold beyond them is missed "
            f"({'; '.join(cut)})"
        )
    return notes


def _common_seeds(a: Cell, b: Cell) -> tuple[Cell, Cell, bool, str]:
    """The cells (with the common seeds alone if seeds pair), whether they do, and, in words, what
    was dropped.

    Seeds pair where both models were run with them: the same head and data order. With fewer than
    three in common and others besides, all are kept and treated as independent.
    """
    if a.group is None or b.group is None:
        return a, b, False, ""
    common = sorted({*a.seeds} & {*b.seeds})
    if list(a.seeds) == list(b.seeds) == common:
        return a, b, True, ""
    resampled = a.group.folds or b.group.folds
    if not common and resampled:
        raise UsageError(
            "the models have no split in common",
            hint="run both on all splits; several splits are never independent",
        )
    if len(common) < PAIRS and not resampled:
        return a, b, False, "fewer than three common seeds, all seeds are compared as independent"
    first, second = (
        replace(
            c, scores=tuple(c.scores[c.seeds.index(seed)] for seed in common), seeds=tuple(common)
        )
        for c in (a, b)
    )
    return first, second, True, f"compared on the {len(common)} common seeds"
