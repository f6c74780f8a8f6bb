"""Which published values may stand beside an average, and what is said of the others."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from biobench.report.literature.published import UNDECIDED, PublishedValue
from biobench.report.row import METRICS, AverageName, Row
from biobench.report.tasks import TaskInfo
from biobench.schema.kind import get_metric, has_f1

MIXED = "each task's own average"


LIKELY = "‡"
"""Beside a published value whose average is likely, not stated."""


def likely_note(rows: Sequence[Row]) -> list[str]:
    """What the mark means, where some row bears it."""
    marked = sorted({row.task for row in rows if row.only_likely})
    form = "{mark} average likely, not stated by the publication: {tasks}"
    return [form.format(mark=LIKELY, tasks=", ".join(marked))] if marked else []


def other_scores(rows: Sequence[Row], infos: Mapping[str, TaskInfo]) -> list[str]:
    """Which tasks have no F1, and what their columns hold."""
    other = {
        row.task: row.metric
        for row in rows
        if row.source != "published" and not has_f1(infos[row.task].type)
    }
    each = ", ".join(f"{task} {get_metric(metric).words}" for task, metric in sorted(other.items()))
    return [f"tasks without F1 have another score: {each}"] if other else []


def published_rows(
    values: Sequence[PublishedValue], infos: Mapping[str, TaskInfo], average: AverageName
) -> tuple[list[Row], list[tuple[str, list[str]]]]:
    """Rows of the values that are comparable with `average`; a remark and its tasks for each
    caption, reading and fate.

    A value is shown under the tasks that it is of (`TaskInfo.published_as`), beside the average
    that it most likely is, whatever its caption claims.
    """
    rows: list[Row] = []
    remarks: dict[str, list[str]] = {}
    abouts: dict[tuple[str, ...], list[str]] = {}
    for value in values:
        for info in (info for info in infos.values() if info.published_as == value.task):
            wanted = info.paper if average == "paper" or not has_f1(info.type) else METRICS[average]
            shown = value.comparable == wanted
            fate = "are not shown under another average."
            if shown:
                spread = "without their spread" if value.sd is None else "± over the printed seeds"
                fate = f"are shown under that average, as printed, {spread}."
            about = (value.paper, value.caption, value.likely, fate, value.source)
            tasks = abouts.setdefault(about, [])
            tasks += [info.id] if info.id not in tasks else []
            if shown:
                interval = value.seed_interval
                rows.append(
                    Row(
                        model=value.model,
                        task=info.id,
                        metric=value.likely,
                        mean=value.value,
                        sd=value.sd,
                        low=None if interval is None else max(interval.low, 0.0),
                        high=None if interval is None else min(interval.high, 1.0),
                        n_seeds=value.seeds,
                        source="published",
                        variant=value.variant,
                        language=info.language,
                        suite=info.suite,
                        only_likely=not value.is_stated,
                        parameters=value.parameters,
                    )
                )
    for (_, caption, likely, fate, source), tasks in abouts.items():
        reading = "undecided" if likely == UNDECIDED else get_metric(likely).words
        text = (
            f"Published values of {', '.join(tasks)} ({source}): {caption} Our reading: "
            f"{reading}; they {fate}"
        )
        remarks[text] = tasks
    return rows, list(remarks.items())


def deviation_notes(infos: Iterable[TaskInfo]) -> list[str]:
    """A note for each declared deviation from the published protocol, with its tasks; one for tasks
    that declare none.

    infos: tasks under which published values stand. Tasks that are not shipped have no spec and are
    not named.
    """
    sharing: dict[tuple[str, str, str], list[str]] = {}
    none_known: list[str] = []
    for info in infos:
        if info.spec is not None:
            none_known += [] if info.spec.deviations else [info.id]
            for d in info.spec.deviations:
                sharing.setdefault((d.aspect, d.here, d.compared), []).append(info.id)
    notes = []
    for (aspect, here, compared), tasks in sharing.items():
        where = f"{aspect}; {', '.join(tasks)}"
        notes.append(
            f"Not as in the protocol of the published values ({where}). Here: {here}. There: "
            f"{compared}."
        )
    if none_known:
        notes.append(
            f"No deviation from the protocol of the published values is known: "
            f"{', '.join(none_known)}"
        )
    return notes
