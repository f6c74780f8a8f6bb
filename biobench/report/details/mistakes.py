"""What a run got right and wrong, document by document: for reading, never for scores."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeVar

from biobench.schema.document import Document, Prediction, Span

Kind = Literal["right", "boundary", "label", "both", "missed", "spurious"]
KINDS: tuple[Kind, ...] = ("missed", "spurious", "label", "boundary", "both", "right")
"""boundary: the label at other ends. label: another label at the same ends. both: another label,
overlapping.
"""
NAMES: dict[Kind, str] = {
    "missed": "missed",
    "spurious": "false",
    "label": "wrong label",
    "boundary": "wrong ends",
    "both": "label and ends",
    "right": "right",
}
"""The kinds in words."""
SIDES = ("both right", "only A right", "only B right", "neither")
"""Who of two runs got a gold mention or label right."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Mark:
    """One judged mention or label. gold, predicted: the two sides, None where one has nothing.

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

    @property
    def gold(self) -> dict[Span, bool]:
        """Each gold mention or label in order of position, and whether it was got right."""
        return dict(sorted((m.gold, m.kind == "right") for m in self.marks if m.gold))


def only_labels(judged: JudgedDocument) -> tuple[str, str] | None:
    """(gold, predicted) of a document that has one label of each and no mentions."""
    gold = [mark.gold.label for mark in judged.marks if mark.gold]
    predicted = [mark.predicted.label for mark in judged.marks if mark.predicted]
    if judged.document.spans or not len(gold) == len(predicted) == 1:
        return None
    return gold[0], predicted[0]


def judge(gold: Sequence[Document], predictions: Sequence[Prediction]) -> list[JudgedDocument]:
    """All documents, those with most mistakes first.

    Each predicted mention explains at most one gold mention: an exact one first, then, in reading
    order, an overlapping one with the same ends, the same label, or the longest overlap.
    """
    prediction_of = {p.document: p for p in predictions}
    judged = [JudgedDocument(d, _marks(d, prediction_of.get(d.id, Prediction(d.id)))) for d in gold]
    return sorted(judged, key=lambda j: (-j.wrong, j.document.id))


def tally(pairs: Iterable[tuple[str, T]]) -> dict[str, Counter[T]]:
    """Label -> how often each thing that it comes with."""
    counts: dict[str, Counter[T]] = {}
    for label, thing in pairs:
        counts.setdefault(label, Counter())[thing] += 1
    return dict(sorted(counts.items()))


def by_label(judged: Sequence[JudgedDocument]) -> dict[str, Counter[Kind]]:
    """Label -> how often each kind of mark."""
    return tally((mark.label, mark.kind) for one in judged for mark in one.marks)


@dataclass(frozen=True, slots=True)
class Leaks:
    """What a de-identifier lets through: label to gold mentions, and to those that are leaked.

    A mention is leaked where a character of it stands in no predicted mention, of whatever label. A
    single character between two predicted mentions (a blank, a hyphen) is no leak.
    """

    identifiers: Counter[str]
    leaked: Counter[str]
    safe_documents: int
    """Documents of which nothing is leaked."""

    @property
    def recall(self) -> float:
        """Share of the mentions that are hidden whole; 1 where there is none."""
        identifiers = self.identifiers.total()
        return 1 - self.leaked.total() / identifiers if identifiers else 1.0


def leaks(judged: Sequence[JudgedDocument]) -> Leaks:
    """The leaks of all documents together."""
    identifiers, leaked = Counter[str](), Counter[str]()
    safe_documents = 0
    for one in judged:
        hidden = _hidden_characters([m.predicted for m in one.marks if m.predicted])
        gold = list(one.gold)
        seen = [span for span in gold if not hidden.issuperset(range(span.start, span.end))]
        identifiers.update(span.label for span in gold)
        leaked.update(span.label for span in seen)
        safe_documents += not seen
    return Leaks(identifiers, leaked, safe_documents)


def _hidden_characters(predicted: Sequence[Span]) -> set[int]:
    """The characters of the mentions, and single ones between two of them."""
    hidden = {character for span in predicted for character in range(span.start, span.end)}
    starts = {span.start for span in predicted}
    return hidden | {span.end for span in predicted if span.end + 1 in starts}


def _marks(document: Document, prediction: Prediction) -> tuple[Mark, ...]:
    true = {*document.spans, *(Span(0, 0, label) for label in document.labels)}
    predicted = {*prediction.spans, *(Span(0, 0, label) for label in prediction.labels)}
    marks = [Mark("right", span, span) for span in true & predicted]
    free = predicted - true
    for span in sorted(true - predicted):

        def distance(other: Span, span: Span = span) -> tuple[bool, bool, int, Span]:
            overlap = min(span.end, other.end) - max(span.start, other.start)
            return (
                (span.start, span.end) != (other.start, other.end),
                span.label != other.label,
                -overlap,
                other,
            )

        best = min(
            (s for s in free if s.start < span.end and span.start < s.end),
            key=distance,
            default=None,
        )
        if best is None:
            marks.append(Mark("missed", span, None))
            continue
        free.discard(best)
        other_ends, other_label, *_ = distance(best)
        marks.append(
            Mark("boundary" if not other_label else "both" if other_ends else "label", span, best)
        )
    marks += [Mark("spurious", None, span) for span in free]
    return tuple(sorted(marks, key=lambda m: (m.gold or m.predicted or Span(0, 0, ""), m.kind)))


@dataclass(frozen=True, slots=True)
class SharedDocument:
    """One document as two runs judged it. sides: each gold mention or label, and who got it right
    (of `SIDES`).
    """

    first: JudgedDocument
    second: JudgedDocument
    sides: dict[Span, str]


def side_by_side(
    first: Sequence[JudgedDocument], second: Sequence[JudgedDocument]
) -> list[SharedDocument]:
    """The documents that both runs have with the same gold; those in which the two differ most
    first.
    """
    other_of = {judged.document.id: judged for judged in second}
    shared = []
    for one in first:
        other = other_of.get(one.document.id)
        if other is not None and one.gold.keys() == other.gold.keys():
            sides = {
                span: SIDES[2 * (not right) + (not other.gold[span])]
                for span, right in one.gold.items()
            }
            shared.append(SharedDocument(one, other, sides))
    return sorted(
        shared,
        key=lambda one: (-sum(s in SIDES[1:3] for s in one.sides.values()), one.first.document.id),
    )
