"""Baselines of classification and entities that look at the text: its length, bags of words, a
dictionary.
"""

from __future__ import annotations

import itertools
import re
import warnings
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.metrics import f1_score
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

from biobench.baselines.blind import Baseline, chosen
from biobench.baselines.words import Words
from biobench.schema.baseline import LENGTH
from biobench.schema.document import Document, Prediction, Span, TaskData
from biobench.schema.tags import spans_to_tags
from biobench.stats.types import BoolArray, FloatArray

REGULARISATION = 0.1
"""C of the support vector machines: the inverse of the strength of the L2 penalty. One value for
all tasks; it was stronger than 1 on the two multi-label corpora that were measured and weaker on
GAD.
"""
MAX_FEATURES = 50_000
"""The most frequent words and pairs that are kept."""
MAX_DOCUMENTS = 20_000
"""Training documents at most, drawn by the seed, so that a baseline costs seconds on any corpus."""
LEAVES = (1, 5, 20, 80)
"""Training documents that a leaf of the tree holds at least; the best of these on every fifth
training document.
"""
_FOLD = 5
WORD = r"(?u)\w+"
"""A run of letters and digits."""
_ACROSS = 50
"""Different words of each side that are looked at across the two."""


def dictionary(data: TaskData) -> Baseline:
    """Every surface that was a mention in training is one again, on the corpus's own tokens, else
    on words.

    From left to right the longest surface that begins at each word; case counts, matches do not
    overlap. A surface has the label that most of its training mentions have; ties go by the task's
    label order.
    """
    surfaces: dict[tuple[str, ...], Counter[str]] = defaultdict(Counter)
    for d in data.train:
        words = Words.of(d)
        for begin, end, label in words.places(d.spans):
            surfaces[words.surfaces[begin:end]][label] += 1
    label_of = {}
    for surface, mentions in surfaces.items():
        # of equally frequent labels the first of the task's
        label_of[surface] = max(data.labels, key=mentions.__getitem__)
    longest = max(map(len, label_of), default=0)
    predictions = []
    for d in data.test:
        matches = tuple(_longest_matches(Words.of(d), label_of, longest))
        tags = tuple(spans_to_tags(matches, d.tokens)) if d.tokens else ()
        predictions.append(Prediction(d.id, matches, tags=tags))
    description = f"longest match of the {len(label_of)} surfaces that are mentions in training"
    return Baseline("training dictionary", description, [predictions])


def _longest_matches(
    words: Words, label_of: Mapping[tuple[str, ...], str], longest: int
) -> Iterator[Span]:
    """From left to right the longest surface that begins at each word; matches do not overlap."""
    at = 0
    while at < len(words):
        for end in range(min(at + longest, len(words)), at, -1):
            label = label_of.get(words.surfaces[at:end])
            if label is not None:
                yield words.span((at, end, label))
                at = end
                break
        else:
            at += 1


def bag_of_words(data: TaskData, seed: int, *, single: bool) -> Baseline:
    """TF-IDF over words and word pairs, then one linear support vector machine per label against
    the rest.

    Sublinear counts, squared hinge, L2, classes weighted by the inverse of their frequency.
    Single-label: the label with the highest margin; multi-label: all with a positive one. Pairs of
    texts give the words and word pairs of each side, the words that both share, and which words
    stand on the two sides.
    """
    margins = _margins(data, seed)
    if single:
        margins = margins.argmax(axis=1)[:, None] == np.arange(len(data.labels))
    machine = f"one linear SVM per label (C = {REGULARISATION:g}, balanced classes)"
    description = f"TF-IDF of words and word pairs, {machine}"
    return Baseline("bag of words", description, [chosen(data, margins > 0)])


def _margins(data: TaskData, seed: int) -> FloatArray:
    """(test documents, labels). A label that no or every training document has is a constant: -1 or
    1.
    """
    train = _sample(data.train, seed)
    shape = (len(data.test), len(data.labels))
    margins = np.full(shape, -1.0)
    if not any(re.search(WORD, d.reading) for d in train):
        return margins
    train_features, test_features = _word_features(train, data.test)
    for column, truth in enumerate(_truth(train, data.labels).T):
        if truth.all():
            margins[:, column] = 1.0
        elif truth.any():
            machine = fit_svm(train_features, truth, seed)
            margins[:, column] = machine.decision_function(test_features)
    return margins


def _truth(documents: Sequence[Document], labels: Sequence[str]) -> BoolArray:
    """(documents, labels), which of the labels each document has."""
    return np.array([[label in d.labels for label in labels] for d in documents])


def texts(documents: Sequence[Document]) -> list[str]:
    """The text of each document."""
    return [document.text for document in documents]


