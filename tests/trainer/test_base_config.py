"""A base that cannot be meant is refused in one line: names, values, and ids that mean something else."""

from __future__ import annotations

from pathlib import Path

import pytest
from transformers import PreTrainedTokenizerBase

from biobench.errors import BioBenchError, ModelError
from trainer import api
from trainer.corpus.embedded import documents
from trainer.corpus.shards import train_tokenizer
from trainer.model.network import new_model
from trainer.model.tokens import check_own_ids

TEXTS = list(documents(60, seed=5))
TOKENIZER = train_tokenizer(TEXTS, 400, 64)
SIZES = {"model_type": "modernbert", "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2}


def plan(fields: list[str]) -> None:
    api.plan("toy_detour", overrides=fields)


@pytest.mark.parametrize(
    ("field", "what", "hint"),
    [
        ("hiden_size=32", "base.config.hiden_size is no field of a modernbert config", "did you mean 'hidden_size'?"),
        ("num_attention_heads=0", "base.config.num_attention_heads is 0", "1 or more"),
        ("num_hidden_layers=-1", "base.config.num_hidden_layers is -1", "1 or more"),
        ("num_hidden_layers=two", "Field 'num_hidden_layers' expected int, got str", "check the value"),
        ("hidden_size=33", "not a multiple of the number of attention heads", "check the value"),
        ("hidden_activation=gelux", "gelux", "check the value"),
        ("model_type=modernbart", "model type 'modernbart' cannot be pretrained here", "modernbert"),
    ],
)
def test_names_and_values_of_the_config(
    field: str, what: str, hint: str, small: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(BioBenchError) as caught:
        plan([*small, f"base.config.{field}"])
    assert what in str(caught.value)
    assert hint in caught.value.hint
    assert "\n" not in str(caught.value)


def test_ids_of_a_config_must_be_the_tokenizer_s() -> None:
    with pytest.raises(ModelError, match=r"sep_token_id is 2 by base\.config and 3 by the tokenizer"):
        new_model({**SIZES, "sep_token_id": 2}, TOKENIZER, 1)
    assert new_model({**SIZES, "sep_token_id": 3}, TOKENIZER, 1).config.sep_token_id == 3


def checkpoint(folder: Path, tokenizer: PreTrainedTokenizerBase | None) -> Path:
    new_model(SIZES, TOKENIZER, 1).save_pretrained(folder)
    if tokenizer is not None:
        tokenizer.save_pretrained(folder)
    return folder


def test_a_tokenizer_with_another_meaning_of_the_ids_is_refused(tmp_path: Path) -> None:
    folder = checkpoint(tmp_path / "model", TOKENIZER)
    check_own_ids(folder, TOKENIZER)
    other = train_tokenizer([t.upper() for t in TEXTS], 400, 64)
    with pytest.raises(ModelError, match=r"id \d+ is '.+' there and '.+' here") as caught:
        check_own_ids(folder, other)
    assert "\n" not in str(caught.value)
    moved = train_tokenizer(TEXTS, 400, 64)
    moved.mask_token = "[UNK]"
    with pytest.raises(ModelError, match="mask_token_id is 4 by the checkpoint's tokenizer and 1 by the tokenizer"):
        check_own_ids(folder, moved)
    larger = train_tokenizer(TEXTS, 400, 64)
    larger.add_tokens(["<more>"])
    check_own_ids(folder, larger)


def test_without_a_tokenizer_beside_it_the_config_speaks(tmp_path: Path) -> None:
    folder = checkpoint(tmp_path / "model", None)
    check_own_ids(folder, train_tokenizer([t.upper() for t in TEXTS], 400, 64))
    moved = train_tokenizer(TEXTS, 400, 64)
    moved.sep_token = "[PAD]"
    with pytest.raises(ModelError, match="sep_token_id is 3 by the checkpoint's config and 0 by the tokenizer"):
        check_own_ids(folder, moved)
