"""States of a frozen encoder, computed once for a task and shared by all probe seeds.

Kept are few states only, in half precision. Sequence tasks: one vector a window, or the first token and
`segments` means, so that memory does not grow with the length of the documents. Token tasks: one vector a word,
that of its first sub-token, which is what the fine-tuned head reads too.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from biobench.core.machine import Precision
from biobench.core.memory import is_out_of_memory
from biobench.encode.batches import inference_order
from biobench.errors import TrainingError
from biobench.finetune.loop import Progress
from biobench.finetune.machine import micro_batch_tokens, settled_precision
from biobench.finetune.prepare import Prepared
from biobench.kinds import Split
from biobench.models.encoder import Encoder

_LARGEST = 60_000.0
"""States beyond this do not fit half precision."""


@dataclass(slots=True)
class Features:
    """Of each split (units, vectors, width) on the CPU, and (units, vectors) which are real.

    A unit is what gets one answer: a window, or a visible word (token tasks).
    precision: what the states were computed in. backoffs: changes forced by memory or by values that are not
    finite. seconds, tokens: what it cost.
    """

    prepared: Prepared
    wanted: Precision
    precision: Precision
    states: dict[str, Tensor]
    real: dict[str, Tensor]
    backoffs: tuple[str, ...]
    budget: int
    seconds: float
    tokens: int

    def of(self, prepared: Prepared, precision: Precision) -> bool:
        """Whether these are the states of this task in this precision."""
        return self.prepared is prepared and self.wanted == precision


def unit_bounds(split: Split, *, words: bool) -> NDArray[np.int64]:
    """(windows + 1,) place of each window's first unit, and at the end how many units there are."""
    sizes = [len(e.words) if words else 1 for e in split.encoded]
    return np.cumsum([0, *sizes], dtype=np.int64)


@torch.inference_mode()
def extract(
    encoder: Encoder,
    prepared: Prepared,
    precision: Precision,
    progress: Progress,
    splits: Mapping[str, Split] | None = None,
) -> Features:
    """Run the encoder once over all splits. Raises TrainingError where its states are not finite in fp32.

    splits: what is encoded in their place, by the names that the states get.
    """
    began = time.perf_counter()
    if splits is None:
        splits = {"train": prepared.train, "validation": prepared.validation, "test": prepared.test}
    tokens = sum(sum(s.lengths) for s in splits.values())
    encoder.train(False)
    wanted = precision
    precision, backoffs = settled_precision(encoder, precision)
    budget = micro_batch_tokens(encoder.device)
    while True:
        try:
            work = _Extraction(encoder, prepared, precision, budget, tokens, progress)
            states = {name: work.split(split) for name, split in splits.items()}
        except (RuntimeError, MemoryError) as error:
            if not is_out_of_memory(error) or budget <= 1:
                raise
            budget //= 2
            backoffs.append(f"out of memory: micro-batch cut to {budget} tokens")
            continue
        if all(bool(torch.isfinite(s).all()) for s, _ in states.values()):
            break
        if precision == "fp32":
            raise TrainingError("the encoder's states are not finite in fp32", hint="check the checkpoint's weights")
        precision = "fp32"
        backoffs.append("states that are not finite: computed again in fp32")
    return Features(
        prepared,
        wanted,
        precision,
        {name: s for name, (s, _) in states.items()},
        {name: r for name, (_, r) in states.items()},
        tuple(backoffs),
        budget,
        time.perf_counter() - began,
        tokens,
    )


class _Extraction:
    """One pass over the splits with one micro-batch size."""

    def __init__(
        self, encoder: Encoder, prepared: Prepared, precision: Precision, budget: int, tokens: int, progress: Progress
    ) -> None:
        assert prepared.spec.probe is not None
        self.encoder = encoder
        self.probe = prepared.spec.probe
        self.words = prepared.kind.words
        self.precision = precision
        self.budget = budget
        self.tokens = tokens
        self.done = 0
        self.progress = progress

    def split(self, split: Split) -> tuple[Tensor, Tensor]:
        vectors = 1 + self.probe.segments if self.probe.pooling == "attention" and not self.words else 1
        begins = unit_bounds(split, words=self.words)
        states = torch.zeros(int(begins[-1]), vectors, self.encoder.width, dtype=torch.float16)
        real = torch.zeros(len(states), vectors, dtype=torch.bool)
        for part in inference_order(split.lengths, self.budget, padded=self.encoder.attention != "packed"):
            sequences, types = [split.encoded[i].ids for i in part], [split.encoded[i].types for i in part]
            with torch.autocast(self.encoder.device.type, torch.bfloat16, enabled=self.precision == "bf16"):
                hidden = self.encoder(sequences, types)
            for i, rows in zip(part, torch.split(hidden.float(), [len(s) for s in sequences]), strict=True):
                units = slice(int(begins[i]), int(begins[i + 1]))
                first = torch.from_numpy(np.array(split.encoded[i].first)).to(rows.device)
                kept = rows[first][:, None] if self.words else self._pooled(rows)[None]
                states[units, : kept.shape[1]] = kept.clamp(-_LARGEST, _LARGEST).to("cpu", torch.float16)
                real[units, : kept.shape[1]] = True
                self.done += len(rows)
            self.progress(self.done, self.tokens, "tokens encoded")
        return states, real

    def _pooled(self, rows: Tensor) -> Tensor:
        """(vectors, width) of one document's (tokens, width)."""
        if self.probe.pooling == "cls":
            return rows[:1]
        if self.probe.pooling == "mean":
            return rows.mean(0, keepdim=True)
        edges = np.linspace(0, len(rows), min(self.probe.segments, len(rows)) + 1).round().astype(int)
        sizes = np.diff(edges).tolist()
        return torch.cat([rows[:1], torch.stack([piece.mean(0) for piece in torch.split(rows, sizes)])])
