"""Scores on parts of the gold: mentions that the training documents hold and mentions that they do
not, rare labels and frequent ones, test documents that do not stand in training.

A slice never replaces a score. What it holds follows from the documents that a run trained on, so
that a run on fewer documents has more unseen mentions. Another slice is one more object in
`SLICES`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import compress
from typing import Protocol

from biobench.data.checks.similar import near, normalised
from biobench.kinds.base import Kind, get_kind
from biobench.schema.document import Document, Prediction
from biobench.schema.record import SliceScores
from biobench.score.averages import f1_averages, micro_without
from biobench.score.counting import GroupCounts, Item, counts
from biobench.store.tables import under_aliases

RARE = 10
"""A label of fewer training documents is rare."""
_NEITHER_LETTER_NOR_DIGIT = re.compile(r"[\W_]+")


Holds = Callable[[Document, Item], bool]
"""Whether an item of a document counts, a gold one or a predicted one: a wrong answer is counted in
the slice of its own surface or label.
"""


@dataclass(frozen=True, slots=True)
class Part:
    """What a slice holds of a test set.

    documents: those whose gold and answers count. holds: which of their items do; None: all.
    """

    documents: tuple[Document, ...]
    holds: Holds | None = None

    def has(self, document: Document, item: Item) -> bool:
        """Whether an item of one of `documents` counts."""
        return self.holds is None or self.holds(document, item)


@dataclass(frozen=True, slots=True)
class Slice:
    """A part of the gold, declared once.

    words: its name in sentences. meaning: what it holds. criterion: from the kind of task, the
    documents that the run trained on and the test documents (both with their texts) to the items
    that it is true of; None for a kind that has no such slice. wanted: whether the slice holds
    these items, or the others. The slice of whole documents has no criterion.
    """

    name: str
    words: str
    meaning: str
    criterion: Callable[[Kind, Sequence[Document], Sequence[Document]], Holds | None] | None = None
    wanted: bool = True

    def part(
        self, kind: Kind, trained_on: Sequence[Document], gold: Sequence[Document]
    ) -> Part | None:
        """What it holds of the test documents; None where there is no such slice."""
        if self.criterion is None:
            return Part(_clean(trained_on, gold))
        is_true = self.criterion(kind, trained_on, gold)
        if is_true is None:
            return None
        return Part(tuple(gold), lambda document, item: is_true(document, item) is self.wanted)


@lru_cache(maxsize=1 << 16)
def surface(text: str) -> str:
    """A mention's text with case folded, and white space and punctuation made one blank."""
    return _NEITHER_LETTER_NOR_DIGIT.sub(" ", text.casefold()).strip()


def _seen(kind: Kind, trained_on: Sequence[Document], gold: Sequence[Document]) -> Holds | None:
    """Mentions whose surface is one of the training mentions."""
    if not kind.spans:
        return None
    trained = {surface(d.text[s.start : s.end]) for d in trained_on for s in d.spans}

    def holds(document: Document, item: Item) -> bool:
        _, start, end = item
        return surface(document.text[start:end]) in trained

    return holds


def _concepts_of(document: Document) -> dict[tuple[int, int], set[str]]:
    """Place of a gold mention to the concepts that it is linked to."""
    mentions = {(span.start, span.end) for span in document.spans}
    concepts: dict[tuple[int, int], set[str]] = {}
    for start, end, identifier in document.concepts:
        if (start, end) in mentions:
            concepts.setdefault((start, end), set()).add(identifier)
    return concepts


def _seen_concept(
    kind: Kind, trained_on: Sequence[Document], gold: Sequence[Document]
) -> Holds | None:
    """Mentions of a concept that training names."""
    seen_surface = _seen(kind, trained_on, gold)
    linked = {document.id: _concepts_of(document) for document in gold}
    if seen_surface is None or not any(linked.values()):
        return None
    trained: set[str] = set()
    for document in trained_on:
        trained.update(*_concepts_of(document).values())

    def holds(document: Document, item: Item) -> bool:
        _, start, end = item
        concepts = linked[document.id].get((start, end))
        # A wrong answer has no concept, nor has every gold mention: their surface tells.
        if concepts is None:
            return seen_surface(document, item)
        return bool(concepts & trained)

    return holds


def _rare(kind: Kind, trained_on: Sequence[Document], gold: Sequence[Document]) -> Holds:
    """Labels of few training documents."""
    documents_of: Counter[str] = Counter()
    for document in trained_on:
        documents_of.update({label for label, _, _ in kind.items(document)})
    return lambda document, item: documents_of[item[0]] < RARE


