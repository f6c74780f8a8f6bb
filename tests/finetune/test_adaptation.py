"""Adapters, top layers, layer-wise rates and gradient checkpointing: what is trained, and that nothing leaks."""

from __future__ import annotations

import pytest
import torch
from transformers import AlbertConfig, AlbertModel

from biobench.core.machine import Precision
from biobench.errors import SpecError, TrainingError
from biobench.finetune.adapters import adapted, count_layers, layer_of, make_optimizer
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


@pytest.mark.parametrize(("family", "method"), [("bert", "lora"), ("bert", "dora"), ("modernbert", "ia3")])
def test_an_adapter_trains_its_weights_alone_and_its_merge_predicts_the_same(
    setup: Setup, family: str, method: str
) -> None:
    loaded, prepared = setup(family, "demo_ner", *FAST, f"training.adapter.method={method}", "training.adapter.rank=4")
    recipe = prepared.spec.training
    network = new_network(loaded, prepared)
    with adapted(network, recipe):
        names = {n for n, p in network.named_parameters() if p.requires_grad}
        assert names
        assert all(n.startswith("head.") or ("ia3_" if method == "ia3" else "lora_") in n for n in names), names
    outcome = trained(loaded, prepared)
    moved = changed(loaded)
    assert moved
    assert all("att" in name for name in moved), "the update is merged where the adapter stood, and nowhere else"
    assert outcome.record.trained_parameters is not None
    assert outcome.record.trained_parameters < loaded.parameters / 4
    assert outcome.network is not None
    budget = outcome.record.micro_batch_tokens
    answers = probabilities(outcome.network, prepared, prepared.test, FP32, budget)
    merged = decide(prepared, prepared.test, answers, outcome.threshold)
    assert [(p.spans, p.tags) for p in merged] == [(p.spans, p.tags) for p in outcome.predictions]
    assert all(p.requires_grad for p in loaded.encoder.parameters())
    again = trained(loaded, prepared)
    assert again.predictions == outcome.predictions, "the next seed starts from the checkpoint again"


def test_an_adapter_with_unknown_targets_names_those_there_are(setup: Setup) -> None:
    loaded, prepared = setup("bert", "demo_ner", *FAST, 'training.adapter.targets=["q_proj"]')
    with pytest.raises(TrainingError, match="names no linear layer") as error:
        trained(loaded, prepared)
    assert "query" in error.value.hint


def test_adapters_and_partial_training_exclude_each_other(setup: Setup) -> None:
    with pytest.raises(SpecError, match="freezes the encoder"):
        setup("bert", "demo_ner", *FAST, "training.adapter.rank=4", "training.top_layers=1")


@pytest.mark.parametrize("family", ["bert", "modernbert", "distilbert"])
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
    sizes = {"hidden_size": 16, "num_attention_heads": 2, "intermediate_size": 16, "num_hidden_layers": 2}
    albert = AlbertModel(AlbertConfig(vocab_size=20, embedding_size=8, **sizes))
    with pytest.raises(TrainingError, match="cannot be told apart"):
        count_layers(albert)


def test_rates_fall_from_layer_to_layer(setup: Setup) -> None:
    loaded, prepared = setup("bert", "demo_ner", *FAST, "training.layer_decay=0.5")
    network = new_network(loaded, prepared)
    optimizer = make_optimizer(network, prepared.spec.training)
    scale = {id(p): group["scale"] for group in optimizer.param_groups for p in group["params"]}
    named = dict(network.named_parameters())
    assert {id(p) for p in named.values()} == set(scale), "every weight has one group"
    assert scale[id(named["encoder.model.embeddings.word_embeddings.weight"])] == 0.25
    assert scale[id(named["encoder.model.encoder.layer.0.output.dense.weight"])] == 0.5
    assert scale[id(named["encoder.model.encoder.layer.1.output.dense.bias"])] == 1.0
    assert scale[id(named["head.linear.weight"])] == 1.0
    assert optimizer.param_groups[0]["scale"] == 0.25, "unused rows of the embedding decay at its own rate"


@pytest.mark.parametrize("family", ["modernbert", "deberta"])
def test_gradient_checkpointing_changes_no_gradient(setup: Setup, family: str) -> None:
    gradients = []
    for checkpointed in ("false", "true"):
        overrides = (*FAST, f"training.gradient_checkpointing={checkpointed}", "head.dropout=0.0")
        loaded, prepared = setup(family, "demo_ner", *overrides)
        torch.manual_seed(3)
        network = new_network(loaded, prepared)
        with adapted(network, prepared.spec.training):
            network.train()
            torch.manual_seed(5)
            encoded = list(prepared.train.encoded[:4])
            loss = prepared.kind.loss(prepared.spec, network(encoded), list(prepared.train.targets[:4]), None)
            loss.backward()  # type: ignore[no-untyped-call]
        gradients.append({n: p.grad for n, p in network.named_parameters() if p.grad is not None})
        assert not any(getattr(m, "gradient_checkpointing", False) for m in loaded.encoder.model.modules())
    plain, again = gradients
    assert plain.keys() == again.keys()
    for name in plain:
        torch.testing.assert_close(again[name], plain[name], atol=1e-6, rtol=1e-4)
