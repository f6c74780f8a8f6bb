"""Which of a document's labels have a mention in what a window shows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from biobench.encode.tokens import encode_documents
from biobench.schema.document import Document

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase


def shown_labels(
    documents: Sequence[Document], tokenizer: PreTrainedTokenizerBase, window: int
) -> list[tuple[str, ...] | None]:
    """Per document, its labels of which a mention lies whole in its first `window` tokens.

    None where that cannot be known: a label without a mention in the corpus (`Document.evidence`),
    or a tokenizer that gives no character offsets.
    """
    known = [
        tokenizer.is_fast and set(d.labels) <= {label for label, _ in d.evidence} for d in documents
    ]
    # The last character of each mention, as a word: it is visible where its token is.
    ends = [sorted({end for label, end in d.evidence if label in d.labels}) for d in documents]
    marked = [
        replace(d, tokens=tuple((end - 1, end) for end in places))
        for d, places, yes in zip(documents, ends, known, strict=True)
        if yes
    ]
    seen = iter(encode_documents(marked, tokenizer, window, words=True))
    shown: list[tuple[str, ...] | None] = []
    for document, places, yes in zip(documents, ends, known, strict=True):
        if not yes:
            shown.append(None)
            continue
        words = next(seen).words
        horizon = places[int(words[-1])] if len(words) else 0
        first = dict(document.evidence)
        shown.append(tuple(label for label in document.labels if first[label] <= horizon))
    return shown
