"""Tiny models of every family."""

from __future__ import annotations

from typing import Any

import torch
import transformers
from transformers import AutoConfig, PreTrainedModel

from trainer.model import attention
from trainer.model.families import family_of

_SMALL = {"vocab_size": 97, "hidden_size": 32, "intermediate_size": 48, "num_attention_heads": 4}
_SMALL |= {"num_hidden_layers": 2, "max_position_embeddings": 128}
_ROBERTA = {**_SMALL, "max_position_embeddings": 130, "pad_token_id": 1}
_IDS = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
_MODERN = {
    **_SMALL,
    **_IDS,
    "num_hidden_layers": 4,
    "local_attention": 16,
    "max_position_embeddings": 256,
}
_MODERN |= {"cls_token_id": 1, "sep_token_id": 2}
_LLAMA = {**_SMALL, **_IDS, "num_key_value_heads": 2, "head_dim": 8}
_GEMMA = {
    "num_hidden_layers": 6,
    "num_key_value_heads": 1,
    "max_position_embeddings": 256,
    "sliding_window": 16,
}
CONFIGS: dict[str, dict[str, Any]] = {
    "modernbert": _MODERN,
    "modernbert-decoder": _MODERN,
    "bert": _SMALL,
    "roberta": _ROBERTA,
    "camembert": _ROBERTA,
    "eurobert": {**_SMALL, **_IDS, "num_key_value_heads": 2, "mask_token_id": 3},
    "llama": _LLAMA,
    "qwen3": _LLAMA,
    "gemma3_text": _LLAMA | _GEMMA,
}


DECODERS = frozenset(kind for kind in CONFIGS if family_of(kind).auto == "AutoModelForCausalLM")
"""Families whose own code is causal."""


def tiny(kind: str, implementation: str = attention.NAME) -> PreTrainedModel:
    """A tiny model of a family with weights large enough that a leak is plain to see."""
    torch.manual_seed(0)
    config = AutoConfig.for_model(kind, **CONFIGS[kind])
    model: PreTrainedModel = getattr(transformers, family_of(kind).auto).from_config(
        config, attn_implementation=implementation, dtype=torch.float32
    )
    with torch.no_grad():
        for p in model.parameters():
            if p.ndim >= 2:
                p.normal_(std=0.15)
    return model.eval()
