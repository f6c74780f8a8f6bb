"""Two runs on the same documents: what one gets right and the other does not, mention by mention."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from biobench.report.details.mistakes import JudgedDocument
from biobench.schema.document import Span

Side = Literal["both", "only_a", "only_b", "neither"]
SIDES: tuple[Side, ...] = ("both", "only_a", "only_b", "neither")


@dataclass(frozen=True, slots=True)
class SharedDocument:
    """One document as two runs judged it. sides: each gold mention or label, and who got it right."""

    first: JudgedDocument
    second: JudgedDocument
    sides: tuple[tuple[Span, Side], ...]

    @property
    def differing(self) -> int:
        """How much gold one run alone got right."""
        return sum(side in ("only_a", "only_b") for _, side in self.sides)

    def has(self, side: Side, label: str | None = None) -> bool:
        """Whether some gold of this label (of any, without one) is on this side."""
        return any(other == side and label in (None, span.label) for span, other in self.sides)


def lay_beside(first: Sequence[JudgedDocument], second: Sequence[JudgedDocument]) -> list[SharedDocument]:
    """The documents that both runs have with the same gold; those in which the two differ most first."""
    other_of = {judged.document.id: judged for judged in second}
    shared = []
    for judged in first:
        other = other_of.get(judged.document.id)
        if other is None or _gold(judged) != _gold(other):
            continue
        right = [_right(one) for one in (judged, other)]
        sides = tuple((span, _side(span in right[0], span in right[1])) for span in sorted(_gold(judged)))
        shared.append(SharedDocument(judged, other, sides))
    return sorted(shared, key=lambda one: (-one.differing, one.first.document.id))


def tally_beside(shared: Sequence[SharedDocument]) -> dict[str, Counter[Side]]:
    """Label -> how much of its gold is on each side."""
    counts: dict[str, Counter[Side]] = {}
    for one in shared:
        for span, side in one.sides:
            counts.setdefault(span.label, Counter())[side] += 1
    return dict(sorted(counts.items()))


def _gold(judged: JudgedDocument) -> set[Span]:
    return {mark.gold for mark in judged.marks if mark.gold is not None}


def _right(judged: JudgedDocument) -> set[Span]:
    return {mark.gold for mark in judged.marks if mark.gold is not None and mark.kind == "right"}


def _side(first: bool, second: bool) -> Side:
    if first:
        return "both" if second else "only_a"
    return "only_b" if second else "neither"
