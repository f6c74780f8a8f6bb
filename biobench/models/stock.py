"""The classification head that a checkpoint's family ships, with its weights where the checkpoint has them."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from biobench.errors import ModelError
from biobench.models.heads import Units, pool
from biobench.models.loading import Checkpoint
from biobench.models.weights import weights_error

_FIRST_TOKEN_MODULE = ("roberta", "camembert", "xlm-roberta", "electra")
"""Families whose `classifier` module takes states and picks the first token itself."""

_PARTS: dict[str, tuple[str, ...]] = {
    "bert": ("bert.pooler", "dropout", "classifier"),
    "deberta": ("pooler", "dropout", "classifier"),
    "deberta-v2": ("pooler", "dropout", "classifier"),
    "distilbert": ("pre_classifier", "dropout", "classifier"),
    "modernbert": ("head", "drop", "classifier"),
    **dict.fromkeys(_FIRST_TOKEN_MODULE, ("classifier",)),
}
"""Model type to the modules between encoder and logits, in order of application."""


def parts_of(full: nn.Module) -> list[nn.Module]:
    """The modules between encoder and logits of a family's sequence-classification model, in order."""
    return [full.get_submodule(name) for name in _PARTS[full.config.model_type]]  # type: ignore[union-attr,index]


class StockHead(nn.Module):
    """The family's own head on packed states.

    BERT: dense+tanh pooler, dropout, linear. RoBERTa, ELECTRA: their classifier module on the first token.
    DistilBERT: dense, ReLU, dropout, linear. DeBERTa: context pooler. ModernBERT: pooling by its config,
    dense+activation+norm. Raises ModelError for another family.
    """

    def __init__(self, checkpoint: Checkpoint, outputs: int) -> None:
        super().__init__()
        from transformers import AutoModelForSequenceClassification

        family = checkpoint.config.model_type
        if family not in _PARTS:
            raise ModelError(
                f"the stock head of model type '{family}' is not known",
                hint="use head.pooling=cls or head.pooling=mean",
            )
        try:
            full = AutoModelForSequenceClassification.from_pretrained(
                checkpoint.folder,
                num_labels=outputs,
                ignore_mismatched_sizes=True,
                dtype=torch.float32,
                trust_remote_code=checkpoint.trust_remote_code,
            )
        except Exception as error:  # as where the encoder itself is loaded
            raise weights_error(checkpoint.folder, error) from error
        self.mean = family == "modernbert" and full.config.classifier_pooling == "mean"
        self.keeps_sequence = family in ("bert", "deberta", "deberta-v2", *_FIRST_TOKEN_MODULE)
        parts = parts_of(full)
        self.shipped = list(parts)
        if family == "distilbert":
            parts.insert(1, nn.ReLU())
        self.parts = nn.Sequential(*parts)

    def forward(self, hidden: Tensor, units: Units) -> Tensor:
        """Logits: (sequences, outputs) in fp32."""
        pooled = pool(hidden, units.lengths, "mean" if self.mean else "cls")
        logits: Tensor = self.parts(pooled[:, None] if self.keeps_sequence else pooled)
        return logits.float()
