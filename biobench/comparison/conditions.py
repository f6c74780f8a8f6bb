"""Under what runs were made: what must be the same for their scores to be compared, and what may explain them."""

from __future__ import annotations

from collections.abc import Sequence

from biobench.errors import UsageError
from biobench.report.entrants import Entrant
from biobench.report.escape import plain
from biobench.report.groups import Condition, RunGroup
from biobench.report.tasks import NEEDLE


def same_conditions(entrants: Sequence[Entrant], task: str) -> list[RunGroup | None]:
    """For each entrant the group on this task, all under one condition; None for a published score."""
    options: list[dict[Condition, list[RunGroup]]] = []
    for entrant in entrants:
        mine: dict[Condition, list[RunGroup]] = {}
        for group in entrant.groups.get(task, ()):
            mine.setdefault(group.condition, []).append(group)
        options.append(mine)
    runs = [mine for mine in options if mine]
    if not runs:
        return [None] * len(entrants)
    common = [c for c in runs[0] if all(c in mine for mine in runs)]
    if not common:
        raise _mismatch(entrants, options, task)
    best = [c for c in common if all(g.is_full for g in runs[0][c])] or common
    best = [c for c in best if all(not g.variant for g in runs[0][c])] or best
    if len(best) > 1:
        names = sorted({g.variant or "full" for c in best for g in runs[0][c]})
        raise UsageError(f"{task}: runs under {len(best)} conditions are stored", hint=f"name one: {', '.join(names)}")
    for entrant, mine in zip(entrants, options, strict=True):
        if mine and len(mine[best[0]]) > 1:
            each = ", ".join(f"'{plain(g.model)} [{g.variant}]'" for g in mine[best[0]])
            raise UsageError(f"{task}: '{entrant.label}' has runs of different weights", hint=f"name one: {each}")
    return [mine[best[0]][0] if mine else None for mine in options]


def _mismatch(entrants: Sequence[Entrant], options: Sequence[dict[Condition, list[RunGroup]]], task: str) -> UsageError:
    """Which condition differs, in one line."""
    present = [(e, next(iter(mine.items()))) for e, mine in zip(entrants, options, strict=True) if mine]
    first, (a, groups_a) = present[0]
    for second, (b, groups_b) in present[1:]:
        names = ("protocol", "test data", "limit", "track", "engine version", "split")
        if differs := [name for name, x, y in zip(names, a, b, strict=True) if x != y]:
            sides = [f"'{e.label}' was run {_in_words(g[0])}" for e, g in ((first, groups_a), (second, groups_b))]
            return UsageError(
                f"{task}: {' and '.join(sides)}: not the same {differs[0]}, so not comparable",
                hint="run both the same way, or name the other tasks with --task (repeatable)",
            )
    return UsageError(f"{task}: no condition is shared by all models", hint="compare fewer models, or run them alike")


def _in_words(group: RunGroup) -> str:
    """How the group was run."""
    first = group.briefs[0]
    start = f"with {group.variant}" if group.variant else "in full"
    return f"{start} (spec {first.spec[:8]}, data {first.data[:8]})"


def unlike_lengths(runs: Sequence[tuple[str, RunGroup | None]]) -> str | None:
    """Why needle runs of (model, group) are not compared: their scores are over other documents. None where alike."""
    read = [(label, g.lengths) for label, g in runs if g is not None]
    if len({lengths for _, lengths in read}) < 2:
        return None
    each = [f"{label}: {', '.join(map(str, lengths))}" for label, lengths in read]
    shown = "; ".join(each)
    return f"left out, the windows hold other lengths ({shown}); `biobench report --format html` has them side by side"


def differences(runs: Sequence[tuple[str, RunGroup | None]]) -> list[str]:
    """What is not part of the protocol, yet may explain a difference of (model, group): precision and the window."""
    briefs = [(label, g.briefs[0]) for label, g in runs if g is not None and g.source != "external"]
    notes = []
    if len({b.precision for _, b in briefs}) > 1:
        each = [f"{label} in {b.precision}" for label, b in briefs]
        notes.append(f"trained in different precision ({'; '.join(each)})")
    if len({(b.max_length, b.lost_gold) for _, b in briefs if b.type != NEEDLE}) > 1:
        cut = [f"{label} {b.max_length} tokens, {b.lost_gold} lost" for label, b in briefs]
        notes.append(f"windows cut the test documents differently, gold beyond them is missed ({'; '.join(cut)})")
    return notes
