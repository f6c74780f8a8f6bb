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


def token_types(sequences: Sequence[Ints], types: Sequence[Ints], kinds: int) -> list[Ints] | None:
    """One type a token, 0 where a sequence has none; None where all are 0 or a model of so many
    kinds cannot read them.
    """
    largest = max((int(t.max()) for t in types if len(t)), default=0)
    if not 0 < largest < kinds:
        return None
    filled = []
    for sequence, of_sequence in zip(sequences, types, strict=True):
        filled.append(of_sequence if len(of_sequence) else np.zeros_like(sequence))
    return filled


def filling(tokens: int, longest: int, pad_id: int) -> list[Ints]:
    """Documents of padding, none longer than `longest`, that fill a batch up to its bucket; one at
    least.
    """
    missing = next(size for size in BUCKETS if size > tokens) - tokens
    return [np.full(min(longest, missing - at), pad_id) for at in range(0, missing, longest)]


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
