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
    marked: dict[int, Document] = {}
    for index, document in enumerate(documents):
        if tokenizer.is_fast and set(document.labels) <= {label for label, _ in document.evidence}:
            ends = sorted({end for label, end in document.evidence if label in document.labels})
            # the last character of each mention, as a word: it is visible where its token is
            marked[index] = replace(document, tokens=tuple((end - 1, end) for end in ends))
    windows = encode_documents(list(marked.values()), tokenizer, window, words=True)
    labels: list[tuple[str, ...] | None] = [None] * len(documents)
    for (index, document), encoded in zip(marked.items(), windows, strict=True):
        horizon = 0
        if len(encoded.words):
            horizon = document.tokens[encoded.words[-1]][1]
        end_of = dict(document.evidence)
        labels[index] = tuple(label for label in document.labels if end_of[label] <= horizon)
    return labels
