"""Models, tokenizers and a recipe made by hand for the trainer's tests."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import (
    ModernBertConfig,
    ModernBertForMaskedLM,
    PreTrainedTokenizerBase,
    PreTrainedTokenizerFast,
)

from biobench.errors import BioBenchError
from trainer import api
from trainer.corpus.builder import build
from trainer.corpus.embedded import documents
from trainer.corpus.shards import Corpus, train_tokenizer
from trainer.pretrain import PretrainingResult
from trainer.recipe.library import load_recipe
from trainer.recipe.spec import Recipe
from trainer.train.batches import Batches, vocabulary_of
from trainer.train.distributed import World
from trainer.train.start import tokenizer_for

SMALL = (
    "base.config.hidden_size=32",
    "base.config.intermediate_size=32",
    "base.config.num_hidden_layers=3",
    "base.config.num_attention_heads=2",
    "base.config.local_attention=16",
    "base.tokenizer.vocabulary=500",
    "corpus.sources.0.embedded.documents=150",
    "corpus.sequence_length=48",
    "batch.sequences=8",
    "phases.0.tokens=4608",
    "phases.0.schedule.warmup=1000",
    "phases.1.tokens=3072",
    "logging.every=1",
)
"""Overrides that shrink toy_detour: 8 windows of 48 tokens a step, 12 + 8 steps."""


def write(
    folder: Path, *, seed: int, vocabulary: int = 400, moved: float = 0.0, **changes: int
) -> Path:
    """A tiny masked language model with random weights; `moved`: how far a second draw moves
    them."""
    tokenizer = train_tokenizer(documents(100, seed=1), vocabulary, 128)
    fields = {
        "hidden_size": 32,
        "intermediate_size": 32,
        "num_hidden_layers": 4,
        "num_attention_heads": 2,
    } | changes
    ids = {
        f"{n}_token_id": getattr(tokenizer, f"{m}_token_id")
        for n, m in (("pad", "pad"), ("bos", "cls"), ("cls", "cls"), ("eos", "sep"), ("sep", "sep"))
    }
    config = ModernBertConfig(
        vocab_size=len(tokenizer), max_position_embeddings=128, local_attention=32, **fields, **ids
    )
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model = ModernBertForMaskedLM(config)
        torch.manual_seed(seed + 1)
        with torch.no_grad():
            for p in model.parameters():
                p.add_(moved * p.std(correction=0) * torch.randn_like(p))
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


TEXTS = list(documents(60, seed=3))


def train(
    out: Path, overrides: list[str], recipe: str = "toy_detour", **options: Any
) -> PretrainingResult:
    """A silent run."""
    return api.pretrain(recipe, out=out, overrides=overrides, **{"progress": "none", **options})


ALONE = World(0, 1, torch.device("cpu"))


def begin(overrides: list[str]) -> tuple[Recipe, PreTrainedTokenizerBase, Corpus]:
    """The changed toy recipe, its tokenizer and its corpus, which is kept where the recipe says."""
    recipe = load_recipe("toy_detour", overrides)
    tokenizer = tokenizer_for(recipe).tokenizer
    return recipe, tokenizer, build(recipe.corpus, tokenizer, Path(str(recipe.corpus.cache)))


def batches(
    overrides: list[str], phase: int, *, world: World = ALONE, fixed: bool = False
) -> Batches:
    """The batches of one of its phases."""
    recipe, tokenizer, corpus = begin(overrides)
    return Batches(recipe, phase, corpus, vocabulary_of(tokenizer, 500), world, fixed=fixed)


def refusal(
    what: str, call: Callable[..., object], *arguments: Any, **options: Any
) -> BioBenchError:
    """What a call is refused with: one line in which the text or pattern `what` is found, and a
    hint.
    """
    with pytest.raises(BioBenchError) as caught:
        call(*arguments, **options)
    said = str(caught.value)
    assert what in said or re.search(what, said), said
    assert "\n" not in said
    assert caught.value.hint
    return caught.value


def numbered(largest: int) -> PreTrainedTokenizerBase:
    """A tokenizer of few words, one of which has the id `largest`."""
    vocabulary = {"[PAD]": 0, "[UNK]": 1, "[SEP]": 2, "low": 3, "high": largest}
    made = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    return PreTrainedTokenizerFast(
        tokenizer_object=made, pad_token="[PAD]", unk_token="[UNK]", sep_token="[SEP]"
    )


GOOD = """name: mine
base: {model: somewhere}
corpus:
  sources: [{id: a, path: texts}]
  sequence_length: 128
batch: {sequences: 8}
optimizer: {learning_rate: 1e-3}
phases:
  - {name: one, objective: mlm, masking: {rate: 0.3}, tokens: 10k}
"""
