"""The attention of accelerators on a CPU: what kernels are asked for, the padded batch without one,
and the proof.
"""

from __future__ import annotations

import inspect
import sys
from types import SimpleNamespace
from typing import Any

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


@pytest.mark.parametrize(
    ("capability", "third", "flash", "names"),
    [
        ((9, 0), True, True, ["torch_fa3", "flash_attn"]),
        ((9, 0), False, True, ["torch", "flash_attn"]),
        ((8, 0), True, False, ["torch"]),
    ],
)
def test_torchs_kernel_comes_first_and_is_run_by_flash_attention_3_on_hopper(
    capability: tuple[int, int],
    third: bool,
    flash: bool,
    names: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    activated: list[str] = []

    def activate(impl: str) -> None:
        if not third:
            raise ModuleNotFoundError("no module named flash_attn_interface")
        activated.append(impl)

    wanted = inspect.signature(torch.nn.attention.activate_flash_attention_impl).parameters
    assert list(wanted) == list(inspect.signature(activate).parameters)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda: capability)
    monkeypatch.setattr(torch.nn.attention, "activate_flash_attention_impl", activate)
    monkeypatch.setattr("torch.nn.attention.varlen.varlen_attn", varlen_attn)
    package = SimpleNamespace(flash_attn_varlen_func=flash_attn_varlen_func) if flash else None
    monkeypatch.setitem(sys.modules, "flash_attn", package)
    kernels = core.find_kernels.__wrapped__()
    assert [k.name for k in kernels] == names
    assert activated == ["FA3"] * (names[0] == "torch_fa3")
    assert [k.drops for k in kernels] == [name == "flash_attn" for name in names]


def test_dropout_is_left_to_the_kernel_that_has_it() -> None:
    layout = Layout(LENGTHS, torch.device("cpu"), (TORCH, FLASH))
    computed(layout, states(), None, None, 0.25)
    assert (CALLS[-1]["name"], CALLS[-1]["dropout"]) == ("flash_attn", 0.25)
    computed(layout, states(), None, None, 0.0)
    assert CALLS[-1]["name"] == "torch"
    assert CALLS[-1]["longest"] == (9, 9)
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


def test_a_kernel_with_other_states_or_none_is_left_out(tmp_path: Any) -> None:
    """Local windows that a kernel does not see would change scores in silence."""
    model = AutoModel.from_pretrained(make_checkpoint("modernbert", tmp_path / "modernbert"))
    for name, weights in model.named_parameters():
        if "attn" in name:
            weights.data.mul_(8.0)  # of random weights the states hardly depend on attention
    encoder = Encoder(model, 0)
    assert encoder.attention == "packed"
    encoder.kernels = (Kernel("torch", refuses), Kernel("torch", deaf), TORCH, FLASH)
    encoder.prove_kernels()
    assert encoder.kernels == (TORCH, FLASH)
    assert (
        encoder.refusals[0]
        == "torch does not run this model: head dimension 8 is not a multiple of 16"
    )
    assert encoder.refusals[1].startswith("torch gives states that differ by ")
    assert encoder.slow_parts() == {}
