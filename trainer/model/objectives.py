"""Inputs and sparse targets of the two objectives: pure functions of the windows and, for masks, a
key.

Both give flat positions and targets, so that one loss path serves them: logits exist only where
there is a target. Masks are keyed by (seed, phase, epoch, window), not by any worker's state, so
they are the same for every number of processes and after every resume, and new when a window is
read again.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trainer.model.loss import IGNORE
from trainer.order import seed_words
from trainer.recipe.phases import Masking

Ids = NDArray[np.int64]


@dataclass(frozen=True)
class Vocabulary:
    """The ids that the objectives need. special: bool per id; ordinary: the ids that are not
    special.
    """

    end: int
    mask: int | None
    special: NDArray[np.bool_]
    ordinary: Ids


@dataclass(frozen=True)
class Targets:
    """One batch. inputs: (batch, tokens); positions: (count,) in the flattened batch; targets:
    (count,).
    """

    inputs: Ids
    positions: Ids
    targets: Ids


def next_token(windows: Ids, vocabulary: Vocabulary, *, isolate: bool) -> Targets:
    """Every token predicts the one after it; the last of a window, and with `isolate` of a
    document, nothing.
    """
    rows, length = windows.shape
    predicts = np.ones((rows, length - 1), dtype=bool)
    if isolate:
        predicts &= windows[:, :-1] != vocabulary.end
    row, column = np.nonzero(predicts)
    return Targets(windows, row * length + column, windows[row, column + 1])


def masked(
    windows: Ids, vocabulary: Vocabulary, masking: Masking, keys: Sequence[tuple[object, ...]]
) -> Targets:
    """Hidden tokens are predicted at their own place.

    keys: what identifies each window's masks (seed, phase, epoch, window index).
    """
    assert vocabulary.mask is not None
    length = windows.shape[1]
    inputs = windows.copy()
    chosen = np.zeros(windows.shape, dtype=bool)
    for row, key in enumerate(keys):
        uniform = _uniform(key, 2 * length)
        is_special = vocabulary.special[windows[row]]
        is_chosen = (uniform[:length] < masking.rate) & ~is_special
        action = uniform[length:]
        is_random = is_chosen & (action >= 0.8) & (action < 0.9)
        place = (action[is_random] - 0.8) * 10 * vocabulary.ordinary.size
        inputs[row, is_chosen & (action < 0.8)] = vocabulary.mask
        inputs[row, is_random] = vocabulary.ordinary[place.astype(np.int64)]
        chosen[row] = is_chosen
    positions = np.flatnonzero(chosen)
    return Targets(inputs, positions, windows.ravel()[positions])


def _uniform(key: Sequence[object], count: int) -> NDArray[np.float64]:
    """Numbers from 0 to 1 that a key stands for, the same on every machine."""
    words = seed_words("mask", *key)
    raw = np.random.Philox(key=words.view(np.uint64)).random_raw(count)
    return np.asarray((raw >> np.uint64(11)) * (1.0 / (1 << 53)), np.float64)


def capacity(tokens: int, length: int, masking: Masking | None) -> int:
    """Most targets to expect among `tokens` tokens: a fixed shape for compiled and GPU runs.

    Masked: the mean plus six standard deviations of the binomial; beyond it the batch stays larger.
    """
    if masking is None:
        return tokens - tokens // length
    p = masking.rate
    deviation = math.sqrt(p * (1 - p) * tokens)
    return min(tokens, math.ceil(p * tokens + 6 * deviation))


def pad(targets: Targets, size: int) -> Targets:
    """Fill positions up to `size` with places without a target."""
    missing = (0, max(0, size - targets.positions.size))
    filled = np.pad(targets.targets, missing, constant_values=IGNORE)
    return Targets(targets.inputs, np.pad(targets.positions, missing), filled)


def document_numbers(windows: Ids, end: int) -> Ids:
    """(batch, tokens) the document each token belongs to; the end token belongs to the one it
    ends."""
    ends = windows == end
    numbers: Ids = np.cumsum(ends, axis=1) - ends
    return numbers


def boundaries(documents: Ids) -> NDArray[np.int32]:
    """Offsets of all documents in the flattened batch, for variable-length kernels."""
    starts = np.ones(documents.shape, dtype=bool)
    starts[:, 1:] = documents[:, 1:] != documents[:, :-1]
    return np.append(np.flatnonzero(starts), documents.size).astype(np.int32)
