"""What excludes a document from the corpus, word by word; duplicates, and removals counted by
task."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.helpers.trainer_make import refusal
from trainer.corpus import cleaning as cleaning_module
from trainer.corpus.builder import build
from trainer.corpus.cleaning import Excluded, duplicates
from trainer.corpus.embedded import documents
from trainer.corpus.shards import Corpus, train_tokenizer
from trainer.recipe.corpus import CorpusSpec

WORDS = [f"w{n}" for n in range(40)]
TEST = " ".join(WORDS)


TOKENS = st.lists(st.sampled_from("abcdefgh"), max_size=20)


@settings(max_examples=100)
@given(TOKENS, TOKENS, TOKENS, st.integers(5, 13))
def test_overlap_is_a_shared_run_of_n_words_wherever_it_stands(
    before: list[str], run: list[str], after: list[str], n: int
) -> None:
    tokens, other = [*before, *run, *after], [*after, *run, *before]
    shared, runs = (
        {tuple(words[i : i + n]) for i in range(len(words) - n + 1)} for words in (tokens, other)
    )
    expected = "overlap" if runs & shared else None
    if tokens and tokens == other:
        expected = "same"
    assert Excluded([" ".join(tokens)], n=n).why(" ".join(other)) == expected


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
    assert (
        Excluded([f"{spelled} {TEST}"], n=5).why(f"x {otherwise} {' '.join(WORDS[:4])} y")
        == "overlap"
    )
    assert Excluded([spelled]).why(f"{otherwise} indeed") is None


def test_the_hash_is_that_of_the_set() -> None:
    plain = Excluded(["a b", TEST])
    assert (plain.count, plain.hash) == (2, Excluded([TEST, "A, b!"]).hash)
    others = [
        Excluded(t).hash
        for t in (["a c", TEST], ["a b"], [TEST], ["a b", TEST, "c"], ["a b", f"{TEST} x"])
    ]
    assert len({plain.hash, *others}) == 6
    nothing = Excluded(["", " ... "])
    assert (nothing.count, nothing.hash, nothing.why("")) == (0, "", None)


def test_excluded_documents_are_in_no_window(tmp_path: Path) -> None:
    texts = list(documents(60, seed=5))
    tokenizer = train_tokenizer(texts, 400, 64)
    made = CorpusSpec(
        sources=[{"id": "e", "embedded": {"documents": 60, "seed": 5}}],
        sequence_length=32,
        held_out=0.1,
    )
    near = "A new beginning. " + " ".join(texts[4].split()[:20])
    unlike = texts[9].upper().replace(" ", "  ").replace(".", " .")
    corpus = build(made, tokenizer, tmp_path, exclude=[near, unlike])
    assert corpus.manifest["sources"][0]["excluded"]["same"] == 1
    windows = "".join(
        tokenizer.decode(s.read(np.arange(len(s))).ravel()) for s in (corpus.train, corpus.held_out)
    )
    assert [texts[number] in windows for number in (4, 9, 11)] == [False, False, True]


STEMS = ("car", "neur", "gastr", "derm", "hepat", "nephr")
TERMS = [stem + ending for stem in STEMS for ending in ("itis", "osis", "ology", "al", "o")]
TERM_TOKENIZER = train_tokenizer([" ".join(TERMS)], 400, 64)


def note(seed: int, words: int = 120) -> str:
    return " ".join(random.Random(seed).choices(TERMS, k=words))


def changed(text: str, places: int) -> str:
    words = text.split()
    for number in range(places):
        words[5 + number * 20] = f"changed{number}"
    return " ".join(words)


def corpus(folder: Path, sources: dict[str, list[str]], **fields: Any) -> Corpus:
    exclude = fields.pop("exclude", ())
    for name, texts in sources.items():
        lines = "".join(json.dumps({"text": text}) + "\n" for text in texts)
        (folder / f"{name}.jsonl").write_text(lines, encoding="utf-8")
    listed = [{"id": name, "path": f"{name}.jsonl"} for name in sources]
    spec = CorpusSpec(sources=listed, sequence_length=16, root=str(folder), held_out=0, **fields)
    return build(spec, TERM_TOKENIZER, folder / "cache", exclude=exclude)


def text_of(built: Corpus) -> str:
    return TERM_TOKENIZER.decode(built.train.read(np.arange(len(built.train))).ravel())


def test_exact_duplicates_go_wherever_they_stand(tmp_path: Path) -> None:
    first, second = note(1), note(2)
    listed = {"a": [first, second, first.upper() + "!"], "b": [note(3), second]}
    built = corpus(tmp_path, listed, clean={"exact_duplicates": True})
    cleaned = [s["cleaned"] for s in built.manifest["sources"]]
    assert [c["exact_duplicates"] for c in cleaned] == [1, 1]
    assert [s["drawn_documents"] for s in built.manifest["sources"]] == [2, 1]
    assert text_of(built).count(second) == 1


def test_near_duplicates_go_and_different_texts_stay(tmp_path: Path) -> None:
    base = note(5, 400)
    texts = [
        base,
        changed(base, 2),
        note(6, 400),
        changed(base, 15),
        "short text",
        "short text",
        "another",
    ]
    built = corpus(tmp_path, {"a": texts}, clean={"near_duplicates": {"similarity": 0.7}})
    source = built.manifest["sources"][0]
    assert source["cleaned"]["near_duplicates"] == 2, (
        "the text with two changes, and one of the short ones"
    )
    text = text_of(built)
    assert "changed14" in text, "a sixth of the runs alone is shared"
    assert text.count("short text") == 1


def test_removals_are_counted_for_each_task(tmp_path: Path) -> None:
    ner, topic = note(50, 30), note(51, 30)
    texts = [f"before {ner} after", topic, note(52, 30), f"{ner} {topic}"]
    by_task = {"ner": [ner], "topic": [topic, "a text that is nowhere"]}
    built = corpus(tmp_path, {"a": texts}, exclude=by_task)
    assert built.removed_by_task() == {"a": {"ner": 2, "topic": 2}}
    source = built.manifest["sources"][0]
    assert source["excluded"] == {"same": 1, "overlap": 2}
    flat = corpus(tmp_path, {"a": texts}, exclude=[ner, topic, "a text that is nowhere"])
    assert flat.hash == built.hash, "by task or not: the same documents are excluded"


def test_the_first_document_stays() -> None:
    hashes = np.array([[1, 7], [2, 8], [1, 9], [2, 10], [3, 8]], dtype=np.uint64)
    assert duplicates(hashes, exact=True).tolist() == [0, 0, 1, 1, 2]
    assert duplicates(hashes, exact=False).tolist() == [0, 0, 2, 2, 2]


def test_a_missing_package_is_named_before_anything_is_built(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cleaning_module, "find_spec", lambda _: None)
    refusal("datasketch", corpus, tmp_path, {"a": [note(1)]}, clean={"near_duplicates": {}})
