"""Random models at real shapes, and generated tasks whose texts have real lengths."""

from __future__ import annotations

import json
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import torch
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import AutoModel, PreTrainedTokenizerFast

from biobench.data.catalog import load_task
from biobench.finetune.prepare import Prepared, prepare
from biobench.models.loading import Checkpoint, find_checkpoint, load_tokenizer, window
from biobench.schema.document import Document, Span, TaskData
from tests.benchmarks.gpu.setting import Setting
from trainer.cost.plan import SHAPES
from trainer.model.network import make_config

BASE, LARGE, BERT = "answerdotai/ModernBERT-base", "answerdotai/ModernBERT-large", "BERT base"
_SIZES = ("hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads")
_BERT = {
    "model_type": "bert",
    "vocab_size": 30522,
    "max_position_embeddings": 512,
    **dict(zip(_SIZES, (768, 3072, 12, 12), strict=True)),
}
_TINY = {
    "vocab_size": 2500,
    "max_position_embeddings": 512,
    **dict(zip(_SIZES, (64, 96, 2, 4), strict=True)),
}
SPECIAL = {"[PAD]": 0, "[UNK]": 1, "[CLS]": 2, "[SEP]": 3, "[MASK]": 4, "the": 5}
"""Special tokens, and a word of plain text, which a tokenizer must know."""
_ROLES = {"pad": 0, "cls": 2, "bos": 2, "sep": 3, "eos": 3}
IDS = {f"{role}_token_id": id_ for role, id_ in _ROLES.items()}
_WORDS, _MENTIONS = 2000, 20
"""Different words of a generated text; the first of them are the mentions."""
_MENTION_SHARE, _NOISE = 0.05, 0.1
"""Share of words that are mentions; share of these that the gold does not mark."""
_LENGTHS = Path(__file__).with_name("lengths.json")


def shape(setting: Setting, name: str, **changes: Any) -> dict[str, Any]:
    """Config fields of a model, at its real or at a tiny size."""
    fields = dict(_BERT if name == BERT else SHAPES[name])
    if setting.tiny:
        fields.update(_TINY)
        if name != BERT:
            fields.update(local_attention=16, global_attn_every_n_layers=2)
    ids = {"pad_token_id": 0} if name == BERT else IDS
    return {**fields, **ids, **changes}


def checkpoint(setting: Setting, name: str, **changes: Any) -> Checkpoint:
    """A folder with random weights and a tokenizer of words; made once for all steps."""
    label = "-".join([Path(name).name, *(f"{key}-{value}" for key, value in changes.items())])
    folder = setting.work / label.replace(" ", "-")
    if not folder.is_dir():
        config = make_config(shape(setting, name, **changes))
        torch.manual_seed(0)
        with torch.device(setting.device):
            model = AutoModel.from_config(config)
        unfinished = Path(tempfile.mkdtemp(dir=setting.work))
        model.save_pretrained(unfinished)
        words_tokenizer(config.max_position_embeddings).save_pretrained(unfinished)
        with suppress(OSError):  # a step at the same time has made it
            unfinished.rename(folder)
    return find_checkpoint(str(folder), offline=True)


def words_tokenizer(longest: int) -> PreTrainedTokenizerFast:
    """A tokenizer to which each generated word is one token."""
    vocabulary = SPECIAL | {word(i): len(SPECIAL) + i for i in range(_WORDS)}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    names = {f"{name}_token": f"[{name.upper()}]" for name in ("pad", "unk", "cls", "sep", "mask")}
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, model_max_length=longest, **names)


def word(number: int) -> str:
    """The generated word of a number: letters alone, so that it is one word to every task."""
    letters = ""
    for _ in range(4):
        number, letter = divmod(number, 26)
        letters = chr(ord("a") + letter) + letters
    return letters


def drawn_lengths(corpus: str, count: int, seed: int) -> list[int]:
    """Tokens of `count` documents, drawn from a stored corpus's quantiles."""
    quantiles = json.loads(_LENGTHS.read_text(encoding="utf-8"))[corpus]["quantiles"]
    chances = np.random.default_rng(seed).random(count)
    lengths = np.interp(chances, np.linspace(0, 1, len(quantiles)), quantiles)
    return [round(length) for length in lengths]


def document(split: str, number: int, length: int, label: str) -> Document:
    """A text of `length` words, some of which are mentions."""
    generator = np.random.default_rng([number, len(split)])
    mentions = generator.random(length) < _MENTION_SHARE
    words = np.where(
        mentions,
        generator.integers(0, _MENTIONS, length),
        generator.integers(_MENTIONS, _WORDS, length),
    )
    marked = mentions & (generator.random(length) >= _NOISE)
    places = [(5 * i, 5 * i + 4) for i in range(length)]  # four letters and a space
    return Document(
        id=f"{split}-{number}",
        group=f"{split}-{number}",
        text=" ".join(word(int(w)) for w in words),
        split=split,
        spans=tuple(Span(*places[i], label) for i in np.flatnonzero(marked)),
        tokens=tuple(places),
        tags=tuple(f"B-{label}" if mark else "O" for mark in marked),
    )


def generated_task(
    made_for: Checkpoint,
    task: str,
    lengths: dict[str, list[int]],
    *overrides: str,
) -> Prepared:
    """A shipped task's spec over generated documents, encoded for a checkpoint.

    lengths: tokens of each document of each split, special tokens included.
    """
    spec = load_task(task, overrides).spec
    assert isinstance(spec.labels, tuple | list)
    labels = tuple(str(label) for label in spec.labels)
    documents = {
        split: [document(split, i, max(1, n - 2), labels[0]) for i, n in enumerate(sizes)]
        for split, sizes in lengths.items()
    }
    data = TaskData(documents, labels[:1], labels, source="generated", hash="generated")
    tokenizer = load_tokenizer(made_for)
    size = window(tokenizer, made_for.config, spec.protocol.max_length)
    return prepare(spec, data, tokenizer, size)
