"""What a CKA analysis needs, from the config alone: memory, and operations of the forward passes and of the sums."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from trainer.analysis.states import Kind, check_dtype, config_of

PROCESS_BYTES = 500 * 2**20
"""Interpreter, libraries and tokenizer. Measured with torch's CPU build as `biobench analyze cka` on two BERTs of 2
layers and width 64 (peak 518 MiB) and of 12 layers and width 768 (peak 906 MiB), less the rest of the plan."""


@dataclass(frozen=True)
class CkaPlan:
    """Bytes held at a time, and floating-point operations (multiply and add counted as two) of one pair.

    process: what is there before a checkpoint is loaded. weights: of the models that are held. states: of the
    blocks of one text. cached: pooled states of all texts, or each layer's sums over tokens. sums: what is needed
    beside while they are taken. forward: of both models over all texts, in all passes. products: of the sums, in
    float64. passes: how often the texts are read.
    """

    process: int
    weights: int
    states: int
    cached: int
    sums: int
    forward: float
    products: float
    passes: int

    @property
    def memory(self) -> int:
        """Bytes in all."""
        return self.process + self.weights + self.states + self.cached + self.sums

    def as_json(self) -> dict[str, Any]:
        """Plain data."""
        return {**asdict(self), "memory": self.memory}


def plan(
    checkpoint: str | Path,
    texts: int,
    max_length: int,
    *,
    drawings: int = 1,
    states: Kind = "mean",
    dtype: str = "float32",
) -> CkaPlan:
    """The plan of one pair of checkpoints like this one, for `texts` texts of `max_length` tokens in each drawing.

    No text is taken to stand in two drawings, as is nearly so where there are many more than are drawn.
    Raises UsageError for an unknown dtype, ModelError without a config.
    """
    check_dtype(dtype)
    config = config_of(checkpoint)
    width, depth = int(config.hidden_size), int(config.num_hidden_layers)
    inner = int(config.intermediate_size)
    size = 4 if dtype == "float32" else 2
    inside = depth * (4 * width**2 + 3 * width * inner)
    # one block: input, output, query, key and value, both halves of the gated unit, the local layers' mask
    block = max_length * size * (5 * width + 3 * inner) + max_length**2
    passes = 2 if states == "tokens" else 1
    # every layer as if it were global: an upper bound
    text = 2 * inside * max_length + 4 * depth * width * max_length**2
    weights = size * (inside + int(config.vocab_size) * width)
    forward = 2.0 * passes * texts * drawings * text
    if states == "tokens":
        matrices = 3 * width**2 * 8
        return CkaPlan(
            PROCESS_BYTES,
            2 * weights,
            block + depth * max_length * width * size,
            depth * matrices,
            # one text's matrices, what is left without it, and both models' states of a layer in float64
            2 * matrices + 4 * max_length * width * 8,
            forward,
            2.0 * passes * texts * depth * max_length * 3 * width**2,
            passes,
        )
    return CkaPlan(
        PROCESS_BYTES,
        weights,
        block + max_length * width * 8,
        2 * depth * texts * drawings * width * 8,
        8 * texts**2 * 8,
        forward,
        2.0 * depth * drawings * texts**2 * 2 * width,
        passes,
    )
