"""Corpora of millions of documents: little memory a document."""

from __future__ import annotations

import tracemalloc
from collections import Counter
from pathlib import Path

import numpy as np

from tests.helpers.trainer_make import TEXTS
from trainer.corpus.builder import _assemble
from trainer.corpus.cleaning import Excluded
from trainer.corpus.shards import train_tokenizer
from trainer.corpus.tokenised import Encoding, Tokenised
from trainer.recipe.corpus import CorpusSpec

TOKENIZER = train_tokenizer(TEXTS, 400, 64)


def test_a_document_takes_less_than_a_hundred_bytes_of_memory(tmp_path: Path) -> None:
    """Ten tokens a document: shuffling, holding out and writing of two sources, one of them read twice and a half."""

    def peak(count: int) -> int:
        folder = tmp_path / str(count)
        folder.mkdir()
        np.full(2 * 10 * count, 5, dtype="uint16").tofile(folder / "tokens")
        counts = {name: Counter(documents=count, tokens=10 * count) for name in "ab"}
        made = Tokenised(folder / "tokens", np.full(2 * count, 10, dtype=np.int64), counts, None)
        sources = [{"id": "a", "path": "a"}, {"id": "b", "path": "b", "repeat": 2.5}]
        spec = CorpusSpec.model_validate({"sources": sources, "sequence_length": 32})
        encoding = Encoding(TOKENIZER, (), 3, "uint16", Excluded([]))
        tracemalloc.start()
        try:
            _assemble(spec, encoding, made, folder, lambda *_: None)
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    few, many = peak(5_000), peak(15_000)
    drawn = 2 * 10_000 * 3.5 / 2
    assert (many - few) / drawn < 100 - 16, "besides the lengths, which are made before"
