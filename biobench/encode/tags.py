"""Between spans and per-word tag ids: training targets, decoding, and what a window can still show."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from biobench.data.tags import decode_tags
from biobench.encode.tokens import Encoded, Ints
from biobench.schema.document import Document, Prediction, Span

Decode = Literal["strict", "lenient"]


def tag_set(labels: Sequence[str]) -> list[str]:
    """IOB2 tags of a label list: O, then B- and I- of each label in its order."""
    return ["O", *(f"{prefix}-{label}" for label in labels for prefix in ("B", "I"))]


def tag_targets(document: Document, encoded: Encoded, index: dict[str, int]) -> Ints:
    """(visible words,) tag ids of the corpus's own tags."""
    return np.asarray([index[document.tags[w]] for w in encoded.words], dtype=np.int64)


def spans_of_tags(document: Document, tags: Sequence[str], decode: Decode) -> list[tuple[Span, int, int]]:
    """Character spans of per-word tags, each with its word range [i, j)."""
    return [
        (Span(document.tokens[i][0], document.tokens[j - 1][1], label), i, j)
        for i, j, label in decode_tags(tags, decode)
    ]


def predict_tags(
    document: Document, encoded: Encoded, probabilities: NDArray[np.float32], tags: Sequence[str], decode: Decode
) -> Prediction:
    """Prediction from per-word tag probabilities (visible words, tags). Words beyond the window are O.

    A span's score is the mean probability of its words' predicted tags.
    """
    best = probabilities.argmax(axis=1)
    said = ["O"] * len(document.tokens)
    sure = np.zeros(len(document.tokens), dtype=np.float64)
    for row, word in enumerate(encoded.words):
        said[word] = tags[best[row]]
        sure[word] = probabilities[row, best[row]]
    spans = spans_of_tags(document, said, decode)
    return Prediction(
        document=document.id,
        spans=tuple(span for span, _, _ in spans),
        span_scores=tuple(round(float(sure[i:j].mean()), 6) for _, i, j in spans),
        tags=tuple(said),
    )


def window_oracle(document: Document, encoded: Encoded, decode: Decode) -> Prediction:
    """The best that any model could say of this document through this window: gold tags of visible words."""
    said = ["O"] * len(document.tokens)
    for word in encoded.words:
        said[word] = document.tags[word]
    return Prediction(
        document=document.id, spans=tuple(s for s, _, _ in spans_of_tags(document, said, decode)), tags=tuple(said)
    )
