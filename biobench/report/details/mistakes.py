"""What a run got right and wrong, document by document: for reading, never for scores."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from biobench.schema.document import Document, Prediction, Span

Kind = Literal["right", "boundary", "label", "both", "missed", "spurious"]
KINDS: tuple[Kind, ...] = ("missed", "spurious", "label", "boundary", "both", "right")
"""boundary: the label at other ends. label: another label at the same ends. both: another label, overlapping."""
NAMES: dict[Kind, str] = {
    "missed": "missed",
    "spurious": "false",
    "label": "wrong label",
    "boundary": "wrong ends",
    "both": "label and ends",
    "right": "right",
}
"""The kinds in words."""


@dataclass(frozen=True, slots=True)
class Mark:
    """One judged mention or label. gold, said: the two sides, None where one has nothing.

    For classification spans are (0, 0, label) and the kinds are right, missed and spurious.
    """

    kind: Kind
    gold: Span | None
    predicted: Span | None

    @property
    def label(self) -> str:
        """The gold label, or the predicted one where there is no gold."""
        side = self.gold or self.predicted
        assert side is not None
        return side.label


@dataclass(frozen=True, slots=True)
class JudgedDocument:
    """A document with its marks in order of position."""

    document: Document
    marks: tuple[Mark, ...]

    @property
    def wrong(self) -> int:
        """Marks that are not right."""
        return sum(m.kind != "right" for m in self.marks)


def judge(gold: Sequence[Document], predictions: Sequence[Prediction]) -> list[JudgedDocument]:
    """All documents, those with most mistakes first.

    Each predicted mention explains at most one gold mention: an exact one first, then, in reading order, an
    overlapping one with the same ends, the same label, or the longest overlap.
    """
    prediction_of = {p.document: p for p in predictions}
    judged = [JudgedDocument(d, tuple(_marks(d, prediction_of.get(d.id)))) for d in gold]
    return sorted(judged, key=lambda j: (-j.wrong, j.document.id))


def tally(judged: Sequence[JudgedDocument]) -> dict[str, Counter[Kind]]:
    """Label -> how often each kind."""
    counts: dict[str, Counter[Kind]] = {}
    for one in judged:
        for mark in one.marks:
            counts.setdefault(mark.label, Counter())[mark.kind] += 1
    return dict(sorted(counts.items()))


def _marks(document: Document, prediction: Prediction | None) -> list[Mark]:
    if prediction is None:
        prediction = Prediction(document=document.id)
    true = {*document.spans, *(Span(0, 0, label) for label in document.labels)}
    predicted = {*prediction.spans, *(Span(0, 0, label) for label in prediction.labels)}
    marks = [Mark("right", span, span) for span in true & predicted]
    free = predicted - true
    for span in sorted(true - predicted):
        near = [other for other in free if other.start < span.end and span.start < other.end]
        if not near:
            marks.append(Mark("missed", span, None))
            continue
        best = min(near, key=lambda other: (*_distance(span, other), other))
        free.discard(best)
        marks.append(Mark(_kind(span, best), span, best))
    marks += [Mark("spurious", None, span) for span in free]
    return sorted(marks, key=lambda m: (m.gold or m.predicted or Span(0, 0, ""), m.kind))


def _distance(span: Span, other: Span) -> tuple[bool, bool, int]:
    overlap = min(span.end, other.end) - max(span.start, other.start)
    return (span.start, span.end) != (other.start, other.end), span.label != other.label, -overlap


def _kind(span: Span, other: Span) -> Kind:
    same_ends = (span.start, span.end) == (other.start, other.end)
    if span.label == other.label:
        return "boundary"
    return "label" if same_ends else "both"


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
