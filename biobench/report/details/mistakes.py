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
