"""The report of a declared suite: its tasks by its own scores, its own average, and what was published for it."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection
from dataclasses import replace

from biobench.data.catalog import load_task
from biobench.data.suite import task_of
from biobench.report.frame import Report, run_rows
from biobench.report.literature.beside import NAMES, published_rows
from biobench.report.literature.published import SUITE_FOLDER, load_published, published_folder
from biobench.report.results import Results
from biobench.report.row import Row
from biobench.report.tasks import TaskInfo
from biobench.schema.suite import Member, SuiteSpec
from biobench.stats import task_weights


def build_suite(results: Results, suite: SuiteSpec, name: str, *, incomplete: bool = False) -> Report:
    """Rows of the suite's tasks and an average for every line that has all of them.

    name: as `--suite` was given, for specs beside the suite's file. A task counts by the score that the suite
    declares, under the id that it has there. The average is the suite's own mean (`SuiteSpec.mean`); beside it, as
    `task_mean`, the plain mean over tasks, and in a note ours, the mean over corpora. incomplete: averages over a part
    of the suite, which say so. Baselines are not shown.
    """
    seen, members = suite_results(results, suite, name)
    ran, remarks = run_rows(seen.groups, seen.infos, "paper", {})
    order = {task: place for place, task in enumerate(members)}
    ran = sorted(ran, key=lambda row: order[row.task])
    printed = [replace(row, only_likely=False) for row in published_rows(seen.published, seen.infos, "paper")[0]]
    rows = [replace(row, task=members[row.task].name, suite=suite.id) for row in (*ran, *printed)]
    infos = {members[task].name: replace(info, id=members[task].name) for task, info in seen.infos.items()}
    notes = [*(line for row in ran for line in row.notes), *(text for *_, text in remarks)]
    for member in suite.tasks:
        if member.needs is not None:
            notes.append(f"{member.name} cannot be run: {member.needs}")
        if member.differs is not None:
            notes.append(f"{member.name} is not quite the suite's: {member.differs}")
    lines: dict[tuple[str, str, str], list[Row]] = defaultdict(list)
    for row in rows:
        lines[row.line].append(row)
    averages: list[Row] = []
    for of_line in lines.values():
        first, count, needed = of_line[0], len(of_line), len(suite.tasks)
        if first.partial or (count < needed and not (incomplete and count > 1)):
            continue
        scores = {row.task: row.mean for row in of_line}
        part = f"{first.model}: average over {count} of {needed} {suite.id} tasks"
        mean = Row(
            model=first.model,
            task=f"avg_{suite.id}",
            metric="mixed",
            mean=suite_mean(suite, scores),
            n_seeds=min(row.n_seeds for row in of_line),
            source=first.source,
            variant=first.variant,
            language=first.language,
            suite=suite.id,
            tasks=count,
            task_mean=math.fsum(scores.values()) / count,
            complete=count == needed,
            notes=() if count == needed else (part,),
        )
        averages.append(mean)
        ours = float(task_weights([infos[row.task].corpus for row in of_line]) @ [row.mean for row in of_line])
        words = f"{suite.name or suite.id} average {100 * mean.mean:.2f}; over corpora {100 * ours:.2f}"
        notes.append(f"{first.model}: {words}")
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
        infos[info.id], members[info.id] = info, member
    languages = {info.language for info in infos.values() if info.language}
    if len(languages) == 1:
        infos = {task: replace(info, language=min(languages)) for task, info in infos.items()}
    names = {member.name for member in suite.tasks}
    values = [v for v in load_published(published_folder() / SUITE_FOLDER).values if v.task in names]
    papers: dict[str, set[str]] = defaultdict(set)
    for value in values:
        papers[value.model].add(value.paper)
    published = tuple(replace(v, variant=v.paper if len(papers[v.model]) > 1 else "") for v in values)
    groups = tuple(group for group in results.groups if group.task in infos)
    return replace(results, groups=groups, infos=infos, published=published, cells={}), members


def _info(results: Results, suite: SuiteSpec, member: Member, name: str) -> TaskInfo:
    """The member as a column of the suite's report."""
    task = task_of(member, name)
    if task is not None and task.endswith((".yaml", ".yml")):
        task = load_task(task).id
    known = results.infos.get(task or "")
    if known is None:
        paper = member.metric or ""
        return TaskInfo(task or member.name, member.name, "", "", suite.id, True, member.name, paper, member.name)
    paper = member.metric or known.paper
    return replace(known, suite=suite.id, in_suite=True, paper=paper, published_as=member.name)


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


def suite_mean(suite: SuiteSpec, scores: dict[str, float]) -> float:
    """The suite's mean of these scores by member name: over tasks, or over types of their tasks' means."""
    parts: dict[str, list[float]] = defaultdict(list)
    for member in suite.tasks:
        if member.name in scores:
            parts[member.type if suite.mean == "types" else member.name].append(scores[member.name])
    means = [math.fsum(line_rows) / len(line_rows) for line_rows in parts.values()]
    return math.fsum(means) / len(means)
