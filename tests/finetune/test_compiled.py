"""Compiled layers on a CPU that passes for an accelerator: traced by `aot_eager`, over batches of a
real corpus.
"""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch._dynamo.testing import CompileCounterWithBackend
from torch.utils._python_dispatch import TorchDispatchMode
from transformers import EsmConfig, EsmModel

from biobench.core import attention as core
from biobench.core.attention import Kernel
from biobench.core.progress import ProgressNote
from biobench.core.stop import RunStoppedError
from biobench.encode.batches import cut_packed, epoch_order
from biobench.finetune.engine import finetune, new_network
from biobench.finetune.loop import Run
from biobench.finetune.network import Network
from biobench.finetune.savepoint import Savepoint
from biobench.finetune.vocabulary import trained_rows
from biobench.models import attention
from biobench.models.encoder import COMPILED, PLAIN, Encoder
from biobench.models.inputs import BUCKETS, filling
from tests.helpers.checkpoints import _SIZES
from tests.helpers.kernels import torch_kernel_on_cpu

NO_KERNEL = "no variable-length kernel computes this model"


def without_dropout(encoder: Encoder) -> None:
    """Drop nothing from now on."""
    for module in encoder.modules():
        if isinstance(module, nn.Dropout):
            module.p = 0.0


@pytest.fixture
def made(setup: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """`made(family, kernels, ...)`: as `setup`, without dropout, on a device with kernels."""
    monkeypatch.setattr(attention, "KERNEL_DEVICES", ("cpu",))
    monkeypatch.setattr(core, "TYPES", (torch.float32,))

    def make(family: str, kernels: tuple[Kernel, ...], *task: str, limit: int = 96) -> Any:
        torch._dynamo.reset()
        loaded, prepared = setup(family, *task, limit=limit)
        without_dropout(loaded.encoder)
        loaded.encoder.kernels = kernels
        return loaded, prepared

    return make


@pytest.mark.real
@pytest.mark.parametrize(("family", "kernel"), [("bert", False), ("modernbert", True)])
def test_a_real_corpus_is_compiled_once_a_bucket_with_the_states_and_gradients_of_plain_layers(
    made: Any,
    data_dir: Path,
    monkeypatch: pytest.MonkeyPatch,
    family: str,
    *,
    kernel: bool,
) -> None:
    """`fullgraph` refuses a graph break."""
    monkeypatch.setenv("BIOBENCH_DATA_DIR", str(data_dir))
    loaded, prepared = made(
        family, (torch_kernel_on_cpu(),) if kernel else (), "ncbi_disease_single"
    )
    encoder, split = loaded.encoder, prepared.train
    batches = list(epoch_order(split.lengths, 16, 1, 0, "bucketed"))

    def computed(batch: list[int]) -> list[Tensor]:
        states = encoder([split.encoded[i].ids for i in batch])
        weights = torch.linspace(-1, 1, states.numel()).view_as(states)
        encoder.zero_grad()
        (states * weights).mean().backward()
        return [states, *(p.grad for p in encoder.parameters() if p.grad is not None)]

    encoder.train()
    plain = [[x.detach().clone() for x in computed(batch)] for batch in batches]
    counter = CompileCounterWithBackend("aot_eager")
    encoder.compile_layers(counter)
    for batch, wanted in zip(batches, plain, strict=True):
        torch.testing.assert_close(computed(batch), wanted, rtol=1e-5, atol=1e-5)
    tokens = [sum(split.lengths[i] for i in batch) for batch in batches]
    used = {next(size for size in BUCKETS if size > n) for n in tokens}
    shapes = {(len(batch), max(split.lengths[i] for i in batch)) for batch in batches}
    assert counter.frame_count == len(used)
    assert 1 < len(used) < len(shapes), (
        "neither the number of documents nor the longest one is compiled in"
    )
    assert encoder.paths == {
        "torch" if kernel else attention.GATHERED: "" if kernel else NO_KERNEL,
        COMPILED: "",
    }
    with torch.no_grad():
        encoder.train(False)
        encoder([split.encoded[0].ids])
    assert counter.frame_count == len(used), "evaluation is not compiled"


@pytest.mark.parametrize("family", ["bert", "distilbert", "electra", "eurobert", "modernbert"])
def test_all_layers_are_one_region_compiled_once_a_bucket_whatever_table_a_task_trains(
    made: Any, family: str
) -> None:
    """Compilations, and compiled calls of a step: three kinds of layer made three, one a layer."""
    encoder: Encoder = made(family, (), "demo_ner")[0].encoder
    compiled, called = [], []

    def counting(graph: Any, _: Any) -> Any:
        compiled.append(graph)
        return lambda *inputs: called.append(graph) or graph.forward(*inputs)

    encoder.compile_layers(counting)
    encoder.train()
    encoder.paths[attention.GATHERED] = NO_KERNEL
    words = encoder.vocabulary[encoder.vocabulary != encoder.pad_id]
    for documents in ([words[:30]] * 3, [words[:90]], [words[:60], *[words[:150]] * 4]):
        with trained_rows(encoder, documents):
            states = encoder(documents)
            states.sum().backward()
            assert states.shape == (sum(map(len, documents)), encoder.width)
    assert (len(compiled), len(called)) == (2, 3)


def test_a_bucket_is_filled_by_documents_that_are_no_longer_than_the_real_ones(made: Any) -> None:
    encoder = made("bert", (), "demo_ner")[0].encoder
    assert all(a < b <= 1.57 * a for a, b in pairwise(BUCKETS))
    for tokens, sizes in ((500, [10, 2]), (511, [1]), (512, [*[10] * 25, 6])):
        assert [len(d) for d in filling(tokens, 10, encoder.pad_id)] == sizes
    encoder.compiles = True
    encoder.train()
    assert not encoder._compiled(100, 10), "the first batch notes what computes attention"
    encoder.paths["torch"] = ""
    sizes = (100, BUCKETS[-1] - 1, BUCKETS[-1])
    assert [encoder._compiled(size, 2000) for size in sizes] == [True, True, False]
    encoder.paths[attention.GATHERED] = NO_KERNEL
    assert [encoder._compiled(9000, longest) for longest in (1024, 1025)] == [True, False]


def test_a_run_ends_with_the_same_predictions_compiled_plain_or_where_compilation_fails(
    made: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A family or machine without compilation is named once, and in every record."""

    def broken(*_: Any) -> Any:
        raise RuntimeError("no compiler\nmore lines")  # torch puts a line of its own before

    def tell(done: int, total: int, what: str) -> None:
        if isinstance(what, ProgressNote):
            notes.append(what)

    outcomes, notes = [], []
    for backend in (None, CompileCounterWithBackend("aot_eager"), broken):
        loaded, prepared = made(
            "bert", (torch_kernel_on_cpu(),), "demo_topic", "training.epochs=2", limit=48
        )
        if backend is not None:
            loaded.encoder.compile_layers(backend)
        for seed in (1, 2):
            torch.manual_seed(0)
            outcomes.append(finetune(loaded, prepared, seed, "fp32", tell))
    failed = {PLAIN: outcomes[-1].record.kernels[PLAIN]}
    assert [o.record.kernels for o in outcomes[::2]] == [
        {"torch": "", **more} for more in ({}, {COMPILED: ""}, failed)
    ]
    (note,) = notes
    assert note.startswith("layers not compiled: backend='broken' raised: RuntimeError")
    assert "no compiler" in note
    for outcome in outcomes[2:]:
        plain = outcomes[outcomes.index(outcome) % 2]
        assert outcome.best_score == pytest.approx(plain.best_score, abs=1e-6)
        assert [p.labels for p in outcome.predictions] == [p.labels for p in plain.predictions]
        losses = [[p.train_loss for p in o.record.curve] for o in (outcome, plain)]
        assert losses[0] == pytest.approx(losses[1], rel=1e-4)


def test_a_run_takes_the_fastest_kernel_and_a_resumed_one_that_of_its_first_steps(
    setup: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(attention, "KERNEL_DEVICES", ("cpu",))
    loaded, prepared = setup("bert", "demo_topic", "training.epochs=1", limit=24)
    without_dropout(loaded.encoder)
    slow, quick = (torch_kernel_on_cpu()._replace(name=name) for name in ("slow", "quick"))
    timed: list[int] = []

    def fastest(kernels: Any, _: Any) -> Any:
        timed.append(len(kernels))
        return tuple(sorted(kernels, key=lambda kernel: kernel.name))

    monkeypatch.setattr("biobench.models.encoder.fastest_first", fastest)
    loaded.encoder.kernels = (slow, quick)
    outcome = finetune(loaded, prepared, 1, "bf16", lambda *_: None)
    assert (outcome.record.kernels, timed) == ({"quick": ""}, [2])
    loaded.encoder.kernels = (slow, quick)
    keep = Savepoint(tmp_path / "run.state", torch.device("cpu"), every=0.0)
    with monkeypatch.context() as patch:
        patch.setattr("biobench.finetune.loop.STOP", lambda: True)
        with pytest.raises(RunStoppedError):
            finetune(loaded, prepared, 1, "bf16", lambda *_: None, keep)
    loaded.encoder.kernels = (slow, quick)
    resumed = finetune(loaded, prepared, 1, "bf16", lambda *_: None, keep)
    assert (resumed.record.kernels, timed) == ({"quick": ""}, [2, 2])
    assert resumed.predictions == outcome.predictions


def test_a_step_casts_each_weight_once_whatever_its_micro_batches(setup: Any) -> None:
    loaded, prepared = setup("bert", "demo_ner", limit=16)
    network = new_network(loaded, prepared)
    casts: Counter[int] = Counter()

    class Casts(TorchDispatchMode):
        def __torch_dispatch__(
            self, function: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            if function is torch.ops.aten._to_copy.default and isinstance(args[0], nn.Parameter):
                casts[id(args[0])] += 1
            return function(*args, **(kwargs or {}))

    run = Run(network, prepared, 1, "bf16", 100, [], lambda *_: None)
    assert len(cut_packed(range(16), prepared.train.lengths, run.budget)) > 2
    with Casts():
        run._backward_once(list(range(16)))
    linear = [p for m in network.modules() if isinstance(m, nn.Linear) for p in m.parameters()]
    assert casts == {id(p): 1 for p in linear}


@pytest.mark.parametrize("kernel", [False, True])
def test_compiled_layers_that_run_a_kernel_make_no_tensor_of_a_padded_batch(
    made: Any, monkeypatch: pytest.MonkeyPatch, *, kernel: bool
) -> None:
    layouts: list[attention.Layout] = []
    ready = attention.Layout.ready

    def noted(layout: attention.Layout, **options: bool) -> None:
        ready(layout, **options)
        layouts.append(layout)

    monkeypatch.setattr(attention.Layout, "ready", noted)
    kernels = (torch_kernel_on_cpu(),) if kernel else ()
    encoder: Encoder = made("bert", kernels, "demo_ner")[0].encoder
    encoder.compile_layers("eager")
    encoder.train()
    for _ in range(2):  # the first batch runs plain layers
        encoder([encoder.vocabulary[:20], encoder.vocabulary[:9]])
    (layout,) = layouts
    assert COMPILED in encoder.paths
    padded = {"spread", "gather", "real"}
    assert padded & vars(layout).keys() == (set() if kernel else padded)


def test_the_network_is_put_into_training_once_and_after_each_validation(
    setup: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded, prepared = setup("bert", "demo_topic", "training.epochs=3", limit=48)
    modes: list[bool] = []
    train = Network.train
    monkeypatch.setattr(Network, "train", lambda self, on=True: modes.append(on) or train(self, on))
    stepped: list[bool] = []
    once = Run._backward_once

    def step(self: Run, batch: list[int]) -> Tensor:
        stepped.append(all(module.training for module in self.network.modules()))
        return once(self, batch)

    monkeypatch.setattr(Run, "_backward_once", step)
    finetune(loaded, prepared, 1, "fp32", lambda *_: None)
    assert len(stepped) > 4
    assert all(stepped)
    assert modes.count(True) <= 1 + 3


def test_a_family_that_runs_padded_says_that_its_layers_stay_plain(made: Any) -> None:
    encoder: Encoder = made("deberta", (), "demo_ner")[0].encoder
    encoder.compile_layers()
    assert (encoder.compiles, encoder.slow_parts()) == (
        False,
        {"layers not compiled": "documents run padded"},
    )


def test_a_family_that_reads_embeddings_otherwise_than_ids_is_not_compiled() -> None:
    """ESM adds no positions to them: its compiled layers would train another model in silence."""
    sizes = {"vocab_size": 40, "max_position_embeddings": 200, **_SIZES}
    config = EsmConfig(**sizes, pad_token_id=1, token_dropout=False)
    encoder = Encoder(EsmModel(config, add_pooling_layer=False), 1)
    encoder.compile_layers("eager")
    assert (encoder.attention, encoder.compiles) == ("packed", False)
    assert encoder.plain == "the model does not read embeddings as it reads ids"
