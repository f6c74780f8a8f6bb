"""Mentions as tags of the corpus's own words, one tag a word (IOB2)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from biobench.core.arrays import Ints, ints
from biobench.encode.merge import merge_words
from biobench.encode.tokens import Encoded
from biobench.kinds.base import Answers, SpanKind, Targets, Task, Windows, register
from biobench.schema.document import Document, Prediction, Span
from biobench.schema.tags import Mode, decode_tags
from biobench.schema.task import TaskSpec
from biobench.schema.training import Head

if TYPE_CHECKING:
    from torch import nn

    from biobench.models.loading import Checkpoint


@register
class TokenNer(SpanKind):
    """A target is the (visible words,) tag ids; a head's output is a tag."""

    name = "token_ner"
    head = "token"
    tagged = True

    def outputs(self, labels: Sequence[str]) -> tuple[str, ...]:
        """Tags."""
        return tuple(tag_set(labels))

    def target(self, task: Task, document: Document, encoded: Encoded) -> Ints:
        """(visible words,) tag ids."""
        tags = [document.tags[word] for word in encoded.words]
        return ints([task.index[tag] for tag in tags])

    def build_head(self, head: Head, checkpoint: Checkpoint, width: int, outputs: int) -> nn.Module:
        """Dropout and a linear layer on each word's first sub-token."""
        from biobench.models.heads import LinearHead

        return LinearHead(width, outputs, head.dropout, checkpoint.initial_std)

    def terms(self, spec: TaskSpec, targets: Targets, words: Sequence[int]) -> int:
        """Words."""
        return sum(map(len, targets))

    def predict(
        self, task: Task, document: Document, seen: Windows, answers: Answers, threshold: float
    ) -> Prediction:
        """The likeliest tag of each word, from the window that decides on it; a span's score is its
        words' mean.
        """
        encoded, chances = merge_words(seen, answers)
        likeliest = chances.argmax(axis=1)
        number = len(document.tokens)
        tags = ["O"] * number  # words beyond the window
        for word, output in zip(encoded.words, likeliest, strict=True):
            tags[word] = task.outputs[output]
        chance_of_word = np.zeros(number, dtype=np.float64)
        chance_of_word[encoded.words] = chances.max(axis=1)
        return _prediction(task, document, tags, chance_of_word)

    def oracle(self, task: Task, document: Document, encoded: Windows) -> Prediction:
        """Gold tags of the words that some window shows."""
        tags = ["O"] * len(document.tokens)
        for window in encoded:
            for word in window.words:
                tags[word] = document.tags[word]
        return _prediction(task, document, tags)


def _prediction(
    task: Task, document: Document, tags: Sequence[str], chances: NDArray[np.float64] | None = None
) -> Prediction:
    """What the tags say. chances: (words,) of each word's tag, of which a span's score is the mean;
    without them spans have none.
    """
    spans: list[Span] = []
    scores: list[float] = []
    for span, begin, end in spans_of_tags(document, tags, task.decode):
        spans.append(span)
        if chances is not None:
            mean = float(chances[begin:end].mean())
            scores.append(round(mean, 6))
    return Prediction(document.id, tuple(spans), tuple(scores), tuple(tags))


def tag_set(labels: Sequence[str]) -> list[str]:
    """IOB2 tags of a label list: O, then B- and I- of each label in its order."""
    tags = ["O"]
    for label in labels:
        tags += [f"B-{label}", f"I-{label}"]
    return tags


def spans_of_tags(
    document: Document, tags: Sequence[str], decode: Mode
) -> list[tuple[Span, int, int]]:
    """Character spans of per-word tags, each with its word range [i, j)."""
    spans: list[tuple[Span, int, int]] = []
    for begin, end, label in decode_tags(tags, decode):
        start, _ = document.tokens[begin]
        _, stop = document.tokens[end - 1]
        spans.append((Span(start, stop, label), begin, end))
    return spans
