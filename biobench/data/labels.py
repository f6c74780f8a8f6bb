"""Label rules: the label set of a task that does not list one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

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
    else:
        labels = _most_frequent(documents, rule.top_k)
    result: list[Document] = []
    wanted = set(labels)
    for document in documents:
        document_labels = tuple(sorted(wanted.intersection(document.labels)))
        if document_labels or isinstance(rule, CollectedLabels):
            result.append(replace(document, labels=document_labels))
    return labels, result


def _collected(documents: Sequence[Document], number: int) -> tuple[str, ...]:
    """Every label, of which there must be that many."""
    labels = tuple(sorted({label for document in documents for label in document.labels}))
    if len(labels) != number:
        message = f"the data holds {len(labels)} labels, the spec says labels.collected: {number}"
        hint = "this is another version of the data, or its label column holds combinations"
        raise DataFormatError(message, hint=hint)
    return labels


def _most_frequent(documents: Sequence[Document], number: int) -> tuple[str, ...]:
    """The labels in most documents; ties by first appearance in order of ids, then by code."""
    ordered = sorted(documents, key=lambda document: document.id)
    frequency = Counter(label for document in ordered for label in sorted(set(document.labels)))
    if len(frequency) < number:
        message = f"the data holds {len(frequency)} codes, the spec keeps labels.top_k: {number}"
        raise DataFormatError(message, hint="check the reader's code options, or lower top_k")
    return tuple(sorted(label for label, _ in frequency.most_common(number)))
