"""What a reader must know before setting own runs beside published values: deviations from their protocol."""

from __future__ import annotations

from collections.abc import Iterable

from biobench.report.tasks import TaskInfo
from biobench.schema.task import Deviation


def deviation_notes(infos: Iterable[TaskInfo]) -> list[str]:
    """A note for each declared deviation, with the tasks that share it; one for tasks that declare none.

    infos: tasks under which published values stand. Tasks that are not shipped have no spec and are not named.
    """
    sharing: dict[tuple[str, str, str], list[str]] = {}
    none_known: list[str] = []
    for info in infos:
        if info.spec is None:
            continue
        if not info.spec.deviations:
            none_known.append(info.id)
        for d in info.spec.deviations:
            sharing.setdefault(_key(d), []).append(info.id)
    notes = [
        "Not as in the protocol of the published values ({aspect}; {tasks}). Here: {here}. There: {compared}.".format(
            aspect=aspect, tasks=", ".join(tasks), here=here, compared=compared
        )
        for (aspect, here, compared), tasks in sharing.items()
    ]
    if none_known:
        form = "No deviation from the protocol of the published values is known: {tasks}"
        notes.append(form.format(tasks=", ".join(none_known)))
    return notes


def _key(deviation: Deviation) -> tuple[str, str, str]:
    return deviation.aspect, deviation.here, deviation.compared
