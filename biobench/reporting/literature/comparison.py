"""Which published values may stand beside an average, and what is said of the others."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from biobench.reporting.baselines import Remark
from biobench.reporting.literature.published import UNDECIDED, PublishedValue
from biobench.reporting.results import metric_of
from biobench.reporting.row import AverageName, Row
from biobench.reporting.tasks import Infos, TaskInfo
from biobench.schema.kind import get_metric, has_f1
from biobench.schema.task import Deviation

MIXED = "each task's own average"


LIKELY = "‡"
"""Beside a published value whose average is our reading."""


def likely_note(rows: Sequence[Row]) -> list[str]:
    """What the mark means, where some row bears it."""
    likely = sorted({row.task for row in rows if row.only_likely})
    if not likely:
        return []
    tasks = ", ".join(likely)
    return [f"{LIKELY} average by our reading, the publication states none or another: {tasks}"]


def other_scores(
    rows: Sequence[Row],
    infos: Infos,
) -> list[str]:
    """Which tasks have no F1, and what their columns hold."""
    metrics = {}
    for row in rows:
        if row.source != "published" and not has_f1(infos[row.task].type):
            metrics[row.task] = get_metric(row.metric).words
    if not metrics:
        return []
    scores = ", ".join(f"{task} {metric}" for task, metric in sorted(metrics.items()))
    return [f"tasks without F1 have another score: {scores}"]


def published_rows(
    values: Sequence[PublishedValue], infos: Infos, average: AverageName
) -> tuple[list[Row], list[Remark]]:
    """Rows of the values that are comparable with `average`; remarks that explain each caption,
    reading and fate.

    A value is shown under the tasks that it is of (`TaskInfo.published_as`), beside the average
    that it most likely is, whatever its caption claims.
    """
    rows: list[Row] = []
    # a dict for its order: a task has several values of one explanation
    explained: dict[tuple[str, str, str, str], dict[str, None]] = defaultdict(dict)
    tasks_of: dict[str, list[TaskInfo]] = defaultdict(list)
    for info in infos.values():
        tasks_of[info.published_as].append(info)
    for value in values:
        for info in tasks_of[value.task]:
            fate = "are not shown under another average."
            if value.likely == metric_of(info, average):
                rows.append(_published_row(value, info))
                spread = "without their spread" if value.sd is None else "± over the printed seeds"
                fate = f"are shown under that average, as printed, {spread}."
            explained[value.source, value.caption, value.likely, fate][info.id] = None
    remarks: list[Remark] = []
    for (source, caption, likely, fate), tasks in explained.items():
        reading = "undecided" if likely == UNDECIDED else get_metric(likely).words
        text = (
            f"Published values of {', '.join(tasks)} ({source}): {caption} Our reading: "
            f"{reading}; they {fate}"
        )
        remarks += [("published", task, text) for task in tasks]
    return rows, remarks


def _published_row(value: PublishedValue, info: TaskInfo) -> Row:
    low = high = None
    interval = value.seed_interval
    if interval is not None:
        low = max(interval.low, 0.0)
        high = min(interval.high, 1.0)
    return Row(
        model=value.model,
        task=info.id,
        metric=value.likely,
        mean=value.value,
        sd=value.sd,
        low=low,
        high=high,
        n_seeds=value.seeds,
        source="published",
        variant=value.variant,
        language=info.language,
        suite=info.suite,
        only_likely=not value.is_stated,
        parameters=value.parameters,
    )


def deviation_notes(infos: Iterable[TaskInfo]) -> list[str]:
    """A note for each declared deviation from the published protocol, with its tasks; one for tasks
    that declare none.

    infos: tasks under which published values stand. Tasks that are not shipped have no spec and are
    not named.
    """
    sharing: dict[Deviation, list[str]] = defaultdict(list)
    faithful: list[str] = []
    for info in infos:
        if info.spec is not None:
            for deviation in info.spec.deviations:
                sharing[deviation].append(info.id)
            if not info.spec.deviations:
                faithful.append(info.id)
    notes = []
    for deviation, tasks in sharing.items():
        notes.append(
            f"Not as in the protocol of the published values ({deviation.aspect}; "
            f"{', '.join(tasks)}). Here: {deviation.here}. There: {deviation.compared}."
        )
    if faithful:
        notes.append(
            f"No deviation from the protocol of the published values is known: "
            f"{', '.join(faithful)}"
        )
    return notes
