"""Label rules: the label set of a task that does not list one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import chain
from operator import attrgetter

from biobench.errors import DataFormatError
from biobench.schema.document import Document
from biobench.schema.source import CollectedLabels, Labels


def apply_rule(
    rule: Labels, documents: Sequence[Document]
) -> tuple[tuple[str, ...], list[Document]]:
    """(labels in order, documents with their labels in that order; documents that the rule drops
    are gone).

    Raises DataFormatError when the data has fewer codes than the rule keeps, or not the number it
    collects.
    """
    if isinstance(rule, list):
        return tuple(rule), list(documents)
    if isinstance(rule, CollectedLabels):
        labels = _collected(documents, rule.collected)
        return labels, _narrowed(documents, labels)
    labels = _most_frequent(documents, rule.top_k)
    return labels, [document for document in _narrowed(documents, labels) if document.labels]


def _narrowed(documents: Sequence[Document], labels: Sequence[str]) -> list[Document]:
    """The documents with those of the labels that they have, in order."""
    wanted = set(labels)
    narrowed: list[Document] = []
    for document in documents:
        document_labels = sorted(wanted.intersection(document.labels))
        narrowed.append(replace(document, labels=tuple(document_labels)))
    return narrowed


def _collected(documents: Sequence[Document], number: int) -> tuple[str, ...]:
    """Every label, of which there must be that many."""
    every = chain.from_iterable(map(attrgetter("labels"), documents))
    labels = tuple(sorted(set(every)))
    if len(labels) != number:
        message = f"the data holds {len(labels)} labels, the spec says labels.collected: {number}"
        hint = "this is another version of the data, or its label column holds combinations"
        raise DataFormatError(message, hint=hint)
    return labels


def _most_frequent(documents: Sequence[Document], number: int) -> tuple[str, ...]:
    """The labels in most documents; ties by first appearance in order of ids, then by code."""
    ordered = sorted(documents, key=attrgetter("id"))
    labels_of_documents = [sorted(set(document.labels)) for document in ordered]
    frequency = Counter(chain.from_iterable(labels_of_documents))
    if len(frequency) < number:
        message = f"the data holds {len(frequency)} codes, the spec keeps labels.top_k: {number}"
        raise DataFormatError(message, hint="check the reader's code options, or lower top_k")
    most_frequent = dict(frequency.most_common(number))
    return tuple(sorted(most_frequent))
