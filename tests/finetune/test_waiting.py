"""The host never waits for an accelerator within a training step; the CPU passes for one that tells
of every wait.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.weak import WeakTensorKeyDictionary

from biobench.core import machine
from biobench.core.progress import ProgressNote
from biobench.finetune import loop
from biobench.finetune.engine import finetune
from biobench.finetune.network import Network
from biobench.models import attention
from tests.finetune.conftest import silent
from tests.helpers.golden_make import write_tasks

WAITS = (
    "_local_scalar_dense nonzero masked_select is_nonzero equal _unique2 unique_dim bincount "
    "repeat_interleave"
)
"""Operations whose result the host must know; `repeat_interleave` not where it is told the size of
its result.
"""
ON_THE_HOST = {"_pack_padded_sequence": 1}
"""Operations one of whose results stays on the host, and its place."""
MODULES = ("attention", "encoder", "heads", "inputs", "span_head")
"""Of the models: those that send tensors to the device."""
READS = ("tolist", "item", "numpy", "cpu", *(f"__{n}__" for n in ("bool", "float", "int", "index")))


class Device(TorchDispatchMode):
    """Follows which tensors would live on the device, and notes what would wait for them."""

    def __init__(self, *tensors: Tensor) -> None:
        super().__init__()
        self.tensors = WeakTensorKeyDictionary()
        self.waits: list[str] = []
        self.counting = True
        for tensor in tensors:
            self.tensors[tensor] = True

    def holds(self, value: Any) -> bool:
        return isinstance(value, Tensor) and value in self.tensors

    def note(self, what: str) -> None:
        if self.counting:
            self.waits.append(what)

    def __torch_dispatch__(
        self, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        leaves = tree_leaves((args, kwargs or {}))
        touches = any(self.holds(x) for x in leaves)
        name = function._schema.name.removeprefix("aten::")
        if (
            touches
            and name.rstrip("_") in WAITS.split()
            and (kwargs or {}).get("output_size") is None
        ):
            self.note(name)
        masks = [x for x in leaves[1:] if isinstance(x, Tensor) and x.dtype == torch.bool]
        if touches and masks and name in ("index", "index_put_", "index_put"):
            self.note(f"{name} by a mask")
        out = function(*args, **(kwargs or {}))
        if touches:
            for place, tensor in enumerate(tree_leaves(out)):
                if isinstance(tensor, Tensor) and place != ON_THE_HOST.get(name):
                    self.tensors[tensor] = True
        return out


@contextmanager
def watched(monkeypatch: pytest.MonkeyPatch, *tensors: Tensor) -> Iterator[Device]:
    """Copies and reads that bypass the dispatcher are noted too; `to_device` alone brings tensors
    over.
    """
    device = Device(*tensors)
    send, move = machine.to_device, Tensor.to
    sending: list[bool] = []

    def sent(values: Any, place: torch.device) -> Tensor:
        sending.append(True)
        try:
            tensor = send(values, place).clone()
        finally:
            sending.pop()
        device.tensors[tensor] = True
        return tensor

    def moved(self: Tensor, *args: Any, **options: Any) -> Tensor:
        if (
            not sending
            and any(isinstance(a, torch.device) for a in args)
            and not device.holds(self)
        ):
            device.note("a copy from pageable memory")
        return move(self, *args, **options)

    with monkeypatch.context() as patch:
        for module in ("core.machine", *(f"models.{m}" for m in MODULES), "finetune.network"):
            patch.setattr(f"biobench.{module}.to_device", sent)
        patch.setattr(Tensor, "to", moved)
        for name in READS:
            whole = getattr(Tensor, name)

            def read(self: Tensor, *args: Any, name: str = name, whole: Any = whole) -> Any:
                if device.holds(self):
                    device.note(name)
                return whole(self, *args)

            patch.setattr(Tensor, name, read)
        with device:
            yield device


@pytest.fixture
def accelerated(monkeypatch: pytest.MonkeyPatch) -> None:
    """The CPU passes for an accelerator without kernels."""
    monkeypatch.setattr(loop, "ASYNCHRONOUS", ("cpu",))
    monkeypatch.setattr(attention, "KERNEL_DEVICES", ("cpu",))


FAST = ("training.epochs=", "training.max_steps=6", "training.evaluate_every=6")
SPANS = "head={kind: span, pooling: mean, span: {width: 12, biaffine_width: 8, max_span: 3}}"


@pytest.mark.usefixtures("accelerated")
@pytest.mark.parametrize(
    ("family", "task", "more"),
    [
        ("bert", "demo_ner", ()),
        ("modernbert", "demo_topic", ("head.pooling=mean",)),
        ("bert", "golden_several", ()),
        ("bert", "golden_numbers", ()),
        ("bert", "nested", (SPANS,)),
    ],
)
def test_six_steps_wait_only_to_read_their_losses(
    setup: Any,
    family: str,
    task: str,
    more: tuple[str, ...],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    path = write_tasks(tmp_path / "data").get(task, task)
    monkeypatch.chdir(tmp_path)
    loaded, prepared = setup(family, path, *FAST, *more, folder=tmp_path / "data")
    every, reads = (2, 3) if task == "demo_ner" else (50, 1)
    monkeypatch.setattr(loop, "READ_EVERY", every)
    with watched(monkeypatch, *loaded.encoder.parameters(), *loaded.encoder.buffers()) as device:
        steps: list[int] = []
        whole, validate = loop.Run._backward, loop.Run._validate

        def backward(self: loop.Run, batch: list[int]) -> Tensor:
            device.counting = True
            steps.append(len(batch))
            for parameter in self.network.parameters():
                device.tensors[parameter] = True
            return whole(self, batch)

        def validated(self: loop.Run, *arguments: Any) -> bool:
            device.counting = False
            return validate(self, *arguments)

        monkeypatch.setattr(loop.Run, "_backward", backward)
        monkeypatch.setattr(loop.Run, "_validate", validated)
        device.counting = False
        finetune(loaded, prepared, 1, "fp32", silent)
    assert len(steps) == 6
    assert device.waits == ["tolist"] * reads


def test_the_watcher_sees_what_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the test above could not fail."""
    states = torch.ones(4)
    with watched(monkeypatch, states) as device:
        float((states * 2).sum())
        (states * 3)[states > 0]
        torch.repeat_interleave(states, (states * 2).long())
        torch.repeat_interleave(states, (states * 2).long(), output_size=8)
        torch.ones(2).to(torch.device("cpu"))
        machine.to_device([1, 2], torch.device("cpu"))
        torch.ones(3).nonzero().tolist()
    seen = [w for w in device.waits if w != "_local_scalar_dense"]
    assert seen == [
        "__float__",
        "index by a mask",
        "repeat_interleave",
        "a copy from pageable memory",
    ]


