"""The attention of accelerators on a CPU: what kernels are asked for, the padded batch without one,
and the proof.
"""

from __future__ import annotations

import inspect
import sys
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest
import torch
from torch import Tensor
from transformers import AutoModel

from biobench.core import attention as core
from biobench.core.attention import Kernel, choose_kernel
from biobench.models import attention
from biobench.models.attention import GATHERED, Layout, packed
from biobench.models.encoder import Encoder
from tests.helpers.checkpoints import make_checkpoint
from tests.helpers.kernels import CALLS, alone, flash_attn_varlen_func, varlen_attn

LENGTHS = [5, 1, 9, 4]
HEADS, WIDTH = 4, 8


def states(groups: int = HEADS, dtype: torch.dtype = torch.float64) -> list[Tensor]:
    """query, key, value of packed documents; keys and values with `groups` heads."""
    torch.manual_seed(0)
    sizes = (HEADS, groups, groups)
    return [torch.randn(1, n, sum(LENGTHS), WIDTH, dtype=dtype, requires_grad=True) for n in sizes]


TORCH = Kernel("torch", varlen_attn)
FLASH = Kernel("flash_attn", flash_attn_varlen_func, drops=True)


@pytest.fixture(autouse=True)
def accelerated(monkeypatch: pytest.MonkeyPatch) -> None:
    """The CPU passes for a device with kernels, and the kernels take any number type."""
    monkeypatch.setattr(attention, "KERNEL_DEVICES", ("cpu",))
    monkeypatch.setattr(core, "TYPES", (torch.float64, torch.bfloat16))
    CALLS.clear()


def computed(
    layout: Layout, tensors: list[Tensor], window: int | None, scaling: Any, dropout: float
) -> Tensor:
    with packed(layout):
        return attention._packed_attention(
            torch.nn.Identity(), *tensors, None, dropout, scaling, window
        )[0]


def test_the_substitutes_have_the_signature_of_torchs_kernel() -> None:
    varlen = pytest.importorskip("torch.nn.attention.varlen")
    real, ours = (
        inspect.signature(call).parameters.values() for call in (varlen.varlen_attn, varlen_attn)
    )
    assert {(p.name, p.kind) for p in real} == {(p.name, p.kind) for p in ours}


@pytest.mark.parametrize("groups", [HEADS, 2])
@pytest.mark.parametrize("window", [None, 3])
@pytest.mark.parametrize("scaling", [None, 1.0])
@pytest.mark.parametrize("kernels", [(), (TORCH,), (FLASH,)])
def test_values_and_gradients_are_those_of_each_document_alone(
    kernels: tuple[Kernel, ...], scaling: float | None, window: int | None, groups: int
) -> None:
    tensors = states(groups)
    layout = Layout(LENGTHS, torch.device("cpu"), kernels)
    weights = torch.randn(1, sum(LENGTHS), HEADS, WIDTH, dtype=torch.float64)
    out = computed(layout, tensors, window, scaling, 0.0)
    changes = torch.autograd.grad((out * weights).sum(), tensors)
    wanted = alone(tensors, LENGTHS, window, scaling)
    torch.testing.assert_close(out, wanted)
    torch.testing.assert_close(changes, torch.autograd.grad((wanted * weights).sum(), tensors))
    assert list(layout.paths) == [kernels[0].name if kernels else GATHERED]
    if kernels:
        assert CALLS[-1]["heads"] == groups, "keys are not repeated without need"


@pytest.fixture
def replaced(monkeypatch: pytest.MonkeyPatch) -> list[str | None]:
    """What replaces torch's flash attention, change by change; torch's own registry is not
    touched."""
    changes: list[str | None] = [None]
    flash = core.flash
    for name in ("activate_flash_attention_impl", "restore_flash_attention_impl"):
        assert callable(getattr(flash, name))
    monkeypatch.setattr(flash, "activate_flash_attention_impl", changes.append)
    monkeypatch.setattr(flash, "restore_flash_attention_impl", lambda: changes.append(None))
    monkeypatch.setattr(flash, "current_flash_attention_impl", lambda: changes[-1])
    return changes


