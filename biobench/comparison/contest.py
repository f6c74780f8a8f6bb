"""On what the models are compared: the tasks that all have under the same conditions, and the scores there."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from biobench.data.catalog import SUITES
from biobench.errors import UsageError
from biobench.report.conditions import Condition, condition_of, differences, in_words, is_full, unlike_lengths
from biobench.report.contamination import remark
from biobench.report.entrants import Entrant
from biobench.report.escape import plain
from biobench.report.groups import RunGroup
from biobench.report.rows import AverageName
from biobench.report.table import Results, metric_of
from biobench.report.tasks import NEEDLE, TaskInfo
from biobench.schema.strict import suggest


@dataclass(frozen=True, slots=True)
class Cell:
    """One model on one task. scores: fractions, one a seed, or a published mean alone. step: to which a
    printed score was rounded, a fraction; 0 for others. policy: the score is one of the gate's policies', which
    has no seeds; it is repeated for every seed that it is compared with."""

    scores: tuple[float, ...]
    seeds: tuple[int, ...] = ()
    group: RunGroup | None = None
    step: float = 0.0
    policy: bool = False
    unit: float = 0.0
    """That of the group (`RunGroup.unit`)."""

    @property
    def mean(self) -> float:
        """Over the seeds."""
        return sum(self.scores) / len(self.scores)


@dataclass(frozen=True, slots=True)
class Refused:
    """A model's runs on a task that are left out because the task fails its gate; reasons: a line each."""

    model: str
    task: str
    reasons: tuple[str, ...]

    @property
    def words(self) -> str:
        """The refusal in one line, whoever's runs it strikes."""
        form = "{task} fails its gate, its runs are not compared: {reasons}"
        return form.format(task=self.task, reasons="; ".join(self.reasons))


@dataclass(frozen=True, slots=True)
class Match:
    """Models tested together. cells: (entrants) task -> cell, with common seeds alone where they pair. paired:
    task -> whether seed i of one model goes with seed i of the others. seed_notes: task -> what became of the seeds."""

    entrants: tuple[Entrant, ...]
    tasks: tuple[TaskInfo, ...]
    metrics: Mapping[str, str]
    cells: tuple[Mapping[str, Cell], ...]
    paired: Mapping[str, bool]
    seed_notes: Mapping[str, str]

    @property
    def step(self) -> float:
        """The coarsest rounding among the scores."""
        return max(cell.step for cells in self.cells for cell in cells.values())

    def unit(self, task: str) -> float:
        """The coarsest unit of the scores on one task; a model and itself agree exactly, however coarse it is."""
        return 0.0 if self._one_model else max(cells[task].unit for cells in self.cells)

    def ratio(self, task: str) -> float:
        """Test to training documents where the runs are several splits of one corpus; 0 elsewhere."""
        return max((group.ratio for c in self.cells if (group := c[task].group) is not None), default=0.0)

    @property
    def resolution(self) -> float:
        """For the tests over tasks: the step of printed scores, or the tasks' units as a root mean square."""
        units = [self.unit(info.id) for info in self.tasks]
        return 0.0 if self._one_model else max(self.step, math.sqrt(sum(u * u for u in units) / len(units)))

    @property
    def _one_model(self) -> bool:
        return len({(e.model, e.source) for e in self.entrants}) == 1

    def scores(self, entrant: int) -> list[tuple[float, ...]]:
        """Per task the scores of one model."""
        return [self.cells[entrant][info.id].scores for info in self.tasks]


@dataclass(frozen=True, slots=True)
class Contest:
    """cells: (entrants) task -> cell, with all its seeds. Tasks of one corpus stand together."""

    entrants: tuple[Entrant, ...]
    average: AverageName
    tasks: tuple[TaskInfo, ...]
    metrics: Mapping[str, str]
    cells: tuple[Mapping[str, Cell], ...]
    notes: tuple[str, ...]
    refused: tuple[Refused, ...] = ()

    @property
    def clusters(self) -> list[str]:
        """The corpus of each task."""
        return [info.corpus for info in self.tasks]

    def of_language(self, language: str) -> Contest:
        """The tasks in one language."""
        tasks = tuple(info for info in self.tasks if info.language == language)
        return replace(self, tasks=tasks)

    def match(self, *who: int) -> Match:
        """These entrants, made fit to be tested with each other; what others lack takes nothing from them."""
        cells: list[dict[str, Cell]] = [{} for _ in who]
        paired, seed_notes = {}, {}
        for info in self.tasks:
            paired[info.id], row, words = _common_seeds([self.cells[i][info.id] for i in who])
            if words:
                seed_notes[info.id] = words
            for mine, cell in zip(cells, row, strict=True):
                mine[info.id] = cell
        return Match(tuple(self.entrants[i] for i in who), self.tasks, self.metrics, tuple(cells), paired, seed_notes)


