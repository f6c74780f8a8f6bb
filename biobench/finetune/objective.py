"""Losses, normalised over the whole effective batch so that micro-batches never change them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits, cross_entropy

from biobench.finetune.prepare import Split
from biobench.finetune.span_objective import sampled, span_loss
from biobench.models.span_head import SpanScores
from biobench.schema.task import TaskSpec


def positive_weights(spec: TaskSpec, train: Split) -> Tensor | None:
    """(labels,) weights of the positives, or None.

    ratio: training documents without the label / max(those with it, 1), as in the author's configs.
    """
    if spec.training.positive_weights == "none":
        return None
    # A document in several windows counts once.
    positives = np.zeros(train.outputs, dtype=np.int64)
    for places in train.windows:
        positives[train.targets[places[0]]] += 1
    return torch.from_numpy((len(train.windows) - positives) / np.maximum(positives, 1)).float()


def batch_units(spec: TaskSpec, targets: Sequence[NDArray[Any]], words: Sequence[int] = ()) -> int:
    """How many terms the batch's mean loss has: words, or documents (multi-label: of the mean over labels each).

    words: visible units of each sequence; span tasks only (their mean is over units, or over sampled spans).
    """
    if spec.head.span is not None:
        if spec.head.span.variant == "paper_variant":
            return sum(sampled(t, n, spec.head.span.max_span) for t, n in zip(targets, words, strict=True))
        return sum(words)
    if spec.type == "token_ner":
        return sum(len(t) for t in targets)
    return len(targets)


def loss_sum(
    spec: TaskSpec, logits: Tensor | SpanScores, targets: Sequence[NDArray[Any]], weights: Tensor | None
) -> Tensor:
    """Sum of the loss terms of one micro-batch; divided by `batch_units` of the batch it is the mean."""
    if isinstance(logits, SpanScores):
        return span_loss(
            logits, targets, paper=spec.head.span is not None and spec.head.span.variant == "paper_variant"
        )
    if spec.type == "multi_label":
        wanted = label_matrix(targets, logits.shape[1]).to(logits.device)
        return binary_cross_entropy_with_logits(logits, wanted, pos_weight=weights, reduction="sum") / logits.shape[1]
    flat = np.concatenate(targets) if spec.type == "token_ner" else np.stack(targets)
    return cross_entropy(logits, torch.from_numpy(flat).to(logits.device), reduction="sum")


def label_matrix(targets: Sequence[NDArray[Any]], labels: int) -> Tensor:
    """(sequences, labels) of 0 and 1 from the places of each sequence's labels; made for a micro-batch only."""
    wanted = torch.zeros(len(targets), labels)
    rows = np.repeat(np.arange(len(targets)), [len(t) for t in targets])
    wanted[torch.from_numpy(rows), torch.from_numpy(np.concatenate(targets))] = 1.0
    return wanted
