"""Tiny encoders with random weights, made on the spot."""

from __future__ import annotations

from pathlib import Path


def make_tiny_encoder(folder: Path, window: int = 128) -> Path:
    """Write a tiny random ModernBERT of `window` tokens and its tokenizer to `folder`, the same
    weights on every call.

    The tokenizer (WordPiece, 2,000 entries) is trained on the demo tasks' training sentences; the
    order of its single letters differs from call to call, so two folders are two models.
    """
    import torch
    from tokenizers import normalizers
    from transformers import ModernBertConfig, ModernBertModel

    from tests.helpers.checkpoints import IDS, fast_tokenizer, sentences, wordpiece

    tokenizer = wordpiece(2_000, normalizers.NFC(), sentences("demo_ner", "demo_topic"))
    config = ModernBertConfig(
        vocab_size=tokenizer.get_vocab_size(),
        hidden_size=96,
        intermediate_size=144,
        num_hidden_layers=3,
        num_attention_heads=4,
        max_position_embeddings=window,
        local_attention=32,
        layer_types=["full_attention", "sliding_attention", "sliding_attention"],
        **IDS,
    )
    with torch.random.fork_rng():
        torch.manual_seed(17)
        model = ModernBertModel(config)
    folder.mkdir(parents=True, exist_ok=True)
    model.save_pretrained(folder)
    fast_tokenizer(tokenizer, window).save_pretrained(folder)
    return folder
