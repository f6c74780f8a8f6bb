"""What excludes a document from the corpus, word by word."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trainer.corpus.builder import build
from trainer.corpus.cleaning import Excluded
from trainer.corpus.embedded import documents
from trainer.corpus.shards import train_tokenizer
from trainer.recipe.corpus import CorpusSource, CorpusSpec, EmbeddedText

WORDS = [f"w{n}" for n in range(40)]
TEST = " ".join(WORDS)


@pytest.mark.parametrize("n", [5, 13, 39])
def test_a_run_of_n_words_is_one_too_many_wherever_it_stands(n: int) -> None:
    excluded = Excluded([TEST], n=n)
    for first in {0, 1, 40 - n}:
        run = WORDS[first : first + n]
        for before, after in ([], ["z"]), (["x", "y"], ["z"]), (["x", "y"], []), ([], []):
            for shared in (run, run[1:]):
                why = excluded.why(" ".join([*before, *shared, *after]))
                assert why == ("overlap" if len(shared) == n else None), (first, len(shared))
    swapped = [*WORDS[:n][:-2], WORDS[n - 1], WORDS[n - 2]]
    assert excluded.why(" ".join(["x", *swapped, "y"])) is None
    assert excluded.why(" ".join(reversed(WORDS))) is None


@settings(max_examples=50, deadline=None)
@given(st.lists(st.sampled_from("abcdefgh"), min_size=1, max_size=60), st.integers(5, 13))
def test_overlap_is_a_shared_run_of_n_words(tokens: list[str], n: int) -> None:
    shared = {tuple(tokens[i : i + n]) for i in range(len(tokens) - n + 1)}
    other = list(reversed(tokens))
    runs = {tuple(other[i : i + n]) for i in range(len(other) - n + 1)}
    expected = "same" if other == tokens else "overlap" if runs & shared else None
    assert Excluded([" ".join(tokens)], n=n).why(" ".join(other)) == expected


def test_a_short_text_is_excluded_as_a_whole_alone() -> None:
    excluded = Excluded(["Fever and cough.", TEST])
    assert excluded.why("fever, and COUGH") == "same"
    assert excluded.why("Fever and cough. Then rest.") is None
    assert Excluded([" ".join(WORDS[:13])]).why(f"a {' '.join(WORDS[:13])} b") == "overlap", "exactly n words"


@pytest.mark.parametrize(
    ("spelled", "otherwise"),
    [
        ("une fièvre élevée", "UNE FIE\u0300VRE E\u0301LEVE\u0301E"),
        ("the first finding", "the \ufb01rst \ufb01nding"),
        ("500 mg daily", "５００ mg daily"),
        ("die Straße dort", "DIE STRASSE DORT"),
        ("l'hôpital de jour", "l’hôpital - de  jour !"),
    ],
)
def test_spelling_that_does_not_matter(spelled: str, otherwise: str) -> None:
    assert Excluded([spelled]).why(otherwise) == "same"
    assert Excluded([f"{spelled} {TEST}"], n=5).why(f"x {otherwise} {' '.join(WORDS[:4])} y") == "overlap"
    assert Excluded([spelled]).why(f"{otherwise} indeed") is None


def test_the_hash_is_that_of_the_set() -> None:
    plain = Excluded(["a b", TEST])
    assert (plain.count, plain.hash) == (2, Excluded([TEST, "A, b!"]).hash)
    others = [Excluded(t).hash for t in (["a c", TEST], ["a b"], [TEST], ["a b", TEST, "c"], ["a b", f"{TEST} x"])]
    assert len({plain.hash, *others}) == 6
    nothing = Excluded(["", " ... "])
    assert (nothing.count, nothing.hash, nothing.why("")) == (0, "", None)


def test_excluded_documents_are_in_no_window(tmp_path: Path) -> None:
    texts = list(documents(60, seed=5))
    tokenizer = train_tokenizer(texts, 400, 64)
    source = CorpusSource(id="e", embedded=EmbeddedText(documents=60, seed=5))
    made = CorpusSpec(sources=[source], sequence_length=32, held_out=0.1)
    near = "A new beginning. " + " ".join(texts[4].split()[:20])
    unlike = texts[9].upper().replace(" ", "  ").replace(".", " .")
    corpus = build(made, tokenizer, tmp_path, exclude=[near, unlike])
    row = corpus.manifest["sources"][0]
    assert corpus.manifest["exclusion"]["documents"] == 2
    assert row["excluded"]["same"] == 1
    assert row["documents"] + sum(row["excluded"].values()) == 60
    windows = [tokenizer.decode(s.read(np.arange(len(s))).ravel()) for s in (corpus.train, corpus.held_out)]
    for number in (4, 9):
        assert not any(texts[number] in text for text in windows)
    assert texts[11] in "".join(windows)
    assert corpus.hash != build(made, tokenizer, tmp_path).hash
