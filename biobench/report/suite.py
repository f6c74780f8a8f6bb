"""The report of a declared suite: its tasks by its own scores, its own average, and what was published for it."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import replace

from biobench.data.suite import task_of
from biobench.report.literature.beside import NAMES
from biobench.report.literature.published import SUITE_FOLDER, PublishedValue, load_published, published_folder
from biobench.report.rows import Report, Row
from biobench.report.table import Results, run_rows
from biobench.report.tasks import TaskInfo
from biobench.schema.suite import Member, SuiteSpec
from biobench.stats import task_weights


def build_suite(results: Results, suite: SuiteSpec, name: str, *, incomplete: bool = False) -> Report:
    """Rows of the suite's tasks and an average for every line that has all of them.

    name: as `--suite` was given, for specs beside the suite's file. A task counts by the score that the suite
    declares, under the id that it has there. The average is the suite's own mean (`SuiteSpec.mean`); beside it, as
    `task_mean`, the plain mean over tasks, and in a note ours, the mean over corpora. incomplete: averages over a part
    of the suite, which say so. Floors of the gate are not shown.
    """
    infos = {member.name: _info(results, suite, member, name) for member in suite.tasks}
    tasks = {infos[m.name].id: m for m in suite.tasks}
    rows, notes = _runs(results, suite, name, infos)
    rows += _published(suite, infos)
    lines: dict[tuple[str, str, str], list[Row]] = defaultdict(list)
    for row in rows:
        lines[row.line].append(row)
    averages: list[Row] = []
    means: list[tuple[bool, str]] = []
    for line_rows in lines.values():
        complete = len(line_rows) == len(suite.tasks)
        if (complete or (incomplete and len(line_rows) > 1)) and not line_rows[0].partial:
            averages.append(_average(suite, line_rows, tasks, complete))
            ours = _over_corpora(line_rows, infos)
            mean = f"{suite.name or suite.id} average {100 * averages[-1].mean:.2f}"
            text = f"{line_rows[0].model}: {mean}; over corpora {100 * ours:.2f}"
            means.append((line_rows[0].source == "published", text))
    for member in suite.tasks:
        if member.needs is not None:
            notes.append(f"{member.name} cannot be run: {member.needs}")
        if member.differs is not None:
            notes.append(f"{member.name} is not quite the suite's: {member.differs}")
    notes += [text for published in (False, True) for is_published, text in means if is_published == published]
    present = {row.task for row in rows}
    return Report(
        average="paper",
        rows=tuple(rows),
        averages=tuple(averages),
        columns=tuple(info for info in infos.values() if info.id in present),
        caption=_caption(suite, present),
        notes=tuple(dict.fromkeys(notes)),
        title=suite.name or suite.id,
        findings=results.findings,
        groups=results.groups,
    )


def suite_results(results: Results, suite: SuiteSpec, name: str) -> tuple[Results, dict[str, Member]]:
    """The results as the suite sees them, and its members by task id: its tasks alone, each with the score by which
    it counts there as `paper`, and the values that were published for the suite. name: as `--suite` was given."""
    infos: dict[str, TaskInfo] = {}
    members: dict[str, Member] = {}
    for member in suite.tasks:
        info = _info(results, suite, member, name)
        task = task_of(member, name)
        info = replace(info, id=info.id if task is None else _id_of(task))
        infos[info.id], members[info.id] = info, member
    languages = {info.language for info in infos.values() if info.language}
    if len(languages) == 1:
        infos = {task: replace(info, language=min(languages)) for task, info in infos.items()}
    names = {member.name for member in suite.tasks}
    values = [v for v in suite_values() if v.task in names]
    papers: dict[str, set[str]] = defaultdict(set)
    for value in values:
        papers[value.model].add(value.paper)
    published = tuple(replace(v, variant=v.paper if len(papers[v.model]) > 1 else "") for v in values)
    groups = tuple(group for group in results.groups if group.task in infos)
    return replace(results, groups=groups, infos=infos, published=published, _rows={}, pairs={}), members


def _caption(suite: SuiteSpec, present: Collection[str]) -> str:
    """What the numbers are. present: the tasks that are shown."""
    types = len({member.type for member in suite.tasks})
    over = f"its {types} types of the means of their tasks" if suite.mean == "types" else "its tasks"
    tasks: dict[str, list[str]] = defaultdict(list)
    for m in suite.tasks:
        if m.name in present:
            tasks[NAMES.get(m.metric or "", m.metric or "by its spec")].append(m.name)
    scores = "; ".join(f"{score}: {', '.join(names)}" for score, names in tasks.items())
    return (
        f"Scores of {suite.name or suite.id} in percent, {scores}. ± is half the 95% t interval over seeds. The "
        f"average is the suite's own, the mean over {over}."
    )


def _info(results: Results, suite: SuiteSpec, member: Member, name: str) -> TaskInfo:
    """The member as a column of the suite's report."""
    task = task_of(member, name)
    known = None
    if task is not None:
        known = results.infos.get(task) or next((i for i in results.infos.values() if i.id == _id_of(task)), None)
    if known is None:
        return TaskInfo(
            id=member.name,
            name=member.name,
            language="",
            type="",
            suite=suite.id,
            in_suite=True,
            corpus=member.name,
            paper=member.metric or "",
            published_as=member.name,
            hashes={},
            heading=member.type,
        )
    return replace(
        known, id=member.name, suite=suite.id, in_suite=True, paper=member.metric or known.paper,
        published_as=member.name, heading=member.type,
    )  # fmt: skip


