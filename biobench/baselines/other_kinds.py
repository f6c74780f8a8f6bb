"""Baselines of kinds without F1: numbers, questions with several right options, names of
concepts."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

import numpy as np
from scipy.sparse import csr_matrix, hstack
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import Ridge

from biobench.baselines.blind import Baseline
from biobench.baselines.reading import MAX_FEATURES, WORD, fit_svm
from biobench.kinds.synonyms import DEPTH, first_concepts
from biobench.schema.document import Document, Prediction, TaskData
from biobench.schema.task import TaskSpec
from biobench.stats.types import FloatArray

_QUERIES = 1024
"""Queries that are compared with all candidates at once."""


def _words(text: str) -> set[str]:
    return set(re.findall(WORD, text.lower()))


def _constant(name: str, words: str, data: TaskData, labels: Sequence[str]) -> Baseline:
    return Baseline(name, words, [[Prediction(d.id, labels=tuple(labels)) for d in data.test]])


def number_baselines(spec: TaskSpec, data: TaskData) -> list[Baseline]:
    """The training mean; least squares on the shared words of two texts, or ridge regression on the
    words of one.
    """
    assert spec.scale is not None
    low, high = spec.scale
    train = [float(d.labels[0]) for d in data.train]

    def numbered(name: str, words: str, values: FloatArray) -> Baseline:
        clipped = np.clip(values, low, high).tolist()
        predictions = [
            Prediction(d.id, label_scores=(value,))
            for d, value in zip(data.test, clipped, strict=True)
        ]
        return Baseline(name, words, [predictions])

    mean = numbered(
        "training mean", "the mean of training", np.full(len(data.test), float(np.mean(train)))
    )
    if not any(d.query for d in data.train):
        vectorizer = TfidfVectorizer(
            sublinear_tf=True, ngram_range=(1, 2), max_features=MAX_FEATURES
        )
        ridge = Ridge(alpha=1.0).fit(vectorizer.fit_transform([d.text for d in data.train]), train)
        values = np.asarray(
            ridge.predict(vectorizer.transform([d.text for d in data.test])), dtype=np.float64
        )
        return [
            mean,
            numbered("bag of words", "TF-IDF of words and word pairs, ridge regression", values),
        ]

    def shared(document: Document) -> list[float]:
        first, second = _words(document.query), _words(document.text)
        return [1.0, len(first & second) / len(first | second) if first | second else 0.0]

    slope = np.linalg.lstsq(np.array([shared(d) for d in data.train]), np.array(train), rcond=None)[
        0
    ]
    words = "least squares on the share of different words that both texts have"
    return [
        mean,
        numbered("token overlap", words, np.array([shared(d) for d in data.test]) @ slope),
    ]


def choice_baselines(data: TaskData, seed: int) -> list[Baseline]:
    """The commonest set of training, every option, and a linear model of each option's words."""
    order = {label: place for place, label in enumerate(data.labels)}
    sets = Counter(tuple(sorted(d.labels, key=order.__getitem__)) for d in data.train)
    commonest = min(
        sets,
        key=lambda members: (-sets[members], len(members), [order[label] for label in members]),
    )
    return [
        _constant(
            "commonest set", "the most frequent set of right options of training", data, commonest
        ),
        _constant("every option", "all options of every question", data, data.labels),
        _option_words(data, seed),
    ]


def _option_words(data: TaskData, seed: int) -> Baseline:
    """Whether an option is right, from its words, its name, the question's words, and the share of
    its words that stand in the question.
    """
    name, words = (
        "option words",
        "TF-IDF of an option's and its question's words, one linear SVM; positive margins",
    )
    parts = (data.train, data.test)
    asked = [
        (d, place, d.text[a:b])
        for part in parts
        for d in part
        for place, (a, b) in enumerate(d.pieces)
        if a < b
    ]
    known = sum(a < b for d in data.train for a, b in d.pieces)
    truth = np.array([data.labels[place] in d.labels for d, place, _ in asked[:known]])
    if (
        truth.all()
        or not truth.any()
        or not any(re.search(WORD, text) for _, _, text in asked[:known])
    ):
        return _constant(name, words, data, data.labels)
    extra = [
        [
            len(_words(text) & _words(d.query)) / max(len(_words(text)), 1),
            *np.eye(len(data.labels))[place],
        ]
        for d, place, text in asked
    ]
    counted = []
    for texts in ([text for _, _, text in asked], [d.query for d, _, _ in asked]):
        vectorizer = TfidfVectorizer(
            sublinear_tf=True, max_features=MAX_FEATURES, token_pattern=WORD
        )
        counted.append(vectorizer.fit(texts[:known]).transform(texts))
    features = hstack([*counted, csr_matrix(np.array(extra))]).tocsr()
    margins = fit_svm(features[:known], truth, seed).decision_function(features[known:]).tolist()
    scored: dict[str, list[tuple[float, str]]] = {d.id: [] for d in data.test}
    for margin, (d, place, _) in zip(margins, asked[known:], strict=True):
        scored[d.id].append((margin, data.labels[place]))
    positive = {
        id: tuple(label for margin, label in rows if margin > 0) for id, rows in scored.items()
    }
    best = {id: max(rows, key=lambda row: row[0])[1] for id, rows in scored.items()}
    return Baseline(
        name, words, [[Prediction(id, labels=positive[id] or (best[id],)) for id in scored]]
    )


def name_baselines(data: TaskData) -> list[Baseline]:
    """The concepts with most names, and the candidates with most n-grams of letters in common."""
    names = Counter(label for d in data.train for label in d.labels)
    order = {label: place for place, label in enumerate(data.labels)}
    ranking = sorted(names, key=lambda label: (-names[label], order[label]))[:DEPTH]
    vectorizer = TfidfVectorizer(analyzer="char_wb", ngram_range=(2, 4), sublinear_tf=True)
    known = vectorizer.fit_transform(d.text for d in data.train)
    asked = vectorizer.transform(d.text for d in data.test)
    labels = [d.labels for d in data.train]
    letters: list[Prediction] = []
    for begin in range(0, len(data.test), _QUERIES):
        cosines = np.asarray((asked[begin : begin + _QUERIES] @ known.T).todense())
        # equal candidates in their order
        nearest = np.argsort(-cosines, axis=1, kind="stable").tolist()
        letters += [
            Prediction(d.id, labels=tuple(first_concepts(row, labels)))
            for d, row in zip(data.test[begin : begin + _QUERIES], nearest, strict=True)
        ]
    return [
        _constant(
            "commonest concepts",
            "the concepts with most names in training, for every query",
            data,
            ranking,
        ),
        Baseline(
            "letter n-grams",
            "TF-IDF of 2 to 4 letters inside words, candidates by their cosine",
            [letters],
        ),
    ]
