"""Encoder and head as one network, and from the network to predictions, the same way for validation
and test.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from biobench.core.machine import Precision, to_device
from biobench.encode.batches import inference_order
from biobench.encode.tokens import Encoded
from biobench.finetune.prepare import Prepared
from biobench.kinds import Answers, Split
from biobench.models.encoder import Attention, Encoder
from biobench.models.heads import LinearHead, Units
from biobench.models.inputs import Ints
from biobench.schema.document import Prediction


class Network(nn.Module):
    """encoder -> hidden (tokens, width) -> head -> logits."""

    def __init__(self, encoder: Encoder, head: nn.Module) -> None:
        super().__init__()
        self.encoder = encoder
        self.head = head

    @property
    def attention(self) -> Attention:
        """How batches meet the encoder."""
        return self.encoder.attention

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return self.encoder.device

    def forward(self, encoded: Sequence[Encoded]) -> Any:
        """What the head gives: logits (fp32), one row per visible word or per window; or the scores
        of spans.
        """
        lengths = [len(e) for e in encoded]
        begins = np.cumsum([0, *lengths[:-1]])
        hidden = self.encoder(
            [e.ids for e in encoded], [e.types for e in encoded], self._rows_read(begins)
        )
        starts, stops = [], []
        for window, begin in zip(encoded, begins, strict=True):
            starts.append(window.first + begin)
            stops.append(window.stop + begin)
        units = Units(
            to_device(np.concatenate(starts), hidden.device),
            to_device(np.concatenate(stops), hidden.device),
            [len(e.words) for e in encoded],
            lengths,
            sum(int((e.stop - e.first).sum()) for e in encoded),
        )
        return self.head(hidden, units)

    def _rows_read(self, begins: Ints) -> Tensor | None:
        """`begins`, the rows of first tokens, where the head reads no others; None elsewhere.

        On a CPU alone, and not for heads that read words: leaving out the rest gains nothing there.
        """
        head = self.head
        if self.device.type == "cpu" and isinstance(head, LinearHead) and head.pooling == "cls":
            return torch.from_numpy(begins)
        return None


def settled_precision(encoder: Encoder, precision: Precision) -> tuple[Precision, list[str]]:
    """The precision that this encoder can run in, and what the record says of it: another
    precision, or a decoder.
    """
    notes = [] if encoder.first_token_reads else ["causal attention: not a bidirectional encoder"]
    if encoder.global_first:
        notes.append("the first token has global attention, as a head reads it")
    if precision == "bf16" and not encoder.runs_in_bf16:
        return "fp32", [*notes, "the encoder does not compute in bf16: run in fp32"]
    return precision, notes


def micro_batch_tokens(device: torch.device) -> int:
    """Tokens per forward call to begin with; memory errors halve it."""
    return 65_536 if device.type == "cuda" else 8_192


def activation_bytes(config: Any, tokens: int, precision: Precision) -> int:
    """What the backward pass of so many packed tokens needs of an encoder, at most.

    Bytes of a layer's saved tensors, for each unit of its width and of its inner width, as counted
    for BERT and ModernBERT with dropout. A config that does not name its sizes counts as BERT base.
    """
    width = int(getattr(config, "hidden_size", 768))
    inner = int(getattr(config, "intermediate_size", 4 * width))
    layers = int(getattr(config, "num_hidden_layers", 12))
    by_width, by_inner = (29, 8) if precision == "bf16" else (41, 16)
    embedded = 16 * width
    return tokens * (layers * (by_width * width + by_inner * inner) + embedded)


@torch.inference_mode()
def probabilities(
    network: Network, prepared: Prepared, split: Split, precision: Precision, budget: int
) -> list[NDArray[Any]]:
    """What the network says of each window."""
    network.eval()
    answers: list[NDArray[Any]] = [np.zeros(0, dtype=np.float32)] * len(split.encoded)
    for batch in inference_order(split.lengths, budget, padded=network.attention != "packed"):
        encoded = [split.encoded[i] for i in batch]
        with torch.autocast(network.device.type, torch.bfloat16, enabled=precision == "bf16"):
            logits = network(encoded)
        of_batch = prepared.kind.answers(prepared, logits, encoded)
        for index, answer in zip(batch, of_batch, strict=True):
            answers[index] = answer
    return answers


def decide(
    prepared: Prepared, split: Split, answers: Answers, threshold: float
) -> list[Prediction]:
    """Predictions from the answers of each document's windows."""
    predictions = []
    for document, windows in zip(split.units, split.windows, strict=True):
        seen, of_document = [split.encoded[w] for w in windows], [answers[w] for w in windows]
        prediction = prepared.kind.predict(prepared, document, seen, of_document, threshold)
        predictions.append(prediction)
    return predictions


GRID = tuple(round(0.05 * i, 2) for i in range(1, 20))
"""The thresholds that are tried."""


def threshold_of(prepared: Prepared, answers: Answers) -> float:
    """The threshold that `predict` is given, from the answers on validation; most kinds use none.

    tuned: that of the grid with the best selection score on validation (ties: nearest 0.5).
    """
    declared, split = prepared.spec.head.threshold, prepared.validation
    if declared != "tuned":
        return float(declared)

    def score(threshold: float) -> float:
        scores = prepared.score(split.documents, decide(prepared, split, answers, threshold)).values
        return scores[prepared.spec.selection]

    return max(GRID, key=lambda threshold: (score(threshold), -abs(threshold - 0.5)))
