"""A split as plain rows, for people who train with a script of their own (docs/examples)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from biobench.schema.document import Document


def rows(documents: Iterable[Document], *, spans: bool) -> Iterator[dict[str, Any]]:
    """A JSON object a document: `document` (its id), `group`, `text`, `query` (the first of two texts), and its gold.

    Gold stands as `biobench score` reads predictions: `labels`, or (spans) `spans` with character offsets; beside
    them the corpus's own `tokens` (character offsets) and `tags` where it has any.
    """
    for d in documents:
        row: dict[str, Any] = {"document": d.id, "group": d.group, "text": d.text}
        row |= {"query": d.query} if d.query else {}
        row |= {"tokens": d.tokens, "tags": d.tags} if d.tokens else {}
        row |= {"pieces": d.pieces} if d.pieces else {}
        yield row | ({"spans": [s._asdict() for s in d.spans]} if spans else {"labels": d.labels})
