"""Whole words, rates that change, and phases whose steps are causal or masked."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from biobench.errors import SpecError
from trainer import api
from trainer.corpus.shards import train_tokenizer
from trainer.ledger import Ledger, compare
from trainer.model.objectives import Vocabulary, capacity, masked
from trainer.model.tokens import word_marks, word_numbers
from trainer.recipe.library import load_recipe
from trainer.recipe.phases import Masking
from trainer.train.batches import vocabulary_of
from trainer.train.progress import read_metrics

TEXTS = ["the patient has glycaemia, 12 mg/dl.", "une glycémie élevée; l'hémoglobine"] * 20


def words_of(text: str, vocabulary: int = 300) -> list[str]:
    """The words that a small byte-level vocabulary's tokens are grouped into."""
    tokenizer = train_tokenizer(TEXTS, vocabulary, 64)
    ids = np.array([tokenizer(text, add_special_tokens=False)["input_ids"]])
    numbers = word_numbers(ids, *word_marks(tokenizer, len(tokenizer)))[0]
    return [tokenizer.decode(ids[0][numbers == n]).strip() for n in range(numbers[-1] + 1)]


def test_words_are_those_of_the_text_whatever_its_tokens() -> None:
    assert [w for w in words_of("the patient has glycémie, 12 mg/dl.") if w] == [
        *("the", "patient", "has", "glycémie", ",", "12", "mg", "/", "dl", "."),
    ]


def test_wordpiece_marks_what_continues() -> None:
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    pieces = {t: n for n, t in enumerate(["[UNK]", "[SEP]", "[MASK]", "gly", "##cae", "##mia", ",", "high"])}
    backend = Tokenizer(models.WordPiece(pieces, unk_token="[UNK]"))
    backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=backend, unk_token="[UNK]", sep_token="[SEP]", mask_token="[MASK]"
    )
    marks = vocabulary_of(tokenizer, len(tokenizer))
    assert marks.glued is not None
    assert marks.closing is not None
    ids = np.array([[3, 4, 5, 6, 7, 1, 3]])
    assert word_numbers(ids, marks.glued, marks.closing).tolist() == [[0, 0, 0, 1, 2, 3, 4]]


GLUED = np.zeros(500, dtype=bool)
GLUED[300:] = True
SPECIAL = np.arange(500) < 5
PIECES = Vocabulary(3, 4, SPECIAL, np.arange(5, 500), GLUED, SPECIAL)


def sample(rows: int = 300, length: int = 256) -> np.ndarray:
    return np.random.RandomState(1).randint(5, 500, (rows, length)).astype(np.int64)


def keys(rows: int) -> list[tuple[object, ...]]:
    return [(17, 0, 0, n) for n in range(rows)]


@pytest.mark.parametrize("rate", [0.15, 0.3, 0.6])
def test_whole_words_are_hidden_at_the_rate(rate: float) -> None:
    windows = sample()
    result = masked(windows, PIECES, Masking(rate=rate, unit="word"), keys(300))
    hidden = np.zeros(windows.size, dtype=bool)
    hidden[result.positions] = True
    hidden = hidden.reshape(windows.shape)
    assert hidden.mean() == pytest.approx(rate, abs=0.015)
    numbers = word_numbers(windows, PIECES.glued, PIECES.closing)  # type: ignore[arg-type]
    for row, words in zip(hidden, numbers, strict=True):
        for word in np.unique(words):
            assert len(set(row[words == word])) == 1, "a word is hidden whole or not at all"
    assert hidden[:, 0].mean() == pytest.approx(rate, abs=0.09), "the first word no less than others"


def test_special_tokens_stay_and_end_words() -> None:
    windows = sample(50)
    windows[:, 10::20] = 3
    result = masked(windows, PIECES, Masking(rate=0.5, unit="word"), keys(50))
    assert (windows.ravel()[result.positions] != 3).all()


