"""Tiny checkpoints in the shapes in which people publish them."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import torch
import transformers as hf
from safetensors.torch import save_file
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors, trainers

FRENCH = "La fièvre du garçon naïf, 37,5 °C, a duré 12-14 jours ; l’hémoglobine est à 9,1 g/dL."
ENGLISH = "The patient had 12 mg of aspirin and Hepatocellular carcinoma (BRCA1, IL-6)."
TEXTS = [FRENCH, ENGLISH, "Où est l'œdème ?  ÉLECTROCARDIOGRAMME", "β-blocker 5 mg/kg"]
SPECIAL = ["[PAD]", "[CLS]", "[SEP]", "[UNK]", "[MASK]"]
ROLES = {
    "pad_token": "[PAD]",
    "cls_token": "[CLS]",
    "sep_token": "[SEP]",
    "unk_token": "[UNK]",
    "mask_token": "[MASK]",
    "bos_token": "[CLS]",
    "eos_token": "[SEP]",
}
_FRAMED = processors.TemplateProcessing(
    single="[CLS] $A [SEP]",
    pair="[CLS] $A [SEP] $B [SEP]",
    special_tokens=[("[CLS]", 1), ("[SEP]", 2)],
)


def word_pieces(normalizer: Any = None) -> Tokenizer:
    """WordPiece in CamemBERTv2's manner: cased, digits together, punctuation apart."""
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizer or normalizers.NFKC()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.WhitespaceSplit(),
            pre_tokenizers.Punctuation(),
            pre_tokenizers.Digits(individual_digits=False),
        ]
    )
    trainer = trainers.WordPieceTrainer(vocab_size=200, special_tokens=SPECIAL, show_progress=False)
    return _trained(tokenizer, trainer)


def unigram() -> Tokenizer:
    """Unigram over pieces with a leading `▁`."""
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.normalizer = normalizers.NFKC()
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    trainer = trainers.UnigramTrainer(
        vocab_size=120, special_tokens=SPECIAL, unk_token="[UNK]", show_progress=False
    )
    return _trained(tokenizer, trainer)


def byte_pairs(normalizer: Any = None, dropout: float | None = None) -> Tokenizer:
    """Byte-level BPE in RoBERTa's manner."""
    tokenizer = Tokenizer(models.BPE(dropout=dropout))
    if normalizer is not None:
        tokenizer.normalizer = normalizer
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = trainers.BpeTrainer(
        vocab_size=400,
        special_tokens=SPECIAL,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    return _trained(tokenizer, trainer)


def _trained(tokenizer: Tokenizer, trainer: Any) -> Tokenizer:
    tokenizer.train_from_iterator(TEXTS * 4, trainer)
    tokenizer.post_processor = _FRAMED
    return tokenizer


def write_json(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value), encoding="utf-8")


def write_tokenizer(
    folder: Path,
    tokenizer: Tokenizer,
    family: str,
    *,
    named: str | None = None,
    settings: dict[str, Any] | None = None,
) -> Path:
    """A folder with `tokenizer.json`, `config.json` of the family, and (settings, or the special
    tokens) `tokenizer_config.json`, which names a class.
    """
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(folder / "tokenizer.json"))
    settings = dict(ROLES if settings is None else settings)
    if named is not None:
        settings["tokenizer_class"] = named
    if settings:
        write_json(folder / "tokenizer_config.json", settings)
    if not (folder / "config.json").is_file():
        write_json(folder / "config.json", {"model_type": family, "vocab_size": 500})
    return folder


def write_sentencepiece(folder: Path, file: str, family: str, **options: Any) -> Path:
    """A folder with a sentencepiece model alone."""
    import sentencepiece

    folder.mkdir(parents=True, exist_ok=True)
    content = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(TEXTS * 4),
        model_writer=content,
        vocab_size=200,
        hard_vocab_limit=False,
        minloglevel=2,
        **options,
    )
    (folder / file).write_bytes(content.getvalue())
    write_json(folder / "config.json", {"model_type": family, "vocab_size": 500})
    return folder


def write_vocabulary(folder: Path, settings: dict[str, Any] | None = None) -> Path:
    """A BERT with a cased `vocab.txt`, as BioBERT was published."""
    folder.mkdir(parents=True, exist_ok=True)
    vocabulary = word_pieces().get_vocab()
    lines = sorted(vocabulary, key=lambda token: vocabulary[token])
    (folder / "vocab.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    write_json(folder / "config.json", {"model_type": "bert", "vocab_size": 500})
    if settings is not None:
        write_json(folder / "tokenizer_config.json", settings)
    return folder


def reading(tokenizer: Tokenizer) -> list[list[int]]:
    """The ids of the texts by the file alone, framed and whole."""
    return [tokenizer.encode(text).ids for text in TEXTS]


OWN_CODE = """
import torch
from torch import nn
from transformers import PreTrainedConfig, PreTrainedModel
from transformers.modeling_outputs import BaseModelOutput


class OwnConfig(PreTrainedConfig):
    model_type = "own"

    def __init__(self, rows=600, width=32, **more):
        self.rows, self.hidden_size = rows, width
        super().__init__(**more)


class OwnModel(PreTrainedModel):
    config_class = OwnConfig

    def __init__(self, config):
        super().__init__(config)
        self.embed = nn.Embedding(config.rows, config.hidden_size)
        self.mix = nn.Linear(config.hidden_size, config.hidden_size)
        half = config.hidden_size // 2
        self.register_buffer("inv_freq", BUFFER, persistent=False)
        self.post_init()

    def _init_weights(self, module):
        pass

    def forward(self, input_ids, attention_mask=None):
        states = self.embed(input_ids)
        turns = torch.arange(states.shape[1])[:, None] * self.inv_freq[None]
        states = states + torch.cat([turns.sin(), turns.cos()], -1)
        real = torch.ones_like(input_ids) if attention_mask is None else attention_mask
        mean = (states * real[..., None]).sum(1, keepdim=True) / real.sum(1)[:, None, None]
        return BaseModelOutput(last_hidden_state=self.mix(states + mean))
"""


def write_own_code(folder: Path, buffer: str) -> Path:
    """A checkpoint with its own code, whose config has neither `vocab_size` nor padding; `buffer`
    is the expression of a buffer that is not saved.
    """
    write_tokenizer(folder, byte_pairs(), "own")
    (folder / "own_model.py").write_text(OWN_CODE.replace("BUFFER", buffer), encoding="utf-8")
    classes = {"AutoConfig": "own_model.OwnConfig", "AutoModel": "own_model.OwnModel"}
    about = {"model_type": "own", "architectures": ["OwnModel"], "auto_map": classes}
    write_json(folder / "config.json", about)
    generator = torch.Generator().manual_seed(0)
    weights = {
        "embed.weight": torch.randn(600, 32, generator=generator),
        "mix.weight": torch.randn(32, 32, generator=generator),
        "mix.bias": torch.zeros(32),
    }
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    return folder


SMALL: dict[str, Any] = {
    "vocab_size": 500,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 48,
    "pad_token_id": 0,
}


def write_model(folder: Path, config: Any, tokenizer: Tokenizer | None = None) -> Path:
    """Random weights of a config (seed 0), and a tokenizer."""
    torch.manual_seed(0)
    hf.AutoModel.from_config(config).save_pretrained(folder)
    return write_tokenizer(folder, tokenizer or byte_pairs(), config.model_type)
