"""From a trained network to predictions, the same way for validation and test."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from biobench.core.machine import Precision
from biobench.encode.batches import inference_order
from biobench.encode.tokens import Encoded
from biobench.finetune.prepare import Prepared
from biobench.kinds import Answers, Split
from biobench.schema.document import Prediction


class _Placed(Protocol):
    @property
    def device(self) -> torch.device: ...


class Answering(Protocol):
    """What scores documents: our network, or a checkpoint's own model with its head."""

    @property
    def attention(self) -> str:
        """packed or padded."""

    @property
    def encoder(self) -> _Placed:
        """What tells the device."""

    def eval(self) -> object:
        """Without dropout."""

    def __call__(self, encoded: Sequence[Encoded]) -> torch.Tensor:
        """Logits."""


@torch.inference_mode()
def probabilities(
    network: Answering, prepared: Prepared, split: Split, precision: Precision, budget: int
) -> list[NDArray[Any]]:
    """What the network says of each window."""
    network.eval()
    answers: list[NDArray[Any]] = [np.zeros(0, dtype=np.float32)] * len(split.encoded)
    for part in inference_order(split.lengths, budget, padded=network.attention != "packed"):
        encoded = [split.encoded[i] for i in part]
        with torch.autocast(network.encoder.device.type, torch.bfloat16, enabled=precision == "bf16"):
            logits = network(encoded)
        for index, piece in zip(part, prepared.kind.answers(prepared, logits, encoded), strict=True):
            answers[index] = piece
    return answers


def decide(prepared: Prepared, split: Split, answers: Answers, threshold: float) -> list[Prediction]:
    """Predictions from the answers of each document's windows."""
    return [
        prepared.kind.predict(
            prepared, document, [split.encoded[w] for w in places], [answers[w] for w in places], threshold
        )
        for document, places in zip(split.units, split.windows, strict=True)
    ]
