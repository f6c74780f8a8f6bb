"""Label sets of ten thousand: sparse targets, counts and threshold tuning against dense arrays and scikit-learn."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from biobench.score.counting import oracle
from tests.benchmarks.labels_make import dense, make_labels, multi_label_spec

MANY = 10_000


@pytest.fixture(scope="module")
def made() -> Any:
    """120 documents, 10,000 labels, and a model's scores."""
    return make_labels(120, MANY, multi_label_spec())


def test_weights_and_loss_are_those_of_dense_targets(made: Any) -> None:
    prepared, _ = made
    gold = dense(prepared)
    kind = prepared.kind
    weights = kind.weights(prepared.spec, prepared.train)
    assert weights is not None
    without = (gold == 0).sum(0)
    np.testing.assert_allclose(weights.numpy(), without / np.maximum(gold.sum(0), 1), rtol=1e-6)
    logits = torch.randn(16, MANY, generator=torch.Generator().manual_seed(1))
    targets = prepared.train.targets[:16]
    loss = kind.loss(prepared.spec, logits, targets, weights) / kind.terms(prepared.spec, targets, ())
    wanted = torch.nn.functional.binary_cross_entropy_with_logits(
        logits, torch.from_numpy(gold[:16]), pos_weight=weights
    )
    torch.testing.assert_close(loss, wanted)


def test_no_array_of_documents_by_labels_is_held() -> None:
    """Weights, scores and targets of 1,500 documents stay far below one such array of bytes (15 MB)."""
    prepared, _ = make_labels(40, MANY, multi_label_spec())
    documents = [d for _ in range(38) for d in prepared.test.documents]
    split = prepared.test
    gold = [replace(d, id=f"{i}") for i, d in enumerate(documents)]
    targets = list(split.targets) * 38
    many = replace(split, documents=gold, units=gold, targets=targets, windows=[[i] for i in range(len(gold))])
    said = oracle(gold)
    tracemalloc.start()
    prepared.kind.weights(prepared.spec, many)
    scores = prepared.score(gold, said)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert scores.values["micro_f1"] == 1.0
    assert peak < 12e6
    assert sum(t.nbytes for t in targets) < 1e6