def test_the_fixed_number_of_places_holds_words() -> None:
    masking = Masking(rate=0.15, final_rate=0.3, unit="word")
    windows = sample(8)
    most = max(
        masked(windows, PIECES, masking, [(seed, n) for n in range(8)], rate=0.3).positions.size for seed in range(40)
    )
    assert most <= capacity(windows.size, windows.shape[1], masking)


def run(small: list[str], out: Path, *changes: str) -> Ledger:
    result = api.pretrain("toy_detour", out=out, overrides=[*small, *changes], progress="none")
    assert result.ledger is not None
    return result.ledger


def test_a_rate_that_falls_hides_fewer_and_fewer(small: list[str], tmp_path: Path) -> None:
    ledger = run(small, tmp_path / "run", "phases.1.masking={rate: 0.4, final_rate: 0.1, unit: word}")
    lines = [
        x for x in read_metrics(tmp_path / "run" / "metrics.jsonl") if x["event"] == "train" and x["phase"] == "decay"
    ]
    counts = [line["targets"] for line in lines]
    assert counts[0] > 2 * counts[-1]
    assert ledger.phases[1].masking == {
        "rate": 0.4,
        "final_rate": 0.1,
        "unit": "word",
        "rule": "80-10-10",
        "special": "protected",
    }
    other = run(small, tmp_path / "other", "phases.1.masking={rate: 0.4, final_rate: 0.2, unit: word}")
    assert "phase 2 masking" in {row.name for row in compare(ledger, other).differing}


MIXED = ["phases.1.objective=mixed", "phases.1.causal_share=0.25"]


def test_a_mixed_phase_spreads_its_causal_steps(small: list[str], tmp_path: Path) -> None:
    ledger = run(small, tmp_path / "run", *MIXED)
    lines = [
        x for x in read_metrics(tmp_path / "run" / "metrics.jsonl") if x["event"] == "train" and x["phase"] == "decay"
    ]
    assert [x["objective"] for x in lines] == ["mlm", "mlm", "mlm", "clm", "mlm", "mlm", "mlm", "clm"]
    assert [x["targets"] for x in lines if x["objective"] == "clm"] == [8 * 47, 8 * 47]
    record = ledger.phases[1]
    assert (record.objective, record.causal_share, record.leak) == ("mixed", 0.25, 0.0)
    assert set(record.reach) == {
        *("full_attention", "sliding_attention", "full_attention, causal", "sliding_attention, causal"),
    }
    assert record.validation_losses is not None
    assert record.validation_losses["objective mlm"] == record.validation_loss
    assert record.validation_losses["objective clm"] != record.validation_loss
    other = run(small, tmp_path / "other", MIXED[0], "phases.1.causal_share=0.5")
    assert "phase 2 causal share" in {row.name for row in compare(ledger, other).differing}


@pytest.mark.parametrize("share", [0.1, 0.25, 1 / 3, 0.5, 0.9])
def test_the_share_of_causal_steps_is_met(share: float) -> None:
    phase = load_recipe("toy_detour", [f"phases.1.causal_share={share}", "phases.1.objective=mixed"]).phases[1]
    steps = [phase.direction(n) for n in range(1000)]
    assert steps.count("clm") == pytest.approx(1000 * share, abs=1)
    gaps = np.diff([n for n, step in enumerate(steps) if step == "clm"])
    assert gaps.max() - gaps.min() <= 1


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (["phases.1.objective=mixed"], "causal_share None"),
        (["phases.1.causal_share=0.5"], "is mlm with causal_share"),
        (["phases.0.objective=mixed", "phases.0.causal_share=0.5"], "mixed without masking"),
        (["phases.1.masking.unit=sentence"], "unit"),
    ],
)
def test_wrong_phases_are_refused(changes: list[str], message: str) -> None:
    with pytest.raises(SpecError, match=message):
        load_recipe("toy_detour", changes)


def test_masks_of_single_tokens_are_what_they_were() -> None:
    plain = Masking(rate=0.3)
    assert json.loads(plain.model_dump_json()) == {"rate": 0.3, "rule": "80-10-10", "special": "protected"}
