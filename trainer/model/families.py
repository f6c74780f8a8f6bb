"""What the trainer must know of an architecture: body, layers, head transform and output projection.

The loss needs the hidden states before the vocabulary projection, and freezing needs the layers; every
family names them differently. Parameter names stay those of transformers, so exports load anywhere.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch.nn.functional as F
from torch import Tensor, nn
from transformers import PreTrainedConfig, PreTrainedModel

from biobench.errors import ModelError


@dataclass(frozen=True)
class Family:
    """Paths (dotted attribute names) and functions of one architecture.

    body: input ids to hidden states. head: modules between body and projection ('' for none), what a
    re-initialised head draws anew. transform: applies them to (tokens, width). decoder: the projection.
    """

    body: str
    layers: str
    head: tuple[str, ...]
    transform: Callable[[PreTrainedModel, Tensor], Tensor]
    decoder: str
    auto: str = "AutoModelForMaskedLM"
    directed: bool = True
    """Whether its attention goes through the registered function; if not, `Trainee` hands its encoder a mask."""
    position_offset: int = 0
    """Positions that the embedding table holds beyond the usable ones (RoBERTa starts at padding + 1)."""


def _roberta(model: PreTrainedModel, hidden: Tensor) -> Tensor:
    head = model.lm_head
    transformed: Tensor = head.layer_norm(F.gelu(head.dense(hidden)))
    return transformed


def _identity(_: PreTrainedModel, hidden: Tensor) -> Tensor:
    return hidden


_ROBERTA = Family(
    "roberta",
    "roberta.encoder.layer",
    ("lm_head.dense", "lm_head.layer_norm"),
    _roberta,
    "lm_head.decoder",
    position_offset=2,
)
FAMILIES: dict[str, Family] = {
    "modernbert": Family(
        "model",
        "model.layers",
        ("head",),
        lambda m, h: m.head(h),  # type: ignore[operator]
        "decoder",
    ),
    "bert": Family(
        "bert",
        "bert.encoder.layer",
        ("cls.predictions.transform",),
        lambda m, h: m.cls.predictions.transform(h),  # type: ignore[operator,union-attr]
        "cls.predictions.decoder",
    ),
    "roberta": _ROBERTA,
    "camembert": _ROBERTA,
    "xlm-roberta": _ROBERTA,
    "eurobert": Family("model", "model.layers", (), _identity, "lm_head"),
    **dict.fromkeys(
        ("gemma3_text", "llama", "qwen2", "qwen3"),
        Family("model", "model.layers", (), _identity, "lm_head", auto="AutoModelForCausalLM"),
    ),
    "deberta-v2": Family(
        "deberta",
        "deberta.encoder.layer",
        ("cls.predictions.transform",),
        lambda m, h: m.cls.predictions.transform(h),  # type: ignore[operator,union-attr]
        "cls.predictions.decoder",
        directed=False,
    ),
    "modernbert-decoder": Family(
        "model",
        "model.layers",
        ("lm_head",),
        lambda m, h: m.lm_head(h),
        "decoder",
        auto="AutoModelForCausalLM",
    ),
}


def family_of(model_type: str) -> Family:
    """The family of a config's ``model_type``. Raises ModelError naming the known ones."""
    if model_type not in FAMILIES:
        raise ModelError(
            f"model type '{model_type}' cannot be pretrained here",
            hint="known types: " + ", ".join(sorted(FAMILIES)) + "; add a Family in trainer/model/families.py",
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


def check_head(config: PreTrainedConfig) -> None:
    """Raise ModelError for a prediction head that has no projection of its own."""
    if config.model_type == "deberta-v2" and not config.legacy:
        raise ModelError(
            "a deberta-v2 model with legacy: false multiplies by its embedding, which the trainer's loss cannot",
            hint="use a checkpoint or config with legacy: true",
        )


def position_limit(model: PreTrainedModel) -> int:
    """Longest window in tokens that the position embeddings allow."""
    limit: int = model.config.max_position_embeddings
    return limit - family_of(model.config.model_type).position_offset


def check_windows(model: PreTrainedModel, length: int) -> None:
    """Raise ModelError for windows of `length` tokens that the position embeddings do not reach."""
    if length > position_limit(model):
        raise ModelError(
            f"windows of {length} tokens are longer than the model's {position_limit(model)} positions",
            hint="make corpus.sequence_length smaller",
        )
