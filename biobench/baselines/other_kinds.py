"""Baselines of kinds without F1: numbers, questions with several right options, names of
concepts."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_matrix, hstack
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import Ridge

from biobench.baselines.blind import Baseline
from biobench.baselines.reading import WORD, fit_svm, texts, word_counter
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
    truth = np.array([float(d.labels[0]) for d in data.train])
    average = np.full(len(data.test), truth.mean())
    mean = _numbers("training mean", "the mean of training", spec, data, average)
    if any(d.query for d in data.train):
        slope, *_ = np.linalg.lstsq(_overlaps(data.train), truth, rcond=None)
        words = "least squares on the share of different words that both texts have"
        values = _overlaps(data.test) @ slope
        return [mean, _numbers("token overlap", words, spec, data, values)]
    vectorizer = word_counter(ngram_range=(1, 2))
    train_features = vectorizer.fit_transform(texts(data.train))
    test_features = vectorizer.transform(texts(data.test))
    ridge = Ridge(alpha=1.0).fit(train_features, truth)
    words = "TF-IDF of words and word pairs, ridge regression"
    values = ridge.predict(test_features)
    return [mean, _numbers("bag of words", words, spec, data, values)]


def _numbers(name: str, words: str, spec: TaskSpec, data: TaskData, values: FloatArray) -> Baseline:
    """A number for each test document, kept on the scale."""
    assert spec.scale is not None
    on_scale = np.clip(values, *spec.scale).tolist()
    predictions = []
    for document, value in zip(data.test, on_scale, strict=True):
        predictions.append(Prediction(document.id, label_scores=(value,)))
    return Baseline(name, words, [predictions])


def _overlaps(documents: Sequence[Document]) -> FloatArray:
    """(documents, 2): one, and the share of the different words of two texts that both have."""
    rows = []
    for document in documents:
        query = _words(document.query)
        text = _words(document.text)
        different = len(query | text)
        share = len(query & text) / max(different, 1)
        rows.append((1.0, share))
    return np.array(rows)


def choice_baselines(data: TaskData, seed: int) -> list[Baseline]:
    """The commonest set of training, every option, and a linear model of each option's words."""
    sets: Counter[tuple[int, ...]] = Counter()
    for document in data.train:
        numbers = sorted(map(data.labels.index, document.labels))
        sets[tuple(numbers)] += 1
    # of equally common ones the smallest, then the first by the task's label order
    commonest = min(sets, key=lambda members: (-sets[members], len(members), members))
    labels = [data.labels[number] for number in commonest]
    words = "the most frequent set of right options of training"
    return [
        _constant("commonest set", words, data, labels),
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
    train = _options(data.train)
    test = _options(data.test)
    truth = np.array([data.labels[option.number] in option.question.labels for option in train])
    has_words = any(re.search(WORD, option.text) for option in train)
    if not has_words or len(np.unique(truth)) < 2:
        return _constant(name, words, data, data.labels)
    features = _option_features([*train, *test], len(train), len(data.labels))
    machine = fit_svm(features[: len(train)], truth, seed)
    margins = machine.decision_function(features[len(train) :]).tolist()
    margins_of: dict[str, dict[str, float]] = {d.id: {} for d in data.test}
    for option, margin in zip(test, margins, strict=True):
        label = data.labels[option.number]
        margins_of[option.question.id][label] = margin
    predictions = []
    for question, margin_of in margins_of.items():
        predictions.append(Prediction(question, labels=_positive(margin_of)))
    return Baseline(name, words, [predictions])


def _positive(margin_of: Mapping[str, float]) -> tuple[str, ...]:
    """The labels with a positive margin, else the one with the highest."""
    positive = tuple(label for label, margin in margin_of.items() if margin > 0)
    return positive or (max(margin_of, key=margin_of.__getitem__),)


def _option_features(options: Sequence[_Option], seen: int, labels: int) -> csr_matrix:
    """(options, features). seen: how many of them, from the first, words are counted in."""
    one_hot = np.eye(labels)
    of_options = []
    of_questions = []
    named = []
    for option in options:
        query = option.question.query
        words = _words(option.text)
        shared = words & _words(query)
        of_options.append(option.text)
        of_questions.append(query)
        named.append([len(shared) / max(len(words), 1), *one_hot[option.number]])
    blocks = []
    for counted in (of_options, of_questions):
        vectorizer = word_counter(token_pattern=WORD).fit(counted[:seen])
        blocks.append(vectorizer.transform(counted))
    features: csr_matrix = hstack([*blocks, csr_matrix(named)]).tocsr()
    return features


def name_baselines(data: TaskData) -> list[Baseline]:
    """The concepts with most names, and the candidates with most n-grams of letters in common."""
    names = Counter(label for d in data.train for label in d.labels)
    by_names = sorted(data.labels, key=names.__getitem__, reverse=True)
    ranking = [label for label in by_names[:DEPTH] if names[label]]
    words = "the concepts with most names in training, for every query"
    return [_constant("commonest concepts", words, data, ranking), _letters(data)]


def _letters(data: TaskData) -> Baseline:
    """For each query the concepts of the candidates in the order of their cosine."""
    vectorizer = TfidfVectorizer(analyzer="char_wb", ngram_range=(2, 4), sublinear_tf=True)
    candidates = vectorizer.fit_transform(texts(data.train)).T
    queries = vectorizer.transform(texts(data.test))
    concepts = [document.labels for document in data.train]
    predictions = []
    for begin in range(0, len(data.test), _QUERIES):
        past = begin + _QUERIES
        cosines = (queries[begin:past] @ candidates).toarray()
        # equal candidates in their order
        nearest = np.argsort(-cosines, axis=1, kind="stable").tolist()
        for query, row in zip(data.test[begin:past], nearest, strict=True):
            labels = tuple(first_concepts(row, concepts))
            predictions.append(Prediction(query.id, labels=labels))
    words = "TF-IDF of 2 to 4 letters inside words, candidates by their cosine"
    return Baseline("letter n-grams", words, [predictions])
