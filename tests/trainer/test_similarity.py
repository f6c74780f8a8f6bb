"""CKA: against a direct computation, against what must not change it, and on noise."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from tests.helpers.trainer_make import refusal
from trainer.analysis.similarity import Estimate, Similarity, cka, gram, mean_of

Floats = NDArray[np.float64]


def linear_cka(x: Floats, y: Floats) -> Similarity:
    """CKA of two sets of states (texts, width) of the same texts; the widths may differ."""
    return cka(gram(x), gram(y))


def related(n: int = 30, width: int = 6, other: int = 4, seed: int = 0) -> tuple[Floats, Floats]:
    """Two sets of states of which one is partly a linear image of the other."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, width)) + 3
    return x, x @ rng.normal(size=(width, other)) + rng.normal(size=(n, other))


def textbook_biased(x: Floats, y: Floats) -> float:
    """Kornblith et al. 2019: Frobenius norms of cross products of centred features."""
    x, y = x - x.mean(0), y - y.mean(0)
    return float(np.linalg.norm(x.T @ y) ** 2 / (np.linalg.norm(x.T @ x) * np.linalg.norm(y.T @ y)))


def u_centred(k: Floats) -> Floats:
    """Székely and Rizzo 2014, definition 2."""
    n = len(k)
    k = k - np.diag(np.diag(k))
    rows = k.sum(1)
    u = k - rows[:, None] / (n - 2) - rows[None, :] / (n - 2) + k.sum() / ((n - 1) * (n - 2))
    return np.asarray(u - np.diag(np.diag(u)))


def textbook_debiased(x: Floats, y: Floats) -> float:
    """Inner products of U-centred Gram matrices, of states that are not even centred."""
    a, b = u_centred(x @ x.T), u_centred(y @ y.T)
    return float((a * b).sum() / np.sqrt((a * a).sum() * (b * b).sum()))


def test_equal_to_a_direct_computation() -> None:
    x, y = related()
    found = linear_cka(x, y)
    assert found.biased.value == pytest.approx(textbook_biased(x, y), abs=1e-12)
    assert found.debiased.value == pytest.approx(textbook_debiased(x, y), abs=1e-12)
    itself = linear_cka(x, x)
    assert (itself.biased.value, itself.debiased.value) == pytest.approx((1, 1), abs=1e-12)
    assert itself.debiased.se < 1e-12


def test_independent_noise_is_zero_debiased_and_far_from_it_biased() -> None:
    rng = np.random.default_rng(1)
    found = linear_cka(rng.normal(size=(500, 768)), rng.normal(size=(500, 768)))
    low, high = found.debiased.interval()
    assert low < 0 < high < low + 0.03
    assert found.biased.value == pytest.approx(0.61, abs=0.01)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**31), st.floats(1e-3, 1e3), st.floats(-50, 50))
def test_orthogonal_maps_scalings_and_shifts_change_nothing(seed: int, scale: float, shift: float) -> None:
    x, y = related(20, 5, 4, seed)
    turn, _ = np.linalg.qr(np.random.default_rng(seed).normal(size=(5, 5)))
    plain = linear_cka(x, y)
    for other in (linear_cka(scale * (x @ turn) + shift, y), linear_cka(y, x)):
        assert other.biased.value == pytest.approx(plain.biased.value, abs=1e-8)
        assert other.debiased.value == pytest.approx(plain.debiased.value, abs=1e-8)


def test_jackknife_equals_leaving_every_text_out_in_turn() -> None:
    x, y = related(12)
    found = linear_cka(x, y)
    without = [linear_cka(np.delete(x, i, 0), np.delete(y, i, 0)) for i in range(12)]
    for name in ("biased", "debiased"):
        values = np.array([getattr(w, name).value for w in without])
        estimate: Estimate = getattr(found, name)
        np.testing.assert_allclose(estimate.deviations, values - values.mean(), atol=1e-12)
        assert estimate.se == pytest.approx(np.sqrt(11 / 12 * ((values - values.mean()) ** 2).sum()))


def test_states_that_share_a_large_offset_keep_their_digits() -> None:
    # Deep layers hold a few dimensions with huge common values; float32 then has no digits left for the rest.
    offset = np.eye(1, 24) * 4096.0
    x, y = ((s + offset).astype(np.float32) for s in related(100, 24, 24, seed=3))
    wanted = textbook_biased(x.astype(np.float64), y.astype(np.float64))
    assert linear_cka(x, y).biased.value == pytest.approx(wanted, abs=1e-9)


def test_drawings_that_share_texts_share_their_errors() -> None:
    x, y = related(40)
    rows = np.arange(40)
    once = cka(gram(x), gram(y), texts=rows, total=40).debiased
    assert mean_of([once, once]).se == pytest.approx(once.se)
    halves = [cka(gram(x[p]), gram(y[p]), texts=p, total=40).debiased for p in (rows[:20], rows[20:])]
    both = mean_of(halves)
    assert both.se == pytest.approx(np.sqrt(halves[0].se ** 2 + halves[1].se ** 2) / 2)


def test_too_few_or_equal_texts_are_refused() -> None:
    refusal("CKA of 4 and 4 texts", linear_cka, np.eye(4), np.eye(4))
    refusal("the same for all texts", linear_cka, np.ones((9, 3)), np.ones((9, 3)))


def test_intervals_and_ratios_by_hand() -> None:
    """Student's t at 97.5%: 2.7764 with 4 degrees of freedom."""
    one = Estimate(0.5, np.array([0.1, -0.1, 0.02, -0.02, 0.0]), 5)
    se = np.sqrt(4 / 5 * (0.02 + 0.0008))
    assert one.se == pytest.approx(se)
    assert one.interval() == pytest.approx((0.5 - 2.77645 * se, 0.5 + 2.77645 * se), abs=1e-5)
    other = Estimate(0.25, np.array([0.0, 0.0, 0.0, 0.05, -0.05]), 9)
    # of the log: deviations by their values, and the fewer of the two numbers of texts
    spread = one.deviations / 0.5 - other.deviations / 0.25
    half = 2.77645 * np.sqrt(4 / 5 * (spread**2).sum())
    for found in (one.over(other), other.over(one)):
        value, low, high = found
        assert (np.log(value / low), np.log(high / value)) == pytest.approx((half, half), rel=1e-5)
    assert one.over(other) == pytest.approx((2.0, 2 * np.exp(-half), 2 * np.exp(half)), rel=1e-5)
    for value in (0.0, -0.1):
        nothing = Estimate(value, one.deviations, 5)
        assert nothing.over(one) is None
        assert one.over(nothing) is None
