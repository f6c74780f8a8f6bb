"""The guard's own measurements: what it must notice, what it must not refuse, and that it leaves no trace."""

from __future__ import annotations

import pytest
import torch
from pretrain_models import CONFIGS, tiny
from torch import Tensor, nn

from biobench.errors import ModelError
from trainer import guard
from trainer.attention import Reach
from trainer.model import Trainee, set_dropout


def directed(module: Trainee, *, causal: bool) -> guard.Forward:
    return lambda ids: module.logits(ids, causal=causal)


@pytest.mark.parametrize("positions", range(14, 22))
@pytest.mark.parametrize("causal", [True, False])
def test_windows_as_long_as_the_positions_are_no_fault(
    positions: int, causal: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """8 keys each way, measured around the middle of windows that hardly are longer."""
    monkeypatch.setitem(CONFIGS["modernbert"], "max_position_embeddings", positions)
    model = tiny("modernbert")
    report = guard.check(model, directed(Trainee(model), causal=causal), causal=causal)
    assert report.tokens == positions
    earlier = positions // 2
    later = positions - 1 - earlier
    left, right = -1 if later <= 8 else 8, -1 if earlier <= 8 else 8
    assert report.reaches["sliding_attention"] == Reach(left, 0 if causal else right)


@pytest.mark.parametrize("wrong", [Reach(8, 7), Reach(7, 8), Reach(9, 8), Reach(8, 9), Reach(-1, 8), Reach(8, 0)])
@pytest.mark.parametrize("kind", ["sliding_attention", "full_attention"])
def test_each_side_of_each_kind_of_layer_is_compared(kind: str, wrong: Reach, monkeypatch: pytest.MonkeyPatch) -> None:
    model = tiny("modernbert")
    right = guard.reach

    def other(config: object, window: int | None, *, causal: bool) -> Reach:
        if (window is None) == (kind == "full_attention"):
            return wrong
        return right(model.config, window, causal=causal)

    monkeypatch.setattr(guard, "reach", other)
    with pytest.raises(ModelError, match=f"a {kind} layer reaches"):
        guard.check(model, directed(Trainee(model), causal=False), causal=False)


@pytest.mark.parametrize("size", [1e-6, 1.0])
def test_the_smallest_leak_is_one(size: float) -> None:
    module = Trainee(tiny("modernbert"))

    def leaking(ids: Tensor) -> Tensor:
        return module.logits(ids, causal=True) / 1000 + size * ids[:, -1:, None]

    with pytest.raises(ModelError, match="the causal phase leaks"):
        guard.check(module.model, leaking, causal=True)
    with pytest.raises(ModelError, match="the bidirectional phase is causal"):
        guard.check(module.model, directed(module, causal=True), causal=False)


def test_the_next_token_alone_is_seen_to_leak() -> None:
    """The likeliest mistake: an output that sees one token too many."""

    def one_ahead(ids: Tensor) -> Tensor:
        return torch.cat([ids[:, 1:], ids[:, -1:]], dim=1)[..., None].float()

    ids = torch.arange(40)[None]
    assert guard.leak(one_ahead, ids, 97) > 0
    assert guard.leak(lambda x: x[..., None].float(), ids, 97) == 0


@pytest.mark.parametrize("training", [True, False])
def test_dropout_is_off_meanwhile_and_the_mode_comes_back(training: bool) -> None:
    model = tiny("bert")
    set_dropout(model, 0.5)
    model.train(training)
    assert guard.check(model, directed(Trainee(model), causal=True), causal=True).leak == 0.0
    assert model.training == training
    with pytest.raises(ModelError, match="is causal"):
        guard.check(model, directed(Trainee(model), causal=True), causal=False)
    assert model.training == training


@pytest.mark.parametrize("kind", sorted(CONFIGS))
def test_the_probe_is_long_and_without_padding(kind: str) -> None:
    model = tiny(kind)
    ids = guard.probe_tokens(model, torch.device("cpu"))
    window = {"modernbert": 16, "gemma3_text": 16}.get(kind, 32)
    assert ids.shape == (1, 2 * window + 32)
    assert len(ids.unique()) > 20
    assert (ids != (model.config.pad_token_id if model.config.pad_token_id is not None else -1)).all()


class Reluctant(nn.Module):
    """Looks two tokens back and one ahead, and only notices inputs that are far out of the ordinary."""

    is_causal = False

    def forward(self, hidden_states: Tensor) -> Tensor:
        seen = (hidden_states.abs() > 12).float()
        return hidden_states + seen.roll(2, dims=1) + seen.roll(-1, dims=1)


def test_a_key_that_hardly_counts_is_found_by_larger_changes() -> None:
    layer = Reluctant()
    generator = torch.Generator().manual_seed(2)
    states = torch.randn(1, 40, 4, generator=generator)
    found = guard.layer_reach(lambda ids: layer(states[:, : ids.shape[1]]), layer, torch.zeros(1, 40, dtype=torch.long))
    assert found == Reach(2, 1)