def test_a_step_that_is_repeated_on_cuda_draws_the_devices_numbers_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    done: list[str] = []
    run = object.__new__(loop.Run)
    run.device, run.budget, run.backoffs = torch.device("cuda"), 100, []
    run.network = torch.nn.Linear(1, 1)
    run.network.encoder = SimpleNamespace()
    run.prepared = SimpleNamespace(train=SimpleNamespace(lengths=[30, 40]))
    monkeypatch.setattr(torch.cuda, "get_rng_state", lambda device: "its state")
    monkeypatch.setattr(torch.cuda, "set_rng_state", lambda state, device: done.append(state))
    monkeypatch.setattr(torch.cuda, "empty_cache", lambda: done.append("emptied"))

    def step(batch: list[int]) -> Tensor:
        if not done:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return torch.rand(())

    run._backward_once = step
    torch.manual_seed(3)
    wanted = torch.rand(())
    torch.manual_seed(3)
    assert run._backward([0, 1]) == wanted
    assert (done, run.budget) == (["emptied", "its state"], 35)
    assert run.backoffs == ["out of memory: micro-batch cut to 35 tokens"]


@pytest.mark.parametrize("late", [True, False])
def test_a_non_finite_loss_restarts_the_run_in_fp32_also_where_it_is_seen_late(
    setup: Any, monkeypatch: pytest.MonkeyPatch, late: bool
) -> None:
    whole = Network.forward
    calls: list[int] = []

    def poisoned(self: Network, encoded: Any) -> Tensor:
        logits = whole(self, encoded)
        if not torch.is_autocast_enabled("cpu") or not self.training:
            return logits
        calls.append(1)
        return logits * float("nan") if len(calls) == 2 else logits

    monkeypatch.setattr(loop, "ASYNCHRONOUS", ("cpu",) if late else ())
    monkeypatch.setattr(Network, "forward", poisoned)
    outcome = finetune(*setup("bert", "demo_topic", "training.epochs=2"), 1, "bf16", silent)
    assert (len(calls) > 2) == late, "further steps were queued before the loss was read"
    assert outcome.record.precision == "fp32"
    assert outcome.record.backoffs == ("non-finite loss at step 2: run repeated in fp32",)
    monkeypatch.setattr(loop, "ASYNCHRONOUS", ())
    plain = finetune(*setup("bert", "demo_topic", "training.epochs=2"), 1, "fp32", silent)
    assert outcome.predictions == plain.predictions


@pytest.mark.usefixtures("accelerated")
def test_slow_attention_is_reported_once_and_recorded(setup: Any) -> None:
    loaded, prepared = setup("bert", "demo_topic", "training.epochs=1")
    notes: list[str] = []

    def progress(done: int, total: int, what: str) -> None:
        if isinstance(what, ProgressNote):
            notes.append(what)

    why = "no variable-length kernel computes this model"
    for seed in (1, 2):
        outcome = finetune(loaded, prepared, seed, "fp32", progress)
        assert outcome.record.kernels == {attention.GATHERED: why}
    assert notes == [f"slow attention: {why}"]