def contest(
    entrants: Sequence[Entrant],
    results: Results,
    average: AverageName | None,
    *,
    suite: str | None = None,
    tasks: Sequence[str] | None = None,
) -> Contest:
    """The comparable part of what is known of the models.

    average: None means macro, or `paper` where one of the models is only known from a publication.
    Raises UsageError where nothing is shared, and where a model's runs on a task were made under other
    conditions than another's (another spec or override, other data, a limit, another track or engine).
    """
    published = [e for e in entrants if e.is_published]
    chosen: AverageName = average or ("paper" if published else "macro")
    wanted = _wanted(results, suite, tasks)
    notes = [line for e in entrants for line in e.notes]
    if published and average is None:
        notes.append("each task is compared by the average its published scores are read as, not by macro F1")
    shared, lonely = [], []
    for info in wanted:
        has = [bool(e.groups.get(info.id) or e.policies.get(info.id)) or _comparable(e, info, chosen) for e in entrants]
        if all(has):
            shared.append(info)
        elif any(has):
            lonely.append(info.id)
    shared, left = _default_part(shared, named=tasks is not None or suite is not None)
    notes += left
    if lonely:
        notes.append("not compared, some model has no result there: {tasks}".format(tasks=", ".join(lonely)))
    notes += _unread(published, wanted, chosen)
    refused = refused_of(entrants, results, wanted)
    notes += dict.fromkeys(r.words for r in refused)
    if not shared:
        raise _nothing(entrants, chosen, average, refused)
    picked = {info.id: _same_conditions(entrants, info.id) for info in shared}
    full = [info for info in shared if all(g is None or is_full(g) for g in picked[info.id])]
    if full and len(full) < len(shared):
        names = ", ".join(info.id for info in shared if info not in full)
        form = "only limited or overridden runs on {tasks}: left out, they are never mixed with full runs"
        notes.append(form.format(tasks=names))
        shared = full
    elif not full:
        variants = sorted({g.variant for groups in picked.values() for g in groups if g is not None})
        notes.append(f"no full run among these, all are limited or overridden: {variants}")
    order = list(dict.fromkeys(info.corpus for info in shared))
    shared.sort(key=lambda info: order.index(info.corpus))
    return replace(_filled(entrants, shared, chosen, picked, notes), refused=tuple(refused))


def _filled(
    entrants: Sequence[Entrant],
    shared: list[TaskInfo],
    average: AverageName,
    picked: Mapping[str, Sequence[RunGroup | None]],
    notes: list[str],
) -> Contest:
    cells: list[dict[str, Cell]] = [{} for _ in entrants]
    filled, metrics = [], {}
    unlike: list[tuple[str, list[str]]] = []
    left: list[str] = []
    for info in shared:
        metric = metric_of(info, average)
        data = next((g.briefs[0].data for g in picked[info.id] if g is not None), None)
        runs = [(e.label, g) for e, g in zip(entrants, picked[info.id], strict=True)]
        reason = unlike_lengths(runs)
        if reason:
            left.append(f"{info.id}: {reason}")
            continue
        row = [_cell(e, g, info, metric, data) for e, g in zip(entrants, picked[info.id], strict=True)]
        whole = [cell for cell in row if cell is not None]
        if len(whole) < len(row):
            form = "{task}: some record has no {metric}; `biobench rescore` computes it; left out"
            notes.append(form.format(task=info.id, metric=metric))
            continue
        notes += [line for g in picked[info.id] if g is not None for line in (*g.notes, *remark(g))]
        unlike.append((info.id, differences(runs)))
        for mine, cell in zip(cells, whole, strict=True):
            mine[info.id] = cell
        filled.append(info)
        metrics[info.id] = metric
    if not filled:
        hint = "; ".join(left) or "run `biobench rescore`, or choose another --average"
        raise UsageError("no task has the scores to compare", hint=hint)
    notes += left
    for text in dict.fromkeys(text for _, texts in unlike for text in texts):
        tasks = ", ".join(task for task, texts in unlike if text in texts)
        notes.append(f"{tasks}: {text}")
    lines = tuple(dict.fromkeys(notes))
    return Contest(tuple(entrants), average, tuple(filled), metrics, tuple(cells), lines)


