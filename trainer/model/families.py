"""Where each supported architecture keeps its layers, head, projection and rotary positions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

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
    position_offset: int = 0
    """Positions that the embedding table holds beyond the usable ones (RoBERTa starts at padding + 1)."""


def _roberta(model: PreTrainedModel, hidden: Tensor) -> Tensor:
    head = model.lm_head
    transformed: Tensor = head.layer_norm(F.gelu(head.dense(hidden)))
    return transformed


def _identity(_: PreTrainedModel, hidden: Tensor) -> Tensor:
    return hidden


def _bert(model: PreTrainedModel, hidden: Tensor) -> Tensor:
    transformed: Tensor = model.cls.predictions.transform(hidden)  # type: ignore[operator,union-attr]
    return transformed


_BERT_HEAD = ("cls.predictions.transform",)
_PLAIN = Family("model", "model.layers", (), _identity, "lm_head")
_ROBERTA = Family(
    "roberta",
    "roberta.encoder.layer",
    ("lm_head.dense", "lm_head.layer_norm"),
    _roberta,
    "lm_head.decoder",
    position_offset=2,
)
FAMILIES: dict[str, Family] = {
    "modernbert": Family("model", "model.layers", ("head",), lambda m, h: m.head(h), "decoder"),  # type: ignore[operator]
    "modernbert-decoder": Family(
        "model", "model.layers", ("lm_head",), lambda m, h: m.lm_head(h), "decoder", auto="AutoModelForCausalLM"
    ),
    "bert": Family("bert", "bert.encoder.layer", _BERT_HEAD, _bert, "cls.predictions.decoder"),
    **dict.fromkeys(("roberta", "camembert", "xlm-roberta"), _ROBERTA),
    "eurobert": _PLAIN,
    **dict.fromkeys(("gemma3_text", "llama", "qwen2", "qwen3"), replace(_PLAIN, auto="AutoModelForCausalLM")),
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


def check_rope_base(config: PreTrainedConfig, base: float | None) -> None:
    """Raise ModelError where a base is wanted of a model without plain rotary positions."""
    parameters: dict[str, Any] = getattr(config, "rope_parameters", None) or {}
    if base is not None and _full(parameters).get("rope_type") != "default":
        raise ModelError(
            f"a {config.model_type} model of this config has no plain rotary positions whose base could change",
            hint="leave rope_base out",
        )


def set_rope_base(model: PreTrainedModel, base: float | None, *, length: int) -> None:
    """Let the layers that see the whole window rotate by `base`, and the config allow windows of `length` tokens.

    None leaves the model as it is. Raises ModelError as `check_rope_base` does.
    """
    if base is None:
        return
    config = model.config
    check_rope_base(config, base)
    parameters = {k: dict(v) if isinstance(v, dict) else v for k, v in config.rope_parameters.items()}
    _full(parameters)["rope_theta"] = float(base)
    config.rope_parameters = parameters
    config.max_position_embeddings = max(int(config.max_position_embeddings), length)
    for path, module in list(model.named_modules()):
        if "Rotary" in type(module).__name__:
            device = next(model.parameters()).device
            parent, _, name = path.rpartition(".")
            fresh: nn.Module = type(module)(config=config)
            setattr(model.get_submodule(parent), name, fresh.to(device))


def copy_rope(source: PreTrainedConfig, target: PreTrainedConfig) -> None:
    """Give a config the rotary fields of another."""
    for name in ("rope_parameters", "max_position_embeddings"):
        if getattr(source, name, None) != getattr(target, name, None):
            setattr(target, name, getattr(source, name))


def _full(parameters: dict[str, Any]) -> dict[str, Any]:
    """The part for layers that see the whole window; families without kinds of layers have one part."""
    part = parameters.get("full_attention", parameters)
    return part if isinstance(part, dict) else {}
