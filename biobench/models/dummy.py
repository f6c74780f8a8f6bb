"""Encoders with random weights: the dummy of `biobench run dummy`, and the untrained one of a
checkpoint's shape.
"""

from __future__ import annotations

import os
from importlib import metadata
from pathlib import Path
from typing import Any

from biobench.core.files import temporary_folder
from biobench.errors import StoreError

NAME = "dummy"
_WINDOW = 2048
_SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")


def dummy_folder() -> Path:
    """The dummy's checkpoint in the user's cache, written at first use; the same weights on every
    machine's CPU.

    Raises StoreError where the cache cannot be written.
    """
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = cache / "biobench" / f"{NAME}-1-torch-{metadata.version('torch')}" / NAME
    if not (folder / "config.json").is_file():
        try:
            with temporary_folder(folder, "cache, by XDG_CACHE_HOME") as aside:
                _write(aside)
        except StoreError:
            if not (folder / "config.json").is_file():  # else another process was first
                raise
    return folder


def write_untrained(source: str | Path, folder: str | Path, seed: int = 0) -> Path:
    """The architecture and tokenizer of the checkpoint `source` with random weights, in `folder`,
    which it gives.

    What pretraining brings to `source` is its distance from this encoder. The folder is complete or
    missing.
    """
    import torch
    from transformers import AutoConfig, AutoModel

    from biobench.core.tokenizer import load_tokenizer

    folder = Path(folder)
    with temporary_folder(folder) as aside:
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            model = AutoModel.from_config(AutoConfig.from_pretrained(source))  # type: ignore[no-untyped-call]
        model.save_pretrained(aside)
        load_tokenizer(source).save_pretrained(aside)
    return folder


def _write(folder: Path) -> None:
    """A BERT of two layers over single bytes: it needs no text to make a vocabulary from."""
    import torch
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors
    from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {piece: place for place, piece in enumerate((*_SPECIAL, *alphabet))}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[], unk_token=_SPECIAL[1]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 2), ("[SEP]", 3)],
    )
    names = dict(
        zip(
            ("pad_token", "unk_token", "cls_token", "sep_token", "mask_token"),
            _SPECIAL,
            strict=True,
        )
    )
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, model_max_length=_WINDOW, **names)  # type: ignore[no-untyped-call]
    sizes: dict[str, Any] = {"vocab_size": len(vocabulary), "max_position_embeddings": _WINDOW}
    sizes |= {
        "hidden_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "intermediate_size": 48,
    }
    with torch.random.fork_rng():
        torch.manual_seed(20250101)
        BertModel(BertConfig(pad_token_id=0, **sizes)).save_pretrained(folder)
    fast.save_pretrained(folder)
