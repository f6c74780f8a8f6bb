"""Special tokens that a text spells out stay text; text that cannot be written is one line."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from tokenizers import AddedToken, Tokenizer, models, normalizers, pre_tokenizers
from transformers import PreTrainedTokenizerBase, PreTrainedTokenizerFast

from biobench.errors import DataFormatError, StoreError
from trainer.corpus import builder as corpus_module
from trainer.corpus.builder import build
from trainer.corpus.shards import control_ids, encode, tokenizer_hash, train_tokenizer
from trainer.recipe.corpus import CorpusSource, CorpusSpec

ODD = "a [SEP] b[MASK] c [PAD][CLS] </s> a<s> <mask>b <pad> [UNK] c"
BRACKETS = {"pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]"}
ANGLES = {"bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>", "unk_token": "<unk>"}


def byte_level() -> PreTrainedTokenizerBase:
    return train_tokenizer([ODD, "a b c d"] * 20, 300, 64)


def word_piece(*, split: bool = True) -> PreTrainedTokenizerBase:
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    pieces = [*special, *"[]abc<>/", "##s", "s", "sep", "mask", "pad", "cls", "S", "E", "P"]
    made = Tokenizer(models.WordPiece({t: i for i, t in enumerate(pieces)}, unk_token="[UNK]"))
    if split:
        made.normalizer = normalizers.BertNormalizer()
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer() if split else pre_tokenizers.WhitespaceSplit()
    made.add_special_tokens(special)
    return PreTrainedTokenizerFast(tokenizer_object=made, mask_token="[MASK]", **BRACKETS)


def unigram() -> PreTrainedTokenizerBase:
    """Its control tokens are pieces of the model, as in SentencePiece's own files."""
    special = ["<s>", "</s>", "<pad>", "<mask>", "<unk>"]
    pieces = [*((t, 0.0) for t in special), ("▁", -2.0), *((c, -3.0) for c in "abc</>smkpd")]
    made = Tokenizer(models.Unigram(pieces, unk_id=4, byte_fallback=False))
    made.pre_tokenizer = pre_tokenizers.Metaspace()
    made.add_special_tokens([*special[:3], AddedToken("<mask>", lstrip=True, special=True), "<unk>"])
    return PreTrainedTokenizerFast(
        tokenizer_object=made, mask_token="<mask>", cls_token="<s>", sep_token="</s>", **ANGLES
    )


TOKENIZERS = {
    "byte level": byte_level(),
    "word pieces": word_piece(),
    "whole words": word_piece(split=False),
    "unigram": unigram(),
}


@pytest.mark.parametrize("name", TOKENIZERS)
def test_no_control_token_comes_from_text(name: str) -> None:
    tokenizer = TOKENIZERS[name]
    control = control_ids(tokenizer)
    assert tokenizer.mask_token_id in control
    before = tokenizer_hash(tokenizer)
    plain = tokenizer([ODD], add_special_tokens=False)["input_ids"][0]
    assert not control.isdisjoint(plain)
    found = encode([ODD, "a b c"], tokenizer)
    assert control.isdisjoint(found[0])
    assert found[1] == tokenizer("a b c", add_special_tokens=False)["input_ids"]
    assert tokenizer_hash(tokenizer) == before
    assert encode([], tokenizer) == []


def test_nothing_of_the_text_is_lost() -> None:
    tokenizer = TOKENIZERS["byte level"]
    assert tokenizer.decode(encode([ODD], tokenizer)[0]) == ODD
    pieces = TOKENIZERS["unigram"].convert_ids_to_tokens(encode(["a </s> b"], TOKENIZERS["unigram"])[0])
    assert "".join(pieces) == "▁a▁</s>▁b"


def spec(root: Path, file: str) -> CorpusSpec:
    source = CorpusSource.model_validate({"id": "s", "path": file, "format": "jsonl"})
    return CorpusSpec.model_validate({"sources": [source], "sequence_length": 16, "held_out": 0.1, "root": str(root)})


def write(root: Path, texts: list[str]) -> None:
    (root / "a.jsonl").write_text("".join(json.dumps({"text": t}) + "\n" for t in texts))


def test_documents_end_where_they_end_and_old_caches_are_not_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, [f"{ODD} {i}" for i in range(20)])
    tokenizer = TOKENIZERS["byte level"]
    built = build(spec(tmp_path, "a.jsonl"), tokenizer, tmp_path / "cache")
    tokens = built.train.read(np.arange(len(built.train))).ravel()
    assert (tokens == tokenizer.sep_token_id).sum() <= built.manifest["train"]["documents"]
    assert not {tokenizer.mask_token_id, tokenizer.pad_token_id, tokenizer.cls_token_id} & set(tokens.tolist())
    monkeypatch.setattr(corpus_module, "ENCODING", 1)
    assert build(spec(tmp_path, "a.jsonl"), tokenizer, tmp_path / "cache").folder != built.folder


def test_half_a_character_is_one_line(tmp_path: Path) -> None:
    write(tmp_path, ["good", "bad \ud800 half"])
    for exclude in ([], ["some excluded text"]):
        with pytest.raises(DataFormatError) as caught:
            build(spec(tmp_path, "a.jsonl"), TOKENIZERS["byte level"], tmp_path / "cache", exclude=exclude)
        assert "a.jsonl" in str(caught.value)
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize("file", ["parts/documents.tokens", "parts/documents.lengths", "tmp/train-00000.bin"])
def test_a_full_disk_is_called_full(file: str, tmp_path: Path) -> None:
    """/dev/full takes nothing."""
    tokenizer = TOKENIZERS["byte level"]
    write(tmp_path, ["a b c " * 500] * 20)
    made = spec(tmp_path, "a.jsonl")
    none = corpus_module.excluded_documents(made, [])
    folder = corpus_module.corpus_folder(made, tokenizer, tmp_path / "cache", none)
    full = folder.with_suffix(f".{file.split('/')[0]}") / file.split("/")[1]
    full.parent.mkdir(parents=True)
    full.symlink_to("/dev/full")
    with pytest.raises(StoreError, match="the disk is full"):
        build(made, tokenizer, tmp_path / "cache")
