"""Encoders with random weights: the dummy of `biobench run dummy`, and the untrained one of a
checkpoint's shape.
"""

from __future__ import annotations

import os
from importlib import metadata
from pathlib import Path

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
            config = AutoConfig.from_pretrained(source)
            model = AutoModel.from_config(config)  # type: ignore[no-untyped-call]
        model.save_pretrained(aside)
        load_tokenizer(source).save_pretrained(aside)
    return folder


def _write(folder: Path) -> None:
    """A BERT of two layers over single bytes: it needs no text to make a vocabulary from."""
    import torch
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors
    from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {piece: number for number, piece in enumerate((*_SPECIAL, *alphabet))}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[], unk_token=_SPECIAL[1]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 2), ("[SEP]", 3)],
    )
    fast = PreTrainedTokenizerFast(  # type: ignore[no-untyped-call]
        tokenizer_object=tokenizer,
        model_max_length=_WINDOW,
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        mask_token="[MASK]",
    )
    config = BertConfig(
        pad_token_id=0,
        vocab_size=len(vocabulary),
        max_position_embeddings=_WINDOW,
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=48,
    )
    with torch.random.fork_rng():
        torch.manual_seed(20250101)
        BertModel(config).save_pretrained(folder)
    fast.save_pretrained(folder)
