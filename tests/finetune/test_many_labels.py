"""Label sets of ten thousand: sparse targets, counts and threshold tuning against dense arrays and scikit-learn."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from biobench.finetune.network import decide
from biobench.kinds.labels import GRID, threshold_scores
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


@settings(deadline=None, max_examples=60)
@given(
    seed=st.integers(0, 10_000),
    labels=st.integers(2, 12),
    windows=st.integers(1, 3),
    fallback=st.sampled_from(["none", "top1"]),
    merge=st.sampled_from(["max", "mean"]),
    selection=st.sampled_from(["macro_f1", "macro_f1_all", "micro_f1", "weighted_f1", "example_f1"]),
    exact=st.booleans(),
)
def test_every_threshold_scores_as_a_whole_decision(
    seed: int, labels: int, windows: int, fallback: str, merge: str, selection: str, exact: bool
) -> None:
    """Each threshold of the grid, against predictions made and scored one by one; scores on a threshold included."""
    spec = multi_label_spec(
        head={"kind": "sequence", "threshold": "tuned", "fallback": fallback},
        protocol={"max_length": 8, "merge": merge},
        metric={"paper": "micro_f1", "selection": selection},
    )
    prepared, chances = make_labels(9, labels, spec, each=2, windows=windows, seed=seed)
    if not prepared.data.gold_labels:
        return
    if exact:
        chances = [np.float32(0.05) * np.round(c / 0.05).astype(np.float32) for c in chances]
        chances = [
            np.where(c > 0.04, np.float32(GRID)[np.clip(np.round(c * 20) - 1, 0, 18).astype(int)], c) for c in chances
        ]
    split = prepared.validation
    wanted = [
        prepared.score(split.documents, decide(prepared, split, chances, t)).values[prepared.spec.selection]
        for t in GRID
    ]
    assert threshold_scores(prepared, prepared.validation, chances) == pytest.approx(wanted, abs=1e-12)


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
