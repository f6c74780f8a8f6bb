"""Under which conditions models are compared: one condition for all of them on a task."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import compress
from operator import attrgetter, ne

from biobench.errors import UsageError
from biobench.reporting.entrants import Entrant, line_name
from biobench.reporting.escape import plain
from biobench.reporting.groups import Condition, RunGroup
from biobench.reporting.tasks import NEEDLE

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
        by_condition: dict[Condition, list[RunGroup]] = defaultdict(list)
        for group in entrant.groups.get(task, ()):
            by_condition[group.condition].append(group)
        if by_condition:
            stored[entrant.label] = by_condition
    if not stored:
        return {}
    condition = _shared_condition(task, stored)
    return {label: _one_group(task, label, groups[condition]) for label, groups in stored.items()}


def not_the_full_runs(entrants: Sequence[Entrant], runs_of: Mapping[str, Runs]) -> Iterator[str]:
    """Of which models other runs than the full ones are compared, for want of a counterpart.

    runs_of: task -> the runs that are compared there.
    """
    for entrant in entrants:
        tasks_of: dict[str, list[str]] = defaultdict(list)
        for task, runs in runs_of.items():
            taken = runs.get(entrant.label)
            if taken is None or taken.is_full or f"[{taken.variant}]" in entrant.label:
                continue
            if any(group.is_full for group in entrant.groups[task]):
                tasks_of[taken.variant].append(task)
        for variant, tasks in tasks_of.items():
            yield (
                f"{', '.join(tasks)}: of {entrant.label} the runs [{variant}] are compared; "
                f"its full runs have no counterpart"
            )


def _shared_condition(task: str, stored: Mapping[str, ByCondition]) -> Condition:
    """Full runs of all models before limited or overridden ones, then those on the shipped spec."""
    shared = set.intersection(*(set(groups) for groups in stored.values()))
    if not shared:
        raise _nothing_in_common(task, stored)
    groups_under: dict[Condition, list[RunGroup]] = defaultdict(list)
    for groups in stored.values():
        for condition in shared:
            groups_under[condition] += groups[condition]
    preferences = (attrgetter("is_full"), lambda group: not group.variant)
    for is_preferred in preferences:
        preferred = {c for c in shared if all(map(is_preferred, groups_under[c]))}
        shared = preferred or shared
    if len(shared) > 1:
        groups_to_name: list[RunGroup] = []
        for condition in shared:
            groups_to_name += next(iter(stored.values()))[condition]
        raise UsageError(
            f"{task}: runs under {len(shared)} conditions are stored",
            hint=_name_of_these(groups_to_name),
        )
    return shared.pop()


def _nothing_in_common(task: str, stored: Mapping[str, ByCondition]) -> UsageError:
    """The first model and the first one whose runs were made otherwise."""
    described: dict[Condition, str] = {}
    for label, groups in stored.items():
        condition = next(iter(groups))
        variant = groups[condition][0].variant
        protocol = f"with {variant}" if variant else "in full"
        release = f"(spec {condition[0][:8]}, data {condition[1][:8]})"
        described.setdefault(condition, f"'{label}' was run {protocol} {release}")
    (condition, words), (other_condition, other_words), *_ = described.items()
    differing = next(compress(CONDITION, map(ne, condition, other_condition)))
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
    precisions: dict[str, str] = {}
    windows: dict[str, tuple[int, int]] = {}
    for label, group in runs.items():
        brief = group.briefs[0]
        if group.source == "external":
            continue
        precisions[f"{label} in {brief.precision}"] = brief.precision
        if brief.type != NEEDLE:
            window = f"{label} {brief.max_length} tokens, {brief.lost_gold} lost"
            windows[window] = (brief.max_length, brief.lost_gold)
    notes = []
    if len(set(precisions.values())) > 1:
        notes.append(f"trained in different precision ({'; '.join(precisions)})")
    if len(set(windows.values())) > 1:
        notes.append(
            f"windows cut the test documents differently, gold beyond them is missed "
            f"({'; '.join(windows)})"
        )
    return notes
