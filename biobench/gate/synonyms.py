"""Policies for unseen names of concepts: without reading, at random, and by the letters that names share."""

from __future__ import annotations

from collections import Counter

import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer

from biobench.gate.blind import DRAWS
from biobench.gate.policy import Played
from biobench.kinds.synonyms import DEPTH, first_concepts
from biobench.schema.document import Prediction, TaskData

_QUERIES = 1024
"""Queries that are compared with all candidates at once."""


def name_policies(data: TaskData, seed: int) -> list[Played]:
    """The concepts with most names, random orders, and the candidates with most n-grams of letters in common."""
    return [_commonest(data), _random_order(data, seed), _letters(data)]


def _commonest(data: TaskData) -> Played:
    """What it scores follows from how often each concept is asked for."""
    names = Counter(label for d in data.train for label in d.labels)
    order = {label: place for place, label in enumerate(data.labels)}
    ranking = sorted(names, key=lambda label: (-names[label], order[label]))[:DEPTH]
    places = {label: rank for rank, label in enumerate(ranking, 1)}
    best = [min((places[label] for label in d.labels if label in places), default=None) for d in data.test]
    known = {
        "accuracy_at_1": sum(rank == 1 for rank in best) / len(best),
        "accuracy_at_5": sum(rank is not None and rank <= 5 for rank in best) / len(best),
        "mrr": sum(1 / rank for rank in best if rank is not None) / len(best),
    }
    words = "the concepts with most names in training, for every query"
    return Played(
        "commonest concepts", words, [[Prediction(d.id, labels=tuple(ranking)) for d in data.test]], known=known
    )


def _random_order(data: TaskData, seed: int) -> Played:
    """A fresh order of the concepts of training for each query."""
    rng = np.random.default_rng(seed)
    concepts = sorted({label for d in data.train for label in d.labels})
    most = min(DEPTH, len(concepts))
    draws = [
        [
            Prediction(d.id, labels=tuple(concepts[i] for i in rng.choice(len(concepts), most, replace=False)))
            for d in data.test
        ]
        for _ in range(DRAWS)
    ]
    return Played("random order", "the concepts of training in random order", draws)


def _letters(data: TaskData) -> Played:
    """Candidates by the cosine of their n-grams; equal ones in their order."""
    vectorizer = TfidfVectorizer(analyzer="char_wb", ngram_range=(2, 4), sublinear_tf=True)
    known = vectorizer.fit_transform(d.text for d in data.train)
    asked = vectorizer.transform(d.text for d in data.test)
    concepts = [d.labels for d in data.train]
    results: list[Prediction] = []
    for begin in range(0, len(data.test), _QUERIES):
        part = data.test[begin : begin + _QUERIES]
        cosines = np.asarray((asked[begin : begin + _QUERIES] @ known.T).todense())
        nearest = np.argsort(-cosines, axis=1, kind="stable")
        for document, row in zip(part, nearest, strict=True):
            results.append(Prediction(document.id, labels=tuple(first_concepts(row.tolist(), concepts))))
    words = "TF-IDF of 2 to 4 letters inside words, candidates by their cosine"
    return Played("letter n-grams", words, [results], blind=False)
