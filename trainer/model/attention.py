"""The causal switch: one registered attention function with explicit windows for every encoder family.

transformers decides causality in several places (module flags, config flags, mask builders), and asking for
it by ``is_causal=True`` leaks in most of them. Here a model is loaded with `NAME` as its attention
implementation. No mask builder is registered under that name, so transformers builds no mask at all, and
the function below derives the mask from two things only: the layer's window and the direction passed with
each forward. Nothing is written to the config, so nothing can be saved.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from transformers import AttentionInterface, PreTrainedConfig

from biobench.errors import ModelError

NAME = "biobench_windows"
"""The private name under which the attention function is registered."""

CAUSAL_FAMILIES = ("gemma3_text",)


class Reach(NamedTuple):
    """How many keys to the left and right of itself a query sees; -1 means all of them."""

    left: int
    right: int


def reach(config: PreTrainedConfig, sliding_window: int | None, *, causal: bool) -> Reach:
    """The window of a layer, from the `sliding_window` that its attention module passes on.

    ModernBERT passes half the window plus one: +-64 keys for ``local_attention=128``, and 64 back + self
    when causal, as in the code the family was trained with. Gemma-3 passes the number of keys of its causal
    window, self included; made bidirectional it sees half of that on each side (the choice of
    EmbeddingGemma), so that the number of keys stays. A Gemma-3 whose config is bidirectional passes half the window
    plus one, as ModernBERT does. Raises ModelError for a family whose rule is unknown.
    """
    if sliding_window is None:
        return Reach(-1, 0 if causal else -1)
    if config.model_type == "modernbert" or (
        config.model_type in CAUSAL_FAMILIES and getattr(config, "use_bidirectional_attention", False)
    ):
        half = sliding_window - 1
        return Reach(half, 0 if causal else half)
    if config.model_type in CAUSAL_FAMILIES:
        return Reach(sliding_window - 1, 0) if causal else Reach(sliding_window // 2, sliding_window // 2)
    raise ModelError(
        f"local attention of model type '{config.model_type}' has no window rule here",
        hint="add its rule to trainer/model/attention.py:reach",
    )


def window_of(layer: nn.Module) -> int | None:
    """The `sliding_window` that a layer's attention module passes on; None where the layer is global."""
    for module in layer.modules():
        window = getattr(module, "sliding_window", None)
        if isinstance(window, int):
            return window
    return None


@lru_cache(maxsize=16)
def _band(length: int, window: Reach, device: torch.device) -> Tensor:
    """Which keys each query sees: bool (length, length), True = seen."""
    position = torch.arange(length, device=device)
    back = position[:, None] - position[None, :]
    seen = torch.ones(length, length, dtype=torch.bool, device=device)
    if window.left >= 0:
        seen &= back <= window.left
    if window.right >= 0:
        seen &= -back <= window.right
    return seen


def attention(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    *,
    scaling: float | None = None,
    dropout: float = 0.0,
    sliding_window: int | None = None,
    detour_causal: bool | None = None,
    detour_documents: Tensor | None = None,
    detour_boundaries: Tensor | None = None,
    **_: Any,
) -> tuple[Tensor, None]:
    """Attention of all layers of all families, in the signature of transformers' attention interface.

    query: (batch, heads, tokens, head width); key, value: the same with fewer heads under grouped queries.
    detour_causal: the direction, passed with every forward. detour_documents: (batch, tokens) document
    number of each token, to keep attention inside documents; None lets it cross. detour_boundaries: the same
    as int32 offsets into the flattened batch, for the variable-length kernels.
    Returns (batch, tokens, heads, head width). Raises ModelError when a mask or no direction is passed.
    """
    if attention_mask is not None:
        raise ModelError(
            "an attention mask reached the pretraining attention, which takes packed windows without padding",
            hint="pass input_ids only; reload the exported model for padded batches",
        )
    if detour_causal is None:
        raise ModelError(
            "the pretraining attention was called without a direction",
            hint="call the model through trainer.model.network, which passes it, or reload it with stock attention",
        )
    config: PreTrainedConfig = module.config  # type: ignore[assignment]
    window = reach(config, sliding_window, causal=detour_causal)
    groups = query.shape[1] // key.shape[1]
    if groups > 1:
        key, value = key.repeat_interleave(groups, dim=1), value.repeat_interleave(groups, dim=1)
    bounded = window.left >= 0 or detour_documents is not None
    if query.is_cuda and bounded and dropout == 0.0:
        out = _varlen(query, key, value, window, scaling, detour_boundaries)
        if out is not None:
            return out, None
    out = _sdpa(query, key, value, window, scaling, dropout, detour_documents)
    return out.transpose(1, 2).contiguous(), None


def _sdpa(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    window: Reach,
    scaling: float | None,
    dropout: float,
    documents: Tensor | None,
) -> Tensor:
    length = query.shape[2]
    mask: Tensor | None = None
    if documents is not None:
        mask = (documents[:, :, None] == documents[:, None, :])[:, None]
        if window != Reach(-1, -1):
            mask = mask & _band(length, window, query.device)
    elif window.left >= 0:
        mask = _band(length, window, query.device)
    causal = mask is None and window.right == 0
    return F.scaled_dot_product_attention(
        query, key, value, attn_mask=mask, dropout_p=dropout, is_causal=causal, scale=scaling
    )


def _varlen(
    query: Tensor, key: Tensor, value: Tensor, window: Reach, scaling: float | None, boundaries: Tensor | None
) -> Tensor | None:
    """A windowed flash kernel over the flattened batch; None where no kernel takes these tensors."""
    if KERNEL is None or query.dtype not in (torch.float16, torch.bfloat16):
        return None
    batch, heads, length, width = query.shape
    if boundaries is None:
        boundaries = torch.arange(0, (batch + 1) * length, length, dtype=torch.int32, device=query.device)
    q, k, v = (x.transpose(1, 2).reshape(batch * length, heads, width) for x in (query, key, value))
    out: Tensor
    if KERNEL.name == "flash_attn":
        out = KERNEL.call(
            q,
            k,
            v,
            boundaries,
            boundaries,
            length,
            length,
            softmax_scale=scaling,
            causal=window.right == 0,
            window_size=(window.left, window.right),
        )
    else:
        out = KERNEL.call(
            q,
            k,
            v,
            boundaries,
            boundaries,
            length,
            length,
            scale=scaling,
            window_size=(window.left, window.right),
        )
    return out.view(batch, length, heads, width)


class Kernel(NamedTuple):
    """A variable-length flash kernel: ``flash_attn`` (the package) or ``torch``, and its function."""

    name: str
    call: Callable[..., Any]


def find_kernel() -> Kernel | None:
    """The variable-length kernel that is at hand, if any: flash-attn's, else torch's own."""
    if not torch.cuda.is_available():
        return None
    try:
        from flash_attn import flash_attn_varlen_func
    except ImportError:
        pass
    else:
        return Kernel("flash_attn", flash_attn_varlen_func)
    try:
        from torch.nn.attention.varlen import varlen_attn
    except ImportError:
        return None
    # Before 2.11 the function had no window argument.
    return Kernel("torch", varlen_attn) if "window_size" in inspect.signature(varlen_attn).parameters else None


KERNEL = find_kernel()
"""Looked for once: compiled code must not search."""


def describe() -> str:
    """The attention path in words, for the ledger and the log."""
    return f"windows/{KERNEL.name if KERNEL is not None else 'sdpa'}"


AttentionInterface.register(NAME, attention)
