"""Label rules: the label set of a task that does not list one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from biobench.errors import DataFormatError
from biobench.schema.document import Document
from biobench.schema.source import CollectedLabels, Labels, TopLabels


def apply_rule(rule: Labels, documents: Sequence[Document]) -> tuple[tuple[str, ...], list[Document]]:
    """(labels in order, documents with their labels in that order; documents that the rule drops are gone).

    Raises DataFormatError when the data has fewer codes than the rule keeps, or not the number it collects.
    """
    if isinstance(rule, list):
        return tuple(rule), list(documents)
    if isinstance(rule, CollectedLabels):
        labels = tuple(sorted({label for d in documents for label in d.labels}))
        if len(labels) != rule.collected:
            raise DataFormatError(
                f"the data holds {len(labels)} labels, the spec says labels.collected: {rule.collected}",
                hint="this is another version of the data, or its label column holds combinations",
            )
        return labels, _restricted(documents, labels, drop=False)
    labels = top_labels(documents, rule)
    return labels, _restricted(documents, labels, drop=True)


def top_labels(documents: Sequence[Document], rule: TopLabels) -> tuple[str, ...]:
    """The k labels in most documents, sorted as texts; ties by first appearance, then by code."""
    frequency: Counter[str] = Counter()
    for d in sorted(documents, key=lambda d: d.id):
        frequency.update(sorted(set(d.labels)))
    if len(frequency) < rule.top_k:
        raise DataFormatError(
            f"the data holds {len(frequency)} codes, the spec keeps labels.top_k: {rule.top_k}",
            hint="check the reader's code options, or lower top_k",
        )
    # Counter keeps the order of first appearance, and the sort is stable.
    ranked = sorted(frequency, key=lambda code: -frequency[code])
    return tuple(sorted(ranked[: rule.top_k]))


def _restricted(documents: Sequence[Document], labels: tuple[str, ...], *, drop: bool) -> list[Document]:
    order = {label: i for i, label in enumerate(labels)}
    kept: list[Document] = []
    for d in documents:
        remaining = tuple(sorted((label for label in set(d.labels) if label in order), key=order.__getitem__))
        if remaining or not drop:
            kept.append(replace(d, labels=remaining))
    return kept
