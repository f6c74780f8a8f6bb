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
from biobench.schema.task import TaskSpec


def positive_weights(spec: TaskSpec, train: Split) -> Tensor | None:
    """(labels,) weights of the positives, or None.

    ratio: training documents without the label / max(those with it, 1), as in the author's configs.
    """
    if spec.training.positive_weights == "none":
        return None
    positives = np.sum(np.stack(train.targets), axis=0)
    return torch.from_numpy((len(train.targets) - positives) / np.maximum(positives, 1)).float()


def batch_units(spec: TaskSpec, targets: Sequence[NDArray[Any]]) -> int:
    """How many terms the batch's mean loss has: words, documents, or documents x labels."""
    if spec.type == "token_ner":
        return sum(len(t) for t in targets)
    if spec.type == "multi_label":
        return sum(t.size for t in targets)
    return len(targets)


def loss_sum(spec: TaskSpec, logits: Tensor, targets: Sequence[NDArray[Any]], weights: Tensor | None) -> Tensor:
    """Sum of the loss terms of one micro-batch; divided by `batch_units` of the batch it is the mean."""
    if spec.type == "multi_label":
        wanted = torch.from_numpy(np.stack(targets)).to(logits.device)
        return binary_cross_entropy_with_logits(logits, wanted, pos_weight=weights, reduction="sum")
    flat = np.concatenate(targets) if spec.type == "token_ner" else np.stack(targets)
    return cross_entropy(logits, torch.from_numpy(flat).to(logits.device), reduction="sum")
