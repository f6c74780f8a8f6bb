"""A linear model on bags of words: the floor that a classification task's encoder has to leave behind.

The recipe is fixed: sublinear TF-IDF over words and word pairs, then one linear support vector machine per
label against the rest (squared hinge, L2, C = 0.1, classes weighted by the inverse of their frequency). Pairs of texts
give the words and word pairs of each side, the words that both share, and which words stand on the two sides.
"""

from __future__ import annotations

import itertools
import re
import warnings

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.svm import LinearSVC

from biobench.gate.policy import Played
from biobench.schema.document import Document, Prediction, TaskData

REGULARISATION = 0.1
"""C of the support vector machines: the inverse of the strength of the L2 penalty. One value for all tasks; it
was the stronger floor than 1 on the two multi-label corpora at hand and the weaker one on GAD."""
MAX_FEATURES = 50_000
"""The most frequent words and pairs that are kept."""
MAX_DOCUMENTS = 20_000
"""Training documents at most, drawn by the seed, so that the floor costs seconds on any corpus."""

_WORD = r"(?u)\w+"
_ACROSS = 50
"""Different words of each side that are looked at across the two."""


def bag_of_words(data: TaskData, seed: int, *, single: bool) -> Played:
    """Single-label: the label with the highest margin; multi-label: all labels with a positive margin."""
    margins = _margins(data, seed)
    rows: list[tuple[str, ...]]
    if single:
        rows = [(data.labels[i],) for i in margins.argmax(axis=1).tolist()]
    else:
        rows = [
            tuple(label for label, yes in zip(data.labels, row, strict=True) if yes) for row in (margins > 0).tolist()
        ]
    predictions = [Prediction(document=d.id, labels=row) for d, row in zip(data.test, rows, strict=True)]
    words = f"TF-IDF of words and word pairs, one linear SVM per label (C = {REGULARISATION:g}, balanced classes)"
    return Played("bag of words", words, [predictions], blind=False)


def _margins(data: TaskData, seed: int) -> NDArray[np.float64]:
    """(test documents, labels). A label that no or every training document has is a constant: -1 or 1."""
    train = data.train
    if len(train) > MAX_DOCUMENTS:
        sample = np.random.default_rng(seed).choice(len(train), MAX_DOCUMENTS, replace=False)
        train = [train[i] for i in np.sort(sample)]
    margins = np.full((len(data.test), len(data.labels)), -1.0)
    if not any(re.search(_WORD, d.reading) for d in train):
        return margins
    paired = any(d.query and d.plan is None for d in train)
    # Markers such as @GENE$ stand in every document of their corpus; the words alone are what informs.
    options = {"analyzer": _of_pair} if paired else {"ngram_range": (1, 2), "token_pattern": _WORD}
    vectorizer = TfidfVectorizer(sublinear_tf=True, max_features=MAX_FEATURES, dtype=np.float64, **options)
    train_features = vectorizer.fit_transform(train if paired else [d.text for d in train])
    test_features = vectorizer.transform(data.test if paired else [d.text for d in data.test])
    for column, label in enumerate(data.labels):
        truth = np.array([label in d.labels for d in train])
        if truth.all() or not truth.any():
            margins[:, column] = 1.0 if truth.all() else -1.0
            continue
        machine = LinearSVC(C=REGULARISATION, class_weight="balanced", random_state=seed, dual=True, max_iter=1000)
        with warnings.catch_warnings():
            # Some hundreds of passes are enough for a floor; the recipe is fixed, converged or not.
            warnings.simplefilter("ignore", ConvergenceWarning)
            machine.fit(train_features, truth)
        margins[:, column] = machine.decision_function(test_features)
    return margins


def _of_pair(document: Document) -> list[str]:
    """Features of two texts: of each side, of what both share, and of a word here with a word there."""
    sides = [re.findall(_WORD, text.lower()) for text in (document.query, document.text)]
    features: list[str] = []
    for mark, words in zip("12", sides, strict=True):
        features += [f"{mark} {word}" for word in words]
        features += [f"{mark} {a} {b}" for a, b in itertools.pairwise(words)]
    first, second = (list(dict.fromkeys(words))[:_ACROSS] for words in sides)
    features += [f"both {word}" for word in first if word in set(second)]
    return features + [f"{a} | {b}" for a in first for b in second]
