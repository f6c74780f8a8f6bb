"""The GPU's paths of the attention, with reference kernels in the signatures of the real ones; no GPU was at hand."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import pytest
import torch

from biobench.core.attention import Kernel
from tests.helpers.kernels import CALLS, flash_attn_varlen_func, varlen_attn
from tests.helpers.pretrain_models import tiny
from trainer.model import attention, guard
from trainer.model.attention import Reach
from trainer.model.network import Packing, Trainee, set_dropout
from trainer.train import phase

KERNELS = {
    "flash_attn": Kernel("flash_attn", flash_attn_varlen_func, drops=True),
    "torch": Kernel("torch", varlen_attn),
}


@pytest.fixture(params=sorted(KERNELS))
def kernel(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Kernel:
    """A kernel that the CPU is told to have."""
    chosen = KERNELS[request.param]
    monkeypatch.setattr(attention, "KERNELS", (chosen,))
    monkeypatch.setattr(attention, "DEVICES", ("cuda", "cpu"))
    CALLS.clear()
    return chosen


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
    plain = attention._sdpa(q, k, v, window, 0.3, 0.0, documents if isolated else None).transpose(1, 2)
    torch.testing.assert_close(found.float(), plain.float(), rtol=2e-2, atol=2e-2)
    assert CALLS[-1]["heads"] == heads, "keys are not repeated"


@pytest.mark.parametrize("kind", ["gemma3_text", "eurobert", "modernbert"])
@pytest.mark.parametrize("causal", [True, False])
def test_rotary_families_reach_the_kernel_under_autocast(kind: str, causal: bool, kernel: Kernel) -> None:
    """Rotary positions are float32; before they were cast, the layers left for the dense path in silence."""
    model = tiny(kind)
    module = Trainee(model)
    ids = guard.probe_tokens(model, torch.device("cpu"))
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
    return phase._kernels(Trainee(model), True, precision, torch.device("cpu"), isolated=isolated)


def test_dropout_takes_the_kernel_that_has_it_and_is_told_otherwise(
    kernel: Kernel, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "trainer"):
        assert noted("modernbert", "bf16", 0.0)["sliding_attention"] == kernel.name
        assert not caplog.records
        found = noted("modernbert", "bf16", 0.1)["sliding_attention"]
    if kernel.drops:
        assert (found, CALLS[-1]["dropout"]) == (kernel.name, 0.1)
        assert not caplog.records
    else:
        assert found == "dense"
        assert "sliding_attention runs over a mask of tokens x tokens" in caplog.text


@pytest.mark.parametrize(("precision", "isolated"), [("fp32", False), ("bf16", True)])
def test_a_bounded_layer_without_a_kernel_is_warned_of(
    precision: str, isolated: bool, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attention, "DEVICES", ("cuda", "cpu"))
    with caplog.at_level(logging.WARNING, "trainer"):
        found = noted("modernbert", precision, 0.0, isolated=isolated)
    assert found["sliding_attention"] == "dense"
    assert (found["full_attention"] == "dense") == isolated
    assert "no kernel for windows is there" in caplog.text


def test_a_kernel_is_asked_for_the_same_bits_where_they_are_wanted(kernel: Kernel) -> None:
    from trainer.train.distributed import determinism

    before: Callable[[], bool] = torch.are_deterministic_algorithms_enabled
    with determinism(True):
        assert before()
        noted("modernbert", "bf16", 0.0)
    assert not before()
    if kernel.name != "torch":
        assert CALLS[-1]["deterministic"] is True


def test_isolated_documents_give_the_kernel_the_length_of_the_longest(
    kernel: Kernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before, the length of the window: some fourteen times the blocks that a window of short notes needs."""
    asked: list[tuple[int, int]] = []

    def watched(*arguments: Any, **options: Any) -> Any:
        asked.append(arguments[5:7])
        return kernel.call(*arguments, **options)

    monkeypatch.setattr(attention, "KERNELS", (kernel._replace(call=watched),))
    model = tiny("modernbert")
    ids = guard.probe_tokens(model, torch.device("cpu"))
    ends = torch.tensor([0, 9, ids.shape[1]], dtype=torch.int32)
    documents = (torch.arange(ids.shape[1]) >= 9).long()[None]
    with torch.no_grad(), torch.autocast("cpu", dtype=torch.bfloat16):
        module = Trainee(model)
        module.hidden(ids, causal=False, packing=Packing(documents, ends, 16))
        assert set(asked) == {(16, 16)}
        asked.clear()
        module.hidden(ids, causal=False, packing=Packing(documents, ends))
        assert set(asked) == {(ids.shape[1],) * 2}


def test_a_kernel_that_does_not_give_the_states_of_a_model_is_not_trained_with(
    kernel: Kernel, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Proved at load, as in fine-tuning: one that does not see the window, and one that raises, are left out."""

    def deaf(*tensors: Any, window_size: tuple[int, int] = (-1, -1), **options: Any) -> Any:
        return kernel.call(*tensors, **options)

    def refuses(*_: Any, **__: Any) -> Any:
        raise RuntimeError("head dimension 8 is not a multiple of 16")

    wrong = (kernel._replace(name="deaf", call=deaf), kernel._replace(name="refuses", call=refuses))
    monkeypatch.setattr(attention, "KERNELS", (*wrong, kernel))
    model = tiny("modernbert")
    with caplog.at_level(logging.WARNING, "trainer"):
        found = phase._kernels(Trainee(model), False, "bf16", torch.device("cpu"), isolated=True)
    assert (kernel,) == attention.KERNELS
    assert set(found.values()) == {kernel.name}
    assert not caplog.records
    monkeypatch.setattr(attention, "KERNELS", wrong)
    with caplog.at_level(logging.WARNING, "trainer"):
        phase._kernels(Trainee(model), False, "bf16", torch.device("cpu"), isolated=True)
    assert "deaf gives states that differ by" in caplog.text
    assert "refuses does not run this model: head dimension 8 is not a multiple of 16" in caplog.text
