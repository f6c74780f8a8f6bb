"""Policies that know how long a document is, or where it stands, and none of its words.

A corpus whose labels follow from the length is one that a reader of words should not be praised for. One whose
labels follow the order of its files (all of one class first) is no harm to an encoder, which sees no order, but a
split of it by position is, so that is told.
"""

from __future__ import annotations

import re

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import f1_score
from sklearn.tree import DecisionTreeClassifier

from biobench.gate.policy import Played
from biobench.schema.document import Document, Prediction, TaskData
from biobench.schema.floor import LENGTH, ORDER
from biobench.stats.types import FloatArray

LEAVES = (1, 5, 20, 80)
"""Training documents that a leaf of the tree holds at least; the best of these on every fifth training document."""
MAX_DOCUMENTS = 20_000
"""Training documents at most, drawn by the seed."""
_FOLD = 5
_NUMBER = re.compile(r"\d{1,15}")


def length_only(data: TaskData, seed: int, *, single: bool) -> Played:
    """Labels by the numbers of characters and of words of the text, and of the first text of a pair."""
    train, test = (_lengths(part) for part in (data.train, data.test))
    words = "a decision tree on the numbers of characters and words"
    return Played(LENGTH, words, [_predicted(data, train, test, seed, single=single)])


def id_order(data: TaskData, seed: int, *, single: bool) -> Played:
    """Labels by where a document stands in its split (0 to 1) and by the last number in its id."""
    train, test = (_places(part) for part in (data.train, data.test))
    words = "a decision tree on the place in the split and the last number of the id"
    return Played(ORDER, words, [_predicted(data, train, test, seed, single=single)])


def _lengths(documents: list[Document]) -> FloatArray:
    return np.array(
        [[len(d.text), len(d.text.split()), len(d.query), len(d.query.split())] for d in documents], dtype=np.float64
    )


def _places(documents: list[Document]) -> FloatArray:
    last = max(len(documents) - 1, 1)
    return np.array([[i / last, _number(d.id)] for i, d in enumerate(documents)], dtype=np.float64)


def _number(name: str) -> float:
    numbers = _NUMBER.findall(name)
    return float(numbers[-1]) if numbers else -1.0


def _predicted(data: TaskData, train: FloatArray, test: FloatArray, seed: int, *, single: bool) -> list[Prediction]:
    """The predictions of a tree on these features, (documents, features)."""
    truth = np.array([[label in d.labels for label in data.labels] for d in data.train])
    if len(train) > MAX_DOCUMENTS:
        sample = np.sort(np.random.default_rng(seed).choice(len(train), MAX_DOCUMENTS, replace=False))
        train, truth = train[sample], truth[sample]
    aside = np.arange(len(train)) % _FOLD == 0
    leaves = LEAVES[-1]
    if aside.any() and not aside.all():
        scores = [
            f1_score(
                truth[aside],
                _tree(train[~aside], truth[~aside], train[aside], seed, leaf=leaf, single=single),
                average="macro",
                zero_division=0,
            )
            for leaf in LEAVES
        ]
        leaves = LEAVES[int(np.argmax(scores))]
    rows = _tree(train, truth, test, seed, leaf=leaves, single=single)
    return [
        Prediction(document=d.id, labels=tuple(x for x, yes in zip(data.labels, row, strict=True) if yes))
        for d, row in zip(data.test, rows.tolist(), strict=True)
    ]


def _tree(
    train: FloatArray, truth: NDArray[np.bool_], test: FloatArray, seed: int, *, leaf: int, single: bool
) -> NDArray[np.bool_]:
    """(test documents, labels), classes weighted by the inverse of their frequency."""
    tree = DecisionTreeClassifier(min_samples_leaf=leaf, class_weight="balanced", random_state=seed)
    if single:
        picked = tree.fit(train, truth.argmax(axis=1)).predict(test)
        return np.asarray(picked[:, None] == np.arange(truth.shape[1]))
    columns = []
    for own in truth.T:
        columns.append(tree.fit(train, own).predict(test) if own.any() and not own.all() else [own.all()] * len(test))
    return np.array(columns, dtype=np.bool_).T
