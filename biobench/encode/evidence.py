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
    labels: list[tuple[str, ...] | None] = [None] * len(documents)
    if not tokenizer.is_fast:
        return labels
    marked: dict[int, Document] = {}
    for index, document in enumerate(documents):
        end_of = dict(document.evidence)
        if end_of.keys() >= set(document.labels):
            marked[index] = _with_ends(document)
    windows = encode_documents(list(marked.values()), tokenizer, window, words=True)
    for (index, document), encoded in zip(marked.items(), windows, strict=True):
        end_of = dict(document.evidence)
        ends = [document.tokens[word][1] for word in encoded.words]
        horizon = max(ends, default=0)
        labels[index] = tuple(label for label in document.labels if end_of[label] <= horizon)
    return labels


def _with_ends(document: Document) -> Document:
    """The document with the last character of each mention of its labels as a word: it is visible
    where its token is.
    """
    ends = {end for label, end in document.evidence if label in document.labels}
    return replace(document, tokens=tuple((end - 1, end) for end in sorted(ends)))
