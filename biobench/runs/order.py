"""In which order workers take the runs of a plan: the longest first, so that short ones fill the devices at the end.

Workers that claim runs one by one in this order end at most a third later than the best packing could (Graham's bound
for the longest processing time first). Free of torch and of devices: who claims is not its business.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Job:
    """A run to make. group: its checkpoint and task, which are loaded and encoded once for all runs of the group.

    size: its work in any unit, such as documents times epochs. seconds: measured on a run of the same group, or None.
    """

    key: str
    group: tuple[str, str]
    size: float
    seconds: float | None = None


def longest_first(jobs: Iterable[Job]) -> list[str]:
    """Keys in the order in which they are to be claimed; runs of one group stay together, in their order.

    A group without a measured run is taken to cost its size, at the median seconds by size of the measured ones.
    """
    groups: dict[tuple[str, str], list[Job]] = {}
    for job in jobs:
        groups.setdefault(job.group, []).append(job)
    measured = {group: statistics.fmean(s for s in seconds if s is not None) for group, seconds in _known(groups)}
    rates = [measured[group] / members[0].size for group, members in groups.items() if group in measured]
    rate = statistics.median(rates) if rates else 1.0

    def cost(group: tuple[str, str]) -> float:
        return measured.get(group, rate * groups[group][0].size)

    return [job.key for group in sorted(groups, key=cost, reverse=True) for job in groups[group]]


def _known(groups: dict[tuple[str, str], list[Job]]) -> Iterable[tuple[tuple[str, str], list[float | None]]]:
    for group, members in groups.items():
        seconds = [job.seconds for job in members]
        if any(s is not None for s in seconds):
            yield group, seconds
