"""Sequences of ids as the arrays that the library's models take: end to end in one row, or a padded
batch.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]

BUCKETS = tuple(-(-round(512 * 1.5**k) // 64) * 64 for k in range(13))
"""Numbers of tokens that compiled layers are given: 512 to 66,432, each at most 1.5 times the last
one.
"""


def packed_inputs(
    sequences: Sequence[Ints], types: Sequence[Ints] | None, offset: int
) -> dict[str, Ints]:
    """(1, tokens) arrays of sequences end to end; token types where they are given.

    offset: position of each sequence's first token.
    """
    positions = [np.arange(offset, offset + len(s)) for s in sequences]
    inputs = {
        "input_ids": np.concatenate(sequences)[None],
        "position_ids": np.concatenate(positions)[None],
    }
    if types is not None:
        inputs["token_type_ids"] = np.concatenate(types)[None]
    return inputs


def filling(tokens: int, longest: int, pad_id: int) -> list[Ints]:
    """Documents of padding, none longer than `longest`, that fill a batch up to its bucket; one at
    least.
    """
    left = next(size for size in BUCKETS if size > tokens) - tokens
    return [np.full(min(longest, left - at), pad_id) for at in range(0, left, longest)]


def padded_inputs(
    sequences: Sequence[Ints], types: Sequence[Ints] | None, pad_id: int
) -> dict[str, Ints]:
    """(sequences, longest) arrays as the library's models take them; token types where one is not
    0.
    """
    ids = np.full((len(sequences), max(len(s) for s in sequences)), pad_id, dtype=np.int64)
    mask, segments = np.zeros_like(ids), np.zeros_like(ids)
    for row, sequence in enumerate(sequences):
        ids[row, : len(sequence)], mask[row, : len(sequence)] = sequence, 1
        if types is not None:
            segments[row, : len(types[row])] = types[row]
    inputs = {"input_ids": ids, "attention_mask": mask}
    return {**inputs, "token_type_ids": segments} if segments.any() else inputs
