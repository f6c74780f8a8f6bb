"""Schedules, weights, thresholds and the embedding's gradient, each against its definition."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from biobench.encode.tokens import Encoded
from biobench.finetune.adapters import make_optimizer, rate
from biobench.finetune.network import decide, threshold_of
from biobench.finetune.prepare import Prepared
from biobench.finetune.vocabulary import trained_rows
from biobench.kinds import Split, get_kind
from biobench.models.encoder import Encoder
from biobench.schema.document import Document, TaskData
from biobench.schema.record import Windows
from biobench.schema.task import TaskSpec
from biobench.schema.training import Training
from tests.helpers.spec_make import DEFAULTS


@pytest.mark.parametrize(("ratio", "steps"), [(0.25, 2), (0.35, 4), (0.34, 3), (1.0, 10), (0.0, 0)])
def test_warm_up_is_rounded_to_whole_steps(ratio: float, steps: int) -> None:
    recipe = Training(max_steps=10, learning_rate=1.0, warmup_ratio=ratio)
    rising = [s / steps for s in range(steps)]
    falling = [(10 - s) / (10 - steps) for s in range(steps, 10)]
    assert [rate(s, 10, recipe) for s in range(11)] == pytest.approx([*rising, *falling, 0])
    assert rate(0, 4, Training(epochs=1, learning_rate=2.0)) == 2.0


def test_the_optimiser_is_the_recipe_s() -> None:
    network = nn.ModuleDict({"encoder": nn.Linear(3, 3), "head": nn.Linear(3, 2)})
    recipe = Training(
        epochs=1,
        learning_rate=2e-3,
        weight_decay=0.3,
        adam_beta1=0.7,
        adam_beta2=0.8,
        adam_epsilon=1e-5,
    )
    one = make_optimizer(network, recipe)
    two = make_optimizer(network, recipe.model_copy(update={"head_learning_rate": 1e-2}))
    for optimizer, scales in ((one, [1.0, 1.0]), (two, [1.0, 1.0, 5.0, 5.0])):
        groups = optimizer.param_groups
        assert [g.get("scale", 1.0) for g in groups] == pytest.approx(scales)
        assert all((g["betas"], g["eps"], g["lr"]) == ((0.7, 0.8), 1e-5, 2e-3) for g in groups)
        assert [g["weight_decay"] for g in groups] == [0.3, 0.0] * (len(groups) // 2)
        held = [p for g in groups for p in g["params"]]
        assert sorted(map(id, held)) == sorted(id(p) for p in network.parameters())
        assert all(p.ndim == (2 if g["weight_decay"] else 1) for g in groups for p in g["params"])
    scaled = {id(p) for g in two.param_groups[2:] for p in g["params"]}
    assert scaled == {id(p) for p in network["head"].parameters()}


@pytest.mark.parametrize("pad_id", [1, 3])
def test_training_the_used_rows_is_training_the_whole_table(
    folders: Callable[[str], Path], pad_id: int
) -> None:
    """Against dense AdamW on the whole embedding: used, unused and padding rows; twice, as after a
    restart.
    """
    from transformers import AutoModel

    folder = folders("bert")
    encoder = Encoder(AutoModel.from_pretrained(folder), pad_id=pad_id)
    table = encoder.model.get_input_embeddings()
    torch.nn.init.constant_(table.weight[1], 0.5)  # a gradient here would not be 0
    dense = nn.Embedding(*table.weight.shape, padding_idx=table.padding_idx)
    dense.load_state_dict(table.state_dict())
    # 1 is the table's padding: read unless the tokenizer has another one (3), and never changed by
    # a gradient.
    documents = [np.asarray([5, 9, 9, 30]), np.asarray([7, 1, 5] if pad_id == 1 else [7, 5])]
    recipe = Training(max_steps=4, learning_rate=0.1, weight_decay=0.3)
    for _ in range(2):
        reference = make_optimizer(dense, recipe)
        with trained_rows(encoder, documents) as rows:
            assert rows.used.tolist() == sorted({1, pad_id, 5, 7, 9, 30})
            rows.train()
            optimizer = torch.optim.AdamW([rows.rows], lr=0.1, weight_decay=0.3)
            for step in range(4):
                ids = torch.from_numpy(documents[step % 2])
                (encoder.model.get_input_embeddings()(ids) ** 2).sum().backward()
                (dense(ids) ** 2).sum().backward()
                for one in (optimizer, reference):
                    one.step()
                    one.zero_grad(set_to_none=step % 2 == 0)
                rows.decayed(0.1, 0.3)
                if step == 1:
                    rows.write_back()
            rows.write_back()
        assert encoder.model.get_input_embeddings() is table
        assert table.weight.requires_grad
        torch.testing.assert_close(table.weight, dense.weight, rtol=1e-5, atol=1e-7)


SOURCE = {"id": "s", "folder": "f", "files": {"all": "x"}, "reader": {"format": "tsv"}}
FIELDS = {**DEFAULTS, "id": "m", "type": "multi_label", "source": SOURCE, "labels": ["a", "b", "c"]}


def _multi_label(**changes: Any) -> TaskSpec:
    return TaskSpec.model_validate({**FIELDS, "head": {"kind": "sequence"}, **changes})


def _split(rows: list[list[int]]) -> Split:
    targets = [np.flatnonzero(r) for r in rows]
    labels = [tuple("abc"[i] for i in target) for target in targets]
    documents = [Document(str(i), str(i), "t", "train", labels=own) for i, own in enumerate(labels)]
    seen = [Encoded(*[np.zeros(0, np.int64)] * 3, truncated=False)] * 9
    return Split(
        documents, documents, seen, targets, [1] * len(rows), [[i] for i in range(len(rows))], 3
    )


def test_losses_are_means_over_the_batch() -> None:
    spec, split = _multi_label(), _split([[1, 0, 1], [0, 0, 1]])
    logits, gold, kind = (
        torch.randn(2, 3),
        torch.tensor([[1.0, 0, 1], [0, 0, 1]]),
        get_kind("multi_label"),
    )
    for weights in (None, torch.tensor([1.0, 2.0, 0.5])):
        mean = kind.loss(spec, logits, split.targets, weights) / kind.terms(spec, split.targets, ())
        wanted = nn.functional.binary_cross_entropy_with_logits(logits, gold, pos_weight=weights)
        torch.testing.assert_close(mean, wanted)


def test_a_token_task_s_mean_is_over_visible_words() -> None:
    """Windows of 3 and 1 words: each word weighs a quarter, not each window a half."""
    spec = _multi_label(type="token_ner", head={"kind": "token"})
    targets = [np.asarray([0, 2, 1]), np.asarray([1])]
    logits = torch.randn(4, 3)
    kind = get_kind("token_ner")
    mean = kind.loss(spec, logits, targets, None) / kind.terms(spec, targets, (3, 1))
    torch.testing.assert_close(
        mean, nn.functional.cross_entropy(logits, torch.tensor([0, 2, 1, 1]))
    )
    single = _multi_label(type="single_label")
    classes = [np.asarray(2), np.asarray(0)]
    kind = get_kind("single_label")
    mean = kind.loss(single, logits[:2], classes, None) / kind.terms(single, classes, ())
    torch.testing.assert_close(mean, nn.functional.cross_entropy(logits[:2], torch.tensor([2, 0])))


def _floats(*rows: list[float]) -> list[np.ndarray]:
    return [np.asarray(row, dtype=np.float32) for row in rows]


def _prepared(spec: TaskSpec, split: Split) -> Prepared:
    labels = ("a", "b", "c")
    data = TaskData({"train": [], "validation": [], "test": []}, labels, labels, "s", "h")
    windows = Windows(max_length=8, truncated_documents=0, lost_gold=0)
    return Prepared(spec, data, labels, split, split, split, windows)


def test_classes_of_several_windows_are_shares_of_one() -> None:
    """Two windows, the greater score of each class: 0.6 and 0.8 of three classes become 0.6 / 1.6,
    ...
    """
    spec = _multi_label(type="single_label", labels=["a", "b", "c"])
    split = replace(_split([[1, 0, 0], [0, 0, 1]]), windows=[[0, 1], [2]])
    chances = _floats([0.6, 0.2, 0.2], [0.1, 0.8, 0.1], [0.2, 0.2, 0.6])
    said = decide(_prepared(spec, split), split, chances, 0.5)
    assert [p.labels for p in said] == [("b",), ("c",)]
    assert said[0].label_scores == pytest.approx((0.375, 0.5, 0.125))
    assert said[1].label_scores == pytest.approx((0.2, 0.2, 0.6))


def test_threshold_and_fallback() -> None:
    split = _split([[1, 0, 0], [0, 1, 0]])
    chances = _floats([0.9, 0.5, 0.1], [0.1, 0.3, 0.2])
    for fallback, labels in (("none", ()), ("top1", ("b",))):
        spec = _multi_label(head={"kind": "sequence", "fallback": fallback})
        said = decide(_prepared(spec, split), split, chances, 0.5)
        assert [p.labels for p in said] == [("a",), labels]


def test_tuned_threshold_is_the_best_on_validation() -> None:
    split = _split([[1, 0, 0], [0, 1, 0], [0, 0, 1]])
    chances = _floats([0.3, 0.1, 0.1], [0.1, 0.28, 0.1], [0.1, 0.2, 0.27])
    prepared = _prepared(_multi_label(head={"kind": "sequence", "threshold": "tuned"}), split)
    threshold = threshold_of(prepared, chances)
    assert threshold == pytest.approx(0.25)
    for used, score in ((threshold, 1.0), (0.5, 0.0)):
        scores = prepared.score(split.documents, decide(prepared, split, chances, used))
        assert scores.values["macro_f1"] == score
