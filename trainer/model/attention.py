"""The causal switch: one registered attention function with explicit windows for every encoder
family.

transformers decides causality in several places (module flags, config flags, mask builders), and
asking for it by ``is_causal=True`` leaks in most of them. Here a model is loaded with `NAME` as its
attention implementation. No mask builder is registered under that name, so transformers builds no
mask at all, and the function below derives the mask from two things only: the layer's window and
the direction passed with each forward. Nothing is written to the config, so nothing can be saved.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import lru_cache
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from transformers import AttentionInterface, PreTrainedConfig

from biobench.core.attention import (
    Kernel,
    Pair,
    activate,
    choose_kernel,
    fastest_first,
    find_kernels,
    prove,
    repeated,
)
from biobench.errors import ModelError

NAME = "biobench_windows"
"""The private name under which the attention function is registered."""


class Reach(NamedTuple):
    """How many keys to the left and right of itself a query sees; -1 means all of them."""

    left: int
    right: int


def reach(config: PreTrainedConfig, sliding_window: int | None, *, causal: bool) -> Reach:
    """The window of a layer, from the `sliding_window` that its attention module passes on.

    ModernBERT passes half the window plus one: +-64 keys for ``local_attention=128``, and 64 back +
    self when causal, as in the code the family was trained with. UltraBERT passes the keys that it
    sees on each side plus one. Gemma-3 passes the number of keys
    of its causal window, self included; made bidirectional it sees half of that on each side (the
    choice of EmbeddingGemma), so that the number of keys stays. A Gemma-3 whose config is
    bidirectional passes half the window plus one, as ModernBERT does. ModernBERT's decoder passes
    the number of keys of its causal window; made bidirectional it sees as many on each side, as the
    encoder that it is the twin of. Raises ModelError for a family whose rule is unknown.
    """
    if sliding_window is None:
        side = -1
        earlier = -1
    elif config.model_type in ("modernbert", "ultrabert"):
        side = sliding_window - 1
        earlier = sliding_window - 1
    elif config.model_type == "modernbert-decoder":
        side = sliding_window
        earlier = sliding_window - 1
    elif config.model_type != "gemma3_text":
        raise ModelError(
            f"local attention of model type '{config.model_type}' has no window rule here",
            hint="add its rule to trainer/model/attention.py:reach",
        )
    elif getattr(config, "use_bidirectional_attention", False):
        side = sliding_window - 1
        earlier = sliding_window - 1
    else:
        side = sliding_window // 2
        earlier = sliding_window - 1
    return Reach(earlier, 0) if causal else Reach(side, side)


def window_of(layer: nn.Module) -> int | None:
    """The `sliding_window` that a layer's attention module passes on; None where the layer is
    global.
    """
    windows = (getattr(module, "sliding_window", None) for module in layer.modules())
    return next((window for window in windows if isinstance(window, int)), None)


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
    detour_longest: int | None = None,
    **_: Any,
) -> tuple[Tensor, None]:
    """Attention of all layers of all families, in the signature of transformers' attention
    interface.

    query: (batch, heads, tokens, head width); key, value: the same with fewer heads under grouped
    queries.
    detour_causal: the direction, passed with every forward. detour_documents: (batch, tokens)
    document number of each token, to keep attention inside documents; None lets it cross.
    detour_boundaries: the same as int32 offsets into the flattened batch, for the variable-length
    kernels. detour_longest: tokens that no document has more of.
    Returns (batch, tokens, heads, head width). Raises ModelError when a mask or no direction is
    passed.
    """
    if attention_mask is not None:
        raise ModelError(
            "an attention mask reached the pretraining attention, which takes packed windows "
            "without padding",
            hint="pass input_ids only; reload the exported model for padded batches",
        )
    if detour_causal is None:
        raise ModelError(
            "the pretraining attention was called without a direction",
            hint="call the model through trainer.model.network, which passes it, or reload it with "
            "stock attention",
        )
    config: PreTrainedConfig = module.config  # type: ignore[assignment]
    window = reach(config, sliding_window, causal=detour_causal)
    if query.dtype != value.dtype:
        # rotary positions leave float32 behind under autocast, which no kernel takes
        query = query.to(value.dtype)
        key = key.to(value.dtype)
    path = path_of(query, window, isolated=detour_documents is not None, dropout=dropout)
    if path in (SDPA, DENSE):
        out = _sdpa(query, key, value, window, scaling, dropout, detour_documents)
        out = out.transpose(1, 2).contiguous()
    else:
        out = _varlen(
            query, key, value, window, scaling, dropout, detour_boundaries, detour_longest
        )
    if _noted is not None:
        kind = "full_attention" if sliding_window is None else "sliding_attention"
        _noted[kind] = path
    return out, None


SDPA = "sdpa"
DENSE = "dense"
"""Paths that are not named like a kernel: torch's attention, without a mask or with one of tokens x
tokens.
"""
DEVICES = ("cuda",)
"""Kinds of device that have kernels for bounded attention."""
_noted: dict[str, str] | None = None


def path_of(query: Tensor, window: Reach, *, isolated: bool, dropout: float) -> str:
    """What computes a layer: `SDPA`, the name of the variable-length kernel, or `DENSE` where no
    kernel takes it.

    isolated: whether attention stops at the ends of documents. Bounded layers alone need more than
    `SDPA`.
    """
    if window.left < 0 and not isolated:
        return SDPA
    kernel = choose_kernel(KERNELS, query, dropout) if query.device.type in DEVICES else ""
    return DENSE if isinstance(kernel, str) else kernel.name


@contextmanager
def noting() -> Iterator[dict[str, str]]:
    """What computes the layers of forward passes inside: kind of layer to path."""
    global _noted
    _noted = {}
    try:
        yield _noted
    finally:
        _noted = None


ORDER = (
    SDPBackend.CUDNN_ATTENTION,
    SDPBackend.FLASH_ATTENTION,
    SDPBackend.EFFICIENT_ATTENTION,
    SDPBackend.MATH,
)
"""Which of torch's backends is asked first on a GPU."""


