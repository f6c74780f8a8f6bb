"""Long documents through overlapping windows, in token and classification tasks."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from biobench.finetune.engine import finetune, new_network
from biobench.finetune.network import decide, probabilities
from biobench.kinds import get_kind

SHORT = ("protocol.max_length=16", "protocol.long_documents=stride", "protocol.stride=6", "training.epochs=1")


@pytest.mark.parametrize("merge", ["max", "mean"])
def test_label_scores_of_windows_are_merged_as_declared(setup: Any, merge: str) -> None:
    loaded, prepared = setup("bert", "demo_topic", *SHORT, f"protocol.merge={merge}")
    assert prepared.windows.strided_documents > 0
    chances = probabilities(new_network(loaded, prepared), prepared, prepared.test, "fp32", 10_000)
    assert len(chances) == len(prepared.test.encoded) > len(prepared.test.documents)
    for place, said in enumerate(decide(prepared, prepared.test, chances, 0.5)):
        own = np.stack([chances[w] for w in prepared.test.windows[place]])
        wanted = own.max(0) / own.max(0).sum() if merge == "max" else own.mean(0)
        assert said.label_scores == pytest.approx(wanted.tolist(), abs=1e-5)
        assert said.labels == (prepared.outputs[int(wanted.argmax())],)


def test_an_epoch_sees_every_window_once(setup: Any) -> None:
    loaded, prepared = setup("bert", "demo_topic", *SHORT, "training.batch_size=4")
    outcome = finetune(loaded, prepared, 1, "fp32", lambda *_: None)
    assert outcome.record.steps == -(-len(prepared.train.encoded) // 4)


def test_positive_weights_count_documents_not_windows(setup: Any) -> None:
    _, prepared = setup("bert", "demo_topic", *SHORT)
    recipe = prepared.spec.training.model_copy(update={"positive_weights": "ratio"})
    spec, split = prepared.spec.model_copy(update={"training": recipe}), prepared.train
    own = [t.reshape(1) for t in split.targets]
    weights = get_kind("multi_label").weights(spec, replace(split, targets=own))
    support = np.bincount([int(own[w[0]][0]) for w in split.windows], minlength=len(prepared.outputs))
    assert get_kind("multi_label").weights(prepared.spec, replace(split, targets=own)) is None
    assert weights is not None
    assert weights.tolist() == pytest.approx(((len(split.documents) - support) / np.maximum(support, 1)).tolist())
