"""Which window comes when, and which hash proves it: pure functions of the data seed and a counter.

The only state is one integer, the number of windows drawn so far. Order does not depend on the
number of processes; a second pass over the corpus has its own order.
"""

from __future__ import annotations

import hashlib
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray


def seed_words(*keys: object) -> NDArray[np.uint32]:
    """Four 32-bit words from any identifying parts, the same on every machine."""
    text = "|".join(map(str, keys))
    digest = hashlib.blake2b(text.encode(), digest_size=16)
    return np.frombuffer(digest.digest(), dtype="<u4").astype(np.uint32)


def shuffled(count: int, *keys: object) -> NDArray[np.int64]:
    """A permutation of range(count) from identifying parts. numpy has frozen RandomState's
    stream."""
    state = np.random.RandomState(seed_words(*keys))
    return state.permutation(count).astype(np.int64)


@lru_cache(maxsize=2)
def _epoch_order(windows: int, seed: int, epoch: int) -> NDArray[np.int64]:
    return shuffled(windows, "windows", seed, epoch)


def draw(
    first: int, count: int, *, windows: int, seed: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The windows number `first` to ``first + count - 1`` of a run: (window index, epoch), each
    (count,).
    """
    counters = np.arange(first, first + count, dtype=np.int64)
    epochs = counters // windows
    in_epoch = counters % windows
    indices = np.empty(count, dtype=np.int64)
    for epoch in np.unique(epochs):
        is_of_epoch = epochs == epoch
        order = _epoch_order(windows, seed, int(epoch))
        indices[is_of_epoch] = order[in_epoch[is_of_epoch]]
    return indices, epochs


def roll(previous: str, indices: NDArray[np.int64]) -> str:
    """The hash of a sample order extended by one step's windows; '' starts it."""
    digest = hashlib.blake2b(previous.encode(), digest_size=16)
    numbers = np.ascontiguousarray(indices, dtype="<i8")
    digest.update(numbers.tobytes())
    return digest.hexdigest()
