"""Adapters and top layers: what is trained, and that nothing leaks."""

from __future__ import annotations

import pytest
import torch
from transformers import AlbertConfig, AlbertModel

from biobench.core.machine import Precision
from biobench.errors import SpecError, TrainingError
from biobench.finetune.adapters import adapted, count_layers, layer_of
from biobench.finetune.engine import LoadedEncoder, finetune, new_network
from biobench.finetune.loop import Outcome
from biobench.finetune.network import decide, probabilities
from biobench.finetune.prepare import Prepared
from tests.finetune.conftest import Setup

FAST = ("training.epochs=1", "training.learning_rate=1e-2", "training.batch_size=8")
FP32: Precision = "fp32"


def trained(loaded: LoadedEncoder, prepared: Prepared, seed: int = 1) -> Outcome:
    """One run on the CPU."""
    return finetune(loaded, prepared, seed, FP32, lambda *_: None)


def changed(loaded: LoadedEncoder) -> set[str]:
    """The encoder's weights that are not those of the checkpoint any more."""
    now = loaded.encoder.state_dict()
    assert now.keys() == loaded.initial.keys(), "the encoder is plain again"
    return {name for name, weight in now.items() if not torch.equal(weight, loaded.initial[name])}


@pytest.mark.parametrize(
    ("family", "method"), [("bert", "lora"), ("bert", "dora"), ("modernbert", "ia3")]
)
def test_an_adapter_trains_its_weights_alone_and_its_merge_predicts_the_same(
    setup: Setup, family: str, method: str
) -> None:
    loaded, prepared = setup(
        family, "demo_ner", *FAST, f"training.adapter.method={method}", "training.adapter.rank=4"
    )
    recipe = prepared.spec.training
    network = new_network(loaded, prepared)
    with adapted(network, recipe):
        names = {n for n, p in network.encoder.named_parameters() if p.requires_grad}
        assert {"ia3_" in n or "lora_" in n for n in names} == {True}
    outcome = trained(loaded, prepared)
    moved = changed(loaded)
    assert {"att" in name for name in moved} == {True}, (
        "the update is merged where the adapter stood, and nowhere else"
    )
    assert outcome.record.trained_parameters < loaded.parameters / 4
    budget = outcome.record.micro_batch_tokens
    answers = probabilities(outcome.network, prepared, prepared.test, FP32, budget)
    merged = decide(prepared, prepared.test, answers, outcome.threshold)
    assert [(p.spans, p.tags) for p in merged] == [(p.spans, p.tags) for p in outcome.predictions]
    assert all(p.requires_grad for p in loaded.encoder.parameters())
    again = trained(loaded, prepared)
    assert again.predictions == outcome.predictions, "each seed starts from the checkpoint"


def test_an_adapter_with_unknown_targets_names_those_there_are(setup: Setup) -> None:
    loaded, prepared = setup("bert", "demo_ner", *FAST, 'training.adapter.targets=["q_proj"]')
    with pytest.raises(TrainingError, match="names no linear layer") as error:
        trained(loaded, prepared)
    assert "query" in error.value.hint


def test_adapters_and_partial_training_exclude_each_other(setup: Setup) -> None:
    with pytest.raises(SpecError, match="freezes the encoder"):
        setup("bert", "demo_ner", *FAST, "training.adapter.rank=4", "training.top_layers=1")


@pytest.mark.parametrize("family", ["bert", "modernbert"])
def test_only_the_top_layer_is_trained(setup: Setup, family: str) -> None:
    loaded, prepared = setup(family, "demo_ner", *FAST, "training.top_layers=1")
    trained(loaded, prepared)
    moved = changed(loaded)
    assert moved
    assert {layer_of(name, 2) for name in moved} <= {2, 3}
    loaded, prepared = setup(family, "demo_ner", *FAST, "training.top_layers=0")
    trained(loaded, prepared)
    assert not changed(loaded)


def test_more_top_layers_than_there_are_is_refused(setup: Setup) -> None:
    loaded, prepared = setup("bert", "demo_ner", *FAST, "training.top_layers=9")
    with pytest.raises(TrainingError, match="more than the encoder's 2 layers"):
        trained(loaded, prepared)
    sizes = {
        "hidden_size": 16,
        "num_attention_heads": 2,
        "intermediate_size": 16,
        "num_hidden_layers": 2,
    }
    albert = AlbertModel(AlbertConfig(vocab_size=20, embedding_size=8, **sizes))
    for unknown in (albert, torch.nn.Linear(2, 2)):
        with pytest.raises(TrainingError, match="cannot be distinguished"):
            count_layers(unknown)
