"""Under which conditions models are compared: one condition for all of them on a task."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from biobench.errors import UsageError
from biobench.report.entrants import Entrant, line_name
from biobench.report.escape import plain
from biobench.report.groups import Condition, RunGroup
from biobench.report.tasks import NEEDLE

CONDITION = ("protocol", "test data", "limit", "track", "engine version", "split")
"""The fields of a `Condition`, in words."""

ByCondition = Mapping[Condition, Sequence[RunGroup]]


def same_conditions(entrants: Sequence[Entrant], task: str) -> list[RunGroup | None]:
    """For each entrant the group of runs on this task, all under one condition; None for a
    published score.

    Raises UsageError where no condition is shared, and where several groups are left to choose
    from.
    """
    options = [_by_condition(entrant.groups.get(task, ())) for entrant in entrants]
    runs = [
        (entrant.label, groups) for entrant, groups in zip(entrants, options, strict=True) if groups
    ]
    if not runs:
        return [None] * len(entrants)
    shared = _shared_conditions(task, runs)
    shared = _preferred(shared, [groups for _, groups in runs])
    _refuse_choices(task, shared, runs)
    condition = shared[0]
    return [_plain_runs(groups[condition])[0] if groups else None for groups in options]


def _by_condition(groups: Sequence[RunGroup]) -> dict[Condition, list[RunGroup]]:
    alike: dict[Condition, list[RunGroup]] = {}
    for group in groups:
        alike.setdefault(group.condition, []).append(group)
    return alike


def _shared_conditions(task: str, runs: Sequence[tuple[str, ByCondition]]) -> list[Condition]:
    shared = [
        condition for condition in runs[0][1] if all(condition in groups for _, groups in runs)
    ]
    if shared:
        return shared
    sides = [(label, *next(iter(groups.items()))) for label, groups in runs]
    first = sides[0]
    other = next(side for side in sides if side[1] != first[1])
    differing = next(
        name for name, one, two in zip(CONDITION, first[1], other[1], strict=True) if one != two
    )
    described = " and ".join(_described(*side) for side in (first, other))
    raise UsageError(
        f"{task}: {described}: not the same {differing}, so not comparable",
        hint="run both the same way, or name the other tasks with --task (repeatable)",
    )


def _described(label: str, condition: Condition, groups: Sequence[RunGroup]) -> str:
    variant = groups[0].variant
    protocol = f"with {variant}" if variant else "in full"
    return f"'{label}' was run {protocol} (spec {condition[0][:8]}, data {condition[1][:8]})"


def _plain_runs(groups: Sequence[RunGroup]) -> Sequence[RunGroup]:
    """Of a model's groups under one condition the one without a bracket, where there is one."""
    plain_groups = [group for group in groups if not group.variant]
    return plain_groups if len(plain_groups) == 1 else groups


def _preferred(shared: Sequence[Condition], sides: Sequence[ByCondition]) -> list[Condition]:
    """Full runs of all models before limited or overridden ones, then those on the shipped spec."""
    preferences: tuple[Callable[[RunGroup], bool], ...] = (
        lambda group: group.is_full,
        lambda group: not group.variant,
    )
    best = list(shared)
    for is_preferred in preferences:
        preferred = [
            condition
            for condition in best
            if all(is_preferred(group) for groups in sides for group in groups[condition])
        ]
        best = preferred or best
    return best


def _refuse_choices(
    task: str, shared: Sequence[Condition], runs: Sequence[tuple[str, ByCondition]]
) -> None:
    """Raise UsageError where more than one condition, or more than one set of weights, is left."""
    if len(shared) > 1:
        _, groups = min(runs, key=lambda run: run[0])
        raise UsageError(
            f"{task}: runs under {len(shared)} conditions are stored",
            hint=_name_of_these([group for condition in shared for group in groups[condition]]),
        )
    for label, groups in runs:
        several = _plain_runs(groups[shared[0]])
        if len(several) > 1:
            raise UsageError(
                f"{task}: '{label}' has runs of different weights or label maps",
                hint=_name_of_these(several),
            )


def _name_of_these(groups: Sequence[RunGroup]) -> str:
    names = {f"'{plain(line_name(group.model, group.variant))}'" for group in groups}
    return f"name one: {', '.join(sorted(names))}"


def differences(runs: Sequence[tuple[str, RunGroup]]) -> list[str]:
    """What is not part of the protocol, yet may explain a difference: precision and the window.

    runs: label and group of each model.
    """
    briefs = [(label, group.briefs[0]) for label, group in runs if group.source != "external"]
    notes = []
    if len({brief.precision for _, brief in briefs}) > 1:
        each = "; ".join(f"{label} in {brief.precision}" for label, brief in briefs)
        notes.append(f"trained in different precision ({each})")
    windows = {(b.max_length, b.lost_gold) for _, b in briefs if b.type != NEEDLE}
    if len(windows) > 1:
        each = "; ".join(
            f"{label} {b.max_length} tokens, {b.lost_gold} lost" for label, b in briefs
        )
        notes.append(
            f"windows cut the test documents differently, gold beyond them is missed ({each})"
        )
    return notes
