"""Special tokens that a text spells out are no control tokens."""

from __future__ import annotations

import pytest
from tokenizers import AddedToken, Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerBase, PreTrainedTokenizerFast

from tests.helpers.trainer_make import numbered
from trainer.corpus.shards import control_ids, encode, tokenizer_hash, train_tokenizer

ODD = "a [SEP] b[MASK] c [PAD][CLS] </s> a<s> <mask>b <pad> [UNK] c"
ANGLES = {"bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>", "unk_token": "<unk>"}


def byte_level() -> PreTrainedTokenizerBase:
    return train_tokenizer([ODD, "a b c d"] * 20, 300, 64)


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


TOKENIZERS = {"byte level": byte_level(), "unigram": unigram()}


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


def test_what_is_spelled_like_a_special_token_is_encoded_as_any_text() -> None:
    tokenizer = TOKENIZERS["byte level"]
    assert tokenizer.decode(encode([ODD], tokenizer)[0]) == ODD
    text = f"before {tokenizer.sep_token} and {tokenizer.mask_token}, after"
    (ids,) = encode([text], tokenizer)
    model = tokenizer.backend_tokenizer.model
    assert ids == [model.token_to_id(t) for t in tokenizer.tokenize(text, split_special_tokens=True)]
    letters = [i for one in text for i in encode([one], tokenizer)[0]]
    assert len(ids) < len(letters), "in the tokenizer's own pieces"


def test_a_control_token_among_a_model_s_pieces_goes() -> None:
    pieces = TOKENIZERS["unigram"].convert_ids_to_tokens(encode(["a </s> b"], TOKENIZERS["unigram"])[0])
    assert "".join(pieces) == "▁a▁▁b"


def test_words_that_a_tokenizer_does_not_know_stay_unknown() -> None:
    assert encode(["low strange high", ""], numbered(9)) == [[3, 1, 9], []]
