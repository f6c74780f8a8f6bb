"""Cross-entropy in chunks: equal to the plain path, and never the size of the logits."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from trainer.model import loss as loss_module
from trainer.model.loss import IGNORE, linear_cross_entropy_sum


def problem(dtype: torch.dtype = torch.float32) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(3)
    hidden = torch.randn(37, 16, generator=generator).to(dtype).requires_grad_()
    weight = (torch.randn(101, 16, generator=generator) / 4).requires_grad_()
    bias = torch.randn(101, generator=generator).requires_grad_()
    targets = torch.randint(0, 101, (37,), generator=generator)
    targets[[0, 9, 36]] = IGNORE
    targets[[1, 20]] = 0  # the first row of the vocabulary is a target like any other
    return hidden, weight, bias, targets


@pytest.mark.parametrize("chunk", [5, 64])
def test_loss_and_gradients_equal_the_plain_path(chunk: int) -> None:
    hidden, weight, bias, targets = problem()
    loss = linear_cross_entropy_sum(hidden, weight, bias, targets, chunk=chunk)
    (loss / 34).backward()
    ours = [x.grad.clone() for x in (hidden, weight, bias) if x.grad is not None]
    for x in (hidden, weight, bias):
        x.grad = None
    logits = F.linear(hidden, weight, bias)
    plain = F.cross_entropy(logits, targets, ignore_index=IGNORE, reduction="sum")
    (plain / 34).backward()
    torch.testing.assert_close(loss, plain, rtol=1e-6, atol=1e-5)
    theirs = [x.grad for x in (hidden, weight, bias)]
    torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-6)


def test_bf16_hidden_states_stay_close_and_without_bias_too() -> None:
    hidden, weight, _, targets = problem(torch.bfloat16)
    loss = linear_cross_entropy_sum(hidden, weight, None, targets, chunk=8)
    loss.backward()
    assert hidden.grad is not None
    assert hidden.grad.dtype == torch.bfloat16
    assert weight.grad is not None
    assert weight.grad.dtype == torch.float32
    logits = hidden.detach().float() @ weight.detach().t()
    plain = F.cross_entropy(logits, targets, ignore_index=IGNORE, reduction="sum")
    torch.testing.assert_close(loss.detach(), plain, rtol=1e-2, atol=1e-1)
    exact = hidden.detach().float().requires_grad_(), weight.detach().clone().requires_grad_()
    F.cross_entropy(exact[0] @ exact[1].t(), targets, ignore_index=IGNORE, reduction="sum").backward()
    for ours, theirs in ((hidden.grad, exact[0].grad), (weight.grad, exact[1].grad)):
        assert theirs is not None
        # every chunk counts: rounding of bf16 is far below the part of one
        assert float((ours.float() - theirs).norm() / theirs.norm()) < 0.01


def test_the_softmax_of_bf16_logits_is_float32() -> None:
    """The matrix product may round, nothing after it: 1000 small errors of a sum would not."""
    generator = torch.Generator().manual_seed(4)
    hidden = torch.randn(1000, 16, generator=generator).to(torch.bfloat16)
    weight = torch.randn(101, 16, generator=generator)
    targets = torch.randint(0, 101, (1000,), generator=generator)
    logits = (hidden @ weight.to(torch.bfloat16).t()).float()
    plain = F.cross_entropy(logits, targets, reduction="sum")
    torch.testing.assert_close(linear_cross_entropy_sum(hidden, weight, None, targets), plain, rtol=1e-6, atol=1e-3)


def test_the_logits_of_one_chunk_exist_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    shapes: list[tuple[int, ...]] = []
    plain = loss_module.chunk_loss
    monkeypatch.setattr(loss_module, "chunk_loss", lambda t, x, *a: (shapes.append(tuple(x.shape)), plain(t, x, *a))[1])
    monkeypatch.setitem(loss_module.CHUNK_LOGITS, "cpu", 101 * 70)
    hidden, weight = torch.randn(200, 16), torch.randn(101, 16)
    linear_cross_entropy_sum(hidden, weight, None, torch.zeros(200, dtype=torch.long))
    assert shapes == [(70, 101), (70, 101), (60, 101)]


def test_large_logits_do_not_overflow() -> None:
    """exp(200) is beyond float32; the largest logit of a row is taken out first."""
    hidden, weight, bias, targets = problem()
    loss = linear_cross_entropy_sum(hidden * 100, weight, bias, targets, chunk=8)
    plain = F.cross_entropy(F.linear(hidden * 100, weight, bias), targets, ignore_index=IGNORE, reduction="sum")
    assert float(plain.detach()) > 1000
    torch.testing.assert_close(loss, plain, rtol=1e-6, atol=1e-3)


def test_the_weights_gradient_is_added_in_place_where_the_gpu_can(monkeypatch: pytest.MonkeyPatch) -> None:
    """A substitute in the signature of `aten::addmm.dtype_out`, which a CPU does not have for bf16."""
    asked: list[tuple[torch.dtype, ...]] = []

    def dtype_out(
        self: torch.Tensor,
        mat1: torch.Tensor,
        mat2: torch.Tensor,
        out_dtype: torch.dtype,
        *,
        out: torch.Tensor,
    ) -> torch.Tensor:
        asked.append((mat1.dtype, out_dtype, out.dtype))
        return torch.add(self, mat1.float() @ mat2.float(), out=out)

    def grads() -> torch.Tensor:
        torch.manual_seed(0)
        hidden, weight = torch.randn(40, 8).bfloat16(), torch.randn(30, 8, requires_grad=True)
        linear_cross_entropy_sum(hidden, weight, None, torch.arange(40) % 30, chunk=16).backward()
        assert weight.grad is not None
        return weight.grad

    plain = grads()
    assert not asked
    monkeypatch.setattr(loss_module, "MIXED", dtype_out)
    monkeypatch.setattr(loss_module, "_MIXED_ON", ("cuda", "cpu"))
    torch.testing.assert_close(grads(), plain, rtol=2e-2, atol=2e-2)
    assert asked == [(torch.bfloat16, torch.float32, torch.float32)] * 3


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("biased", [True, False])
def test_the_compiled_loss_is_the_loss(dtype: torch.dtype, biased: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Traced and functionalised as for a GPU; the last step, the making of kernels, needs a compiler."""
    monkeypatch.setattr(loss_module, "BACKEND", "aot_eager")
    loss_module.compiled_chunk.cache_clear()
    generator = torch.Generator().manual_seed(0)
    targets = torch.randint(0, 50, (37,), generator=generator)
    targets[::5] = IGNORE
    results = []
    for compiled in (False, True):
        hidden, weight = (
            torch.randn(n, 16, generator=torch.Generator().manual_seed(n)).to(dtype).requires_grad_() for n in (37, 50)
        )
        bias = torch.linspace(-1, 1, 50).to(dtype).requires_grad_() if biased else None
        total = linear_cross_entropy_sum(hidden, weight, bias, targets, chunk=10, compiled=compiled)
        total.backward()  # type: ignore[no-untyped-call]
        results.append([total.detach(), hidden.grad, weight.grad, *([] if bias is None else [bias.grad])])
    loss_module.compiled_chunk.cache_clear()
    for plain, traced in zip(*results, strict=True):
        torch.testing.assert_close(traced, plain, rtol=1e-5, atol=1e-5)
