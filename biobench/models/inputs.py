"""Sequences of ids as the arrays that the library's models take: end to end in one row, or a padded
batch.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence, Sized
from typing import Any, cast

import numpy as np
from torch import Tensor
from transformers import PreTrainedModel

from biobench.core.arrays import Ints
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
    inputs = {
        "input_ids": np.concatenate(sequences)[None],
        "position_ids": np.concatenate(positions)[None],
    }
    if types is not None:
        inputs["token_type_ids"] = np.concatenate(types)[None]
    return inputs


def token_types(sequences: Sequence[Ints], types: Sequence[Ints], config: Any) -> list[Ints] | None:
    """One type a token, 0 where a sequence has none; None where all are 0 or a model with this
    config knows fewer.
    """
    kinds = getattr(config, "type_vocab_size", None) or 0
    largest = max((int(t.max(initial=0)) for t in types), default=0)
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
    places: dict[int, list[int]] = defaultdict(list)
    for place, sequence in enumerate(sequences):
        places[len(sequence)].append(place)
    return places


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
    longest = max(map(len, sequences))
    ids = np.full((len(sequences), longest), pad_id, dtype=np.int64)
    mask = np.zeros_like(ids)
    for row, sequence in enumerate(sequences):
        ids[row, : len(sequence)] = sequence
        mask[row, : len(sequence)] = 1
    inputs = {"input_ids": ids, "attention_mask": mask}
    segments = np.zeros_like(ids)
    for row, of_sequence in enumerate(types or ()):
        segments[row, : len(of_sequence)] = of_sequence
    if segments.any():
        inputs["token_type_ids"] = segments
    return inputs


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
