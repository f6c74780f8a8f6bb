"""One label for a pair of texts: two sentences, or a question with the passage that answers it."""

from __future__ import annotations

from biobench.kinds.base import register
from biobench.kinds.labels import SingleLabel
from biobench.schema.document import Document
from biobench.schema.task import TaskSpec


@register
class TextPair(SingleLabel):
    """As a single label, of documents with a first text. The second may be empty (a question without its passage)."""

    name, label_rules, pairs = "text_pair", False, True
    fields = ("protocol.long_documents", "protocol.pairs")

    def problem(self, spec: TaskSpec, document: Document) -> tuple[str, str, str | None] | None:
        """No first text."""
        if document.query.strip():
            return None
        return "document {} has no first text", "name its column or field as `first`, or remove the row", document.id
