"""States of an encoder on texts, layer by layer, streamed: what is kept is one vector a layer and
text.

A text is run alone, so nothing is padded and no state depends on its neighbours. A hook on each
block pools the block's output as soon as it is there and lets it go; at no time do the states of
two blocks exist for the analysis, whatever the depth.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from transformers import AutoModel, PreTrainedTokenizerBase

from biobench.core.configs import position_limit
from biobench.core.machine import resolve_device
from biobench.core.tokenizer import load_tokenizer
from biobench.errors import DataUnavailableError, ModelError, UsageError
from trainer.analysis.similarity import FEWEST
from trainer.corpus.sources import texts as read_source
from trainer.model.network import load_weights, read_config
from trainer.recipe.corpus import CorpusSource, EmbeddedText

EMBEDDED_SEED = 90_210
"""Seed of the embedded texts that are analysed: another one than training's, so they are new texts.
"""
EMBEDDED_COUNT = 2_000


@dataclass(frozen=True)
class Sample:
    """Texts that were drawn: their union over the seeds, and which of them each seed drew."""

    texts: tuple[str, ...]
    drawn: dict[int, NDArray[np.int64]]
    available: int


def draw(texts: Iterable[str], count: int, seeds: Sequence[int]) -> Sample:
    """`count` texts without replacement for each seed, in one pass (reservoirs).

    With no more texts than that, all are taken once, whatever the seeds. Raises UsageError for too
    few texts.
    """
    reservoirs = [_Reservoir(count, random.Random(seed), {}) for seed in seeds]
    available = 0
    for available, text in enumerate(texts, 1):
        for reservoir in reservoirs:
            reservoir.offer(available, text)
    if min(count, available) < FEWEST:
        raise UsageError(
            f"{min(count, available)} texts are too few to compare states on",
            hint="--texts should hold hundreds",
        )
    slots = chain.from_iterable(reservoir.slots.values() for reservoir in reservoirs)
    union = dict(sorted(slots))
    numbers = np.array(list(union))
    used = seeds if available > count else seeds[:1]
    drawn = {}
    for seed, reservoir in zip(used, reservoirs, strict=False):
        chosen = sorted(number for number, _ in reservoir.slots.values())
        drawn[seed] = np.searchsorted(numbers, chosen).astype(np.int64)
    return Sample(tuple(union.values()), drawn, available)


@dataclass
class _Reservoir:
    """A uniform draw of `count` texts without replacement. slots: slot to (number, text)."""

    count: int
    generator: random.Random
    slots: dict[int, tuple[int, str]]

    def offer(self, number: int, text: str) -> None:
        """Take the text number `number` (1 for the first) with probability count / number."""
        slot = len(self.slots)
        if slot == self.count:
            slot = self.generator.randrange(number)
        if slot < self.count:
            self.slots[slot] = (number, text)


def sample(where: str, count: int, seeds: Sequence[int]) -> Sample:
    """`draw` from ``embedded``, a file or folder (txt, jsonl, parquet), or ``hub:owner/name``.

    Documents of jsonl and parquet are under `text`. Raises DataUnavailableError and
    DataFormatError.
    """
    root = Path()
    if where == "embedded":
        source = CorpusSource(
            id="texts", embedded=EmbeddedText(documents=EMBEDDED_COUNT, seed=EMBEDDED_SEED)
        )
    elif where.startswith("hub:"):
        source = CorpusSource(id="texts", hub=where.removeprefix("hub:"))
    else:
        named = Path(os.path.abspath(where))  # the user's own word, wherever it lies
        root = Path(named.anchor)
        source = CorpusSource(id="texts", path=named.relative_to(root).as_posix())
    try:
        return draw(read_source(source, root), count, seeds)
    except DataUnavailableError as error:  # the corpus reader's remedy is a recipe's field
        error.hint = "--texts takes a file, a folder (txt, jsonl, parquet), hub:ID or embedded"
        raise


def check_shapes(checkpoints: Sequence[str | Path]) -> None:
    """Raise ModelError unless all have the first one's depth and width."""
    shapes = []
    for checkpoint in checkpoints:
        config = read_config(checkpoint)
        shapes.append(f"{config.num_hidden_layers} layers of {config.hidden_size} dimensions")
        if shapes[-1] != shapes[0]:
            differ = f"{checkpoints[0]} has {shapes[0]}, {checkpoint} has {shapes[-1]}"
            raise ModelError(differ, hint="compare checkpoints of one architecture")


def token_ids(
    checkpoints: Sequence[str | Path], texts: Sequence[str], max_length: int
) -> tuple[list[list[int]], int]:
    """The ids of every text, cut to `max_length`, and how many texts were cut.

    Raises ModelError unless every checkpoint's tokenizer gives the same ids for all of them.
    """
    reference, *rivals = checkpoints
    tokenizer = load_tokenizer(reference)
    limit = min(max_length, position_limit(read_config(reference)) or max_length)
    uncut = tokenizer(list(texts), truncation=False)["input_ids"]

    def cut(tokenizer: PreTrainedTokenizerBase) -> list[list[int]]:
        encoded = tokenizer(list(texts), truncation=True, max_length=limit)
        ids: list[list[int]] = encoded["input_ids"]
        return ids

    ids = cut(tokenizer)
    for checkpoint in rivals:
        pairs = zip(ids, cut(load_tokenizer(checkpoint)), strict=True)
        for number, (row, other_row) in enumerate(pairs, 1):
            if other_row != row:
                raise ModelError(
                    f"the tokenizers of {reference} and {checkpoint} differ: text {number} becomes "
                    f"other ids ({len(row)} and {len(other_row)} tokens)",
                    hint="compare checkpoints that share a tokenizer",
                )
    return ids, sum(len(row) > limit for row in uncut)


def layer_states(
    checkpoint: str | Path, ids: Sequence[Sequence[int]], *, device: str = "auto"
) -> NDArray[np.float64]:
    """States (layers, texts, width) of every block's output before the encoder's final norm: means
    over tokens.

    The mean is over all tokens of a text, special ones included, in float64. The blocks are the
    first module list that is as long as the config says. Raises ModelError where there is none, and
    for states that are not finite.
    """
    machine = resolve_device(device)
    model = load_weights(AutoModel, checkpoint).to(machine).eval()  # type: ignore[arg-type]
    depth = model.config.num_hidden_layers
    lists = (module for module in model.modules() if isinstance(module, nn.ModuleList))
    blocks = next((blocks for blocks in lists if len(blocks) == depth), None)
    if blocks is None:
        raise ModelError(
            f"no list of {depth} blocks in a {type(model).__name__}",
            hint="encoders of the usual layout are supported",
        )
    pooled: list[NDArray[np.float64]] = []

    def keep(_module: nn.Module, _inputs: Any, output: Tensor | tuple[Tensor, ...]) -> None:
        states = output[0] if isinstance(output, tuple) else output
        pooled.append(states[0].double().mean(dim=0).cpu().numpy())

    for block in blocks:
        block.register_forward_hook(keep)
    with torch.inference_mode():
        for text in ids:
            batch = torch.tensor([list(text)], device=machine)
            model(input_ids=batch)
    by_text = np.array(pooled).reshape(len(ids), depth, -1)
    rows = by_text.swapaxes(0, 1)
    bad = np.argwhere(~np.isfinite(rows))
    if bad.size:
        layer, number, _ = bad[0]
        raise ModelError(
            f"layer {layer} of '{checkpoint}' has a state that is not finite (text {number + 1})",
            hint="the checkpoint is damaged: copy or download it again",
        )
    return rows
