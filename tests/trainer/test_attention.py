"""The causal switch: exact, reversible, and guarded; what the guard must notice, and what it must
not refuse.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from transformers import AutoModel, AutoModelForMaskedLM, PreTrainedModel

from tests.helpers.pretrain_models import CONFIGS, DECODERS, tiny
from tests.helpers.trainer_make import refusal
from trainer.model import guard
from trainer.model.attention import Reach
from trainer.model.network import Packing, Trainee, set_dropout

FAMILIES = sorted(CONFIGS)


def directed(module: Trainee, *, causal: bool) -> guard.Forward:
    return lambda ids: module.logits(ids, causal=causal)


def long_ids(model: PreTrainedModel) -> Tensor:
    ids = guard.probe_tokens(model)
    assert ids.shape[1] >= 50, "more than twice the widest window"
    assert model.config.pad_token_id not in ids.tolist()[0]
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
    causal, both = (
        guard.check(model, directed(module, causal=c), causal=c).reaches for c in (True, False)
    )
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
    model = tiny("gemma3_text")
    ids = long_ids(model)
    with torch.no_grad():
        ours, theirs = (
            Trainee(model).logits(ids, causal=False),
            tiny("gemma3_text", "eager")(input_ids=ids).logits,
        )
    torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-5)
    assert local_windows(model) == ((8, 0), (8, 8))


def test_the_naive_flag_leaks_and_the_guard_bites() -> None:
    model = tiny("modernbert", "sdpa")

    def naive(ids: Tensor) -> Tensor:
        return model(input_ids=ids, is_causal=True).logits

    refusal("is not causal", guard.check, model, naive, causal=True)


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
        whole, other = (
            module.logits(x, causal=causal, packing=Packing(documents)) for x in (ids, changed)
        )
    assert torch.equal(whole[:, 30:], other[:, 30:])
    assert not torch.equal(whole[:, :30], other[:, :30])


def test_a_mask_or_a_missing_direction_is_refused() -> None:
    model = tiny("modernbert")
    ids = long_ids(model)
    refusal("without a direction", model, input_ids=ids)
    everywhere = torch.ones(1, 1, ids.shape[1], ids.shape[1], dtype=torch.bool)
    masks = dict.fromkeys(("full_attention", "sliding_attention"), everywhere)
    refusal("mask reached", model.model, input_ids=ids, attention_mask=masks, detour_causal=True)


@pytest.mark.parametrize("kind", [k for k in FAMILIES if k not in DECODERS])
def test_nothing_of_the_switch_is_saved(kind: str, tmp_path: Path) -> None:
    model = tiny(kind)
    module, ids = Trainee(model), long_ids(model)
    model.save_pretrained(tmp_path)
    assert not re.search("is_causal|biobench", (tmp_path / "config.json").read_text())
    with torch.no_grad():
        module.logits(ids, causal=True)
        plain = AutoModelForMaskedLM.from_pretrained(tmp_path)(input_ids=ids).logits
        assert torch.equal(plain, module.logits(ids, causal=False))
        assert torch.equal(
            AutoModel.from_pretrained(tmp_path)(input_ids=ids)[0], module.hidden(ids, causal=False)
        )


@pytest.mark.parametrize("positions", range(14, 22))
@pytest.mark.parametrize("causal", [True, False])
def test_windows_as_long_as_the_positions_are_no_fault(
    positions: int, causal: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """8 keys each way, measured around the middle of windows that hardly are longer."""
    monkeypatch.setitem(CONFIGS["modernbert"], "max_position_embeddings", positions)
    model = tiny("modernbert")
    report = guard.check(model, directed(Trainee(model), causal=causal), causal=causal)
    earlier = positions // 2
    later = positions - 1 - earlier
    left, right = -1 if earlier <= 8 else 8, -1 if later <= 8 else 8
    assert report.reaches["sliding_attention"] == Reach(left, 0 if causal else right)


@pytest.mark.parametrize(
    "wrong", [Reach(8, 7), Reach(7, 8), Reach(9, 8), Reach(8, 9), Reach(-1, 8), Reach(8, 0)]
)
@pytest.mark.parametrize("kind", ["sliding_attention", "full_attention"])
def test_each_side_of_each_kind_of_layer_is_compared(
    kind: str, wrong: Reach, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, right, full = tiny("modernbert"), guard.reach, kind == "full_attention"
    monkeypatch.setattr(
        guard,
        "reach",
        lambda c, w, causal: wrong if (w is None) == full else right(c, w, causal=causal),
    )
    forward = directed(Trainee(model), causal=False)
    refusal(f"a {kind} layer reaches", guard.check, model, forward, causal=False)


@pytest.mark.parametrize("size", [1e-9, 1.0])
def test_the_smallest_leak_is_one(size: float) -> None:
    module = Trainee(tiny("modernbert"))

    def leaking(ids: Tensor) -> Tensor:
        return module.logits(ids, causal=True) / 1e6 + size * ids[:, -1:, None]

    refusal("the causal phase is not causal", guard.check, module.model, leaking, causal=True)
    forward = directed(module, causal=True)
    refusal("outputs change by 0 when", guard.check, module.model, forward, causal=False)


class Reluctant(nn.Module):
    """Looks two tokens back and one ahead, and hardly attends to either."""

    is_causal = False

    def __init__(self, share: float) -> None:
        super().__init__()
        self.share = share

    def forward(self, hidden_states: Tensor) -> Tensor:
        around = hidden_states.roll(2, dims=1) + hidden_states.roll(-1, dims=1)
        return hidden_states + self.share * around


def measured(layer: nn.Module) -> Reach:
    states = torch.randn(1, 40, 4, generator=torch.Generator().manual_seed(2))
    return guard.layer_reach(lambda _: layer(states), layer, torch.zeros(1, 40, dtype=torch.long))


def test_a_key_that_hardly_counts_is_found() -> None:
    """Beside what the query has of itself, the key's part is lost in the rounding of the output."""
    assert measured(Reluctant(1e-20)) == Reach(2, 1)


def test_attention_that_reads_no_token_is_refused() -> None:
    """As transformers builds it where there are more heads of keys than of queries."""
    deaf = Reluctant(0)
    deaf.register_forward_hook(lambda _module, _inputs, states: states * 0)
    refusal("reads no token", measured, deaf)


@pytest.mark.parametrize("kind", sorted(CONFIGS))
@pytest.mark.parametrize("causal", [True, False])
def test_dropout_reaches_the_attention_of_every_layer(
    kind: str, causal: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[float] = []
    plain = F.scaled_dot_product_attention

    def watched(*args: Tensor, dropout_p: float, **more: object) -> Tensor:
        given.append(dropout_p)
        return plain(*args, dropout_p=dropout_p, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(F, "scaled_dot_product_attention", watched)
    model = tiny(kind)
    for rate in (0.25, 0.0):
        set_dropout(model, rate)
        for training in (True, False):
            given.clear()
            model.train(training)
            Trainee(model).hidden(torch.arange(5, 45)[None], causal=causal)
            assert given == [rate if training else 0.0] * model.config.num_hidden_layers