def _clean(trained_on: Sequence[Document], gold: Sequence[Document]) -> tuple[Document, ...]:
    """The test documents that do not stand, nearly word by word, in training."""
    texts = [d.reading for d in gold]
    trained = [d.reading for d in trained_on]
    verbatim = set(map(normalised, trained))
    leaked = set(near(texts, trained))
    clean = []
    for number, document in enumerate(gold):
        if number not in leaked and normalised(texts[number]) not in verbatim:
            clean.append(document)
    return tuple(clean)


SLICES: Mapping[str, Slice] = {
    declared.name: declared
    for declared in (
        Slice(
            "seen",
            "seen mentions",
            "mentions whose text, case and punctuation aside, the training documents hold",
            _seen,
        ),
        Slice(
            "unseen",
            "unseen mentions",
            "mentions whose text, case and punctuation aside, no training document holds",
            _seen,
            wanted=False,
        ),
        Slice(
            "seen_concepts",
            "mentions of seen concepts",
            "mentions linked to a concept that the training documents name",
            _seen_concept,
        ),
        Slice(
            "unseen_concepts",
            "mentions of unseen concepts",
            "mentions linked to concepts that no training document names",
            _seen_concept,
            wanted=False,
        ),
        Slice(
            "rare",
            "rare labels",
            f"labels of fewer than {RARE} training documents",
            _rare,
        ),
        Slice(
            "frequent",
            "frequent labels",
            f"labels of {RARE} training documents or more",
            _rare,
            wanted=False,
        ),
        Slice(
            "clean",
            "clean test documents",
            "test documents that do not stand, nearly word by word, in the training documents",
        ),
    )
}
"""Name to slice."""


def parts_of(
    type: str, trained_on: Sequence[Document], gold: Sequence[Document]
) -> dict[str, Part]:
    """What each slice holds of `gold`; nothing for kinds without F1 and for planned documents.

    trained_on, gold: with their texts.
    """
    kind = get_kind(type)
    if not kind.counted or any(document.plan for document in gold):
        return {}
    parts = {}
    for declared in SLICES.values():
        part = declared.part(kind, trained_on, gold)
        if part is not None:
            parts[declared.name] = part
    return parts


class ScoredTask(Protocol):
    """What scores need to know of a task."""

    @property
    def type(self) -> str: ...

    @property
    def labels(self) -> tuple[str, ...]: ...

    @property
    def negative_label(self) -> str | None: ...


@dataclass(frozen=True)
class RunTexts:
    """The documents of a run with their texts: those that it trained on, and those that it was
    scored on. redacted: its predictions name the latter by their aliases.
    """

    type: str
    trained_on: Sequence[Document]
    scored_on: Sequence[Document]
    redacted: bool = False

    @cached_property
    def parts(self) -> dict[str, Part]:
        """What each slice holds, under the names that the predictions use."""
        gold = under_aliases(self.scored_on) if self.redacted else self.scored_on
        return parts_of(self.type, self.trained_on, gold)


def part_counts(task: ScoredTask, part: Part, predictions: Sequence[Prediction]) -> GroupCounts:
    """The exact counts of a part; see `score.counting.counts`."""
    documents = {document.id for document in part.documents}
    return counts(
        type=task.type,
        labels=task.labels,
        gold=part.documents,
        predictions=[p for p in predictions if p.document in documents],
        holds=part.holds,
    )


def slice_scores(
    task: ScoredTask, parts: Mapping[str, Part], predictions: Sequence[Prediction]
) -> dict[str, SliceScores]:
    """The F1 averages of each part that holds gold, macro F1 over the labels that have gold in it;
    of whole documents with one label each also accuracy.
    """
    kind = get_kind(task.type)
    scores = {}
    for name, part in parts.items():
        counted = part_counts(task, part, predictions)
        tp, _, fn = counted.totals
        labels = list(compress(counted.labels, tp + fn))
        if not labels:
            continue
        values = f1_averages(counted, labels)
        if kind.single and part.holds is None:
            values["accuracy"] = values["micro_f1"]
        if kind.single and task.negative_label is not None:
            values["micro_f1_positive"] = micro_without(counted, task.negative_label)
        scores[name] = SliceScores(gold=int((tp + fn).sum()), scores=values)
    return scores
