"""From a trained network to predictions, the same way for validation and test."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

from biobench.encode.batches import inference_order
from biobench.encode.tags import predict_tags
from biobench.finetune.machine import Precision
from biobench.finetune.network import Network
from biobench.finetune.prepare import Prepared, Split
from biobench.schema.document import Prediction
from biobench.schema.task import Head

Probabilities = list[NDArray[np.float32]]


@torch.inference_mode()
def probabilities(
    network: Network, prepared: Prepared, split: Split, precision: Precision, budget: int
) -> Probabilities:
    """Per document: (visible words, tags) softmax, (labels,) softmax, or (labels,) sigmoid."""
    network.eval()
    found: Probabilities = [np.zeros(0, dtype=np.float32)] * len(split.documents)
    token_task = prepared.spec.type == "token_ner"
    for part in inference_order(split.lengths, budget, padded=network.attention == "padded"):
        encoded = [split.encoded[i] for i in part]
        with torch.autocast(network.encoder.device.type, torch.bfloat16, enabled=precision == "bf16"):
            logits = network(encoded)
        chances = torch.sigmoid(logits) if prepared.spec.type == "multi_label" else torch.softmax(logits, -1)
        rows = chances.float().cpu().numpy()
        pieces = np.split(rows, np.cumsum([len(e.words) for e in encoded])[:-1]) if token_task else list(rows)
        for index, piece in zip(part, pieces, strict=True):
            found[index] = piece
    return found


def decide(prepared: Prepared, split: Split, chances: Probabilities, threshold: float) -> list[Prediction]:
    """Predictions from probabilities. `threshold` is used by multi-label tasks only."""
    spec = prepared.spec
    if spec.type == "token_ner":
        return [
            predict_tags(d, e, p, prepared.outputs, prepared.decode)
            for d, e, p in zip(split.documents, split.encoded, chances, strict=True)
        ]
    return [
        Prediction(
            document=document.id,
            labels=_labels(p, prepared.outputs, spec.head, threshold, multi=spec.type == "multi_label"),
            label_scores=tuple(round(float(x), 6) for x in p),
        )
        for document, p in zip(split.documents, chances, strict=True)
    ]


def _labels(
    chances: NDArray[np.float32], outputs: tuple[str, ...], head: Head, threshold: float, *, multi: bool
) -> tuple[str, ...]:
    if not multi:
        return (outputs[int(chances.argmax())],)
    passed = np.flatnonzero(chances > threshold)
    if len(passed) == 0 and head.fallback == "top1":
        passed = np.asarray([chances.argmax()])
    return tuple(outputs[i] for i in passed)


def fixed_threshold(head: Head) -> float:
    """The threshold before any tuning."""
    return 0.5 if head.threshold == "tuned" else float(head.threshold)


def tune_threshold(prepared: Prepared, chances: Probabilities) -> float:
    """The threshold on a 0.05 grid that gives the best selection score on validation (ties: nearest 0.5)."""
    grid = [round(0.05 * i, 2) for i in range(1, 20)]
    split = prepared.validation

    def quality(threshold: float) -> tuple[float, float]:
        scores = prepared.score(split.documents, decide(prepared, split, chances, threshold)).values
        return scores[prepared.spec.selection], -abs(threshold - 0.5)

    return max(grid, key=quality)
