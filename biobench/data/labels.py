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
        labels = tuple(sorted({label for d in documents for label in d.labels}))
        if len(labels) != rule.collected:
            message = (
                f"the data holds {len(labels)} labels, the spec says labels.collected: "
                f"{rule.collected}"
            )
            hint = "this is another version of the data, or its label column holds combinations"
            raise DataFormatError(message, hint=hint)
    else:
        # The labels in most documents; ties by first appearance, then by code.
        frequency = Counter(
            label for d in sorted(documents, key=lambda d: d.id) for label in sorted(set(d.labels))
        )
        if len(frequency) < rule.top_k:
            message = (
                f"the data holds {len(frequency)} codes, the spec keeps labels.top_k: {rule.top_k}"
            )
            raise DataFormatError(message, hint="check the reader's code options, or lower top_k")
        labels = tuple(sorted(label for label, _ in frequency.most_common(rule.top_k)))
    wanted = set(labels)
    ordered = [replace(d, labels=tuple(sorted(wanted.intersection(d.labels)))) for d in documents]
    return labels, [d for d in ordered if d.labels or isinstance(rule, CollectedLabels)]
