"""The engine gives what its recipe says, the same way each time, and says when it had to back
off."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pytest
import torch
from torch.nn.utils.rnn import pad_sequence

from biobench.errors import ModelError, TrainingError
from biobench.finetune import engine
from biobench.finetune.engine import finetune
from biobench.finetune.loop import Outcome, Run
from biobench.finetune.network import Network
from biobench.models.loading import find_checkpoint
from tests.finetune.conftest import silent
from tests.helpers.checkpoints import FAMILIES


def _train(
    setup: Any, *arguments: str, seed: int = 1, limit: int | None = 48, precision: str = "fp32"
) -> Outcome:
    loaded, prepared = setup(*arguments, limit=limit)
    return finetune(loaded, prepared, seed, precision, silent)  # type: ignore[arg-type]


@pytest.mark.parametrize("family", sorted(FAMILIES))
def test_every_family_runs(setup: Any, family: str) -> None:
    task = ("demo_ner", "demo_topic")[sorted(FAMILIES).index(family) % 2]
    loaded, prepared = setup(family, task, "training.epochs=1", "protocol.max_length=128", limit=24)
    outcome = finetune(loaded, prepared, 1, "fp32", silent)
    assert [p.document for p in outcome.predictions] == [d.id for d in prepared.test.documents]
    assert outcome.record.steps == 2
    assert outcome.record.backoffs == ()
    assert outcome.record.attention == ("padded" if family == "deberta" else "packed")
    assert prepared.windows.truncated_documents == prepared.windows.lost_gold == 0
    scores = prepared.score(prepared.test.documents, outcome.predictions).values
    assert all(0.0 <= value <= 1.0 for value in scores.values())
    if task == "demo_ner":
        assert prepared.windows.ceiling["macro_f1"] == 1.0


@pytest.mark.parametrize(
    ("family", "attention", "backoffs"),
    [
        ("deberta-v1", "padded", ("the encoder does not compute in bf16: run in fp32",)),
        ("fnet", "alone", ()),
        ("squeezebert", "padded", ()),
    ],
)
def test_rarer_families_run_in_bf16_or_say_that_they_do_not(
    setup: Any, family: str, attention: str, backoffs: tuple[str, ...]
) -> None:
    record = _train(
        setup, family, "demo_ner", "training.epochs=1", limit=24, precision="bf16"
    ).record
    assert (record.attention, record.backoffs) == (attention, backoffs)
    assert record.precision == ("fp32" if backoffs else "bf16")


def test_a_first_token_that_sees_nothing_is_not_pooled(setup: Any) -> None:
    with pytest.raises(
        ModelError, match=r"head\.pooling is cls, but this .* first token sees nothing"
    ) as caught:
        _train(setup, "gpt2", "demo_topic", "training.epochs=1", "head.pooling=cls", limit=24)
    assert "--set head.pooling=mean" in caught.value.hint
    told: list[str] = []
    decoder = setup("gpt2", "demo_topic", "training.epochs=1", "head.pooling=mean", limit=24)
    record = finetune(*decoder, 1, "fp32", lambda done, total, what: told.append(what)).record
    assert record.steps == 2
    assert told[0] == record.backoffs[0] == "causal attention: not a bidirectional encoder"


def test_the_switch_to_deterministic_kernels_ends_with_the_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A probe inside pretraining must not change the pretraining."""
    monkeypatch.delenv("CUBLAS_WORKSPACE_CONFIG", raising=False)

    def switches() -> tuple[bool, bool, bool]:
        filling = torch.utils.deterministic.fill_uninitialized_memory  # type: ignore[attr-defined]
        enabled, warns = (
            torch.are_deterministic_algorithms_enabled,
            torch.is_deterministic_algorithms_warn_only_enabled,
        )
        return enabled(), warns(), filling

    assert switches() == (False, False, True)
    with engine.deterministic(torch.device("cuda")):
        assert switches() == (True, True, False)
        assert os.environ["CUBLAS_WORKSPACE_CONFIG"] == ":4096:8"
    assert switches() == (False, False, True)
    with engine.deterministic(torch.device("cpu")):
        assert switches() == (False, False, True)


@pytest.mark.parametrize(
    "refusal",
    [
        None,
        "cumsum_cuda_kernel does not have a deterministic implementation, but you set "
        "'torch.use_deterministic_algorithms(True)'",
        "Deterministic behavior was enabled with either `torch.use_deterministic_algorithms(True)` "
        "or another, but this operation is not deterministic because it uses CuBLAS",
    ],
)
def test_gradients_are_summed_in_one_order_where_there_is_such_a_way(
    setup: Any, refusal: str | None
) -> None:
    """torch's attention does so only if it is insisted on; what has no such way runs as it is."""
    loaded, prepared = setup("bert", "demo_topic", "training.epochs=1", limit=24)
    network = engine.new_network(loaded, prepared)
    run = Run(network, prepared, 1, "fp32", 100, [], lambda *_: None)
    insisted: list[bool] = []

    def backward(_: Any) -> None:
        insists = not torch.is_deterministic_algorithms_warn_only_enabled()
        insisted.append(insists)
        if insists and refusal is not None:
            raise RuntimeError(refusal)

    network.head.register_full_backward_hook(lambda *arguments: backward(arguments))
    with engine.deterministic(torch.device("cuda")):
        run._backward([0, 1])
        assert torch.is_deterministic_algorithms_warn_only_enabled()
    assert insisted[0] is True
    assert insisted[-1] == (refusal is None)
    assert len(run.backoffs) == (refusal is not None)


