"""On what models are compared: the tasks that all of them have under one protocol, and the scores there.

`common_tasks` decides the task set of every verdict, on the command line and on the board.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from biobench.comparison.conditions import differences, same_conditions, unlike_lengths
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
        return f"{self.task} fails its gate, its runs are not compared: {'; '.join(self.reasons)}"


@dataclass(frozen=True, slots=True)
class Paired:
    """Paired scores of two models. cells: of each, task -> cell, with common seeds alone where they pair. together:
    task -> whether seed i of one model goes with seed i of the other. seed_notes: task -> what became of the seeds."""

    entrants: tuple[Entrant, ...]
    tasks: tuple[TaskInfo, ...]
    cells: tuple[Mapping[str, Cell], ...]
    together: Mapping[str, bool]
    seed_notes: Mapping[str, str]

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
        step = max(cell.step for cells in self.cells for cell in cells.values())
        return 0.0 if self._one_model else max(step, math.sqrt(sum(u * u for u in units) / len(units)))

    @property
    def _one_model(self) -> bool:
        return len({(e.model, e.source) for e in self.entrants}) == 1


@dataclass(frozen=True, slots=True)
class CommonTasks:
    """cells: (entrants) task -> cell, with all its seeds. Tasks of one corpus stand together."""

    entrants: tuple[Entrant, ...]
    average: AverageName
    tasks: tuple[TaskInfo, ...]
    metrics: Mapping[str, str]
    cells: tuple[Mapping[str, Cell], ...]
    notes: tuple[str, ...]
    refused: tuple[Refused, ...] = ()

    def of_language(self, language: str) -> CommonTasks:
        """The tasks in one language."""
        tasks = tuple(info for info in self.tasks if info.language == language)
        return replace(self, tasks=tasks)

    @property
    def protocol(self) -> str:
        """What the runs were made with in the place of the full protocol, in words; empty for full runs."""
        variants = {cell.group.variant for cells in self.cells for cell in cells.values() if cell.group is not None}
        return "; ".join(sorted(variants - {""}))

    def pair(self, *who: int) -> Paired:
        """Two entrants, made fit to be tested with each other; what others lack takes nothing from them."""
        cells: list[dict[str, Cell]] = [{} for _ in who]
        together, seed_notes = {}, {}
        for info in self.tasks:
            together[info.id], row, words = _common_seeds([self.cells[i][info.id] for i in who])
            if words:
                seed_notes[info.id] = words
            for mine, cell in zip(cells, row, strict=True):
                mine[info.id] = cell
        return Paired(tuple(self.entrants[i] for i in who), self.tasks, tuple(cells), together, seed_notes)


def common_tasks(
    entrants: Sequence[Entrant],
    results: Results,
    average: AverageName | None,
    *,
    suite: str | None = None,
    tasks: Sequence[str] | None = None,
) -> CommonTasks:
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
        notes.append(f"not compared, some model has no result there: {', '.join(lonely)}")
    unread = [i.id for i in wanted if any(i.id in e.published and not _comparable(e, i, chosen) for e in published)]
    if unread:
        notes.append(f"published values of {', '.join(unread)} are not known to be this average and are left out")
    refused = _refused(entrants, results, wanted)
    notes += dict.fromkeys(r.words for r in refused)
    if not shared:
        raise _nothing(entrants, chosen, average, refused)
    picked = {info.id: same_conditions(entrants, info.id) for info in shared}
    full = [info for info in shared if all(g is None or g.is_full for g in picked[info.id])]
    if full and len(full) < len(shared):
        names = ", ".join(info.id for info in shared if info not in full)
        notes.append(f"only limited or overridden runs on {names}: left out, they are never mixed with full runs")
        shared = full
    elif not full:
        variants = sorted({g.variant for groups in picked.values() for g in groups if g is not None})
        notes.append(f"no full run among these, all are limited or overridden: {'; '.join(variants)}")
    order = list(dict.fromkeys(info.corpus for info in shared))
    shared.sort(key=lambda info: order.index(info.corpus))
    return replace(_filled(entrants, shared, chosen, picked, notes), refused=tuple(refused))


def _filled(
    entrants: Sequence[Entrant],
    shared: list[TaskInfo],
    average: AverageName,
    picked: Mapping[str, Sequence[RunGroup | None]],
    notes: list[str],
) -> CommonTasks:
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
            notes.append(f"{info.id}: some record has no {metric}; `biobench rescore` computes it; left out")
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
    return CommonTasks(tuple(entrants), average, tuple(filled), metrics, tuple(cells), lines)


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
        notes.append(f"variants of tasks compared here are left out (--task names them): {', '.join(doubles)}")
    if any(i.suite == NEEDLE for i in rest) and any(i.suite != NEEDLE for i in rest):
        notes.append("needle tasks are left out, they ask another kind of question (--suite needle)")
        rest = [i for i in rest if i.suite != NEEDLE]
    return rest, notes


def _comparable(entrant: Entrant, info: TaskInfo, average: AverageName) -> bool:
    value = entrant.published.get(info.id)
    return value is not None and value.comparable == metric_of(info, average)


def _refused(entrants: Sequence[Entrant], results: Results, wanted: Sequence[TaskInfo]) -> list[Refused]:
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
