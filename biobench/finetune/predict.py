"""From a trained network to predictions, the same way for validation and test."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from biobench.core.machine import Precision
from biobench.encode.batches import inference_order
from biobench.encode.merge import merge_labels, merge_spans, merge_words
from biobench.encode.spans import predict_spans
from biobench.encode.tags import predict_tags
from biobench.finetune.network import Network
from biobench.finetune.prepare import Prepared, Split
from biobench.finetune.span_predict import found_spans
from biobench.finetune.thresholds import tune_threshold as tune_threshold
from biobench.models.span_head import SpanScores
from biobench.schema.document import Prediction
from biobench.schema.task import Head

Probabilities = list[NDArray[Any]]
"""Per window: (visible words, tags) softmax, (labels,) softmax or sigmoid, or spans as `encode.spans.Found`."""


@torch.inference_mode()
def probabilities(
    network: Network, prepared: Prepared, split: Split, precision: Precision, budget: int
) -> Probabilities:
    """What the network says of each window."""
    network.eval()
    found: Probabilities = [np.zeros(0, dtype=np.float32)] * len(split.encoded)
    token_task = prepared.spec.type == "token_ner"
    for part in inference_order(split.lengths, budget, padded=network.attention != "packed"):
        encoded = [split.encoded[i] for i in part]
        with torch.autocast(network.encoder.device.type, torch.bfloat16, enabled=precision == "bf16"):
            logits = network(encoded)
        if isinstance(logits, SpanScores):
            pieces = found_spans(logits, encoded, paper=len(prepared.outputs) < logits.logits.shape[2])
        else:
            chances = torch.sigmoid(logits) if prepared.spec.type == "multi_label" else torch.softmax(logits, -1)
            rows = chances.float().cpu().numpy()
            pieces = np.split(rows, np.cumsum([len(e.words) for e in encoded])[:-1]) if token_task else list(rows)
        for index, piece in zip(part, pieces, strict=True):
            found[index] = piece
    return found


def decide(prepared: Prepared, split: Split, chances: Probabilities, threshold: float) -> list[Prediction]:
    """Predictions from probabilities, windows merged. `threshold` is used by multi-label tasks only."""
    spec = prepared.spec
    said = []
    for document, units, places in zip(split.documents, split.units, split.windows, strict=True):
        own = [chances[w] for w in places]
        encoded = [split.encoded[w] for w in places] if spec.is_ner else []
        if spec.head.span is not None:
            found = merge_spans(encoded, own)
            said.append(predict_spans(units, found, prepared.outputs, filtered=spec.head.span.filters))
        elif spec.type == "token_ner":
            said.append(predict_tags(document, *merge_words(encoded, own), prepared.outputs, prepared.decode))
        else:
            p = merge_labels(own, spec.protocol.merge)
            multi = spec.type == "multi_label"
            if not multi and len(own) > 1:
                p = p / p.sum()
            labels = _labels(p, prepared.outputs, spec.head, threshold, multi=multi)
            scores = np.round(p.astype(np.float64), 6).tolist()
            said.append(Prediction(document=document.id, labels=labels, label_scores=tuple(scores)))
    return said


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
