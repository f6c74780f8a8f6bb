"""Corpora that the gate must refuse: labels shuffled against the text, mentions moved."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import replace

from biobench.data.tags import tags_to_spans
from biobench.schema.document import Document, Span, TaskData


def broken(data: TaskData, change: Callable[[Sequence[Document]], list[Document]]) -> TaskData:
    """The data with `change` applied to every split; the labels with gold are found anew."""
    documents = {name: change(own) for name, own in data.documents.items()}
    gold = {label for d in documents["test"] for label in (*d.labels, *(s.label for s in d.spans))}
    return replace(data, documents=documents, gold_labels=tuple(x for x in data.labels if x in gold))


def labels_shuffled(seed: int) -> Callable[[Sequence[Document]], list[Document]]:
    """Every document's labels, or mentions, come from another one.

    Mentions of token formats move as tags, cut or filled with O; others keep their characters where they fit.
    """

    def change(documents: Sequence[Document]) -> list[Document]:
        order = list(range(len(documents)))
        random.Random(seed).shuffle(order)
        return [_with_gold_of(d, documents[i]) for d, i in zip(documents, order, strict=True)]

    return change


def types_shuffled(seed: int) -> Callable[[Sequence[Document]], list[Document]]:
    """Mentions stay where they are; their types are dealt among them."""

    def change(documents: Sequence[Document]) -> list[Document]:
        types = [s.label for d in documents for s in d.spans]
        random.Random(seed).shuffle(types)
        dealt = iter(types)
        return [
            replace(d, spans=tuple(sorted({Span(s.start, s.end, next(dealt)) for s in d.spans})), tags=())
            for d in documents
        ]

    return change


def characters_moved(step: int) -> Callable[[Sequence[Document]], list[Document]]:
    """All mentions moved by characters; those that leave the text are gone."""

    def change(documents: Sequence[Document]) -> list[Document]:
        return [
            replace(
                d,
                spans=tuple(
                    Span(s.start + step, s.end + step, s.label)
                    for s in d.spans
                    if s.start + step >= 0 and s.end + step <= len(d.text)
                ),
                tags=(),
            )
            for d in documents
        ]

    return change


def tokens_moved(step: int) -> Callable[[Sequence[Document]], list[Document]]:
    """All tags moved by tokens, O coming in at the other end."""

    def change(documents: Sequence[Document]) -> list[Document]:
        found = []
        for d in documents:
            pad = ("O",) * min(abs(step), len(d.tags))
            tags = (*pad, *d.tags[: len(d.tags) - len(pad)]) if step > 0 else (*d.tags[len(pad) :], *pad)
            found.append(replace(d, tags=tags, spans=tags_to_spans(tags, d.tokens, "lenient")))
        return found

    return change


def _with_gold_of(document: Document, other: Document) -> Document:
    if document.tokens:
        size = len(document.tokens)
        tags = tuple((*other.tags, *["O"] * size)[:size])
        return replace(document, tags=tags, spans=tags_to_spans(tags, document.tokens, "lenient"))
    spans = tuple(s for s in other.spans if s.end <= len(document.text))
    return replace(document, labels=other.labels, spans=spans)
