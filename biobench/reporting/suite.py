"""The report of a declared suite: its tasks by its own scores, its own average, and what was
published for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from biobench.core.grouped import grouped
from biobench.data.catalog import load_task
from biobench.data.suite import task_of
from biobench.reporting.averages import suite_averages
from biobench.reporting.frame import Report, cells
from biobench.reporting.literature.published import (
    SUITE_FOLDER,
    by_paper,
    load_published,
    published_folder,
)
from biobench.reporting.results import Results
from biobench.reporting.row import Row
from biobench.reporting.tasks import TaskInfo, unshipped
from biobench.schema.kind import get_metric
from biobench.schema.suite import Member, SuiteSpec


def build_suite(
    results: Results, suite: SuiteSpec, name: str, *, incomplete: bool = False
) -> Report:
    """Rows of the suite's tasks and an average for every line that has all of them.

    name: as `--suite` was given, for specs beside the suite's file. A task counts by the score that
    the suite declares, under the id that it has there. The average is the suite's own mean
    (`SuiteSpec.mean`); beside it, as `task_mean`, stands the plain mean over tasks. incomplete:
    averages over a part of the suite, which say so. Baselines are not shown.
    """
    seen, members = suite_results(results, suite, name)
    everything = cells(replace(seen, baselines=(), judged=()), "paper")
    rows: list[Row] = []
    notes: list[str] = []
    for row in everything.rows:
        if row.source != "oracle":
            rows.append(replace(row, only_likely=False))
            notes += row.notes
    # the suite's mean is one over types or tasks where ours is one over corpora
    means_over = {}
    for task, info in seen.infos.items():
        means_over[task] = replace(info, corpus=cluster(suite, members[task]))
    averages, _ = suite_averages(rows, means_over, incomplete=incomplete)
    for source, _, text in everything.remarks:
        if source != "published":
            notes.append(text)
    notes += _member_notes(suite)
    present = {row.task for row in rows}
    columns = []
    shown_members = []
    for task, info in seen.infos.items():
        if task in present:
            columns.append(replace(info, id=members[task].name))
            shown_members.append(members[task])
    return Report(
        average="paper",
        rows=tuple(replace(row, task=members[row.task].name) for row in rows),
        averages=averages,
        columns=tuple(columns),
        caption=_caption(suite, shown_members),
        notes=tuple(dict.fromkeys(notes)),
        title=suite.name or suite.id,
        findings=results.findings,
    )


def _member_notes(suite: SuiteSpec) -> list[str]:
    """What cannot be run of the suite, and what is not quite as it is there."""
    notes = []
    for member in suite.tasks:
        if member.needs is not None:
            notes.append(f"{member.name} cannot be run: {member.needs}")
        if member.differs is not None:
            notes.append(f"{member.name} is not quite the suite's: {member.differs}")
    return notes


def cluster(suite: SuiteSpec, member: Member) -> str:
    """What the suite's mean counts once: the member's type, or the member itself."""
    return member.type if suite.mean == "types" else member.name


def suite_results(
    results: Results, suite: SuiteSpec, name: str
) -> tuple[Results, dict[str, Member]]:
    """The results as the suite sees them, and its members by task id: its tasks alone, each with
    the score by which it counts there as `paper`, and the values that were published for the suite.
    name: as `--suite` was given.
    """
    infos: dict[str, TaskInfo] = {}
    members: dict[str, Member] = {}
    for member in suite.tasks:
        info = _info(results, suite, member, name)
        infos[info.id] = info
        members[info.id] = member
    languages = {info.language for info in infos.values()} - {""}
    if len(languages) == 1:
        language = languages.pop()
        infos = {task: replace(info, language=language) for task, info in infos.items()}
    names = {member.name for member in suite.tasks}
    published = []
    for value in load_published(published_folder() / SUITE_FOLDER):
        if value.task in names:
            published.append(value)
    groups = [group for group in results.groups if group.task in infos]
    of_suite = replace(
        results, groups=tuple(groups), infos=infos, published=by_paper(published), cells={}
    )
    return of_suite, members


def _info(results: Results, suite: SuiteSpec, member: Member, name: str) -> TaskInfo:
    """The member as a column of the suite's report."""
    task = task_of(member, name)
    if task is not None and task.endswith((".yaml", ".yml")):
        task = load_task(task).id
    info = results.infos.get(task or "")
    if info is None:
        info = unshipped(task or member.name, corpus=member.name)
        info = replace(info, name=member.name)
    return replace(
        info,
        suite=suite.id,
        in_suite=True,
        paper=member.metric or info.paper,
        published_as=member.name,
    )


def _caption(suite: SuiteSpec, members: Sequence[Member]) -> str:
    """What the numbers are. members: the tasks that are shown."""
    over = "its tasks"
    if suite.mean == "types":
        types = len({member.type for member in suite.tasks})
        over = f"its {types} types of the means of their tasks"
    scores = []
    for score, of_score in grouped(members, _score_in_words).items():
        names = ", ".join(member.name for member in of_score)
        scores.append(f"{score}: {names}")
    return (
        f"Scores of {suite.name or suite.id} in percent, {'; '.join(scores)}. ± is half the 95% t "
        f"interval over seeds. The average is the suite's own, the mean over {over}."
    )


def _score_in_words(member: Member) -> str:
    return get_metric(member.metric).words if member.metric else "by its spec"
