"""Baselines of kinds without F1: numbers, questions with several right options, names of
concepts."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_matrix, hstack
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import Ridge

from biobench.baselines.blind import Baseline
from biobench.baselines.reading import WORD, fit_svm, word_counter
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

    average = np.full(len(data.test), float(np.mean(train)))
    mean = numbered("training mean", "the mean of training", average)
    if not any(d.query for d in data.train):
        vectorizer = word_counter(ngram_range=(1, 2))
        ridge = Ridge(alpha=1.0).fit(vectorizer.fit_transform([d.text for d in data.train]), train)
        values = ridge.predict(vectorizer.transform([d.text for d in data.test]))
        words = "TF-IDF of words and word pairs, ridge regression"
        return [mean, numbered("bag of words", words, np.asarray(values, dtype=np.float64))]
    slope = np.linalg.lstsq(_overlaps(data.train), np.array(train), rcond=None)[0]
    words = "least squares on the share of different words that both texts have"
    return [mean, numbered("token overlap", words, _overlaps(data.test) @ slope)]


def _overlaps(documents: Sequence[Document]) -> FloatArray:
    """(documents, 2): one, and the share of the different words of two texts that both have."""
    rows = []
    for document in documents:
        query, text = _words(document.query), _words(document.text)
        rows.append((1.0, len(query & text) / max(len(query | text), 1)))
    return np.array(rows)


def choice_baselines(data: TaskData, seed: int) -> list[Baseline]:
    """The commonest set of training, every option, and a linear model of each option's words."""
    number_of = {label: number for number, label in enumerate(data.labels)}
    sets = Counter(tuple(sorted(number_of[label] for label in d.labels)) for d in data.train)
    numbers = min(sets, key=lambda members: (-sets[members], len(members), members))
    commonest = [data.labels[number] for number in numbers]
    words = "the most frequent set of right options of training"
    return [
        _constant("commonest set", words, data, commonest),
        _constant("every option", "all options of every question", data, data.labels),
        _option_words(data, seed),
    ]


class _Option(NamedTuple):
    """An option of a question. number: its place among the task's labels, which name it."""

    question: Document
    number: int
    text: str


def _options(documents: Sequence[Document]) -> list[_Option]:
    """Every option that is not missing."""
    options = []
    for document in documents:
        for number, (start, end) in enumerate(document.pieces):
            if start < end:
                options.append(_Option(document, number, document.text[start:end]))
    return options


def _option_words(data: TaskData, seed: int) -> Baseline:
    """Whether an option is right, from its words, its name, the question's words, and the share of
    its words that stand in the question.
    """
    name = "option words"
    words = "TF-IDF of an option's and its question's words, one linear SVM; positive margins"
    train, test = _options(data.train), _options(data.test)
    truth = np.array([data.labels[option.number] in option.question.labels for option in train])
    has_words = any(re.search(WORD, option.text) for option in train)
    if truth.all() or not truth.any() or not has_words:
        return _constant(name, words, data, data.labels)
    features = _option_features([*train, *test], len(train), len(data.labels))
    machine = fit_svm(features[: len(train)], truth, seed)
    margins_of: dict[str, dict[str, float]] = {d.id: {} for d in data.test}
    margins = machine.decision_function(features[len(train) :]).tolist()
    for option, margin in zip(test, margins, strict=True):
        margins_of[option.question.id][data.labels[option.number]] = margin
    predictions = []
    for question, margin_of in margins_of.items():
        positive = [label for label, margin in margin_of.items() if margin > 0]
        labels = positive or [max(margin_of, key=margin_of.__getitem__)]
        predictions.append(Prediction(question, labels=tuple(labels)))
    return Baseline(name, words, [predictions])


def _option_features(options: Sequence[_Option], seen: int, labels: int) -> csr_matrix:
    """(options, features). seen: how many of them, from the first, words are counted in."""
    blocks = []
    for texts in ([o.text for o in options], [o.question.query for o in options]):
        vectorizer = word_counter(token_pattern=WORD)
        blocks.append(vectorizer.fit(texts[:seen]).transform(texts))
    names = np.eye(labels)[[option.number for option in options]]
    shares = []
    for option in options:
        words = _words(option.text)
        shares.append(len(words & _words(option.question.query)) / max(len(words), 1))
    features: csr_matrix = hstack([*blocks, csr_matrix(np.column_stack([shares, names]))]).tocsr()
    return features


def name_baselines(data: TaskData) -> list[Baseline]:
    """The concepts with most names, and the candidates with most n-grams of letters in common."""
    names = Counter(label for d in data.train for label in d.labels)
    by_names = sorted(data.labels, key=names.__getitem__, reverse=True)
    ranking = [label for label in by_names[:DEPTH] if names[label]]
    vectorizer = TfidfVectorizer(analyzer="char_wb", ngram_range=(2, 4), sublinear_tf=True)
    candidates = vectorizer.fit_transform(d.text for d in data.train).T
    queries = vectorizer.transform(d.text for d in data.test)
    labels = [d.labels for d in data.train]
    nearest: list[list[int]] = []
    for begin in range(0, len(data.test), _QUERIES):
        cosines = np.asarray((queries[begin : begin + _QUERIES] @ candidates).todense())
        # equal candidates in their order
        nearest += np.argsort(-cosines, axis=1, kind="stable").tolist()
    letters = [
        Prediction(d.id, labels=tuple(first_concepts(row, labels)))
        for d, row in zip(data.test, nearest, strict=True)
    ]
    words = "the concepts with most names in training, for every query"
    cosine = "TF-IDF of 2 to 4 letters inside words, candidates by their cosine"
    return [
        _constant("commonest concepts", words, data, ranking),
        Baseline("letter n-grams", cosine, [letters]),
    ]
