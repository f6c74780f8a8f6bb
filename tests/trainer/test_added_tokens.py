"""Words that a checkpoint's vocabulary gains."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from transformers import AutoModelForMaskedLM, AutoTokenizer

from biobench.errors import BioBenchError, SpecError
from trainer import api
from trainer.model.families import decoder_of
from trainer.pretrain import base_model, tokenizer_for
from trainer.recipe.library import load_recipe


@pytest.fixture(scope="module")
def checkpoint(small: list[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("checkpoint")
    short = [*small, "phases.0.tokens=768", "phases.0.schedule.warmup=0", "phases.1.tokens=384"]
    result = api.pretrain("toy_detour", out=folder / "run", overrides=short, progress="none")
    assert result.model is not None
    return result.model


def overrides(small: list[str], checkpoint: Path, added: str) -> list[str]:
    rest = [s for s in small if not s.startswith("base")]
    return [*rest, "base.config=null", "base.tokenizer=null", f"base.model={checkpoint}", f"base.added_tokens={added}"]


def test_rows_begin_as_the_mean_of_the_old_pieces(small: list[str], checkpoint: Path) -> None:
    recipe = load_recipe("toy_detour", overrides(small, checkpoint, "{tokens: [hyperglycaemia, xyzzy]}"))
    tokenizer = tokenizer_for(recipe)
    model = base_model(recipe, tokenizer)
    old_model = AutoModelForMaskedLM.from_pretrained(checkpoint)
    old_tokenizer = AutoTokenizer.from_pretrained(checkpoint)
    number = tokenizer.convert_tokens_to_ids("hyperglycaemia")
    assert number >= len(old_tokenizer)
    pieces = old_tokenizer(" hyperglycaemia", add_special_tokens=False)["input_ids"]
    assert len(pieces) > 1
    expected = old_model.get_input_embeddings().weight[pieces].mean(0)
    torch.testing.assert_close(model.get_input_embeddings().weight[number], expected)
    bias = decoder_of(model).bias
    assert bias is not None
    torch.testing.assert_close(bias[number], decoder_of(old_model).bias[pieces].mean())
    rows = old_model.get_input_embeddings().weight.shape[0]
    assert torch.equal(model.get_input_embeddings().weight[:rows], old_model.get_input_embeddings().weight)
    assert decoder_of(model).weight is model.get_input_embeddings().weight


def test_a_run_trains_saves_and_loads_them(small: list[str], checkpoint: Path, tmp_path: Path) -> None:
    words = tmp_path / "words.txt"
    words.write_text("hyperglycaemia\npatient\n\nhyperglycaemia\n", encoding="utf-8")
    changes = [*overrides(small, checkpoint, "{file: words.txt, initial: mean}"), f"corpus.root={tmp_path}"]
    changes = [*changes, f"corpus.cache={tmp_path / 'corpora'}"]
    result = api.pretrain("toy_detour", out=tmp_path / "run", overrides=changes, progress="none")
    tokenizer = AutoTokenizer.from_pretrained(result.model)
    model = AutoModelForMaskedLM.from_pretrained(result.model)
    ids = tokenizer("a hyperglycaemia was seen", add_special_tokens=False)["input_ids"]
    assert tokenizer.convert_tokens_to_ids("hyperglycaemia") in ids
    assert model(torch.tensor([ids])).logits.shape[-1] >= len(tokenizer)
    assert result.ledger is not None
    other = api.pretrain("toy_detour", out=tmp_path / "run", overrides=changes, progress="none", resume=True)
    assert other.ledger == result.ledger


@pytest.mark.parametrize(
    ("added", "message"),
    [
        ("{}", "either tokens or a file"),
        ("{tokens: ['two words']}", "not one word"),
        ("{file: no.txt}", "cannot be read"),
    ],
)
def test_wrong_lists_are_refused(small: list[str], checkpoint: Path, tmp_path: Path, added: str, message: str) -> None:
    with pytest.raises(BioBenchError, match=message):
        tokenizer_for(load_recipe("toy_detour", overrides(small, checkpoint, added)))


def test_fresh_weights_take_no_added_words() -> None:
    with pytest.raises(SpecError, match="without a checkpoint"):
        load_recipe("toy_detour", ["base.added_tokens={tokens: [word]}"])


def test_a_list_names_the_line_of_a_wrong_word(small: list[str], checkpoint: Path, tmp_path: Path) -> None:
    (tmp_path / "words.txt").write_text("good\ntwo words\n", encoding="utf-8")
    recipe = load_recipe("toy_detour", [*overrides(small, checkpoint, "{file: words.txt}"), f"corpus.root={tmp_path}"])
    with pytest.raises(BioBenchError, match="several words") as error:
        tokenizer_for(recipe)
    assert "words.txt:2" in str(error.value)