def _wanted(results: Results, suite: str | None, tasks: Sequence[str] | None) -> list[TaskInfo]:
    infos = results.infos
    if suite is not None and suite not in (*SUITES, "all"):
        raise UsageError(f"unknown suite '{suite}'", hint=suggest(suite, [*SUITES, "all"]))
    for task in tasks or ():
        if task not in infos:
            raise UsageError(f"unknown task '{plain(task)}'", hint=suggest(task, list(infos)))
    wanted = [infos[t] for t in dict.fromkeys(tasks)] if tasks else list(infos.values())
    return [i for i in wanted if suite in (None, "all") or (i.suite == suite and (i.in_suite or tasks is not None))]


def _default_part(shared: list[TaskInfo], *, named: bool) -> tuple[list[TaskInfo], list[str]]:
    """Where nothing was asked for: no second version of a task beside its first, no needle among others."""
    if named:
        return shared, []
    notes = []
    ids = {info.id for info in shared}
    doubles = [i.id for i in shared if i.spec is not None and i.spec.variant_of in ids]
    rest = [i for i in shared if i.id not in doubles]
    if doubles:
        form = "variants of tasks compared here are left out (--task names them): {tasks}"
        notes.append(form.format(tasks=", ".join(doubles)))
    if any(i.suite == NEEDLE for i in rest) and any(i.suite != NEEDLE for i in rest):
        notes.append("needle tasks are left out, they ask another kind of question (--suite needle)")
        rest = [i for i in rest if i.suite != NEEDLE]
    return rest, notes


def _comparable(entrant: Entrant, info: TaskInfo, average: AverageName) -> bool:
    value = entrant.published.get(info.id)
    return value is not None and value.comparable == metric_of(info, average)


def _unread(published: Sequence[Entrant], wanted: Sequence[TaskInfo], average: AverageName) -> list[str]:
    """Printed values that may not stand beside this average, named once."""
    left = [i.id for i in wanted if any(i.id in e.published and not _comparable(e, i, average) for e in published)]
    if not left:
        return []
    form = "published values of {tasks} are not known to be this average and are left out"
    return [form.format(tasks=", ".join(left))]


def refused_of(entrants: Sequence[Entrant], results: Results, wanted: Sequence[TaskInfo]) -> list[Refused]:
    """The runs of these models on these tasks that the gate refuses."""
    ids = {info.id for info in wanted}
    refusals = {
        (e.label, r.group.task): Refused(e.label, r.group.task, r.reasons)
        for e in entrants
        for r in results.refusals
        if r.group.task in ids and (r.group.model, r.group.source) == (e.model, e.source)
    }
    return list(refusals.values())


def _nothing(
    entrants: Sequence[Entrant], chosen: AverageName, requested: AverageName | None, refused: Sequence[Refused]
) -> UsageError:
    names = " and ".join(f"'{e.label}'" for e in entrants)
    hint = "run both on the same tasks; `biobench report` shows what there is"
    if requested not in (None, "paper") and any(e.is_published for e in entrants):
        hint = "published scores are compared with --average paper"
    elif refused:
        hint = "; ".join(dict.fromkeys(r.words for r in refused))
    return UsageError(f"{names} share no task with comparable scores ({chosen})", hint=hint)


def _same_conditions(entrants: Sequence[Entrant], task: str) -> list[RunGroup | None]:
    """For each entrant the group on this task, all under one condition; None for a published score."""
    options: list[dict[Condition, list[RunGroup]]] = []
    for entrant in entrants:
        mine: dict[Condition, list[RunGroup]] = {}
        for group in entrant.groups.get(task, ()):
            mine.setdefault(condition_of(group), []).append(group)
        options.append(mine)
    runs = [mine for mine in options if mine]
    if not runs:
        return [None] * len(entrants)
    common = [c for c in runs[0] if all(c in mine for mine in runs)]
    if not common:
        raise _mismatch(entrants, options, task)
    best = [c for c in common if all(is_full(g) for g in runs[0][c])] or common
    best = [c for c in best if all(not g.variant for g in runs[0][c])] or best
    if len(best) > 1:
        names = sorted({g.variant or "full" for c in best for g in runs[0][c]})
        raise UsageError(f"{task}: runs under {len(best)} conditions are stored", hint=f"name one: {', '.join(names)}")
    for entrant, mine in zip(entrants, options, strict=True):
        if mine and len(mine[best[0]]) > 1:
            each = ", ".join(f"'{plain(g.model)} [{g.variant}]'" for g in mine[best[0]])
            raise UsageError(f"{task}: '{entrant.label}' has runs of different weights", hint=f"name one: {each}")
    return [mine[best[0]][0] if mine else None for mine in options]


