"""Policies and tests for kinds without F1: numbers, questions with several right options, names of concepts."""

from __future__ import annotations

import re
import warnings
from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, hstack
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import Ridge
from sklearn.svm import LinearSVC

from biobench.gate.bag import MAX_FEATURES, REGULARISATION
from biobench.gate.blind import DRAWS
from biobench.gate.permutation import PERMUTATIONS, Tested
from biobench.gate.policy import Played
from biobench.gate.synonyms import name_policies
from biobench.schema.document import Document, Prediction, TaskData
from biobench.schema.kind import KINDS
from biobench.schema.task import TaskSpec
from biobench.score import oracle
from biobench.stats.correlation import edrm

_WORD = re.compile(r"(?u)\w+")


def policies_without_f1(spec: TaskSpec, data: TaskData, seed: int) -> list[Played]:
    """Blind policies first, then those that read, then the oracle; the last reader is the one that is tested."""
    kind = KINDS[spec.type]
    if kind.numeric:
        played = _numbers(spec, data)
    else:
        played = name_policies(data, seed) if kind.ranked else _choices(data, seed)
    known = dict(kind.perfect)
    return [*played, Played("oracle", "returns the gold", [oracle(data.test)], "ceiling", False, known)]


def beats_dealt_score(
    gold: Sequence[Document],
    predictions: Sequence[Prediction],
    score: Callable[[Sequence[Document], Sequence[Prediction]], float],
    seed: int,
) -> Tested:
    """Whether a policy's score is higher than with its predictions dealt to other documents at random.

    One-sided p as of the gate's other tests. Documents are dealt one by one.
    """
    rng = np.random.default_rng(seed)
    ids = [p.document for p in predictions]
    observed = score(gold, predictions)
    drawn = np.empty(PERMUTATIONS)
    for i in range(PERMUTATIONS):
        order = rng.permutation(len(ids))
        dealt = [
            Prediction(document, labels=predictions[j].labels, label_scores=predictions[j].label_scores)
            for document, j in zip(ids, order.tolist(), strict=True)
        ]
        drawn[i] = score(gold, dealt)
    p = (1 + int((drawn >= observed - 1e-12).sum())) / (1 + PERMUTATIONS)
    return Tested(observed, float(drawn.mean()), p)


def _numbers(spec: TaskSpec, data: TaskData) -> list[Played]:
    """The training mean, and least squares on the length difference, the shared words, and the words themselves."""
    assert spec.scale is not None
    low, high = spec.scale
    train, test = ([float(d.labels[0]) for d in part] for part in (data.train, data.test))
    mean, gold = float(np.mean(train)), np.array(test)
    known = {
        "pearson": 0.0,
        "spearman": 0.0,
        "mse": float(gold.var()) + (float(gold.mean()) - mean) ** 2,
        "edrm": edrm(gold, np.full(len(gold), mean), low, high),
    }

    def numbered(values: NDArray[np.float64]) -> list[Prediction]:
        return [
            Prediction(d.id, label_scores=(float(v),))
            for d, v in zip(data.test, np.clip(values, low, high), strict=True)
        ]

    played = [Played("training mean", "the mean of training", [numbered(np.full(len(gold), mean))], known=known)]
    if any(d.query for d in data.train):
        for name, words, of in (
            ("length difference", "least squares on the difference of the two lengths in words", _length_difference),
            ("token overlap", "least squares on the share of different words that both texts have", _overlap),
        ):
            slope = np.linalg.lstsq(np.array([[1.0, of(d)] for d in data.train]), np.array(train), rcond=None)[0]
            values = np.array([[1.0, of(d)] for d in data.test]) @ slope
            played.append(Played(name, words, [numbered(values)], blind=False))
        return played
    vectorizer = TfidfVectorizer(sublinear_tf=True, ngram_range=(1, 2), max_features=MAX_FEATURES)
    ridge = Ridge(alpha=1.0).fit(vectorizer.fit_transform([d.text for d in data.train]), train)
    results = np.asarray(ridge.predict(vectorizer.transform([d.text for d in data.test])), dtype=np.float64)
    words = "TF-IDF of words and word pairs, ridge regression"
    return [*played, Played("bag of words", words, [numbered(results)], blind=False)]


def _words(text: str) -> set[str]:
    return set(_WORD.findall(text.lower()))


