"""Corpora of millions of documents: few descriptors, little memory a document, and as many kills as come."""

from __future__ import annotations

import os
import subprocess
import sys
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from tests.benchmarks import corpus_scale
from tests.helpers.trainer_make import TEXTS
from trainer.corpus.builder import _assemble
from trainer.corpus.cleaning import Excluded
from trainer.corpus.parts import Tokenised
from trainer.corpus.shards import train_tokenizer
from trainer.recipe.corpus import CorpusSource, CorpusSpec

TOKENIZER = train_tokenizer(TEXTS, 400, 64)

MANY_PARTS = """
import sys
from pathlib import Path
from trainer.corpus import parts
from trainer.corpus.builder import build
from trainer.recipe.spec import CorpusSpec
from tests.trainer.test_corpus_scale import TOKENIZER
parts.DOCUMENTS, parts.ALONE = 1, 10_000
source = {"id": "many", "path": "many.lines", "format": "lines"}
corpus = build(
    CorpusSpec.model_validate({"sources": [source], "sequence_length": 16, "root": sys.argv[1]}),
    TOKENIZER, Path(sys.argv[1]) / "corpora",
)
print(corpus.manifest["sources"][0]["documents"], len(corpus.train))
"""


def test_five_thousand_parts_under_256_descriptors(tmp_path: Path) -> None:
    (tmp_path / "many.lines").write_text("".join(f"patient {n} has a fever\n" for n in range(5_000)))
    script = tmp_path / "many.py"
    script.write_text(MANY_PARTS)
    done = subprocess.run(
        ["bash", "-c", f'ulimit -n 256 && exec "{sys.executable}" "{script}" "{tmp_path}"'],
        capture_output=True,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    documents, windows = map(int, done.stdout.split())
    assert documents == 5_000
    assert windows > 2_000


def test_a_document_takes_less_than_a_hundred_bytes_of_memory(tmp_path: Path) -> None:
    """Ten tokens a document: shuffling, holding out and writing of two sources, one of them read twice and a half."""

    def peak(count: int) -> int:
        folder = tmp_path / str(count)
        folder.mkdir()
        sources = []
        for name, repeat in (("a", None), ("b", 2.5)):
            file = folder / f"{name}.tokens"
            np.full(10 * count, 5, dtype="uint16").tofile(file)
            ends = np.arange(0, 10 * count + 1, 10, dtype=np.int64)
            source = CorpusSource(id=name, path=name, repeat=repeat)
            sources.append(Tokenised(source, file, ends, {"same": 0, "overlap": 0}))
        spec = CorpusSpec.model_validate({"sources": [s.spec for s in sources], "sequence_length": 32})
        tracemalloc.start()
        try:
            _assemble(spec, TOKENIZER, sources, folder, "uint16", Excluded([]), lambda *_: None)
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    few, many = peak(50_000), peak(150_000)
    drawn = 2 * 100_000 * 3.5 / 2
    assert (many - few) / drawn < 100 - 16, "besides the lengths of its source, which are made before"


@pytest.mark.slow
def test_a_large_build_killed_ten_times_equals_an_undisturbed_one(tmp_path: Path) -> None:
    """`CORPUS_SCALE_DOCUMENTS` documents (3 million at the size that the docs report), 256 descriptors, 2 GiB."""
    count = int(os.environ.get("CORPUS_SCALE_DOCUMENTS", "300000"))
    figures = corpus_scale.measure(tmp_path, count, kills=10)
    assert figures.killed == 10
    assert figures.disturbed == figures.undisturbed
    assert figures.peak_bytes < 2 << 30
