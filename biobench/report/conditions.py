"""Under what runs were made: what must be the same for their scores to be compared, and what may explain them."""

from __future__ import annotations

import re
from collections.abc import Sequence

from biobench.report.groups import RunGroup
from biobench.report.tasks import NEEDLE
from biobench.store import Brief

Condition = tuple[str, str, int | None, str, int, str]
"""What runs on one task must share: spec hash (with overrides), data hash, limit, track, engine version, split."""

_LENGTH = re.compile(r"accuracy\.(\d+)")
"""Score of a needle run on the documents of one length."""


def condition_of(group: RunGroup) -> Condition:
    """The group's condition."""
    first = group.briefs[0]
    return (first.spec, first.data, first.limit, first.track, first.engine, first.split)


def is_full(group: RunGroup) -> bool:
    """Whether the runs saw the whole task, without overrides that changed its protocol (those stand in the variant)."""
    variant = group.departures
    return not (variant.partial or variant.protocol or variant.overrides)


def in_words(group: RunGroup) -> str:
    """How the group was run."""
    first = group.briefs[0]
    start = f"with {group.variant}" if group.variant else "in full"
    return f"{start} (spec {first.spec[:8]}, data {first.data[:8]})"


def lengths_read(brief: Brief) -> tuple[int, ...]:
    """The document lengths that a needle run's score is over, those that its window holds; () for other tasks."""
    if brief.type != NEEDLE:
        return ()
    return tuple(sorted(int(m[1]) for name in brief.scores if (m := _LENGTH.fullmatch(name))))


def unlike_lengths(runs: Sequence[tuple[str, RunGroup | None]]) -> str | None:
    """Why needle runs of (model, group) are not compared: their scores are over other documents. None where alike."""
    read = [(label, lengths_read(g.briefs[0])) for label, g in runs if g is not None]
    if len({lengths for _, lengths in read}) < 2:
        return None
    each = [f"{label}: {', '.join(map(str, lengths))}" for label, lengths in read]
    shown = "; ".join(each)
    return f"left out, the windows hold other lengths ({shown}); `biobench report --format html` has them side by side"


def differences(runs: Sequence[tuple[str, RunGroup | None]]) -> list[str]:
    """What is not part of the protocol, yet may explain a difference of (model, group): precision and the window."""
    briefs = [(label, g.briefs[0]) for label, g in runs if g is not None and g.source != "outside"]
    notes = []
    if len({b.precision for _, b in briefs}) > 1:
        each = [f"{label} in {b.precision}" for label, b in briefs]
        notes.append(f"trained in different precision ({'; '.join(each)})")
    if len({(b.max_length, b.lost_gold) for _, b in briefs if b.type != NEEDLE}) > 1:
        cut = [f"{label} {b.max_length} tokens, {b.lost_gold} lost" for label, b in briefs]
        notes.append(f"windows cut the test documents differently, gold beyond them is missed ({'; '.join(cut)})")
    return notes
