"""Encoder and head as one network, and from the network to predictions, the same way for validation
and test.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from biobench.core.arrays import Array, Ints
from biobench.core.machine import Precision, computing_in, to_device
from biobench.encode.batches import inference_order
from biobench.encode.tokens import Encoded
from biobench.finetune.prepare import Prepared
from biobench.kinds import Answers, Split
from biobench.models.encoder import Attention, Encoder
from biobench.models.heads import LinearHead, Units
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
        lengths = [len(window) for window in encoded]
        begins = np.cumsum([0, *lengths[:-1]])
        ids, types = ids_and_types(encoded)
        hidden = self.encoder(ids, types, self._rows_read(begins))
        counts = [len(window.words) for window in encoded]
        begin_of_word = np.repeat(begins, counts)
        first = begin_of_word + np.concatenate([window.first for window in encoded])
        stop = begin_of_word + np.concatenate([window.stop for window in encoded])
        units = Units(
            first=to_device(first, hidden.device),
            stop=to_device(stop, hidden.device),
            counts=counts,
            lengths=lengths,
            tokens=int((stop - first).sum()),
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


def copied_weights(module: nn.Module) -> dict[str, Tensor]:
    """The weights as they are now."""
    return {name: value.detach().clone() for name, value in module.state_dict().items()}


def ids_and_types(encoded: Sequence[Encoded]) -> tuple[list[Ints], list[Ints]]:
    """What encoders read of windows."""
    return [window.ids for window in encoded], [window.types for window in encoded]


def settled_precision(encoder: Encoder, precision: Precision) -> tuple[Precision, list[str]]:
    """The precision that this encoder can run in, and what the record says of it: another
    precision, or a decoder.
    """
    notes: list[str] = []
    if not encoder.first_token_reads:
        notes.append("causal attention: not a bidirectional encoder")
    if encoder.global_first:
        notes.append("the first token has global attention, as a head reads it")
    if precision == "bf16" and not encoder.runs_in_bf16:
        return "fp32", [*notes, "the encoder does not compute in bf16: run in fp32"]
    return precision, notes


def chosen_seed(declared: int | None, of_run: int) -> int:
    """The recipe's own seed of a thing that is drawn, else the run's."""
    if declared is None:
        return of_run
    return declared


def micro_batch_tokens(device: torch.device) -> int:
    """Tokens per forward call to begin with; memory errors halve it."""
    if device.type == "cuda":
        return 65_536
    return 8_192


def activation_bytes(config: Any, tokens: int, precision: Precision) -> int:
    """What the backward pass of so many packed tokens needs of an encoder, at most.

    Bytes of a layer's saved tensors, for each unit of its width and of its inner width, as counted
    for BERT and ModernBERT with dropout. A config that does not name its sizes counts as BERT base.
    """
    width = int(getattr(config, "hidden_size", 768))
    inner = int(getattr(config, "intermediate_size", 4 * width))
    layers = int(getattr(config, "num_hidden_layers", 12))
    by_width = 41
    by_inner = 16
    if precision == "bf16":
        by_width = 29
        by_inner = 8
    embedded = 16 * width
    of_layer = by_width * width + by_inner * inner
    return tokens * (layers * of_layer + embedded)


@torch.inference_mode()
def probabilities(
    network: Network, prepared: Prepared, split: Split, precision: Precision, budget: int
) -> list[Array]:
    """What the network says of each window."""
    network.eval()
    answers: dict[int, Array] = {}
    for batch in inference_order(split.lengths, budget, padded=network.attention != "packed"):
        encoded = [split.encoded[index] for index in batch]
        with computing_in(precision, network.device):
            logits = network(encoded)
        of_batch = prepared.kind.answers(prepared, logits, encoded)
        answers.update(zip(batch, of_batch, strict=True))
    return [answers[index] for index in range(len(split.encoded))]


def decide(
    prepared: Prepared, split: Split, answers: Answers, threshold: float
) -> list[Prediction]:
    """Predictions from the answers of each document's windows."""
    predictions: list[Prediction] = []
    for document, windows in zip(split.units, split.windows, strict=True):
        seen = [split.encoded[window] for window in windows]
        of_document = [answers[window] for window in windows]
        prediction = prepared.kind.predict(prepared, document, seen, of_document, threshold)
        predictions.append(prediction)
    return predictions


GRID = tuple(round(0.05 * i, 2) for i in range(1, 20))
"""The thresholds that are tried."""


def threshold_of(prepared: Prepared, answers: Answers) -> float:
    """The threshold that `predict` is given, from the answers on validation; most kinds use none.

    tuned: that of the grid with the best selection score on validation (ties: nearest 0.5).
    """
    declared = prepared.spec.head.threshold
    split = prepared.validation
    if declared != "tuned":
        return float(declared)

    def score(threshold: float) -> float:
        predictions = decide(prepared, split, answers, threshold)
        scores = prepared.score(split.documents, predictions).values
        return scores[prepared.spec.selection]

    return max(GRID, key=lambda threshold: (score(threshold), -abs(threshold - 0.5)))