@pytest.mark.parametrize(
    ("capability", "problem", "names"),
    [
        ((9, 0), None, ["torch_fa3", "torch", "flash_attn"]),
        ((9, 0), ModuleNotFoundError, ["torch", "flash_attn"]),
        ((9, 0), RuntimeError, ["torch", "flash_attn"]),
        ((8, 0), None, ["torch", "flash_attn"]),
    ],
)
def test_flash_attention_3_is_found_on_hopper_and_not_left_active(
    capability: tuple[int, int],
    problem: type[Exception] | None,
    names: list[str],
    replaced: list[str | None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if problem is not None:
        missing = Mock(side_effect=problem("flash_attn_interface does not expose FA3 backward"))
        monkeypatch.setattr(core.flash, "activate_flash_attention_impl", missing)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda: capability)
    monkeypatch.setattr("torch.nn.attention.varlen.varlen_attn", varlen_attn)
    package = SimpleNamespace(flash_attn_varlen_func=flash_attn_varlen_func)
    monkeypatch.setitem(sys.modules, "flash_attn", package)
    kernels = core.find_kernels.__wrapped__()
    assert [k.name for k in kernels] == names
    assert replaced == ([None, "FA3", None] if names[0] == "torch_fa3" else [None])
    assert [k.drops for k in kernels] == [name == "flash_attn" for name in names]


def test_dropout_is_left_to_the_kernel_that_has_it() -> None:
    layout = Layout(LENGTHS, torch.device("cpu"), (TORCH, FLASH))
    computed(layout, states(), None, None, 0.25)
    computed(layout, states(), None, None, 0.0)
    assert [call["name"] for call in CALLS] == ["flash_attn", "torch"]
    assert CALLS[0]["dropout"] == 0.25
    assert CALLS[1]["longest"] == (9, 9)
    assert layout.paths == {"flash_attn": "", "torch": ""}


@pytest.mark.parametrize(
    ("kernels", "dtype", "dropout", "reason"),
    [
        ((), torch.bfloat16, 0.0, "no variable-length kernel computes this model"),
        ((TORCH,), torch.float32, 0.0, "the kernels compute in bf16, not in float32"),
        ((TORCH,), torch.bfloat16, 0.1, "torch has no dropout on attention"),
    ],
)
def test_the_padded_batch_says_why(
    kernels: tuple[Kernel, ...], dtype: torch.dtype, dropout: float, reason: str
) -> None:
    layout = Layout(LENGTHS, torch.device("cpu"), kernels)
    computed(layout, states(dtype=dtype), 3, None, dropout)
    assert layout.paths[GATHERED].startswith(reason)
    assert not CALLS
    assert isinstance(choose_kernel(kernels, states(dtype=dtype)[0], dropout), str)


def deaf(*tensors: Any, window_size: tuple[int, int] = (-1, -1), **options: Any) -> Tensor:
    """A kernel that does not read the window."""
    return varlen_attn(*tensors, **options)


def refuses(*_: Any, **__: Any) -> Tensor:
    raise RuntimeError("head dimension 8 is not a multiple of 16\nmore lines")


class _Doubled(torch.autograd.Function):
    """States as they are, gradients twice as large."""

    @staticmethod
    def forward(ctx: Any, states: Tensor) -> Tensor:
        return states.clone()

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        return 2 * gradient


def learns_wrongly(*tensors: Any, **options: Any) -> Tensor:
    return _Doubled.apply(varlen_attn(*tensors, **options))


def sensitive(folder: Any, **config: float) -> Encoder:
    """An encoder with local attention whose states depend on it, unlike those of random weights."""
    model = AutoModel.from_pretrained(make_checkpoint("modernbert", folder / "modernbert"))
    for name, weights in model.named_parameters():
        if "attn" in name:
            weights.data.mul_(8.0)
    for layer in model.layers:
        layer.attn.attention_dropout = config.get("attention_dropout", 0.0)
    return Encoder(model, 0)


THIRD = Kernel("torch_fa3", varlen_attn, replaces="FA3")


def test_a_kernel_with_other_states_or_gradients_or_none_is_left_out(
    tmp_path: Any, replaced: list[str | None]
) -> None:
    """Local windows that a kernel does not see would change scores in silence."""
    encoder = sensitive(tmp_path)
    assert encoder.attention == "packed"
    calls = (refuses, deaf, learns_wrongly)
    wrong = [Kernel("torch_fa3", call, replaces="FA3") for call in calls]
    encoder.kernels = (*wrong, TORCH, FLASH)
    encoder.prove_kernels()
    assert encoder.kernels == (TORCH, FLASH)
    reasons = [reason.removeprefix("torch_fa3 ") for reason in encoder.refusals]
    assert reasons[0] == "does not run this model: head dimension 8 is not a multiple of 16"
    assert reasons[1].startswith("gives states that differ by ")
    assert reasons[2].startswith("gives gradients that differ by ")
    assert encoder.slow_parts() == {}
    assert replaced[-1] is None


@pytest.mark.parametrize("dropout", [0.0, 0.1])
def test_flash_attention_3_is_active_while_it_is_the_choice_and_never_under_dropout(
    tmp_path: Any, dropout: float, replaced: list[str | None]
) -> None:
    """Documents of one length need no mask, so torch's attention would be replaced for them too."""
    encoder = sensitive(tmp_path, attention_dropout=dropout)
    encoder.kernels = (THIRD, TORCH)
    encoder.prove_kernels()
    encoder.train()
    documents = [encoder.vocabulary[1:20]] * 3
    with torch.autocast("cpu", torch.bfloat16):
        encoder(documents)
    if dropout:
        assert encoder.kernels == (TORCH,)
        assert encoder.refusals == ["torch_fa3 has no dropout on attention"]
        assert list(encoder.paths) == [GATHERED]
    else:
        assert encoder.kernels == (THIRD, TORCH)
        assert list(encoder.paths) == ["torch_fa3"]
    assert replaced[-1] == (None if dropout else "FA3")
    encoder.use_kernels((TORCH, THIRD))
    assert replaced[-1] is None


def test_the_kernel_that_is_fastest_over_the_documents_of_a_run_is_asked_first(
    tmp_path: Any, replaced: list[str | None], monkeypatch: pytest.MonkeyPatch
) -> None:
    encoder, now = sensitive(tmp_path), [0.0]
    monkeypatch.setattr(core.time, "perf_counter", lambda: now[0])
    longest: list[int] = []

    def taking(kernel: Kernel, seconds: float) -> Kernel:
        def call(*tensors: Any, **options: Any) -> Tensor:
            now[0] += seconds
            longest.append(tensors[5])
            states: Tensor = kernel.call(*tensors, **options)
            return states

        return kernel._replace(call=call)

    encoder.kernels = (taking(THIRD, 3.0), taking(TORCH, 2.0), taking(FLASH, 5.0))
    encoder.time_kernels([encoder.vocabulary[1:20], encoder.vocabulary[1:90]])
    assert [kernel.name for kernel in encoder.kernels] == ["torch", "torch_fa3", "flash_attn"]
    assert set(longest) == {89}
    assert replaced == [None, "FA3", None]


def test_kernels_keep_their_order_where_memory_does_not_suffice_for_a_trial(
    tmp_path: Any, replaced: list[str | None]
) -> None:
    """A run halves its micro-batch later; its trial must not end it."""
    encoder = sensitive(tmp_path)
    short = Mock(side_effect=torch.OutOfMemoryError("CUDA out of memory"))
    kernels = (TORCH, THIRD._replace(call=short))
    encoder.kernels = kernels
    encoder.time_kernels([encoder.vocabulary[1:20]])
    assert encoder.kernels == kernels
    assert replaced == [None, "FA3", None]


def test_a_model_that_names_no_table_of_embeddings_runs_without_kernels(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    unknown = Mock(side_effect=NotImplementedError("get_input_embeddings is not there"))
    encoder = sensitive(tmp_path)
    encoder.kernels = (TORCH,)
    monkeypatch.setattr(type(encoder.model), "get_input_embeddings", unknown)
    encoder.prove_kernels()
    assert encoder.kernels == ()
    assert "get_input_embeddings is not there" in encoder.refusals[0]
    encoder.compile_layers("eager")
    assert encoder.plain is not None
