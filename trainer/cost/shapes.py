"""Architectures of the recipes' base checkpoints, so that plans and benchmarks need no network."""

from __future__ import annotations

from typing import Any

_MODERNBERT: dict[str, Any] = {
    "model_type": "modernbert",
    "local_attention": 128,
    "global_attn_every_n_layers": 3,
    "max_position_embeddings": 8192,
}
_BASE = {"hidden_size": 768, "intermediate_size": 1152, "num_hidden_layers": 22, "num_attention_heads": 12}
_LARGE = {"hidden_size": 1024, "intermediate_size": 2624, "num_hidden_layers": 28, "num_attention_heads": 16}

SHAPES: dict[str, dict[str, Any]] = {
    "answerdotai/ModernBERT-base": {**_MODERNBERT, **_BASE, "vocab_size": 50368},
    "answerdotai/ModernBERT-large": {**_MODERNBERT, **_LARGE, "vocab_size": 50368},
    "almanach/moderncamembert-base": {**_MODERNBERT, **_BASE, "vocab_size": 32768},
    "almanach/moderncamembert-large": {**_MODERNBERT, **_LARGE, "vocab_size": 32768},
    "google/gemma-3-270m": {
        "model_type": "gemma3_text",
        "hidden_size": 640,
        "intermediate_size": 2048,
        "num_hidden_layers": 18,
        "num_attention_heads": 4,
        "num_key_value_heads": 1,
        "head_dim": 256,
        "sliding_window": 512,
        "query_pre_attn_scalar": 256,
        "max_position_embeddings": 32768,
        "vocab_size": 262144,
    },
}
"""Hub id to config fields. The first four are the paper's table; Gemma-3's are from its released config."""
