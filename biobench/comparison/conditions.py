"""Under which conditions models are compared: one condition for all of them on a task."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import compress
from operator import attrgetter, ne

from biobench.errors import UsageError
from biobench.report.entrants import Entrant, line_name
from biobench.report.escape import plain
from biobench.report.groups import Condition, RunGroup
from biobench.report.tasks import NEEDLE

CONDITION = ("protocol", "test data", "limit", "track", "engine version", "split")
"""The fields of a `Condition`, in words."""

ByCondition = Mapping[Condition, Sequence[RunGroup]]
Runs = Mapping[str, RunGroup]
"""Model's label -> its runs on a task, in order of the labels whichever was asked for first."""


def same_conditions(entrants: Sequence[Entrant], task: str) -> Runs:
    """The runs of the models on this task, all under one condition; a published score has none.

    Raises UsageError where no condition is shared, and where several groups are left to choose
    from.
    """
    stored: dict[str, ByCondition] = {}
    for entrant in sorted(entrants, key=attrgetter("label")):
        by_condition: dict[Condition, list[RunGroup]] = {}
        for group in entrant.groups.get(task, ()):
            by_condition.setdefault(group.condition, []).append(group)
        if by_condition:
            stored[entrant.label] = by_condition
    if not stored:
        return {}
    condition = _shared_condition(task, stored)
    return {label: _one_group(task, label, groups[condition]) for label, groups in stored.items()}


def _shared_condition(task: str, stored: Mapping[str, ByCondition]) -> Condition:
    """Full runs of all models before limited or overridden ones, then those on the shipped spec."""
    shared = set.intersection(*(set(groups) for groups in stored.values()))
    if not shared:
        raise _nothing_in_common(task, stored)
    preferences: tuple[Callable[[RunGroup], bool], ...] = (
        lambda group: group.is_full,
        lambda group: not group.variant,
    )
    for is_preferred in preferences:
        preferred = set(shared)
        for groups in stored.values():
            preferred -= {c for c in shared if not all(map(is_preferred, groups[c]))}
        shared = preferred or shared
    if len(shared) > 1:
        groups = next(iter(stored.values()))
        raise UsageError(
            f"{task}: runs under {len(shared)} conditions are stored",
            hint=_name_of_these([group for condition in shared for group in groups[condition]]),
        )
    return shared.pop()


def _nothing_in_common(task: str, stored: Mapping[str, ByCondition]) -> UsageError:
    """The first model and the first one whose runs were made otherwise."""
    sides = [(label, *next(iter(groups.items()))) for label, groups in stored.items()]
    described: dict[Condition, str] = {}
    for label, condition, groups in sides:
        variant = groups[0].variant
        protocol = f"with {variant}" if variant else "in full"
        release = f"(spec {condition[0][:8]}, data {condition[1][:8]})"
        described.setdefault(condition, f"'{label}' was run {protocol} {release}")
    (condition, words), (other_condition, other_words), *_ = described.items()
    differs = map(ne, condition, other_condition)
    differing = next(compress(CONDITION, differs))
    return UsageError(
        f"{task}: {words} and {other_words}: not the same {differing}, so not comparable",
        hint="run both the same way, or name the other tasks with --task (repeatable)",
    )


def _one_group(task: str, label: str, groups: Sequence[RunGroup]) -> RunGroup:
    """Of a model's groups under one condition the one without a bracket, where there is one.

    Raises UsageError where more than one set of weights is left.
    """
    bare = [group for group in groups if not group.variant]
    if len(bare) == 1:
        return bare[0]
    if len(groups) > 1:
        raise UsageError(
            f"{task}: '{label}' has runs of different weights or label maps",
            hint=_name_of_these(groups),
        )
    return groups[0]


def _name_of_these(groups: Sequence[RunGroup]) -> str:
    names = {f"'{plain(line_name(group.model, group.variant))}'" for group in groups}
    return f"name one: {', '.join(sorted(names))}"


def differences(runs: Runs) -> list[str]:
    """What is not part of the protocol, yet may explain a difference: precision and the window."""
    briefs = {label: group.briefs[0] for label, group in runs.items() if group.source != "external"}
    notes = []
    if len({brief.precision for brief in briefs.values()}) > 1:
        each = "; ".join(f"{label} in {brief.precision}" for label, brief in briefs.items())
        notes.append(f"trained in different precision ({each})")
    windows = {(b.max_length, b.lost_gold) for b in briefs.values() if b.type != NEEDLE}
    if len(windows) > 1:
        each = "; ".join(
            f"{label} {b.max_length} tokens, {b.lost_gold} lost" for label, b in briefs.items()
        )
        notes.append(
            f"windows cut the test documents differently, gold beyond them is missed ({each})"
        )
    return notes
