"""The causal switch: exact, reversible, and guarded; naive constructions must fail the same guard."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import Tensor
from transformers import AutoModel, AutoModelForMaskedLM, PreTrainedModel

from biobench.errors import ModelError
from tests.helpers.pretrain_models import CONFIGS, DECODERS, tiny
from trainer.model import guard
from trainer.model.attention import Reach
from trainer.model.network import Packing, Trainee

FAMILIES = sorted(CONFIGS)


def directed(module: Trainee, *, causal: bool) -> guard.Forward:
    return lambda ids: module.logits(ids, causal=causal)


def long_ids(model: PreTrainedModel) -> Tensor:
    ids = guard.probe_tokens(model, torch.device("cpu"))
    window = getattr(model.config, "local_attention", None) or getattr(model.config, "sliding_window", None) or 0
    assert ids.shape[1] > 2 * window
    return ids


@pytest.mark.parametrize("kind", FAMILIES)
def test_causal_leaks_nothing_and_bidirectional_comes_back_bit_for_bit(kind: str) -> None:
    model = tiny(kind)
    module = Trainee(model)
    ids = long_ids(model)
    with torch.no_grad():
        before = module.logits(ids, causal=False)
        assert guard.check(model, directed(module, causal=True), causal=True).leak == 0.0
        middle = module.logits(ids, causal=True)
        after = module.logits(ids, causal=False)
    assert not torch.equal(before, middle)
    assert torch.equal(before, after)
    assert guard.check(model, directed(module, causal=False), causal=False).leak > 0.01


@pytest.mark.parametrize("kind", FAMILIES)
@pytest.mark.parametrize("stock", ["sdpa", "eager"])
def test_the_stock_model_in_its_own_direction_gives_the_same(kind: str, stock: str) -> None:
    model, reference = tiny(kind), tiny(kind, stock)
    ids = long_ids(model)
    with torch.no_grad():
        ours = Trainee(model).logits(ids, causal=kind in DECODERS)
        theirs = reference(input_ids=ids).logits
    torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-5)
    if stock == "sdpa" and kind not in DECODERS:
        assert torch.equal(ours, theirs)


def local_windows(model: PreTrainedModel) -> tuple[Reach, Reach]:
    """Measured in a causal and in a bidirectional phase."""
    module = Trainee(model)
    causal, both = (guard.check(model, directed(module, causal=c), causal=c).reaches for c in (True, False))
    assert (causal["full_attention"], both["full_attention"]) == (Reach(-1, 0), Reach(-1, -1))
    return causal["sliding_attention"], both["sliding_attention"]


def test_window_reach_is_64_back_and_self_or_64_each_way() -> None:
    model = tiny("modernbert")
    assert model.config.local_attention == 16
    assert local_windows(model) == ((8, 0), (8, 8))
    model.config.local_attention = 128
    for layer in model.model.layers:
        if layer.attn.sliding_window is not None:
            layer.attn.sliding_window = 65
    model.config.max_position_embeddings = 512
    assert local_windows(model) == ((64, 0), (64, 64))


def test_gemma_windows_keep_their_number_of_keys_or_their_own_where_the_config_is_bidirectional(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert local_windows(tiny("gemma3_text")) == ((15, 0), (8, 8))
    monkeypatch.setitem(CONFIGS["gemma3_text"], "use_bidirectional_attention", True)
    model, reference = tiny("gemma3_text"), tiny("gemma3_text", "eager")
    ids = long_ids(model)
    with torch.no_grad():
        ours, theirs = Trainee(model).logits(ids, causal=False), reference(input_ids=ids).logits
    torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-5)
    assert local_windows(model) == ((8, 0), (8, 8))


@pytest.mark.parametrize("stock", ["sdpa", "eager"])
def test_the_naive_flag_leaks_and_the_guard_bites(stock: str) -> None:
    model = tiny("modernbert", stock)

    def naive(ids: Tensor) -> Tensor:
        return model(input_ids=ids, is_causal=True).logits

    with torch.no_grad():
        assert guard.leak(naive, long_ids(model), 97) > 0.01
    with pytest.raises(ModelError, match="leaks"):
        guard.check(model, naive, causal=True)


@pytest.mark.parametrize("kind", ["modernbert", "bert", "gemma3_text"])
def test_bf16_leaks_nothing_and_gradients_do_not_reach_later_tokens(kind: str) -> None:
    model = tiny(kind)
    module = Trainee(model)

    def half(ids: Tensor) -> Tensor:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return module.logits(ids, causal=True)

    ids = long_ids(model)
    assert guard.leak(half, ids, 97) == 0.0
    seen: list[Tensor] = []
    embedding = model.get_input_embeddings()
    handle = embedding.register_forward_hook(lambda *a: seen.append(a[2]) or a[2].retain_grad())
    module.logits(ids, causal=True)[0, 20].sum().backward()
    handle.remove()
    assert float(seen[0].grad[0, 21:].abs().max()) == 0.0  # type: ignore[index]
    assert float(seen[0].grad[0, :21].abs().max()) > 0.0  # type: ignore[index]


@pytest.mark.parametrize("causal", [True, False])
def test_isolated_documents_do_not_see_each_other(causal: bool) -> None:
    model = tiny("modernbert")
    module = Trainee(model)
    ids = long_ids(model)
    documents = torch.zeros_like(ids)
    documents[:, 30:] = 1
    changed = ids.clone()
    changed[:, :30] = (changed[:, :30] + 1) % 97
    with torch.no_grad():
        whole, other = (module.logits(x, causal=causal, packing=Packing(documents)) for x in (ids, changed))
    assert torch.equal(whole[:, 30:], other[:, 30:])
    assert not torch.equal(whole[:, :30], other[:, :30])


def test_a_mask_or_a_missing_direction_is_refused() -> None:
    model = tiny("modernbert")
    ids = long_ids(model)
    with pytest.raises(ModelError, match="without a direction"):
        model(input_ids=ids)
    everywhere = torch.ones(1, 1, ids.shape[1], ids.shape[1], dtype=torch.bool)
    with pytest.raises(ModelError, match="mask reached"):
        model.model(
            input_ids=ids,
            attention_mask={"full_attention": everywhere, "sliding_attention": everywhere},
            detour_causal=True,
        )


@pytest.mark.parametrize("kind", [k for k in FAMILIES if k not in DECODERS])
def test_nothing_of_the_switch_is_saved(kind: str, tmp_path: Path) -> None:
    model = tiny(kind)
    module = Trainee(model)
    ids = long_ids(model)
    with torch.no_grad():
        module.logits(ids, causal=True)
        expected = module.logits(ids, causal=False)
        hidden = module.hidden(ids, causal=False)
    model.save_pretrained(tmp_path)
    saved = (tmp_path / "config.json").read_text()
    assert "is_causal" not in saved
    assert "biobench" not in saved
    with torch.no_grad():
        assert torch.equal(AutoModelForMaskedLM.from_pretrained(tmp_path)(input_ids=ids).logits, expected)
        assert torch.equal(AutoModel.from_pretrained(tmp_path)(input_ids=ids)[0], hidden)
