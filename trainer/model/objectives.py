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
        raw = np.random.Philox(key=seed_words("mask", *key).view(np.uint64)).random_raw(2 * length)
        uniform = (raw >> np.uint64(11)) * (1.0 / (1 << 53))
        chosen[row] = (uniform[:length] < masking.rate) & ~vocabulary.special[windows[row]]
        action = uniform[length:]
        inputs[row, chosen[row] & (action < 0.8)] = vocabulary.mask
        random = chosen[row] & (action >= 0.8) & (action < 0.9)
        pick = ((action[random] - 0.8) * 10 * vocabulary.ordinary.size).astype(np.int64)
        inputs[row, random] = vocabulary.ordinary[pick]
    positions = np.flatnonzero(chosen)
    return Targets(inputs, positions, windows.ravel()[positions])


def capacity(tokens: int, length: int, masking: Masking | None) -> int:
    """Most targets to expect among `tokens` tokens: a fixed shape for compiled and GPU runs.

    Masked: the mean plus six standard deviations of the binomial; beyond it the batch stays larger.
    """
    if masking is None:
        return tokens - tokens // length
    p = masking.rate
    return min(tokens, math.ceil(p * tokens + 6 * math.sqrt(p * (1 - p) * tokens)))


def pad(targets: Targets, size: int) -> Targets:
    """Fill positions up to `size` with places without a target."""
    missing = (0, max(0, size - targets.positions.size))
    filled = np.pad(targets.targets, missing, constant_values=IGNORE)
    return Targets(targets.inputs, np.pad(targets.positions, missing), filled)


def document_numbers(windows: Ids, end: int) -> Ids:
    """(batch, tokens) the document each token belongs to; the end token belongs to the one it
    ends."""
    numbers: Ids = np.cumsum(windows == end, axis=1) - (windows == end)
    return numbers


def boundaries(documents: Ids) -> NDArray[np.int32]:
    """Offsets of all documents in the flattened batch, for variable-length kernels."""
    starts = np.ones(documents.shape, dtype=bool)
    starts[:, 1:] = documents[:, 1:] != documents[:, :-1]
    return np.append(np.flatnonzero(starts), documents.size).astype(np.int32)
