"""The guard's own measurements: what it must notice, what it must not refuse, and that it leaves no trace."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from biobench.errors import ModelError
from tests.helpers.pretrain_models import CONFIGS, tiny
from trainer.model import guard
from trainer.model.attention import Reach
from trainer.model.network import Trainee, set_dropout


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


@pytest.mark.parametrize("size", [1e-9, 1.0])
def test_the_smallest_leak_is_one(size: float) -> None:
    module = Trainee(tiny("modernbert"))

    def leaking(ids: Tensor) -> Tensor:
        return module.logits(ids, causal=True) / 1e6 + size * ids[:, -1:, None]

    with pytest.raises(ModelError, match="the causal phase leaks"):
        guard.check(module.model, leaking, causal=True)
    with pytest.raises(ModelError, match="the bidirectional phase is causal"):
        guard.check(module.model, directed(module, causal=True), causal=False)


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
    window = {"modernbert": 16, "modernbert-decoder": 16, "gemma3_text": 16}.get(kind, 32)
    assert ids.shape == (1, 2 * window + 32)
    assert len(ids.unique()) > 20
    assert (ids != (model.config.pad_token_id if model.config.pad_token_id is not None else -1)).all()


class Reluctant(nn.Module):
    """Looks two tokens back and one ahead, and only notices inputs of a certain size."""

    is_causal = False

    def __init__(self, low: float, high: float) -> None:
        super().__init__()
        self.low, self.high = low, high

    def forward(self, hidden_states: Tensor) -> Tensor:
        size = hidden_states.abs()
        seen = ((size > self.low) & (size < self.high)).float()
        return hidden_states + seen.roll(2, dims=1) + seen.roll(-1, dims=1)


@pytest.mark.parametrize(("low", "high"), [(12, 1000), (2.9, 3.2)])
def test_a_key_that_hardly_counts_is_found_by_changes_of_several_sizes(low: float, high: float) -> None:
    layer = Reluctant(low, high)
    generator = torch.Generator().manual_seed(2)
    states = torch.randn(1, 40, 4, generator=generator)
    found = guard.layer_reach(lambda ids: layer(states[:, : ids.shape[1]]), layer, torch.zeros(1, 40, dtype=torch.long))
    assert found == Reach(2, 1)


@pytest.mark.parametrize("kind", sorted(CONFIGS))
@pytest.mark.parametrize("causal", [True, False])
def test_dropout_reaches_the_attention_of_every_layer(kind: str, causal: bool, monkeypatch: pytest.MonkeyPatch) -> None:
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
