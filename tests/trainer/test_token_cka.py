"""CKA over all tokens: equal to the Gram matrices of all tokens, and to doing it again without a text."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from transformers import AutoModel

from biobench.errors import ModelError, UsageError
from tests.helpers.trainer_make import TEXTS, write
from trainer.analysis.cka import compare
from trainer.analysis.similarity import Similarity, Triple, linear_cka, of_counted, token_similarity
from trainer.analysis.states import draw, token_ids


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """A checkpoint and one some way from it."""
    root = tmp_path_factory.mktemp("two")
    return str(write(root / "a", seed=5)), str(write(root / "b", seed=5, moved=0.3))


def all_states(checkpoint: str, ids: list[list[int]], layer: int) -> list[NDArray[np.float64]]:
    """The library's states after block `layer`, (tokens, width) of each text."""
    model = AutoModel.from_pretrained(checkpoint).eval()
    with torch.no_grad():
        return [
            model(input_ids=torch.tensor([x]), output_hidden_states=True).hidden_states[layer + 1][0].double().numpy()
            for x in ids
        ]


def test_it_equals_the_gram_matrices_of_all_tokens(two: tuple[str, str]) -> None:
    ids, _ = token_ids(two, TEXTS[:7], 40)
    found = token_similarity(*two, ids, device="cpu")
    assert len(found) == 4
    for layer in range(3):  # the library shows the last block after the final norm
        x, y = (all_states(c, ids, layer) for c in two)
        direct = linear_cka(np.concatenate(x), np.concatenate(y))
        without = [linear_cka(np.concatenate(x[:n] + x[n + 1 :]), np.concatenate(y[:n] + y[n + 1 :])) for n in range(7)]
        for name in ("biased", "debiased"):
            estimate = getattr(found[layer], name)
            assert estimate.value == pytest.approx(getattr(direct, name).value, abs=1e-6)
            values = np.array([getattr(s, name).value for s in without])
            np.testing.assert_allclose(estimate.deviations, values - values.mean(), atol=1e-6)
            assert estimate.n == 7


def streamed(x: NDArray[np.float64], y: NDArray[np.float64], texts: int) -> Similarity:
    """From moments of equal parts of the rows."""
    parts = [
        Triple.of(torch.from_numpy(a), torch.from_numpy(b))
        for a, b in zip(np.split(x, texts), np.split(y, texts), strict=True)
    ]
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return of_counted(total.counted(), [(total - part).counted() for part in parts])


def test_moments_hold_to_rounding_and_independent_noise_is_zero() -> None:
    rng = np.random.default_rng(3)
    x, y = rng.standard_normal((2, 600, 300))
    found, direct = streamed(x, y, 20), linear_cka(x, y)
    assert found.biased.value == pytest.approx(direct.biased.value, abs=1e-12)
    assert found.debiased.value == pytest.approx(direct.debiased.value, abs=1e-12)
    assert found.biased.value > 0.3
    low, high = found.debiased.interval()
    assert low < 0 < high
    assert abs(found.debiased.value) < 0.02
    itself = streamed(x, x, 20)
    assert itself.biased.value == pytest.approx(1, abs=1e-12)
    assert itself.debiased.value == pytest.approx(1, abs=1e-12)


def test_turned_scaled_and_shifted_states_are_the_same() -> None:
    rng = np.random.default_rng(4)
    x = rng.standard_normal((200, 24))
    y = x @ rng.standard_normal((24, 24)) + rng.standard_normal((200, 24))
    turned = 3 * y @ np.linalg.qr(rng.standard_normal((24, 24)))[0] + 2
    plain, other = streamed(x, y, 10), streamed(x, turned, 10)
    assert other.biased.value == pytest.approx(plain.biased.value, abs=1e-10)
    assert other.debiased.value == pytest.approx(plain.debiased.value, abs=1e-10)
    np.testing.assert_allclose(other.debiased.deviations, plain.debiased.deviations, atol=1e-9)


def test_the_report_takes_all_tokens_of_one_drawing(two: tuple[str, str]) -> None:
    drawn = draw(TEXTS, 20, [42])
    report = compare(*two, drawn, noise=[(two[0], two[0])], states="tokens", max_length=48, device="cpu")
    assert report.states == "tokens"
    line = report.of("2", "debiased")
    assert line.divergence.low < line.divergence.value < line.divergence.high
    assert line.noise is not None
    assert line.noise.value == pytest.approx(0, abs=1e-12)
    assert set(line.seeds) == {42}
    with pytest.raises(UsageError, match="all tokens are taken from one drawing"):
        compare(*two, draw(TEXTS, 20, [42, 43]), states="tokens")
    with pytest.raises(ModelError, match="CKA of 4 texts"):
        token_similarity(*two, [[1, 2, 3]] * 4)


def test_states_that_are_not_finite_are_named(two: tuple[str, str], tmp_path: Path) -> None:
    broken = write(tmp_path / "broken", seed=5)
    from safetensors.torch import load_file, save_file

    weights = load_file(broken / "model.safetensors")
    name = next(n for n in weights if "layers.1.mlp.Wi" in n)
    weights[name][0, 0] = float("nan")
    save_file(weights, broken / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(ModelError, match=r"layer 1 of .* not finite"):
        token_similarity(two[0], broken, [[1, 2, 3]] * 6, device="cpu")
