"""Mentions as tags of the corpus's own words, one tag a word (IOB2)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from biobench.encode.merge import merge_words
from biobench.encode.tokens import Encoded, Ints
from biobench.kinds.base import (
    Answers,
    SpanKind,
    Targets,
    Task,
    Windows,
    register,
)
from biobench.kinds.labels import cross_entropy
from biobench.schema.document import Document, Prediction, Span
from biobench.schema.tags import Mode, decode_tags
from biobench.schema.task import TaskSpec
from biobench.schema.training import Head

if TYPE_CHECKING:
    from torch import Tensor, nn

    from biobench.models.loading import Checkpoint


@register
class TokenNer(SpanKind):
    """A target is the (visible words,) tag ids; a head's output is a tag."""

    name, head, tagged = "token_ner", "token", True

    def outputs(self, labels: Sequence[str]) -> tuple[str, ...]:
        """Tags."""
        return tuple(tag_set(labels))

    def target(self, task: Task, document: Document, encoded: Encoded) -> Ints:
        """(visible words,) tag ids."""
        return np.asarray([task.index[document.tags[w]] for w in encoded.words], dtype=np.int64)

    def build_head(self, head: Head, checkpoint: Checkpoint, width: int, outputs: int) -> nn.Module:
        """Dropout and a linear layer on each word's first sub-token."""
        from biobench.models.heads import LinearHead

        return LinearHead(width, outputs, head.dropout, checkpoint.initial_std)

    def terms(self, spec: TaskSpec, targets: Targets, words: Sequence[int]) -> int:
        """Words."""
        return sum(len(t) for t in targets)

    def loss(
        self, spec: TaskSpec, logits: Tensor, targets: Targets, weights: Tensor | None
    ) -> Tensor:
        """Cross-entropy of each word's tag."""
        return cross_entropy(logits, targets)

    def predict(
        self, task: Task, document: Document, seen: Windows, answers: Answers, threshold: float
    ) -> Prediction:
        """The likeliest tag of each word, from the window that decides on it; a span's score is its
        words' mean.
        """
        encoded, chances = merge_words(seen, answers)
        best = chances.argmax(axis=1)
        tags = ["O"] * len(document.tokens)  # words beyond the window
        sure = np.zeros(len(document.tokens), dtype=np.float64)
        for row, word in enumerate(encoded.words):
            tags[word], sure[word] = task.outputs[best[row]], chances[row, best[row]]
        spans = spans_of_tags(document, tags, task.decode)
        scores = tuple(round(float(sure[i:j].mean()), 6) for _, i, j in spans)
        return Prediction(
            document.id, tuple(span for span, _, _ in spans), span_scores=scores, tags=tuple(tags)
        )

    def oracle(self, task: Task, document: Document, encoded: Sequence[Encoded]) -> Prediction:
        """Gold tags of the words that some window shows."""
        tags = ["O"] * len(document.tokens)
        for window in encoded:
            for word in window.words.tolist():
                tags[word] = document.tags[word]
        spans = tuple(span for span, _, _ in spans_of_tags(document, tags, task.decode))
        return Prediction(document.id, spans, tags=tuple(tags))


def tag_set(labels: Sequence[str]) -> list[str]:
    """IOB2 tags of a label list: O, then B- and I- of each label in its order."""
    return ["O", *(f"{prefix}-{label}" for label in labels for prefix in ("B", "I"))]


def spans_of_tags(
    document: Document, tags: Sequence[str], decode: Mode
) -> list[tuple[Span, int, int]]:
    """Character spans of per-word tags, each with its word range [i, j)."""
    return [
        (Span(document.tokens[i][0], document.tokens[j - 1][1], label), i, j)
        for i, j, label in decode_tags(tags, decode)
    ]
