"""Sample order and masks are pure functions; the objectives predict what they should."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from trainer import objectives
from trainer.loss import IGNORE
from trainer.objectives import Vocabulary, capacity, masked, next_token, pad
from trainer.order import draw, roll
from trainer.recipe import Masking

SPECIAL = np.zeros(500, dtype=bool)
SPECIAL[:5] = True
WORDS = Vocabulary(end=3, mask=4, special=SPECIAL, ordinary=np.arange(5, 500))


def windows(rows: int = 16, length: int = 256) -> np.ndarray:
    found = np.random.RandomState(0).randint(5, 500, (rows, length)).astype(np.int64)
    found[:, 40::50] = 3
    return found


def keys(rows: int, *, epoch: int = 0, seed: int = 17) -> list[tuple[object, ...]]:
    return [(seed, 0, epoch, i) for i in range(rows)]


def test_next_token_predicts_the_following_token_everywhere_but_at_the_end() -> None:
    w = windows(2, 50)
    made = next_token(w, WORDS, isolate=False)
    assert made.positions.size == 2 * 49
    flat = w.ravel()
    assert (flat[made.positions + 1] == made.targets).all()
    assert not np.isin(made.positions, [49, 99]).any()


def test_isolated_documents_predict_nothing_across_their_end() -> None:
    w = windows(2, 100)
    made = next_token(w, WORDS, isolate=True)
    assert (w.ravel()[made.positions] != 3).all()
    numbers = objectives.document_numbers(w, 3)
    assert numbers[0, 40] == 0
    assert numbers[0, 41] == 1
    assert objectives.boundaries(numbers).tolist() == [0, 41, 91, 100, 141, 191, 200]


def test_masks_follow_the_rate_and_the_80_10_10_rule() -> None:
    w = windows(200, 256)
    made = masked(w, WORDS, Masking(rate=0.3), keys(200))
    hidden = made.inputs.ravel()[made.positions]
    ordinary = (~SPECIAL[w]).sum()
    assert abs(made.positions.size / ordinary - 0.3) < 0.01
    assert (made.targets == w.ravel()[made.positions]).all()
    assert abs((hidden == 4).mean() - 0.8) < 0.015
    assert abs((hidden == made.targets).mean() - 0.1) < 0.015
    untouched = np.ones(w.size, dtype=bool)
    untouched[made.positions] = False
    assert (made.inputs.ravel()[untouched] == w.ravel()[untouched]).all()
    assert not SPECIAL[made.targets].any()
    assert not SPECIAL[hidden[hidden != 4]].any()


def test_mask_rule_and_maskable_special_tokens() -> None:
    w = windows(50, 256)
    made = masked(w, WORDS, Masking(rate=0.5, rule="mask", special="maskable"), keys(50))
    assert (made.inputs.ravel()[made.positions] == 4).all()
    assert (made.targets == 3).any()


def test_masks_are_a_function_of_the_key_and_not_of_the_batch() -> None:
    w = windows(8)
    rule = Masking(rate=0.3)
    whole = masked(w, WORDS, rule, keys(8))
    parts = [masked(w[i : i + 2], WORDS, rule, keys(8)[i : i + 2]) for i in range(0, 8, 2)]
    assert (np.concatenate([p.inputs for p in parts]) == whole.inputs).all()
    again = masked(w, WORDS, rule, keys(8, epoch=1))
    other = masked(w, WORDS, rule, keys(8, seed=18))
    assert not (again.inputs == whole.inputs).all()
    assert not (other.inputs == whole.inputs).all()


def test_padding_reaches_the_capacity_with_targets_that_do_not_count() -> None:
    w = windows(8)
    rule = Masking(rate=0.3)
    made = masked(w, WORDS, rule, keys(8))
    size = capacity(w.size, 256, rule)
    filled = pad(made, size)
    assert filled.positions.size == size > made.positions.size
    assert (filled.targets[made.targets.size :] == IGNORE).all()
    assert capacity(w.size, 256, None) == next_token(w, WORDS, isolate=False).positions.size


@settings(max_examples=40, deadline=None)
@given(st.integers(2, 60), st.integers(0, 200), st.integers(1, 90), st.integers(0, 5))
def test_order_is_a_permutation_per_epoch_whatever_the_steps(total: int, first: int, count: int, seed: int) -> None:
    indices, epochs = draw(first, count, windows=total, seed=seed)
    assert (epochs == np.arange(first, first + count) // total).all()
    one_by_one = [draw(first + i, 1, windows=total, seed=seed)[0][0] for i in range(count)]
    assert indices.tolist() == one_by_one
    whole, _ = draw(0, total, windows=total, seed=seed)
    assert sorted(whole.tolist()) == list(range(total))


def test_the_order_hash_depends_on_order_and_seed() -> None:
    a, _ = draw(0, 20, windows=100, seed=1)
    b, _ = draw(0, 20, windows=100, seed=2)
    assert roll(roll("", a[:10]), a[10:]) == roll(roll("", a[:10]), a[10:])
    assert roll("", a) != roll("", a[::-1])
    assert roll("", a) != roll("", b)
