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
from transformers import AutoModel

from biobench.core.tokenizer_trial import PROBES
from biobench.data.catalog import load_task
from biobench.finetune.prepare import Prepared, prepare
from biobench.models.loading import Checkpoint, find_checkpoint, load_tokenizer, window
from biobench.schema.document import Document, Span, TaskData
from tests.benchmarks.gpu.setting import Setting
from tests.helpers.checkpoints import IDS, SPECIAL, fast_tokenizer
from trainer.cost.plan import SHAPES
from trainer.model.network import make_config

BASE, LARGE, BERT = "answerdotai/ModernBERT-base", "answerdotai/ModernBERT-large", "BERT base"
_BERT = {"model_type": "bert"}
"""The library's own values are those of BERT base."""
_TINY = {
    "vocab_size": 2500,
    "max_position_embeddings": 512,
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
}
_TINY_WINDOWS = {"local_attention": 16, "global_attn_every_n_layers": 2}
_WORDS, _MENTIONS = 2000, 100
"""Different words of a generated text; the first of them are the mentions."""
_NOISE = 0.1
"""Share of mentions that the gold does not mark."""
LENGTHS = Path(__file__).with_name("lengths.json")
_LETTERS = str.maketrans("0123456789ABCDEFGHIJKLMNOP", "abcdefghijklmnopqrstuvwxyz")


def shape(setting: Setting, name: str, **changes: Any) -> dict[str, Any]:
    """Config fields of a model, at its real or at a tiny size."""
    if name == BERT:
        real, ids, tiny = _BERT, {"pad_token_id": IDS["pad_token_id"]}, _TINY
    else:
        real, ids, tiny = SHAPES[name], IDS, {**_TINY, **_TINY_WINDOWS}
    return {**real, **setting.pick({}, tiny), **ids, **changes}


def checkpoint(setting: Setting, name: str, **changes: Any) -> Checkpoint:
    """A folder with random weights and a tokenizer of words; made once for all steps."""
    label = "-".join([Path(name).name.replace(" ", "-"), *(f"{k}-{v}" for k, v in changes.items())])
    folder = setting.work / "models" / label
    if not folder.is_dir():
        folder.parent.mkdir(exist_ok=True)
        config = make_config(shape(setting, name, **changes))
        torch.manual_seed(0)
        with torch.device(setting.device):
            model = AutoModel.from_config(config)
        unfinished = Path(tempfile.mkdtemp(dir=folder.parent))
        model.save_pretrained(unfinished)
        words_tokenizer(config.max_position_embeddings).save_pretrained(unfinished)
        with suppress(OSError):  # a step at the same time has made it
            unfinished.rename(folder)
    return find_checkpoint(str(folder), offline=True)


def words_tokenizer(longest: int) -> Any:
    """A tokenizer to which each generated word is one token."""
    # the kernels are proved on texts of their own: of one word they would prove nothing
    plain = dict.fromkeys(" ".join(PROBES).split())
    words = [*SPECIAL, *(word(number) for number in range(_WORDS)), *plain]
    vocabulary = {text: number for number, text in enumerate(words)}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", special_tokens=[("<s>", 0), ("</s>", 2)]
    )
    return fast_tokenizer(tokenizer, longest)


def word(number: int) -> str:
    """The generated word of a number: four letters, so that it is one word to every task."""
    return np.base_repr(number + 26**3, 26).translate(_LETTERS)


def drawn_lengths(corpus: str, count: int, seed: int) -> list[int]:
    """Tokens of `count` documents, drawn from a stored corpus's quantiles."""
    quantiles = json.loads(LENGTHS.read_text(encoding="utf-8"))[corpus]["quantiles"]
    chances = np.random.default_rng(seed).random(count)
    lengths = np.interp(chances, np.linspace(0, 1, len(quantiles)), quantiles)
    return [round(length) for length in lengths]


def document(split: str, number: int, length: int, label: str) -> Document:
    """A text of `length` words, some of which are mentions."""
    generator = np.random.default_rng([number, len(split)])
    words = generator.integers(0, _WORDS, length)
    marked = (words < _MENTIONS) & (generator.random(length) >= _NOISE)
    offsets = [(5 * i, 5 * i + 4) for i in range(length)]  # four letters and a space
    return Document(
        id=f"{split}-{number}",
        group=f"{split}-{number}",
        text=" ".join(word(int(w)) for w in words),
        split=split,
        spans=tuple(Span(*offsets[i], label) for i in np.flatnonzero(marked)),
        tokens=tuple(offsets),
        tags=tuple(f"B-{label}" if mark else "O" for mark in marked),
    )


def generated_task(
    made_for: Checkpoint, task: str, lengths: dict[str, list[int]], *overrides: str
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


def training_task(
    made_for: Checkpoint, task: str, lengths: list[int], batch: int, *overrides: str
) -> Prepared:
    """A generated task that is trained for one epoch of steps of `batch` documents."""
    steps, rest = len(lengths) // batch, lengths[:2]
    return generated_task(
        made_for,
        task,
        {"train": lengths, "validation": rest, "test": rest},
        "training.epochs=",
        f"training.max_steps={steps}",
        f"training.batch_size={batch}",
        f"training.evaluate_every={steps}",
        *overrides,
    )
