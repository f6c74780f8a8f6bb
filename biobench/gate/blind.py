"""Policies that read no test text: majority, prior, random, no mention; and the oracle.

Their scores, or the expected number of their hits, follow from label counts. The gate compares them with
what the scorer says, so a scorer that counts wrongly does not pass its own floor.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

import numpy as np

from biobench.gate.policy import Played
from biobench.gate.words import Place, Words
from biobench.schema.document import Document, Prediction, TaskData
from biobench.score import oracle

DRAWS = 5
"""Draws of a random policy; its scores are their means."""


def label_shares(documents: Sequence[Document], labels: Sequence[str]) -> np.ndarray:
    """Share of the documents that have each label, (labels,)."""
    counted = Counter(label for d in documents for label in set(d.labels))
    return np.array([counted[label] / len(documents) for label in labels])


def constant(data: TaskData, chosen: Sequence[str]) -> tuple[list[Prediction], dict[str, float]]:
    """The same labels on every document, and the scores that this must have.

    With n of N documents under a chosen label, its F1 is 2n / (N + n); micro pools the counts.
    """
    total = len(data.test)
    gold = Counter(label for d in data.test for label in set(d.labels))
    f1 = {label: 2 * gold[label] / (total + gold[label]) for label in chosen}
    every = sum(gold.values())
    hits = sum(gold[label] for label in chosen)
    known = {
        "macro_f1": sum(f1.get(label, 0.0) for label in data.gold_labels) / len(data.gold_labels),
        "macro_f1_all": sum(f1.values()) / len(data.labels),
        "micro_f1": 2 * hits / (len(chosen) * total + every) if chosen or every else 0.0,
        "weighted_f1": sum(f1.get(label, 0.0) * gold[label] for label in gold) / every if every else 0.0,
    }
    return [Prediction(document=d.id, labels=tuple(chosen)) for d in data.test], known


def majority(data: TaskData) -> Played:
    """The most frequent training label, on every document; ties by the task's label order."""
    shares = label_shares(data.train, data.labels)
    predictions, known = constant(data, [data.labels[int(shares.argmax())]])
    return Played("majority class", "the most frequent training label on every document", [predictions], known=known)


def prior(data: TaskData) -> Played:
    """Multi-label: the labels that more than half of the training documents have."""
    shares = label_shares(data.train, data.labels)
    predictions, known = constant(
        data, [label for label, share in zip(data.labels, shares, strict=True) if share > 0.5]
    )
    return Played(
        "label prior", "on every document the labels that more than half of the training documents have", [predictions],
        known=known,
    )  # fmt: skip


def random_labels(data: TaskData, seed: int, *, single: bool) -> Played:
    """Labels drawn by their share of the training documents, independently of the text.

    A gold label of training share p is hit with probability p, so the hits of one draw are a sum of
    independent Bernoulli draws over the gold labels.
    """
    shares = label_shares(data.train, data.labels)
    rng = np.random.default_rng(seed)
    draws = []
    rows: list[tuple[str, ...]]
    for _ in range(DRAWS):
        if single:
            picked = rng.choice(len(data.labels), size=len(data.test), p=shares / shares.sum())
            rows = [(data.labels[i],) for i in picked]
        else:
            mask = rng.random((len(data.test), len(data.labels))) < shares
            rows = [tuple(label for label, yes in zip(data.labels, row, strict=True) if yes) for row in mask]
        draws.append(
            [Prediction(document=d.id, labels=labels_of_one) for d, labels_of_one in zip(data.test, rows, strict=True)]
        )
    share = dict(zip(data.labels, shares.tolist(), strict=True))
    hit = [share[label] for d in data.test for label in set(d.labels)]
    return Played(
        "random labels", "labels drawn by their share of the training documents", draws, expected_hits=_moments(hit)
    )


def no_mention(data: TaskData) -> Played:
    """No mention anywhere: every score is zero."""
    known = dict.fromkeys(("macro_f1", "macro_f1_all", "micro_f1", "weighted_f1", "partial_micro_f1"), 0.0)
    return Played("no mention", "all tokens O", [[Prediction(document=d.id) for d in data.test]], known=known)


def random_mentions(data: TaskData, seed: int) -> Played:
    """At each word a mention begins as often as in training, with a label and length drawn from there.

    A gold mention that lies on words and has a length and label of training rate r (per word) is hit with
    probability r.
    """
    seen: Counter[tuple[str, int]] = Counter()
    total = 0
    for d in data.train:
        words = Words.of(d)
        total += len(words)
        seen.update((label, end - begin) for begin, end, label in words.places(d.spans))
    kinds = sorted(seen)
    # Nested mentions can begin more often than there are words; a word then always begins one.
    rates = np.array([seen[kind] for kind in kinds], dtype=np.float64) / max(total, 1, sum(seen.values()))
    edges = np.cumsum(rates)
    rng = np.random.default_rng(seed)
    tests = [(d, Words.of(d)) for d in data.test]
    draws = []
    for _ in range(DRAWS):
        predictions = []
        for d, words in tests:
            drawn = np.searchsorted(edges, rng.random(len(words)), side="right")
            places: list[Place] = [
                (i, i + kinds[k][1], kinds[k][0])
                for i, k in enumerate(drawn.tolist())
                if k < len(kinds) and i + kinds[k][1] <= len(words)
            ]
            predictions.append(Prediction(document=d.id, spans=tuple(words.span(p) for p in places)))
        draws.append(predictions)
    rate = dict(zip(kinds, rates.tolist(), strict=True))
    hit = [rate.get((label, end - begin), 0.0) for d, words in tests for begin, end, label in words.places(d.spans)]
    return Played(
        "random mentions", "mentions begin at random words as often as in training, with labels and lengths from there",
        draws, expected_hits=_moments(hit),
    )  # fmt: skip


def gold_oracle(data: TaskData) -> Played:
    """The gold itself. Scores 1 but for macro_f1_all, which counts labels without gold as 0."""
    known = dict.fromkeys(("macro_f1", "micro_f1", "weighted_f1"), 1.0)
    known["macro_f1_all"] = len(data.gold_labels) / len(data.labels)
    return Played("oracle", "returns the gold", [oracle(data.test)], kind="ceiling", blind=False, known=known)


def _moments(chances: Sequence[float]) -> tuple[float, float]:
    """Mean and standard deviation of a sum of independent yes-or-no draws."""
    return math.fsum(chances), math.sqrt(math.fsum(p * (1 - p) for p in chances))
