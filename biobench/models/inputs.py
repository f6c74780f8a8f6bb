"""Sequences of ids as the arrays that the library's models take: end to end in one row, or a padded
batch.
"""

from __future__ import annotations

from collections.abc import Sequence, Sized
from typing import Any, cast

import numpy as np
from torch import Tensor
from transformers import PreTrainedModel

from biobench.core.arrays import Ints
from biobench.core.grouped import grouped
from biobench.core.machine import to_device

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
    positions = [np.arange(offset, offset + len(sequence)) for sequence in sequences]
    inputs = {"input_ids": _row(sequences), "position_ids": _row(positions)}
    if types is not None:
        inputs["token_type_ids"] = _row(types)
    return inputs


def _row(sequences: Sequence[Ints]) -> Ints:
    """(1, tokens) of all sequences."""
    return np.concatenate(sequences)[None]


def token_types(sequences: Sequence[Ints], types: Sequence[Ints], config: Any) -> list[Ints] | None:
    """One type a token, 0 where a sequence has none; None where all are 0 or a model with this
    config knows fewer.
    """
    kinds = getattr(config, "type_vocab_size", None) or 0
    largest = max((int(of_sequence.max(initial=0)) for of_sequence in types), default=0)
    if not 0 < largest < kinds:
        return None
    filled: list[Ints] = []
    for sequence, of_sequence in zip(sequences, types, strict=True):
        if len(of_sequence) == 0:
            of_sequence = np.zeros_like(sequence)
        filled.append(of_sequence)
    return filled


def by_length(sequences: Sequence[Sized]) -> dict[int, list[int]]:
    """Length to the places of the sequences that have it."""
    return grouped(range(len(sequences)), lambda place: len(sequences[place]))


def filling(tokens: int, longest: int, pad_id: int) -> list[Ints]:
    """Documents of padding, none longer than `longest`, that fill a batch up to its bucket; one at
    least.
    """
    bucket = next(size for size in BUCKETS if size > tokens)
    missing = bucket - tokens
    documents = []
    for begin in range(0, missing, longest):
        length = min(longest, missing - begin)
        documents.append(np.full(length, pad_id))
    return documents


def padded_inputs(
    sequences: Sequence[Ints], types: Sequence[Ints] | None, pad_id: int
) -> dict[str, Ints]:
    """(sequences, longest) arrays as the library's models take them; token types where one is not
    0.
    """
    longest = max(map(len, sequences))
    real = [np.ones_like(sequence) for sequence in sequences]
    segments = _padded(types or (), longest, 0)
    inputs = {
        "input_ids": _padded(sequences, longest, pad_id),
        "attention_mask": _padded(real, longest, 0),
    }
    if segments.any():
        inputs["token_type_ids"] = segments
    return inputs


def _padded(sequences: Sequence[Ints], longest: int, filler: int) -> Ints:
    """(sequences, longest), with the filler behind those that are shorter."""
    rows = np.full((len(sequences), longest), filler, dtype=np.int64)
    for row, sequence in zip(rows, sequences, strict=True):
        row[: len(sequence)] = sequence
    return rows


def states_of(model: PreTrainedModel, inputs: dict[str, Ints], *, by_table: bool = False) -> Tensor:
    """(rows, tokens, width) that a model gives.

    by_table: from the rows of its embedding table, not from ids.
    """
    tensors = {name: to_device(array, model.device) for name, array in inputs.items()}
    if by_table:
        # Each task trains a table of another size, so the table stays out of what is compiled.
        table = model.get_input_embeddings()
        tensors["inputs_embeds"] = table(tensors.pop("input_ids"))
    output: Any = model(**tensors)
    # Code of one's own may give a plain tuple.
    if isinstance(output, tuple):
        return cast(Tensor, output[0])
    return cast(Tensor, output.last_hidden_state)
