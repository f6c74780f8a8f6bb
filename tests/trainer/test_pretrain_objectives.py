"""Sample order and masks are pure functions; the objectives predict what they should."""

from __future__ import annotations

import hashlib

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from trainer.model import objectives
from trainer.model.objectives import Vocabulary, capacity, masked, next_token
from trainer.order import draw, roll
from trainer.recipe.phases import Masking

SPECIAL = np.zeros(500, dtype=bool)
SPECIAL[:5] = True
WORDS = Vocabulary(end=3, mask=4, special=SPECIAL, ordinary=np.arange(5, 500))
GOLDEN_ORDER = [2, 7, 5, 8, 9, 3, 4, 1, 0, 6]
GOLDEN_HASH = "aeeef67e2221625fc960ed35da3830e1"


def windows(rows: int = 16, length: int = 256) -> np.ndarray:
    found = np.random.RandomState(0).randint(5, 500, (rows, length)).astype(np.int64)
    found[:, 40::50] = 3
    return found


def keys(rows: int, *, epoch: int = 0, seed: int = 17) -> list[tuple[object, ...]]:
    return [(seed, 0, epoch, i) for i in range(rows)]


def test_the_shares_are_80_10_10_and_random_words_are_drawn_evenly() -> None:
    """Bounds of about five standard deviations: a threshold that is 0.01 off is seen."""
    w = windows(2500, 256)
    made = masked(w, WORDS, Masking(rate=0.3), keys(2500))
    hidden, ordinary = made.inputs.ravel()[made.positions], int((~SPECIAL[w]).sum())
    assert abs(made.positions.size / ordinary - 0.3) < 0.003
    assert abs((hidden == 4).mean() - 0.8) < 0.005
    random = hidden[(hidden != 4) & (hidden != made.targets)]
    assert abs(random.size / hidden.size - 0.1) < 0.004
    counts = np.bincount(random, minlength=500)
    assert counts[:5].sum() == 0
    even = random.size / 495
    assert 0.4 * even < counts[5:].min()
    assert counts[5:].max() < 1.8 * even


def test_the_masks_of_a_window_are_philox_numbers_of_its_key() -> None:
    """Written out with whole numbers: 53 bits a number, first the choices of all tokens, then what becomes of them."""
    w = windows(1, 64)
    made = masked(w, WORDS, Masking(rate=0.3), [(17, 1, 2, 5)])
    key = np.frombuffer(hashlib.blake2b(b"mask|17|1|2|5", digest_size=16).digest(), dtype="<u8")
    raw = [int(r) >> 11 for r in np.random.Philox(key=key.astype(np.uint64)).random_raw(128)]
    expected, hidden = w[0].tolist(), []
    for place, token in enumerate(w[0].tolist()):
        if token < 5 or raw[place] >= 0.3 * 2**53:
            continue
        hidden.append(place)
        action = raw[64 + place] / 2**53
        if action < 0.8:
            expected[place] = 4
        elif action < 0.9:
            expected[place] = 5 + int((action - 0.8) * 10 * 495)
    assert made.positions.tolist() == hidden
    assert made.inputs[0].tolist() == expected
    assert len({t for t in expected if t < 5}) == 2, "an end of document and masks"


def test_mask_rule_and_maskable_special_tokens() -> None:
    w = windows(50, 256)
    made = masked(w, WORDS, Masking(rate=0.5, rule="mask", special="maskable"), keys(50))
    assert (made.inputs.ravel()[made.positions] == 4).all()
    assert (made.targets == 3).any()
    part = masked(w, WORDS, Masking(rate=0.5, special="maskable"), keys(50))
    assert (part.inputs.ravel()[part.positions] != 4).any()
    assert (part.targets == 3).any()
    assert not (masked(w, WORDS, Masking(rate=0.5, rule="mask"), keys(50)).targets == 3).any()


def test_the_capacity_is_six_standard_deviations_above_the_mean() -> None:
    # 0.3 * 1000 + 6 * sqrt(0.3 * 0.7 * 1000) = 300 + 86.95
    assert capacity(1000, 100, Masking(rate=0.3)) == 387
    # 0.15 * 8192 * 4 + 6 * sqrt(0.15 * 0.85 * 32768) = 4915.2 + 387.82
    assert capacity(32768, 8192, Masking(rate=0.15)) == 5304
    assert capacity(10, 5, Masking(rate=0.9)) == 10
    assert capacity(32768, 8192, None) == 32764


@settings(max_examples=40, deadline=None)
@given(st.integers(2, 60), st.integers(0, 200), st.integers(1, 90), st.integers(0, 5))
def test_order_is_a_permutation_per_epoch_whatever_the_steps(total: int, first: int, count: int, seed: int) -> None:
    indices, epochs = draw(first, count, windows=total, seed=seed)
    assert (epochs == np.arange(first, first + count) // total).all()
    one_by_one = [draw(first + i, 1, windows=total, seed=seed)[0][0] for i in range(count)]
    assert indices.tolist() == one_by_one
    whole, _ = draw(0, total, windows=total, seed=seed)
    assert sorted(whole.tolist()) == list(range(total))


def test_the_order_is_written_down() -> None:
    """What `draw` and `roll` give is compared between machines and versions, so it must never change."""
    words = np.frombuffer(hashlib.blake2b(b"windows|42|1", digest_size=16).digest(), dtype="<u4")
    second = np.random.RandomState(words.astype(np.uint32)).permutation(10).tolist()
    assert second == GOLDEN_ORDER
    indices, epochs = draw(8, 12, windows=10, seed=42)
    assert indices[2:].tolist() == GOLDEN_ORDER
    assert epochs.tolist() == [0, 0, *[1] * 10]
    assert sorted(indices[:2].tolist() + draw(0, 8, windows=10, seed=42)[0].tolist()) == list(range(10))
    rolled = ""
    for part in (second[:4], second[4:8]):
        text = rolled.encode() + b"".join(i.to_bytes(8, "little") for i in part)
        rolled = hashlib.blake2b(text, digest_size=16).hexdigest()
    assert roll(roll("", np.array(second[:4])), np.array(second[4:8])) == rolled == GOLDEN_HASH


def test_documents_and_their_offsets_by_hand() -> None:
    """3 ends a document; a document may be a single end, and goes no further than its window."""
    w = np.array([[7, 3, 3, 8, 9], [3, 7, 7, 7, 3]])
    numbers = objectives.document_numbers(w, 3)
    assert numbers.tolist() == [[0, 0, 1, 2, 2], [0, 1, 1, 1, 1]]
    assert objectives.boundaries(numbers).tolist() == [0, 2, 3, 5, 6, 10]
    made = next_token(w, WORDS, isolate=True)
    assert made.positions.tolist() == [0, 3, 6, 7, 8]
    assert made.targets.tolist() == [3, 9, 7, 7, 3]
    assert next_token(w, WORDS, isolate=False).positions.tolist() == [0, 1, 2, 3, 5, 6, 7, 8]