def word_counter(**options: Any) -> TfidfVectorizer:
    """TF-IDF of the most frequent features, their counts on a logarithmic scale."""
    return TfidfVectorizer(sublinear_tf=True, max_features=MAX_FEATURES, **options)


def _word_features(train: Sequence[Document], test: Sequence[Document]) -> tuple[Any, Any]:
    """(documents, features) of training and of test, sparse."""
    if any(d.query and d.plan is None for d in train):
        # Markers such as @GENE$ stand in every document of their corpus; the words alone are what
        # informs.
        of_pairs = word_counter(analyzer=_of_pair)
        of_train = of_pairs.fit_transform(train)
        return of_train, of_pairs.transform(test)
    of_texts = word_counter(ngram_range=(1, 2), token_pattern=WORD)
    of_train = of_texts.fit_transform(texts(train))
    return of_train, of_texts.transform(texts(test))


def fit_svm(features: object, truth: BoolArray, seed: int) -> LinearSVC:
    """The linear machine of all baselines; some hundreds of passes are enough for one, converged or
    not.
    """
    machine = LinearSVC(
        C=REGULARISATION, class_weight="balanced", random_state=seed, dual=True, max_iter=1000
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return machine.fit(features, truth)


def _sample(documents: Sequence[Document], seed: int) -> Sequence[Document]:
    """The training documents that are used, in their order."""
    if len(documents) <= MAX_DOCUMENTS:
        return documents
    rng = np.random.default_rng(seed)
    drawn = np.sort(rng.choice(len(documents), MAX_DOCUMENTS, replace=False))
    return [documents[row] for row in drawn]


def _of_pair(document: Document) -> list[str]:
    """Features of two texts: of each side, of what both share, and of a word here with a word
    there.
    """
    of_query = re.findall(WORD, document.query.lower())
    of_text = re.findall(WORD, document.text.lower())
    features = [*_of_side("1", of_query), *_of_side("2", of_text)]
    different_of_text = dict.fromkeys(of_text)
    query_words = list(dict.fromkeys(of_query))[:_ACROSS]
    text_words = list(different_of_text)[:_ACROSS]
    for word in query_words:
        if word in different_of_text:
            features.append(f"both {word}")
    for word, other_word in itertools.product(query_words, text_words):
        features.append(f"{word} | {other_word}")
    return features


def _of_side(mark: str, words: Sequence[str]) -> Iterator[str]:
    """The words and word pairs of one text, told apart from the other's by the mark."""
    for word in words:
        yield f"{mark} {word}"
    for word, following in itertools.pairwise(words):
        yield f"{mark} {word} {following}"


def length_only(data: TaskData, seed: int, *, single: bool) -> Baseline:
    """A decision tree on the numbers of characters and of words of the text, and of the first text
    of a pair.
    """
    documents = _sample(data.train, seed)
    train = _lengths(documents)
    test = _lengths(data.test)
    truth = _truth(documents, data.labels)
    leaf = _best_leaf(train, truth, seed, single=single)
    answers = _tree(train, truth, test, seed, leaf, single=single)
    description = "a decision tree on the numbers of characters and words"
    return Baseline(LENGTH, description, [chosen(data, answers)])


def _best_leaf(train: FloatArray, truth: BoolArray, seed: int, *, single: bool) -> int:
    """The size of leaves with the best macro F1 on every fifth document; the largest where there
    are too few documents to set some aside.
    """
    if len(train) < 2:
        return LEAVES[-1]
    aside = np.arange(len(train)) % _FOLD == 0
    scores = []
    for leaf in LEAVES:
        answers = _tree(train[~aside], truth[~aside], train[aside], seed, leaf, single=single)
        scores.append(f1_score(truth[aside], answers, average="macro", zero_division=0))
    return LEAVES[int(np.argmax(scores))]


def _lengths(documents: Sequence[Document]) -> FloatArray:
    """(documents, 4): characters and words of the text and of the first text of a pair."""
    rows = []
    for document in documents:
        text = document.text
        query = document.query
        rows.append((len(text), len(text.split()), len(query), len(query.split())))
    return np.array(rows, np.float64)


def _tree(
    train: FloatArray, truth: BoolArray, test: FloatArray, seed: int, leaf: int, *, single: bool
) -> BoolArray:
    """(test documents, labels), classes weighted by the inverse of their frequency."""
    tree = DecisionTreeClassifier(min_samples_leaf=leaf, class_weight="balanced", random_state=seed)
    if single:
        labels = truth.argmax(axis=1)
        picked = tree.fit(train, labels).predict(test)
        return np.asarray(picked[:, None] == np.arange(truth.shape[1]))
    answers = np.empty((len(test), truth.shape[1]), dtype=np.bool_)
    for column, target in enumerate(truth.T):
        answers[:, column] = target.all()
        if target.any() and not target.all():
            answers[:, column] = tree.fit(train, target).predict(test)
    return answers