def _mismatch(entrants: Sequence[Entrant], options: Sequence[dict[Condition, list[RunGroup]]], task: str) -> UsageError:
    """Which condition differs, in one line."""
    present = [(e, next(iter(mine.items()))) for e, mine in zip(entrants, options, strict=True) if mine]
    first, (a, groups_a) = present[0]
    for second, (b, groups_b) in present[1:]:
        if a == b:
            continue
        what = next(w for w, x, y in zip(("spec", "data", "limit", "track", "engine"), a, b, strict=True) if x != y)
        names = {"spec": "protocol", "data": "test data", "engine": "engine version"}
        sides = [f"'{e.label}' was run {in_words(g[0])}" for e, g in ((first, groups_a), (second, groups_b))]
        return UsageError(
            f"{task}: {' and '.join(sides)}: not the same {names.get(what, what)}, so not comparable",
            hint="run both the same way, or name the other tasks with --task (repeatable)",
        )
    return UsageError(f"{task}: no condition is shared by all models", hint="compare fewer models, or run them alike")


def _cell(entrant: Entrant, group: RunGroup | None, info: TaskInfo, metric: str, data: str | None) -> Cell | None:
    """data: the hash of the data of the runs compared, None where there are none."""
    if entrant.is_policy:
        records = [r for r in entrant.policies[info.id] if data in (None, r.data_hash)]
        if not records:
            raise UsageError(
                f"{info.id}: the gate played '{entrant.label}' on other data than the runs",
                hint=f"repeat `biobench tasks gate {info.id}` on the data of the runs",
            )
        score = next(p.scores.get(metric) for p in records[0].policies if p.name == entrant.model)
        return None if score is None else Cell((score,), policy=True)
    if group is None:
        value = entrant.published[info.id]
        return Cell((value.value,), step=value.step)
    scores = group.scores(metric)
    if scores is None:
        return None
    return Cell(tuple(scores), group.seeds, group, unit=group.unit)


_PAIRS = 3
"""Common seeds for which others are dropped."""


def _common_seeds(row: Sequence[Cell]) -> tuple[bool, list[Cell], str]:
    """Whether seeds pair on a task, the cells (with the common seeds alone if so) and, in words, what was dropped.

    Seeds pair where all models were run with them: the same head and data order. With fewer than three in
    common and others besides, all are kept and treated as independent: two pairs have one degree of freedom.
    """
    runs = [cell for cell in row if cell.group is not None]
    if any(cell.step for cell in row):
        return False, list(row), ""
    if len(runs) < len(row):
        if not runs:
            return True, list(row), ""
        paired, whole, words = _common_seeds(runs)
        count = len(whole[0].scores) if paired else 1
        rest = iter(whole)
        mixed = [
            Cell(cell.scores * count, whole[0].seeds, policy=True) if cell.group is None else next(rest) for cell in row
        ]
        return paired, mixed, words
    common = sorted(set.intersection(*(set(cell.seeds) for cell in row)))
    if all(list(cell.seeds) == common for cell in row):
        return True, list(row), ""
    resampled = any(cell.group is not None and cell.group.folds for cell in row)
    if not common and resampled:
        raise UsageError(
            "the models have no split in common", hint="run both on all splits; several splits are never independent"
        )
    if len(common) < _PAIRS and not resampled:
        return False, list(row), "fewer than three common seeds, all seeds are compared as independent"
    cut = [
        replace(
            c,
            scores=tuple(s for s, seed in zip(c.scores, c.seeds, strict=True) if seed in common),
            seeds=tuple(common),
        )
        for c in row
    ]
    return True, cut, f"compared on the {len(common)} common seeds"