def test_the_second_device_is_the_current_one(
    folders: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkpoint, chosen = find_checkpoint(str(folders("bert"))), []
    monkeypatch.setattr(torch.cuda, "set_device", chosen.append)
    monkeypatch.setattr(engine.Encoder, "to", lambda self, device: self)
    monkeypatch.setattr(engine.Encoder, "prove_kernels", lambda self: None)
    engine.load_encoder(checkpoint, torch.device("cuda:1"))
    assert chosen == [torch.device("cuda:1")]


def test_same_seed_same_run_other_seed_other_run(setup: Any) -> None:
    task = ("bert", "demo_topic", "training.epochs=1")
    run, again, other = (_train(setup, *task, limit=24, seed=seed) for seed in (3, 3, 4))
    assert (run.predictions, run.record) == (again.predictions, again.record)
    assert run.predictions != other.predictions


@pytest.mark.parametrize("family", ["bert", "deberta"])
@pytest.mark.usefixtures("no_dropout")
def test_micro_batches_do_not_change_the_maths(
    setup: Any, family: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    losses = []
    for budget in (30, 100_000):
        monkeypatch.setattr(engine, "micro_batch_tokens", lambda _, b=budget: b)
        outcome = _train(setup, family, "demo_ner", "training.epochs=1")
        losses.append([point.train_loss for point in outcome.record.curve])
    assert losses[0] == pytest.approx(losses[1], rel=1e-4)


@pytest.mark.usefixtures("no_dropout")
def test_the_loop_is_plain_adamw_on_padded_batches(setup: Any) -> None:
    """Against an independent loop: padded batches, mean token loss, clipping, linear rate, dense
    gradients.
    """
    from transformers import AutoModel

    from biobench.encode.batches import epoch_order

    loaded, prepared = setup("bert", "demo_ner", "training.epochs=1")
    finetune(loaded, prepared, 5, "fp32", silent)
    ours = {k: v.clone() for k, v in loaded.encoder.model.state_dict().items()}

    spec, split = prepared.spec, prepared.train
    model = AutoModel.from_pretrained(loaded.checkpoint.folder, dtype=torch.float32).train()
    for module in model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0  # attention reads its rate from here
    torch.manual_seed(5)
    head = prepared.kind.build_head(
        spec.head, loaded.checkpoint, model.config.hidden_size, len(prepared.outputs)
    )
    weights = [*model.parameters(), *head.parameters()]
    groups = [
        {"params": [p for p in weights if p.ndim > 1], "weight_decay": spec.training.weight_decay},
        {"params": [p for p in weights if p.ndim < 2], "weight_decay": 0},
    ]
    optimizer = torch.optim.AdamW(groups, lr=spec.training.learning_rate)
    batches = list(epoch_order(split.lengths, 16, 5, 0, "random"))
    for step, batch in enumerate(batches):
        for group in optimizer.param_groups:
            group["lr"] = spec.training.learning_rate * (1 - step / len(batches))
        windows = [split.encoded[i] for i in batch]
        ids = [torch.from_numpy(window.ids) for window in windows]
        inputs = pad_sequence(ids, batch_first=True, padding_value=1)
        mask = pad_sequence([torch.ones_like(row) for row in ids], batch_first=True)
        states = model(input_ids=inputs, attention_mask=mask).last_hidden_state
        words = [row[window.first] for row, window in zip(states, windows, strict=True)]
        labels = torch.from_numpy(np.concatenate([split.targets[i] for i in batch]))
        torch.nn.functional.cross_entropy(head.linear(torch.cat(words)), labels).backward()
        torch.nn.utils.clip_grad_norm_(weights, spec.training.max_grad_norm)
        optimizer.step()
        optimizer.zero_grad()
    theirs = {name: model.state_dict()[name] for name in ours}
    torch.testing.assert_close(ours, theirs, atol=2e-5, rtol=1e-3)


@pytest.mark.parametrize(
    ("raised", "kind", "what"),
    [
        (None, TrainingError, "not finite in fp32"),
        (
            "DefaultCPUAllocator: not enough memory: you tried to allocate 1 bytes",
            TrainingError,
            "single document",
        ),
        ("shapes do not fit", RuntimeError, "^shapes do not fit"),
    ],
)
def test_a_step_that_cannot_be_made_is_an_error(
    setup: Any,
    monkeypatch: pytest.MonkeyPatch,
    raised: str | None,
    kind: type[Exception],
    what: str,
) -> None:
    def broken(self: Any, encoded: Any) -> torch.Tensor:
        if raised is not None:
            raise RuntimeError(raised)
        return self.head.linear.weight.sum() * torch.full((len(encoded), 4), float("nan"))

    monkeypatch.setattr(Network, "forward", broken)
    with pytest.raises(kind, match=what):
        _train(setup, "bert", "demo_topic", "training.epochs=1")
