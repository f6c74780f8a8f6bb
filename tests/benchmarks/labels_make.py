"""A made multi-label task of many labels, as it stands before scoring: gold, targets and a model's scores."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from biobench.encode.tokens import Encoded
from biobench.finetune.prepare import Prepared
from biobench.kinds import Split
from biobench.schema.document import Document, TaskData
from biobench.schema.record import Windows
from biobench.schema.task import TaskSpec

FLOOR = 0.02
"""Most scores of a sigmoid over many labels are near 0."""


def multi_label_spec(**changes: Any) -> TaskSpec:
    """A multi-label spec whose labels are a rule, so that any label set fits it."""
    fields: dict[str, Any] = {
        "id": "m",
        "version": 1,
        "name": "m",
        "language": "en",
        "type": "multi_label",
        "labels": {"top_k": 2},
        "source": {"id": "s", "folder": "f", "files": {"all": "x"}, "reader": {"format": "tsv"}},
        "unit": "document",
        "training": {"epochs": 1, "learning_rate": 1e-3, "positive_weights": "ratio"},
        "head": {"kind": "sequence", "threshold": "tuned"},
        "metric": {"paper": "micro_f1"},
        "access": "open",
        "licence": "l",
        "homepage": "https://example.org",
        "citation": "c",
    }
    return TaskSpec.model_validate({**fields, **changes})


def make_labels(
    documents: int, labels: int, spec: TaskSpec, *, each: int = 8, windows: int = 1, seed: int = 0
) -> tuple[Prepared, list[NDArray[np.float32]]]:
    """A prepared task whose splits are all one, and scores (labels,) per window; about `each` labels a document.

    Frequencies fall as 1 / rank. A true label scores high more often than not, and some false ones do too.
    Some documents have no label.
    """
    rng = np.random.default_rng(seed)
    names = tuple(f"C{i:05d}" for i in range(labels))
    chance = 1 / np.arange(1, labels + 1)
    chance /= chance.sum()
    targets, chances, gold = [], [], []
    for number in range(documents):
        own = np.unique(rng.choice(labels, rng.poisson(each), p=chance))
        gold.append(Document(str(number), str(number), "t", "test", labels=tuple(names[i] for i in own)))
        for _ in range(windows):
            targets.append(own.astype(np.int64))
            scores = rng.random(labels, dtype=np.float32) * np.float32(FLOOR)
            scores[own] = rng.beta(3, 2, len(own))
            wrong = rng.integers(0, labels, 2 * each)
            scores[wrong] = rng.beta(2, 3, len(wrong))
            chances.append(scores)
    places = [list(range(d * windows, (d + 1) * windows)) for d in range(documents)]
    seen = [Encoded(*[np.zeros(0, np.int64)] * 3, truncated=False)] * len(targets)
    split = Split(gold, gold, seen, targets, [1] * len(targets), places, labels)
    known = {label for d in gold for label in d.labels}
    kept = tuple(name for name in names if name in known)
    data = TaskData({"train": gold, "validation": gold, "test": gold}, kept, names, "s", "h")
    none_cut = Windows(max_length=8, truncated_documents=0, lost_gold=0)
    return Prepared(spec, data, names, split, split, split, none_cut), chances


def dense(prepared: Prepared) -> NDArray[np.float32]:
    """(documents, labels) gold as 0 and 1: what the engine never makes for a whole split."""
    split = prepared.test
    matrix = np.zeros((len(split.documents), split.outputs), dtype=np.float32)
    for row, places in enumerate(split.windows):
        matrix[row, split.targets[places[0]]] = 1.0
    return matrix