def _length_difference(document: Document) -> float:
    sizes = [len(_WORD.findall(text)) for text in (document.query, document.text)]
    return float(abs(sizes[0] - sizes[1]))


def _overlap(document: Document) -> float:
    first, second = _words(document.query), _words(document.text)
    return len(first & second) / len(first | second) if first | second else 0.0


def _choices(data: TaskData, seed: int) -> list[Played]:
    """The commonest set of training, every option, random sets, and a linear model of each option's words."""
    order = {label: place for place, label in enumerate(data.labels)}
    sets = Counter(tuple(sorted(d.labels, key=order.__getitem__)) for d in data.train)
    commonest = min(sets, key=lambda members: (-sets[members], len(members), [order[label] for label in members]))
    played = [
        _constant("commonest set", "the most frequent set of right options of training", data, commonest),
        _constant("every option", "all options of every question", data, data.labels),
    ]
    names = sorted(sets)
    shares = np.array([sets[name] for name in names], dtype=np.float64)
    rng = np.random.default_rng(seed)
    draws = [
        [
            Prediction(d.id, labels=names[i])
            for d, i in zip(data.test, rng.choice(len(names), len(data.test), p=shares / shares.sum()), strict=True)
        ]
        for _ in range(DRAWS)
    ]
    played.append(Played("random sets", "sets drawn by their share of the training questions", draws))
    return [*played, _option_words(data, seed)]


def _constant(name: str, words: str, data: TaskData, chosen: Sequence[str]) -> Played:
    """The same options for every question, and what this must score."""
    members = set(chosen)
    exact = sum(set(d.labels) == members for d in data.test) / len(data.test)
    shared = [len(set(d.labels) & members) / len(set(d.labels) | members) for d in data.test]
    known = {"exact_match": exact, "hamming": sum(shared) / len(shared)}
    return Played(name, words, [[Prediction(d.id, labels=tuple(chosen)) for d in data.test]], known=known)


def _option_words(data: TaskData, seed: int) -> Played:
    """Whether an option is right, from its words, its name, the question's, and how many words both share."""
    words = "TF-IDF of an option's and its question's words, one linear SVM; options with a positive margin"
    rows = [_options(d, data.labels) for d in (*data.train, *data.test)]
    texts = [text for members in rows for _, text, _ in members]
    questions = [d.query for d, members in zip((*data.train, *data.test), rows, strict=True) for _ in members]
    extra = csr_matrix(
        np.array([[shared, *place] for members in rows for place, _, shared in members], dtype=np.float64)
    )
    known = sum(len(members) for members in rows[: len(data.train)])
    truth = np.array([label in d.labels for d in data.train for label in _names(d, data.labels)])
    if truth.all() or not truth.any() or not any(_WORD.search(text) for text in texts[:known]):
        return _constant("option words", words, data, data.labels)
    parts = []
    for members in (texts, questions):
        vectorizer = TfidfVectorizer(sublinear_tf=True, max_features=MAX_FEATURES, token_pattern=r"(?u)\w+")
        vectorizer.fit(members[:known])
        parts.append(vectorizer.transform(members))
    features = hstack([*parts, extra]).tocsr()
    machine = LinearSVC(C=REGULARISATION, class_weight="balanced", random_state=seed, dual=True, max_iter=1000)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        machine.fit(features[:known], truth)
    margins = iter(machine.decision_function(features[known:]).tolist())
    results: list[Prediction] = []
    for document in data.test:
        names = _names(document, data.labels)
        option_margins = [float(next(margins)) for _ in names]
        chosen = tuple(name for name, margin in zip(names, option_margins, strict=True) if margin > 0)
        results.append(Prediction(document.id, labels=chosen or (names[int(np.argmax(option_margins))],)))
    return Played("option words", words, [results], blind=False)


def _names(document: Document, labels: Sequence[str]) -> list[str]:
    """The options that the question has."""
    return [label for label, (start, end) in zip(labels, document.pieces, strict=True) if start < end]


def _options(document: Document, labels: Sequence[str]) -> list[tuple[list[float], str, float]]:
    """(which option, its text, share of its words that stand in the question) of each option."""
    results = []
    question = _words(document.query)
    for number, (start, end) in enumerate(document.pieces):
        if start < end:
            text = document.text[start:end]
            members = _words(text)
            place = [float(number == i) for i in range(len(labels))]
            results.append((place, text, len(members & question) / len(members) if members else 0.0))
    return results
