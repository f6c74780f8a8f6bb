"""Baselines that read no test text: majority, prior, random labels, no mention, random mentions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import compress
from typing import NamedTuple

import numpy as np

from biobench.baselines.words import Words
from biobench.schema.document import Prediction, Span, TaskData
from biobench.stats.types import BoolArray, IntArray

DRAWS = 5
"""Draws of a random baseline; its scores are their means."""


class Baseline(NamedTuple):
    """The predictions of a policy without skill for the test split.

    words: what it does, in a line. draws: one list of predictions a draw, a single one where
    nothing is random.
    """

    name: str
    words: str
    draws: Sequence[Sequence[Prediction]]


def chosen(data: TaskData, table: BoolArray) -> list[Prediction]:
    """Predictions for the test split from a table of yes and no, (documents, labels) or (labels,)
    for all documents.
    """
    rows = np.broadcast_to(table, (len(data.test), len(data.labels)))
    predictions = []
    for document, row in zip(data.test, rows, strict=True):
        labels = tuple(compress(data.labels, row))
        predictions.append(Prediction(document.id, labels=labels))
    return predictions


def label_baselines(data: TaskData, seed: int, *, single: bool) -> list[Baseline]:
    """The constant baselines of classification, then labels at random.

    With one label a document the most probable label set is the majority class. Ties go by the
    task's label order.
    """
    counted = Counter(label for d in data.train for label in set(d.labels))
    shares = np.array([counted[label] / len(data.train) for label in data.labels])
    rows = np.arange(len(shares))
    words = "the most frequent training label on every document"
    baselines = [Baseline("majority class", words, [chosen(data, rows == shares.argmax())])]
    if not single:
        words = "on every document the labels that more than half of the training documents have"
        baselines.append(Baseline("label prior", words, [chosen(data, shares > 0.5)]))
    rng = np.random.default_rng(seed)
    draws = []
    for _ in range(DRAWS):
        if single:
            drawn = rng.choice(len(shares), size=len(data.test), p=shares / shares.sum())
            table = drawn[:, None] == rows
        else:
            table = rng.random((len(data.test), len(shares))) < shares
        draws.append(chosen(data, table))
    words = "labels drawn by their share of the training documents"
    baselines.append(Baseline("random labels", words, draws))
    return baselines


def mention_baselines(data: TaskData, seed: int) -> list[Baseline]:
    """No mention anywhere; and mentions that begin at each word as often as in training, with
    labels and lengths drawn from there.
    """
    begun: Counter[tuple[str, int]] = Counter()
    total = 0
    for d in data.train:
        words = Words.of(d)
        total += len(words)
        for begin, end, label in words.places(d.spans):
            begun[label, end - begin] += 1
    kinds = sorted(begun)
    # Nested mentions can begin more often than there are words; a word then always begins one.
    shares = np.array([begun[kind] for kind in kinds]) / max(total, 1, begun.total())
    edges = np.cumsum(shares)
    rng = np.random.default_rng(seed)
    words_of = {d.id: Words.of(d) for d in data.test}
    draws = []
    for _ in range(DRAWS):
        predictions = []
        for name, words in words_of.items():
            drawn = np.searchsorted(edges, rng.random(len(words)), side="right")
            spans = tuple(_begun_mentions(words, drawn, kinds))
            predictions.append(Prediction(name, spans=spans))
        draws.append(predictions)
    description = (
        "mentions begin at random words as often as in training, with labels and lengths from there"
    )
    nothing = [Prediction(d.id) for d in data.test]
    return [
        Baseline("no mention", "all tokens O", [nothing]),
        Baseline("random mentions", description, draws),
    ]


def _begun_mentions(
    words: Words, drawn: IntArray, kinds: Sequence[tuple[str, int]]
) -> Iterator[Span]:
    """The mentions that begin at words and end inside the document. drawn: (words,), the number of
    a kind (label, length); beyond the last kind no mention begins.
    """
    for begin in np.flatnonzero(drawn < len(kinds)).tolist():
        label, length = kinds[drawn[begin]]
        past = begin + length
        if past <= len(words):
            yield words.span((begin, past, label))
