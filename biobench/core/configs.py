"""What a checkpoint's config says, with the defaults that configs of other hands leave out."""

from __future__ import annotations

from typing import Any

_COUNTED_FROM_PADDING = (
    *("camembert", "data2vec-text", "esm", "ibert", "layoutlmv3", "lilt", "longformer", "luke"),
    *("markuplm", "xmod"),
)
"""Families besides those named like RoBERTa whose positions begin after the padding id."""


def position_offset(config: Any) -> int:
    """Rows of the table of positions that no token uses.

    RoBERTa and its kind number positions from `pad_token_id` + 1, MPNet from 2 whatever its padding
    id. Others use every row.
    """
    family = str(config.model_type)
    if family == "mpnet":
        return 2
    if "roberta" not in family and family not in _COUNTED_FROM_PADDING:
        return 0
    pad = getattr(config, "pad_token_id", None)
    if pad is None:
        pad = 1
    return int(pad) + 1


def position_limit(config: Any) -> int | None:
    """Tokens that the position embeddings allow, special tokens included; None where there is no
    limit.
    """
    limit = getattr(config, "max_position_embeddings", None)
    if not isinstance(limit, int) or limit <= 0:
        return None
    return limit - position_offset(config)


def forget_attention(config: Any) -> str | None:
    """Leave the choice of attention to the engine; the name that was saved, None where it was none.

    A checkpoint that was saved on a GPU may ask for a kernel that this machine has not. `eager`
    runs everywhere and is left.
    """
    saved = getattr(config, "_attn_implementation", None)
    if not isinstance(saved, str) or saved == "eager":
        return None
    config._attn_implementation = None
    return saved
