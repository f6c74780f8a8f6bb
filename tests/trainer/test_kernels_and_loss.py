"""The GPU's paths of the attention, with reference kernels in the real signatures; the loss in
chunks.
"""

from __future__ import annotations

import logging
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from biobench.core.attention import Kernel
from tests.helpers.kernels import CALLS, flash_attn_varlen_func, varlen_attn
from tests.helpers.pretrain_models import tiny
from trainer.model import attention, guard
from trainer.model import loss as loss_module
from trainer.model.attention import Reach
from trainer.model.loss import IGNORE, linear_cross_entropy_sum
from trainer.model.network import Packing, Trainee, set_dropout
from trainer.train import phase
from trainer.train.distributed import determinism

KERNELS = (Kernel("flash_attn", flash_attn_varlen_func, drops=True), Kernel("torch", varlen_attn))


@pytest.fixture(params=KERNELS, ids=lambda kernel: kernel.name)
def kernel(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Kernel:
    """A kernel that the CPU is told to have."""
    monkeypatch.setattr(attention, "KERNELS", (request.param,))
    monkeypatch.setattr(attention, "DEVICES", ("cuda", "cpu"))
    CALLS.clear()
    return request.param


@pytest.mark.parametrize("window", [Reach(8, 0), Reach(8, 8), Reach(-1, 0), Reach(-1, -1)])
@pytest.mark.parametrize("isolated", [True, False])
@pytest.mark.parametrize("heads", [4, 2, 1])
def test_the_variable_length_path_calls_its_kernel_rightly(
    kernel: Kernel, window: Reach, isolated: bool, heads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch.manual_seed(0)
    q = torch.randn(2, 4, 40, 8, dtype=torch.bfloat16)
    k, v = (torch.randn(2, heads, 40, 8, dtype=torch.bfloat16) for _ in range(2))
    documents = torch.zeros(2, 40, dtype=torch.long)
    documents[0, 13:], documents[1, 27:] = 1, 1
    ends = torch.tensor([0, 13, 40, 67, 80], dtype=torch.int32) if isolated else None
    found = attention._varlen(q, k, v, window, 0.3, 0.0, ends, 27 if isolated else None)
    monkeypatch.setattr(attention, "DEVICES", ("cuda",))
    plain = attention._sdpa(q, k, v, window, 0.3, 0.0, documents if isolated else None).transpose(
        1, 2
    )
    torch.testing.assert_close(found.float(), plain.float(), rtol=2e-2, atol=2e-2)
    assert CALLS[-1]["heads"] == heads, "keys are not repeated"


@pytest.mark.parametrize("kind", ["gemma3_text", "eurobert", "modernbert"])
@pytest.mark.parametrize("causal", [True, False])
def test_rotary_families_reach_the_kernel_under_autocast(
    kind: str, causal: bool, kernel: Kernel
) -> None:
    """Rotary positions are float32; before they were cast, the layers left for the dense path in
    silence.
    """
    model = tiny(kind)
    module = Trainee(model)
    ids = guard.probe_tokens(model)
    documents, ends = torch.zeros_like(ids), torch.tensor([0, ids.shape[1]], dtype=torch.int32)
    with torch.no_grad(), torch.autocast("cpu", dtype=torch.bfloat16):
        with attention.noting() as noted:
            kept = module.hidden(ids, causal=causal, packing=Packing(documents, ends))
        assert set(noted.values()) == {kernel.name}
        assert len(CALLS) == model.config.num_hidden_layers
        whole = module.hidden(ids, causal=causal)
    torch.testing.assert_close(kept.float(), whole.float(), rtol=0.1, atol=0.1)


def noted(kind: str, precision: str, dropout: float, *, isolated: bool = False) -> dict[str, str]:
    model = tiny(kind)
    set_dropout(model, dropout)
    return kernels_of(model, precision, causal=True, isolated=isolated)


def kernels_of(model: Any, precision: str, *, causal: bool, isolated: bool) -> dict[str, str]:
    device = torch.device("cpu")
    return phase._kernels(Trainee(model), causal, precision, device, isolated=isolated, length=70)


def test_dropout_takes_the_kernel_that_has_it_and_is_told_otherwise(
    kernel: Kernel, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "trainer"):
        assert noted("modernbert", "bf16", 0.0)["sliding_attention"] == kernel.name
        assert not caplog.records
        found = noted("modernbert", "bf16", 0.1)["sliding_attention"]
    assert found == (kernel.name if kernel.drops else "dense")
    assert ("sliding_attention runs over a mask of tokens x tokens" in caplog.text) == (
        not kernel.drops
    )
    assert not kernel.drops or (CALLS[-1]["dropout"] == 0.1 and not caplog.records)


@pytest.mark.parametrize(("precision", "isolated"), [("fp32", False), ("bf16", True)])
def test_a_bounded_layer_without_a_kernel_is_warned_of(
    precision: str,
    isolated: bool,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(attention, "DEVICES", ("cuda", "cpu"))
    with caplog.at_level(logging.WARNING, "trainer"):
        found = noted("modernbert", precision, 0.0, isolated=isolated)
    assert found["sliding_attention"] == "dense"
    assert (found["full_attention"] == "dense") == isolated
    assert f"no kernel for windows in {precision}" in caplog.text


def test_a_kernel_is_asked_for_the_same_bits_where_they_are_wanted(kernel: Kernel) -> None:
    with determinism(True):
        assert torch.are_deterministic_algorithms_enabled()
        noted("modernbert", "bf16", 0.0)
    assert not torch.are_deterministic_algorithms_enabled()
    assert kernel.name == "torch" or CALLS[-1]["deterministic"] is True


def test_isolated_documents_give_the_kernel_the_length_of_the_longest(
    kernel: Kernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before, the length of the window: some fourteen times the blocks that a window of short notes
    needs.
    """
    asked: list[tuple[int, int]] = []
    watched = kernel._replace(call=lambda *a, **o: (asked.append(a[5:7]), kernel.call(*a, **o))[1])
    monkeypatch.setattr(attention, "KERNELS", (watched,))
    module = Trainee(tiny("modernbert"))
    ids = guard.probe_tokens(module.model)
    ends = torch.tensor([0, 9, ids.shape[1]], dtype=torch.int32)
    documents = (torch.arange(ids.shape[1]) >= 9).long()[None]
    with torch.no_grad(), torch.autocast("cpu", dtype=torch.bfloat16):
        for longest in (55, None):
            module.hidden(ids, causal=False, packing=Packing(documents, ends, longest))
    assert asked == [(55, 55)] * 4 + [(64, 64)] * 4


def test_a_kernel_that_does_not_give_the_states_of_a_model_is_not_trained_with(
    kernel: Kernel, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Proved at load, as in fine-tuning: one that does not see the window, and one that raises, are
    left out.
    """

    def deaf(*tensors: Any, window_size: tuple[int, int] = (-1, -1), **options: Any) -> Any:
        return kernel.call(*tensors, **options)

    def refuses(*_: Any, **__: Any) -> Any:
        raise RuntimeError("head dimension 8 is not a multiple of 16")

    wrong = (kernel._replace(name="deaf", call=deaf), kernel._replace(name="refuses", call=refuses))
    monkeypatch.setattr(attention, "KERNELS", (*wrong, kernel))
    model = tiny("modernbert")
    with caplog.at_level(logging.WARNING, "trainer"):
        found = kernels_of(model, "bf16", causal=False, isolated=True)
    assert (kernel,) == attention.KERNELS
    assert set(found.values()) == {kernel.name}
    assert not caplog.records
    monkeypatch.setattr(attention, "KERNELS", wrong)
    with caplog.at_level(logging.WARNING, "trainer"):
        kernels_of(model, "bf16", causal=False, isolated=True)
    assert "deaf gives states that differ by" in caplog.text
    assert (
        "refuses does not run this model: head dimension 8 is not a multiple of 16" in caplog.text
    )


def problem(
    dtype: torch.dtype = torch.float32,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(3)
    hidden = torch.randn(37, 16, generator=generator).to(dtype).requires_grad_()
    weight = (torch.randn(101, 16, generator=generator) / 4).requires_grad_()
    bias = torch.randn(101, generator=generator).requires_grad_()
    targets = torch.randint(0, 101, (37,), generator=generator)
    targets[[0, 9, 36]] = IGNORE
    targets[[1, 20]] = 0  # the first row of the vocabulary is a target like any other
    return hidden, weight, bias, targets


@pytest.mark.parametrize(("chunk", "scale"), [(5, 1), (64, 1), (8, 100)])
def test_loss_and_gradients_equal_the_plain_path(chunk: int, scale: int) -> None:
    """Also where exp() of a logit is beyond float32: the largest of a row is taken out first."""
    hidden, weight, bias, targets = problem()
    loss = linear_cross_entropy_sum(hidden * scale, weight, bias, targets, chunk=chunk)
    ours = torch.autograd.grad(loss / 34, (hidden, weight, bias))
    logits = F.linear(hidden * scale, weight, bias)
    plain = F.cross_entropy(logits, targets, ignore_index=IGNORE, reduction="sum")
    torch.testing.assert_close(loss, plain, rtol=1e-6, atol=1e-3)
    theirs = torch.autograd.grad(plain / 34, (hidden, weight, bias))
    torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-6 * scale)


def test_of_bf16_hidden_states_the_product_alone_is_rounded_and_without_bias_too() -> None:
    hidden, weight, _, targets = problem(torch.bfloat16)
    loss = linear_cross_entropy_sum(hidden, weight, None, targets, chunk=8)
    gradients = torch.autograd.grad(loss, (hidden, weight))
    assert [gradient.dtype for gradient in gradients] == [torch.bfloat16, torch.float32]
    logits = (hidden @ weight.to(torch.bfloat16).t()).float()
    plain = F.cross_entropy(logits, targets, ignore_index=IGNORE, reduction="sum")
    torch.testing.assert_close(loss, plain, rtol=1e-6, atol=1e-3)
    for found, wanted in zip(gradients, torch.autograd.grad(plain, (hidden, weight)), strict=True):
        # every chunk counts: rounding of bf16 is far below the part of one
        assert float((found - wanted).norm() / wanted.norm()) < 0.01


def test_the_logits_of_one_chunk_exist_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    shapes: list[tuple[int, ...]] = []
    plain = loss_module.chunk_loss
    monkeypatch.setattr(
        loss_module,
        "chunk_loss",
        lambda t, x, *a: (shapes.append(tuple(x.shape)), plain(t, x, *a))[1],
    )
    monkeypatch.setitem(loss_module.CHUNK_LOGITS, "cpu", 101 * 70)
    hidden, weight = torch.randn(200, 16), torch.randn(101, 16)
    linear_cross_entropy_sum(hidden, weight, None, torch.zeros(200, dtype=torch.long))
    assert shapes == [(70, 101), (70, 101), (60, 101)]


def test_the_weights_gradient_is_added_in_place_where_the_gpu_can(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A substitute in the signature of `aten::addmm.dtype_out`, which a CPU does not have for
    bf16."""
    asked: list[tuple[torch.dtype, ...]] = []

    def dtype_out(
        self: Tensor, mat1: Tensor, mat2: Tensor, out_dtype: torch.dtype, *, out: Tensor
    ) -> Tensor:
        asked.append((mat1.dtype, out_dtype, out.dtype))
        return torch.add(self, mat1.float() @ mat2.float(), out=out)

    def grads() -> torch.Tensor:
        torch.manual_seed(0)
        hidden, weight = torch.randn(40, 8).bfloat16(), torch.randn(30, 8, requires_grad=True)
        loss = linear_cross_entropy_sum(hidden, weight, None, torch.arange(40) % 30, chunk=16)
        return torch.autograd.grad(loss, weight)[0]

    plain = grads()
    monkeypatch.setattr(loss_module, "MIXED", dtype_out)
    assert torch.equal(grads(), plain)
    assert not asked
    monkeypatch.setattr(loss_module, "_MIXED_ON", ("cuda", "cpu"))
    torch.testing.assert_close(grads(), plain, rtol=2e-2, atol=2e-2)
    assert asked == [(torch.bfloat16, torch.float32, torch.float32)] * 3


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("biased", [True, False])
def test_the_compiled_loss_is_the_loss(
    dtype: torch.dtype, biased: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Traced and functionalised as for a GPU; the last step, the making of kernels, needs a
    compiler.
    """
    monkeypatch.setattr(loss_module, "BACKEND", "aot_eager")
    loss_module.compiled_chunk.cache_clear()
    hidden, weight, bias, targets = problem(dtype)
    given = (hidden, weight, bias) if biased else (hidden, weight)
    results = []
    for compiled in (False, True):
        offset = bias if biased else None
        total = linear_cross_entropy_sum(
            hidden, weight, offset, targets, chunk=10, compiled=compiled
        )
        results.append([total.detach(), *torch.autograd.grad(total, given)])
    loss_module.compiled_chunk.cache_clear()
    for plain, traced in zip(*results, strict=True):
        torch.testing.assert_close(traced, plain, rtol=1e-5, atol=1e-5)
