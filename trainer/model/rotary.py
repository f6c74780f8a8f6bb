"""The base of rotary positions, changed between phases: longer windows want slower rotations.

ModernBERT, say, was trained with 10,000 at 1,024 tokens and went on with 160,000 in its global layers at 8,192
(arXiv 2412.13663). Layers with a window of their own keep theirs.
"""

from __future__ import annotations

from typing import Any

from torch import nn
from transformers import PreTrainedConfig, PreTrainedModel

from biobench.errors import ModelError

FIELDS = ("rope_parameters", "max_position_embeddings")
"""What of a config a change of the base touches."""


def has_rotary(config: PreTrainedConfig) -> bool:
    """Whether a model turns its queries and keys by positions in the plain way, so that the base is all there is."""
    parameters: dict[str, Any] = getattr(config, "rope_parameters", None) or {}
    return _full(parameters).get("rope_type") == "default"


def check_rope_base(config: PreTrainedConfig, base: float | None) -> None:
    """Raise ModelError where a base is wanted of a model without plain rotary positions."""
    if base is not None and not has_rotary(config):
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
    for name in FIELDS:
        if getattr(source, name, None) != getattr(target, name, None):
            setattr(target, name, getattr(source, name))


def _full(parameters: dict[str, Any]) -> dict[str, Any]:
    """The part for layers that see the whole window; families without kinds of layers have one part."""
    part = parameters.get("full_attention", parameters)
    return part if isinstance(part, dict) else {}