def preferred(device: torch.device) -> AbstractContextManager[Any]:
    """Where torch's attention asks its backends in `ORDER`; a CPU has a single one for each
    case."""
    return sdpa_kernel(list(ORDER), set_priority=True) if device.type == "cuda" else nullcontext()


def _sdpa(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    window: Reach,
    scaling: float | None,
    dropout: float,
    documents: Tensor | None,
) -> Tensor:
    mask: Tensor | None = None
    if window.left >= 0:
        mask = _band(query.shape[2], window, query.device)
    if documents is not None:
        band = _band(query.shape[2], window, query.device)
        mask = band & (documents[:, :, None] == documents[:, None, :])[:, None]
    causal = mask is None and window.right == 0
    # the GPU's kernels share keys among queries by themselves; on a CPU repeating them is faster
    grouped = query.device.type in DEVICES and query.shape[1] != key.shape[1]
    if not grouped:
        key, value = (repeated(x, query.shape[1], 1) for x in (key, value))
    return F.scaled_dot_product_attention(
        query,
        key,
        value,
        attn_mask=mask,
        dropout_p=dropout,
        is_causal=causal,
        scale=scaling,
        enable_gqa=grouped,
    )


def _varlen(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    window: Reach,
    scaling: float | None,
    dropout: float,
    boundaries: Tensor | None,
    longest: int | None,
) -> Tensor:
    """The windowed kernel over the flattened batch: (batch, tokens, heads, head width)."""
    kernel = choose_kernel(KERNELS, query, dropout)
    assert isinstance(kernel, Kernel)
    batch, heads, length, width = query.shape
    if boundaries is None:
        boundaries = torch.arange(
            0, (batch + 1) * length, length, dtype=torch.int32, device=query.device
        )
    q, k, v = (
        x.transpose(1, 2).reshape(batch * length, x.shape[1], width) for x in (query, key, value)
    )
    out = kernel.attend(
        q, k, v, boundaries, longest or length, window=window, scaling=scaling, dropout=dropout
    )
    return out.view(batch, length, heads, width)


KERNELS = find_kernels()
"""Looked for once: compiled code must not search. `prove_kernels` leaves those that give a model's
states.
"""


def prove_kernels(
    trial: Callable[[bool], Pair], step: Callable[[], Pair], *, drops: bool
) -> list[str]:
    """Why kernels of this machine are not used for a model; of the others the fastest comes first.

    trial: gives its states and gradients with isolated documents on the device, in fp32 (True) or
    bf16 (False). step: the same in bf16 at the shape that is trained. drops: it trains with dropout
    on attention.
    """

    def proved(chosen: tuple[Kernel, ...]) -> Pair:
        use_kernels(chosen)
        return trial(False)

    def timed(chosen: tuple[Kernel, ...]) -> Pair:
        use_kernels(chosen)
        return step()

    kernels = KERNELS
    use_kernels(())
    exact = trial(True)
    rounded = trial(False)
    sound, refusals = prove(kernels, exact, rounded, proved, drops=drops)
    # A run that is to give the same bits again takes no kernel by the clock.
    if not torch.are_deterministic_algorithms_enabled():
        sound = fastest_first(sound, timed)
    use_kernels(sound)
    return refusals


def use_kernels(kernels: tuple[Kernel, ...]) -> None:
    """From now on choose from these kernels."""
    global KERNELS
    KERNELS = kernels
    activate(kernels)


def describe() -> str:
    """The attention path in words, for the ledger and the log."""
    return f"windows/{KERNELS[0].name if KERNELS else 'sdpa'}"


AttentionInterface.register(NAME, attention)
