"""Baselines of kinds without F1: numbers, questions with several right options, names of concepts."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence

import numpy as np
from scipy.sparse import csr_matrix, hstack
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import Ridge

from biobench.baselines.blind import DRAWS, Baseline
from biobench.baselines.reading import MAX_FEATURES, fit_svm
from biobench.kinds.synonyms import DEPTH, first_concepts
from biobench.schema.document import Document, Prediction, TaskData
from biobench.schema.task import TaskSpec
from biobench.stats.types import FloatArray

_WORD = re.compile(r"(?u)\w+")
_QUERIES = 1024
"""Queries that are compared with all candidates at once."""


def _words(text: str) -> set[str]:
    return set(_WORD.findall(text.lower()))


def _constant(name: str, words: str, data: TaskData, labels: Sequence[str]) -> Baseline:
    return Baseline(name, words, [[Prediction(d.id, labels=tuple(labels)) for d in data.test]])


def number_baselines(spec: TaskSpec, data: TaskData) -> list[Baseline]:
    """The training mean; least squares on the length difference and on the shared words of two texts, or ridge
    regression on the words of one."""
    assert spec.scale is not None
    low, high = spec.scale
    train = [float(d.labels[0]) for d in data.train]

    def numbered(name: str, words: str, values: FloatArray) -> Baseline:
        clipped = np.clip(values, low, high).tolist()
        predictions = [Prediction(d.id, label_scores=(value,)) for d, value in zip(data.test, clipped, strict=True)]
        return Baseline(name, words, [predictions])

    mean = numbered("training mean", "the mean of training", np.full(len(data.test), float(np.mean(train))))
    if not any(d.query for d in data.train):
        vectorizer = TfidfVectorizer(sublinear_tf=True, ngram_range=(1, 2), max_features=MAX_FEATURES)
        ridge = Ridge(alpha=1.0).fit(vectorizer.fit_transform([d.text for d in data.train]), train)
        values = np.asarray(ridge.predict(vectorizer.transform([d.text for d in data.test])), dtype=np.float64)
        return [mean, numbered("bag of words", "TF-IDF of words and word pairs, ridge regression", values)]

    def length_difference(document: Document) -> float:
        return float(abs(len(_WORD.findall(document.query)) - len(_WORD.findall(document.text))))

    def shared(document: Document) -> float:
        first, second = _words(document.query), _words(document.text)
        return len(first & second) / len(first | second) if first | second else 0.0

    def fitted(name: str, words: str, of: Callable[[Document], float]) -> Baseline:
        slope = np.linalg.lstsq(np.array([[1.0, of(d)] for d in data.train]), np.array(train), rcond=None)[0]
        return numbered(name, f"least squares on {words}", np.array([[1.0, of(d)] for d in data.test]) @ slope)

    return [
        mean,
        fitted("length difference", "the difference of the two lengths in words", length_difference),
        fitted("token overlap", "the share of different words that both texts have", shared),
    ]


def choice_baselines(data: TaskData, seed: int) -> list[Baseline]:
    """The commonest set of training, every option, random sets, and a linear model of each option's words."""
    order = {label: place for place, label in enumerate(data.labels)}
    sets = Counter(tuple(sorted(d.labels, key=order.__getitem__)) for d in data.train)
    commonest = min(sets, key=lambda members: (-sets[members], len(members), [order[label] for label in members]))
    names = sorted(sets)
    shares = np.array([sets[name] for name in names], dtype=np.float64)
    rng = np.random.default_rng(seed)
    draws = []
    for _ in range(DRAWS):
        drawn = rng.choice(len(names), len(data.test), p=shares / shares.sum())
        draws.append([Prediction(d.id, labels=names[i]) for d, i in zip(data.test, drawn, strict=True)])
    return [
        _constant("commonest set", "the most frequent set of right options of training", data, commonest),
        _constant("every option", "all options of every question", data, data.labels),
        Baseline("random sets", "sets drawn by their share of the training questions", draws),
        _option_words(data, seed),
    ]


def _option_words(data: TaskData, seed: int) -> Baseline:
    """Whether an option is right, from its words, its name, the question's words, and the share of its words that
    stand in the question."""
    name, words = "option words", "TF-IDF of an option's and its question's words, one linear SVM; positive margins"
    asked = [(d, place, text) for d in (*data.train, *data.test) for place, text in _options(d)]
    known = sum(1 for d in data.train for _ in _options(d))
    truth = np.array([data.labels[place] in d.labels for d, place, _ in asked[:known]])
    if truth.all() or not truth.any() or not any(_WORD.search(text) for _, _, text in asked[:known]):
        return _constant(name, words, data, data.labels)
    extra = [
        [len(_words(text) & _words(d.query)) / max(len(_words(text)), 1), *np.eye(len(data.labels))[place]]
        for d, place, text in asked
    ]
    parts = []
    for texts in ([text for _, _, text in asked], [d.query for d, _, _ in asked]):
        vectorizer = TfidfVectorizer(sublinear_tf=True, max_features=MAX_FEATURES, token_pattern=r"(?u)\w+")
        vectorizer.fit(texts[:known])
        parts.append(vectorizer.transform(texts))
    features = hstack([*parts, csr_matrix(np.array(extra))]).tocsr()
    margins = iter(fit_svm(features[:known], truth, seed).decision_function(features[known:]).tolist())
    results = []
    for d in data.test:
        scored = [(next(margins), data.labels[place]) for place, _ in _options(d)]
        positive = tuple(label for margin, label in scored if margin > 0)
        results.append(Prediction(d.id, labels=positive or (max(scored, key=lambda row: row[0])[1],)))
    return Baseline(name, words, [results])


def _options(document: Document) -> Iterator[tuple[int, str]]:
    """Place and text of the options that the question has."""
    for place, (start, end) in enumerate(document.pieces):
        if start < end:
            yield place, document.text[start:end]


def name_baselines(data: TaskData, seed: int) -> list[Baseline]:
    """The concepts with most names, random orders, and the candidates with most n-grams of letters in common."""
    names = Counter(label for d in data.train for label in d.labels)
    order = {label: place for place, label in enumerate(data.labels)}
    ranking = sorted(names, key=lambda label: (-names[label], order[label]))[:DEPTH]
    rng = np.random.default_rng(seed)
    concepts = sorted(names)
    draws = []
    for _ in range(DRAWS):
        rows = [rng.choice(len(concepts), min(DEPTH, len(concepts)), replace=False) for _ in data.test]
        draws.append(
            [Prediction(d.id, labels=tuple(concepts[i] for i in row)) for d, row in zip(data.test, rows, strict=True)]
        )
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
        _constant("commonest concepts", "the concepts with most names in training, for every query", data, ranking),
        Baseline("random order", "the concepts of training in random order", draws),
        Baseline("letter n-grams", "TF-IDF of 2 to 4 letters inside words, candidates by their cosine", [letters]),
    ]
