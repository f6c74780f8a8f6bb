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

_NEAR_MISSES: dict[tuple[bool, bool], Kind] = {
    (True, False): "boundary",
    (False, True): "label",
    (True, True): "both",
}
"""Other ends, another label -> the kind; a prediction with neither is right."""

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
    def sides(self) -> dict[str, Span]:
        """The sides that it has, gold before predicted."""
        sides = {"gold": self.gold, "predicted": self.predicted}
        return {name: span for name, span in sides.items() if span is not None}

    @property
    def span(self) -> Span:
        """The gold, or the prediction where there is no gold."""
        return next(iter(self.sides.values()))

    @property
    def label(self) -> str:
        """The gold label, or the predicted one where there is no gold."""
        return self.span.label


@dataclass(frozen=True, slots=True)
class JudgedDocument:
    """A document with its marks in order of position."""

    document: Document
    marks: tuple[Mark, ...]

    @property
    def wrong(self) -> int:
        """Marks that are not right."""
        return sum(mark.kind != "right" for mark in self.marks)

    @property
    def gold(self) -> dict[Span, bool]:
        """Each gold mention or label in order of position, and whether it was got right."""
        is_right = {}
        for mark in self.marks:
            if mark.gold is not None:
                is_right[mark.gold] = mark.kind == "right"
        return dict(sorted(is_right.items()))


def only_labels(judged: JudgedDocument) -> tuple[str, str] | None:
    """(gold, predicted) of a document that has one label of each and no mentions."""
    gold = []
    predicted = []
    for mark in judged.marks:
        if mark.gold is not None:
            gold.append(mark.gold.label)
        if mark.predicted is not None:
            predicted.append(mark.predicted.label)
    if judged.document.spans or (len(gold), len(predicted)) != (1, 1):
        return None
    return gold[0], predicted[0]


def judge(gold: Sequence[Document], predictions: Sequence[Prediction]) -> list[JudgedDocument]:
    """All documents, those with most mistakes first.

    Each predicted mention explains at most one gold mention: an exact one first, then, in reading
    order, an overlapping one with the same ends, the same label, or the longest overlap.
    """
    prediction_of = {prediction.document: prediction for prediction in predictions}
    judged = []
    for document in gold:
        prediction = prediction_of.get(document.id, Prediction(document.id))
        judged.append(JudgedDocument(document, _marks(document, prediction)))
    return sorted(judged, key=lambda judged: (-judged.wrong, judged.document.id))


def tally(pairs: Iterable[tuple[str, T]]) -> dict[str, Counter[T]]:
    """Label -> how often each thing that it comes with."""
    counts: dict[str, Counter[T]] = {}
    for label, companion in pairs:
        counts.setdefault(label, Counter())[companion] += 1
    return dict(sorted(counts.items()))


def by_label(judged: Sequence[JudgedDocument]) -> dict[str, Counter[Kind]]:
    """Label -> how often each kind of mark."""
    return tally((mark.label, mark.kind) for document in judged for mark in document.marks)


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
        return 1 - self.leaked.total() / max(self.identifiers.total(), 1)


def leaks(judged: Sequence[JudgedDocument]) -> Leaks:
    """The leaks of all documents together."""
    identifiers = Counter[str]()
    leaked = Counter[str]()
    safe_documents = 0
    for document in judged:
        hidden = _hidden_characters(document)
        is_safe = True
        for span in document.gold:
            identifiers[span.label] += 1
            if not hidden.issuperset(range(span.start, span.end)):
                leaked[span.label] += 1
                is_safe = False
        safe_documents += is_safe
    return Leaks(identifiers, leaked, safe_documents)


def _hidden_characters(document: JudgedDocument) -> set[int]:
    """The characters of the predicted mentions, and single ones between two of them."""
    predicted = [mark.predicted for mark in document.marks if mark.predicted]
    starts = {span.start for span in predicted}
    hidden: set[int] = set()
    for span in predicted:
        hidden.update(range(span.start, span.end))
        if span.end + 1 in starts:
            hidden.add(span.end)
    return hidden


def _spans(answers: Document | Prediction) -> set[Span]:
    """Mentions, and labels as spans without extent."""
    return {*answers.spans, *(Span(0, 0, label) for label in answers.labels)}


def _marks(document: Document, prediction: Prediction) -> tuple[Mark, ...]:
    true = _spans(document)
    predicted = _spans(prediction)
    marks = [Mark("right", span, span) for span in true & predicted]
    free = predicted - true
    for span in sorted(true - predicted):
        overlapping = [s for s in free if s.start < span.end and span.start < s.end]
        if not overlapping:
            marks.append(Mark("missed", span, None))
            continue
        nearest = min(overlapping, key=lambda candidate: _distance(span, candidate))
        free.discard(nearest)
        other_ends, other_label, *_ = _distance(span, nearest)
        marks.append(Mark(_NEAR_MISSES[other_ends, other_label], span, nearest))
    marks += [Mark("spurious", None, span) for span in free]
    return tuple(sorted(marks, key=lambda mark: (mark.span, mark.kind)))


def _distance(span: Span, candidate: Span) -> tuple[bool, bool, int, Span]:
    """Other ends, another label, the overlap (less where it is longer); the order decides ties."""
    overlap = min(span.end, candidate.end) - max(span.start, candidate.start)
    other_ends = (span.start, span.end) != (candidate.start, candidate.end)
    return other_ends, span.label != candidate.label, -overlap, candidate


@dataclass(frozen=True, slots=True)
class SharedDocument:
    """One document as two runs judged it. sides: each gold mention or label, and who got it right
    (of `SIDES`).
    """

    first: JudgedDocument
    second: JudgedDocument
    sides: dict[Span, str]

    @property
    def differing(self) -> int:
        """What one of the runs alone got right."""
        return sum(side in SIDES[1:3] for side in self.sides.values())


def side_by_side(
    first: Sequence[JudgedDocument], second: Sequence[JudgedDocument]
) -> list[SharedDocument]:
    """The documents that both runs have with the same gold; those in which the two differ most
    first.
    """
    second_of = {judged.document.id: judged for judged in second}
    shared = []
    for judged in first:
        rival = second_of.get(judged.document.id)
        if rival is None or judged.gold.keys() != rival.gold.keys():
            continue
        sides = {}
        rival_gold = rival.gold
        for span, is_right in judged.gold.items():
            sides[span] = SIDES[2 * (not is_right) + (not rival_gold[span])]
        shared.append(SharedDocument(judged, rival, sides))
    return sorted(shared, key=lambda shared: (-shared.differing, shared.first.document.id))
