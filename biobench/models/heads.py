"""Heads consume `hidden (tokens, width)` and `lengths`, whatever the encoder behind them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import torch
from torch import Tensor, nn

from biobench.errors import ModelError
from biobench.models.loading import Checkpoint


def _starts(lengths: Sequence[int], device: torch.device) -> Tensor:
    """(sequences,) position of each sequence's first token."""
    sizes = torch.tensor(lengths)
    return (sizes.cumsum(0) - sizes).to(device)


def pool(hidden: Tensor, lengths: Sequence[int], pooling: Literal["cls", "mean"]) -> Tensor:
    """(sequences, width): each sequence's first token, or the mean of its tokens (in fp32)."""
    if pooling == "cls":
        return hidden[_starts(lengths, hidden.device)]
    sizes = torch.tensor(lengths, device=hidden.device)
    owner = torch.repeat_interleave(torch.arange(len(lengths), device=hidden.device), sizes)
    total = torch.zeros(len(lengths), hidden.shape[1], dtype=torch.float32, device=hidden.device)
    return total.index_add(0, owner, hidden.float()) / sizes[:, None]


class TokenHead(nn.Module):
    """Dropout and a linear layer on chosen tokens."""

    def __init__(self, width: int, outputs: int, dropout: float, std: float) -> None:
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        self.linear = nn.Linear(width, outputs)
        nn.init.normal_(self.linear.weight, std=std)
        nn.init.zeros_(self.linear.bias)

    def forward(self, hidden: Tensor, lengths: Sequence[int], positions: Tensor) -> Tensor:
        """positions: (chosen,) rows of `hidden`. Logits: (chosen, outputs) in fp32."""
        return self.linear(self.dropout(hidden[positions])).float()  # type: ignore[no-any-return]


class SequenceHead(nn.Module):
    """Pooling (first token or mean), dropout and a linear layer."""

    def __init__(self, width: int, outputs: int, dropout: float, std: float, pooling: Literal["cls", "mean"]) -> None:
        super().__init__()
        self.pooling = pooling
        self.dropout = nn.Dropout(dropout)
        self.linear = nn.Linear(width, outputs)
        nn.init.normal_(self.linear.weight, std=std)
        nn.init.zeros_(self.linear.bias)

    def forward(self, hidden: Tensor, lengths: Sequence[int], positions: Tensor) -> Tensor:
        """Logits: (sequences, outputs) in fp32. `positions` is not used."""
        return self.linear(self.dropout(pool(hidden, lengths, self.pooling))).float()  # type: ignore[no-any-return]


class StockHead(nn.Module):
    """The classification head that the checkpoint's family ships, with its weights where it has them.

    BERT: dense+tanh pooler, dropout, linear. RoBERTa, ELECTRA: their classifier module on the first token.
    DistilBERT: dense+ReLU. DeBERTa: context pooler. ModernBERT: pooling by its config, dense+activation+norm.
    """

    def __init__(self, checkpoint: Checkpoint, outputs: int) -> None:
        super().__init__()
        from transformers import AutoModelForSequenceClassification

        self.family: str = checkpoint.config.model_type
        names = _STOCK_PARTS.get(self.family)
        if names is None:
            raise ModelError(
                f"the stock head of model type '{self.family}' is not known",
                hint="use head.pooling=cls or head.pooling=mean",
            )
        full = AutoModelForSequenceClassification.from_pretrained(
            checkpoint.folder,
            num_labels=outputs,
            ignore_mismatched_sizes=True,
            dtype=torch.float32,
            trust_remote_code=checkpoint.trust_remote_code,
        )
        self.mean = getattr(full.config, "classifier_pooling", "cls") == "mean"
        for name in names:
            part = full
            for step in name.split("."):
                part = getattr(part, step)
            self.add_module(name.split(".")[-1], part)

    def forward(self, hidden: Tensor, lengths: Sequence[int], positions: Tensor) -> Tensor:
        """Logits: (sequences, outputs) in fp32. `positions` is not used."""
        first = pool(hidden, lengths, "mean" if self.family == "modernbert" and self.mean else "cls")
        if self.family in ("bert", "deberta-v2", "deberta"):
            logits = self.classifier(self.dropout(self.pooler(first[:, None])))
        elif self.family == "distilbert":
            logits = self.classifier(self.dropout(torch.relu(self.pre_classifier(first))))
        elif self.family == "modernbert":
            logits = self.classifier(self.drop(self.head(first)))
        else:
            logits = self.classifier(first[:, None])
        return logits.float()  # type: ignore[no-any-return]


_ROBERTA_PARTS = ("classifier",)
_STOCK_PARTS: dict[str, tuple[str, ...]] = {
    "bert": ("bert.pooler", "dropout", "classifier"),
    "deberta": ("pooler", "dropout", "classifier"),
    "deberta-v2": ("pooler", "dropout", "classifier"),
    "distilbert": ("pre_classifier", "dropout", "classifier"),
    "modernbert": ("head", "drop", "classifier"),
    **dict.fromkeys(("roberta", "camembert", "xlm-roberta", "electra"), _ROBERTA_PARTS),
}
