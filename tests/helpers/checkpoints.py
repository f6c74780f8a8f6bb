"""Random checkpoints of every family that the engine claims to run, with tokenizers trained on the
spot.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import transformers as hf
from safetensors.torch import load_file, save_file
from tokenizers import (
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
    trainers,
)

SPECIAL = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
CLINICAL = ("β-blocker 5 mg/kg (Hb 9.1 g/dL) l'hémoglobine d’œdème", "naïve coöperation ﬁbrose ½ ²")
"""Some of what clinical text is full of."""
_SIZES = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 48,
}
_RELATIVE = {**_SIZES, "relative_attention": True, "pos_att_type": ["p2c", "c2p"]}
_LOCAL = {**_SIZES, "local_attention": 16, "layer_types": ["full_attention", "sliding_attention"]}


def sentences(*tasks: str) -> list[str]:
    """Training sentences of demo tasks."""
    from biobench.data.catalog import load_task
    from biobench.data.load import load_data

    return [d.text for task in tasks for d in load_data(load_task(task), None).train]


def wordpiece(size: int = 400, normalizer: Any = None, texts: list[str] | None = None) -> Tokenizer:
    """BERT-like: WordPiece, lower-cased unless there is another normalizer."""
    tokenizer = Tokenizer(models.WordPiece(unk_token="<unk>"))
    tokenizer.normalizer = normalizer or normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    trainer = trainers.WordPieceTrainer(
        vocab_size=size, special_tokens=SPECIAL, show_progress=False
    )
    return _trained(tokenizer, trainer, texts)


def byte_level() -> Tokenizer:
    """RoBERTa- and ModernBERT-like: byte-level BPE whose pieces carry the leading space."""
    tokenizer = Tokenizer(models.BPE(unk_token=None))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=500, special_tokens=SPECIAL, initial_alphabet=alphabet, show_progress=False
    )
    return _trained(tokenizer, trainer)


def sentencepiece_like() -> Tokenizer:
    """CamemBERT- and DeBERTa-v3-like: Unigram over pieces with a leading `▁`, NFKC
    normalisation."""
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.normalizer = normalizers.NFKC()
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    trainer = trainers.UnigramTrainer(
        vocab_size=400, special_tokens=SPECIAL, unk_token="<unk>", show_progress=False
    )
    return _trained(tokenizer, trainer)


def _trained(tokenizer: Tokenizer, trainer: Any, texts: list[str] | None = None) -> Tokenizer:
    tokenizer.train_from_iterator(
        [*sentences("demo_ner"), *CLINICAL] if texts is None else texts, trainer
    )
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", pair="<s> $A </s> $B </s>", special_tokens=[("<s>", 0), ("</s>", 2)]
    )
    return tokenizer


TOKENIZERS: dict[str, Callable[[], Tokenizer]] = {
    t.__name__: t for t in (wordpiece, byte_level, sentencepiece_like)
}

IDS = {
    "bos_token_id": 0,
    "cls_token_id": 0,
    "pad_token_id": 1,
    "eos_token_id": 2,
    "sep_token_id": 2,
}
FAMILIES: dict[str, tuple[type[Any], str, dict[str, Any]]] = {
    "bert": (hf.BertConfig, "wordpiece", _SIZES),
    "roberta": (hf.RobertaConfig, "byte_level", _SIZES),
    "camembert": (hf.CamembertConfig, "sentencepiece_like", _SIZES),
    "electra": (hf.ElectraConfig, "wordpiece", {**_SIZES, "embedding_size": 16}),
    "distilbert": (
        hf.DistilBertConfig,
        "wordpiece",
        {"dim": 32, "n_layers": 2, "n_heads": 4, "hidden_dim": 48},
    ),
    "deberta": (hf.DebertaV2Config, "sentencepiece_like", {**_RELATIVE, "position_buckets": 16}),
    "modernbert": (hf.ModernBertConfig, "byte_level", _LOCAL),
    "eurobert": (hf.EuroBertConfig, "byte_level", {**_SIZES, "mask_token_id": 4}),
}
"""Family to config class, tokenizer, sizes. All are packed but DeBERTa, whose attention the library
keeps.
"""

RARER: dict[str, tuple[type[Any], str, dict[str, Any]]] = {
    "deberta-v1": (hf.DebertaConfig, "byte_level", _RELATIVE),
    "fnet": (
        hf.FNetConfig,
        "sentencepiece_like",
        {k: v for k, v in _SIZES.items() if k != "num_attention_heads"},
    ),
    "gpt2": (hf.GPT2Config, "byte_level", {"n_embd": 32, "n_layer": 2, "n_head": 4}),
    "squeezebert": (hf.SqueezeBertConfig, "wordpiece", {**_SIZES, "embedding_size": 32}),
}
"""Families that need care: no bf16, states that feel padding, causal attention, a pooler that is
always called.
"""


def fast_tokenizer(kind: str | Tokenizer, limit: int | None = 512) -> Any:
    """The tokenizer wrapped for the model library; limit None leaves `model_max_length` unset."""
    arguments = {} if limit is None else {"model_max_length": limit}
    return hf.PreTrainedTokenizerFast(
        tokenizer_object=TOKENIZERS[kind]() if isinstance(kind, str) else kind,
        bos_token="<s>",
        cls_token="<s>",
        pad_token="<pad>",
        eos_token="</s>",
        sep_token="</s>",
        unk_token="<unk>",
        mask_token="<mask>",
        **arguments,
    )


def make_checkpoint(
    family: str, folder: Path, *, positions: int = 200, limit: int | None = 512
) -> Path:
    """Write a random checkpoint of `family` (seed 0) to `folder`."""
    config_class, kind, sizes = {**FAMILIES, **RARER}[family]
    tokenizer = fast_tokenizer(kind, limit)
    ids = {
        k: v for k, v in IDS.items() if family in ("modernbert", "eurobert") or k == "pad_token_id"
    }
    config = config_class(
        vocab_size=len(tokenizer), max_position_embeddings=positions, **ids, **sizes
    )
    torch.manual_seed(0)
    model = hf.AutoModel.from_config(config)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def configure(folder: Path, **changes: Any) -> None:
    """Other fields in the config."""
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | changes))


def reweigh(
    folder: Path, change: Callable[[dict[str, torch.Tensor]], dict[str, torch.Tensor]]
) -> None:
    """Other weights."""
    weights = change(load_file(folder / "model.safetensors"))
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})


def load_folder(folder: Path, *, trusted: bool = False) -> Any:
    """The bare model of a checkpoint's folder, as a run reads it. trusted: its own code is run."""
    from biobench.models.loading import find_checkpoint
    from biobench.models.weights import load_base

    return load_base(find_checkpoint(str(folder), trust_remote_code=trusted), torch.float32)


def load_on_cpu(folder: Path, *, trusted: bool = False) -> Any:
    """The proved encoder of a checkpoint's folder in evaluation mode."""
    from biobench.finetune.engine import load_encoder
    from biobench.models.loading import find_checkpoint

    checkpoint = find_checkpoint(str(folder), trust_remote_code=trusted)
    return load_encoder(checkpoint, torch.device("cpu")).encoder.eval()
