"""Where each supported architecture keeps its layers, head and projection."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch.nn.functional as F
from torch import Tensor, nn
from transformers import PreTrainedModel

from biobench.core.configs import position_limit
from biobench.errors import ModelError


@dataclass(frozen=True)
class Family:
    """Paths (dotted attribute names) and functions of one architecture.

    body: input ids to hidden states. head: modules between body and projection. decoder: the
    projection. join: applies the head where that is more than one module after the other.
    """

    body: str
    layers: str
    head: tuple[str, ...]
    decoder: str
    join: Callable[[PreTrainedModel, Tensor], Tensor] | None = None
    auto: str = "AutoModelForMaskedLM"

    def transform(self, model: PreTrainedModel, hidden: Tensor) -> Tensor:
        """States (tokens, width) as the projection reads them."""
        if self.join is not None:
            return self.join(model, hidden)
        for name in self.head:
            hidden = model.get_submodule(name)(hidden)
        return hidden


def _roberta(model: PreTrainedModel, hidden: Tensor) -> Tensor:
    head = model.lm_head
    transformed: Tensor = head.layer_norm(F.gelu(head.dense(hidden)))
    return transformed


def _ultrabert(model: PreTrainedModel, hidden: Tensor) -> Tensor:
    head: Any = model.head
    transformed: Tensor = head.act_fn(head.linear2(head.act_fn(head.linear1(hidden))))
    return transformed


_BERT_HEAD = ("cls.predictions.transform",)
_PLAIN = Family("model", "model.layers", (), "lm_head")
_ROBERTA = Family(
    "roberta",
    "roberta.encoder.layer",
    ("lm_head.dense", "lm_head.layer_norm"),
    "lm_head.decoder",
    join=_roberta,
)
FAMILIES: dict[str, Family] = {
    "modernbert": Family("model", "model.layers", ("head",), "decoder"),
    "modernbert-decoder": Family(
        "model", "model.layers", ("lm_head",), "decoder", auto="AutoModelForCausalLM"
    ),
    "bert": Family("bert", "bert.encoder.layer", _BERT_HEAD, "cls.predictions.decoder"),
    **dict.fromkeys(("roberta", "camembert", "xlm-roberta"), _ROBERTA),
    "eurobert": _PLAIN,
    "ultrabert": Family(
        "model",
        "model.layers",
        ("head.linear1", "head.linear2"),
        "head.decoder",
        join=_ultrabert,
    ),
    **dict.fromkeys(
        ("gemma3_text", "llama", "qwen2", "qwen3"), replace(_PLAIN, auto="AutoModelForCausalLM")
    ),
}


def family_of(model_type: str) -> Family:
    """The family of a config's ``model_type``. Raises ModelError naming the known ones."""
    if model_type not in FAMILIES:
        raise ModelError(
            f"model type '{model_type}' cannot be pretrained here",
            hint="known types: "
            + ", ".join(sorted(FAMILIES))
            + "; add a Family in trainer/model/families.py",
        )
    return FAMILIES[model_type]


def layers_of(model: PreTrainedModel) -> nn.ModuleList:
    """The encoder's blocks, first to last."""
    layers = model.get_submodule(family_of(model.config.model_type).layers)
    assert isinstance(layers, nn.ModuleList)
    return layers


def decoder_of(model: PreTrainedModel) -> nn.Linear:
    """The projection to the vocabulary."""
    decoder = model.get_submodule(family_of(model.config.model_type).decoder)
    assert isinstance(decoder, nn.Linear)
    return decoder


def check_windows(model: PreTrainedModel, length: int) -> None:
    """Raise ModelError for windows of `length` tokens that the position embeddings do not reach."""
    limit = position_limit(model.config)
    if limit is not None and length > limit:
        raise ModelError(
            f"windows of {length} tokens are longer than the model's {limit} positions",
            hint="make corpus.sequence_length smaller",
        )
