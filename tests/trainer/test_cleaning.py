"""Duplicates that a corpus excludes, and removals counted by task."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from biobench.errors import BioBenchError
from trainer.corpus import cleaning as cleaning_module
from trainer.corpus.builder import build
from trainer.corpus.cleaning import duplicates
from trainer.corpus.shards import Corpus, train_tokenizer
from trainer.recipe.corpus import CorpusSpec

WORDS = [
    a + b for a in ("car", "neur", "gastr", "derm", "hepat", "nephr") for b in ("itis", "osis", "ology", "al", "o")
]
TOKENIZER = train_tokenizer([" ".join(WORDS)], 400, 64)


def document(seed: int, words: int = 120) -> str:
    return " ".join(random.Random(seed).choices(WORDS, k=words))


def changed(text: str, places: int) -> str:
    words = text.split()
    for number in range(places):
        words[5 + number * 20] = f"changed{number}"
    return " ".join(words)


def corpus(folder: Path, sources: dict[str, list[str]], **fields: Any) -> Corpus:
    exclude = fields.pop("exclude", None)
    for name, texts in sources.items():
        lines = "".join(json.dumps({"text": text}) + "\n" for text in texts)
        (folder / f"{name}.jsonl").write_text(lines, encoding="utf-8")
    listed = [{"id": name, "path": f"{name}.jsonl"} for name in sources]
    spec = CorpusSpec.model_validate(
        {"sources": listed, "sequence_length": 16, "root": str(folder), "held_out": 0, **fields}
    )
    return build(spec, TOKENIZER, folder / "cache", exclude=exclude)


def text_of(built: Corpus) -> str:
    return TOKENIZER.decode(built.train.read(np.arange(len(built.train))).ravel())


def test_exact_duplicates_go_wherever_they_stand(tmp_path: Path) -> None:
    first, second = document(1), document(2)
    built = corpus(
        tmp_path,
        {"a": [first, second, first.upper() + "!"], "b": [document(3), second]},
        clean={"exact_duplicates": True},
    )
    cleaned = [s["cleaned"] for s in built.manifest["sources"]]
    assert [c["exact_duplicates"] for c in cleaned] == [1, 1]
    assert [s["drawn_documents"] for s in built.manifest["sources"]] == [2, 1]
    assert text_of(built).count(second) == 1


def test_near_duplicates_go_and_different_texts_stay(tmp_path: Path) -> None:
    base = document(5, 400)
    texts = [base, changed(base, 2), document(6, 400), changed(base, 15), "short text", "short text", "another"]
    built = corpus(tmp_path, {"a": texts}, clean={"near_duplicates": {"similarity": 0.7}})
    source = built.manifest["sources"][0]
    assert source["cleaned"]["near_duplicates"] == 2, "the text with two changes, and one of the short ones"
    text = text_of(built)
    assert "changed14" in text, "a sixth of the runs alone is shared"
    assert text.count("short text") == 1


def test_removals_are_counted_for_each_task(tmp_path: Path) -> None:
    ner, topic = document(50, 30), document(51, 30)
    texts = [f"before {ner} after", topic, document(52, 30), f"{ner} {topic}"]
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


def test_a_missing_package_is_named_before_anything_is_built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cleaning_module, "find_spec", lambda _: None)
    with pytest.raises(BioBenchError, match="datasketch"):
        corpus(tmp_path, {"a": [document(1)]}, clean={"near_duplicates": {}})