def _id_of(task: str) -> str:
    """The id of a task that is given as a path."""
    from biobench.data.catalog import load_task

    return load_task(task).id if task.endswith((".yaml", ".yml")) else task


def _runs(results: Results, suite: SuiteSpec, name: str, infos: dict[str, TaskInfo]) -> tuple[list[Row], list[str]]:
    rows: list[Row] = []
    notes: list[str] = []
    for member in suite.tasks:
        if member.task is None:
            continue
        task = _id_of(task_of(member, name) or member.task)
        line_rows = [group for group in results.groups if group.task == task]
        result_rows, remarks = run_rows(line_rows, {g.task: infos[member.name] for g in line_rows}, "paper", {})
        rows += [replace(row, task=member.name, suite=suite.id) for row in result_rows]
        notes += [line for row in result_rows for line in row.notes]
        notes += [text for _, _, text in remarks]
    return rows, notes


def _published(suite: SuiteSpec, infos: dict[str, TaskInfo]) -> list[Row]:
    """Published values by the score that the suite declares; values of one model in several papers stay apart."""
    values = [v for v in suite_values() if v.task in infos and v.likely == infos[v.task].paper]
    papers: dict[str, set[str]] = defaultdict(set)
    for value in values:
        papers[value.model].add(value.paper)
    return [
        Row(
            model=v.model,
            task=v.task,
            metric=v.likely,
            mean=v.value,
            sd=None,
            low=None,
            high=None,
            n_seeds=v.seeds,
            source="published",
            variant=v.paper if len(papers[v.model]) > 1 else "",
            language=v.language,
            suite=suite.id,
            claimed=v.claimed,
        )
        for v in values
    ]


def suite_values() -> tuple[PublishedValue, ...]:
    """The shipped published values of suites."""
    return load_published(published_folder() / SUITE_FOLDER).values


def suite_mean(suite: SuiteSpec, scores: dict[str, float]) -> float:
    """The suite's mean of these scores by member name: over tasks, or over types of their tasks' means."""
    parts: dict[str, list[float]] = defaultdict(list)
    for member in suite.tasks:
        if member.name in scores:
            parts[member.type if suite.mean == "types" else member.name].append(scores[member.name])
    means = [math.fsum(line_rows) / len(line_rows) for line_rows in parts.values()]
    return math.fsum(means) / len(means)


def _average(suite: SuiteSpec, rows: Sequence[Row], tasks: dict[str, Member], complete: bool) -> Row:
    """The suite's mean of a line; it has no interval, as the suite's own figures have none."""
    first = rows[0]
    scores = {tasks[row.task].name: row.mean for row in rows}
    part = f"{first.model}: average over {len(rows)} of {len(suite.tasks)} {suite.id} tasks"
    return Row(
        model=first.model,
        task=f"avg_{suite.id}",
        metric="mixed",
        mean=suite_mean(suite, scores),
        sd=None,
        low=None,
        high=None,
        n_seeds=min(row.n_seeds for row in rows),
        source=first.source,
        variant=first.variant,
        language=first.language,
        suite=suite.id,
        tasks=len(rows),
        task_mean=math.fsum(scores.values()) / len(scores),
        complete=complete,
        notes=() if complete else (part,),
    )


def _over_corpora(rows: Sequence[Row], infos: dict[str, TaskInfo]) -> float:
    """Our own mean of a line: over corpora of their tasks' means."""
    weights = task_weights([infos[row.task].corpus for row in rows])
    return math.fsum(float(w) * row.mean for w, row in zip(weights, rows, strict=True))
