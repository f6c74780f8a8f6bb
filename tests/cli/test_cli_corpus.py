"""The corpus as its own step, and the average of checkpoints."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from biobench.core import stop
from tests.helpers.cli_make import Run
from tests.helpers.trainer_make import TEXTS
from trainer.corpus import tokenised

SMALL = (
    *("base.config.hidden_size=32", "base.config.intermediate_size=32", "base.config.num_hidden_layers=2"),
    *("base.config.num_attention_heads=2", "base.config.local_attention=16", "base.tokenizer.vocabulary=500"),
    *("corpus.sequence_length=48", "phases.0.tokens=3072", "phases.1.tokens=1536", "checkpoints.every=1024"),
    *("phases.0.schedule.warmup=500", "corpus.sources=[{id: own, path: text.jsonl.gz}, {id: more, path: more.csv}]"),
    "checkpoints.export=true",
    "checkpoints.keep=9",
)
SETS = tuple(part for text in SMALL for part in ("--set", text))


@pytest.fixture
def text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two sources in the working folder, and no benchmark task at hand."""
    import gzip

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("biobench.data.catalog.list_tasks", list)
    lines = "".join(json.dumps({"text": t}) + "\n" for t in TEXTS)
    (tmp_path / "text.jsonl.gz").write_bytes(gzip.compress(lines.encode()))
    (tmp_path / "more.csv").write_text("text\n" + "".join(f'"{t}"\n' for t in TEXTS[:20]))
    return tmp_path


def test_a_corpus_is_built_looked_at_and_trained_on(biobench: Run, text: Path) -> None:
    said = biobench("corpus", "build", "toy_detour", *SETS, "--quiet").ok()
    folder = Path(said.out.partition(":")[0])
    assert folder.parent == Path("runs/corpora")
    rows = biobench("corpus", "stats", folder, "--json").json()
    assert [(r["source"], r["documents"], r["removed"]) for r in rows] == [("own", 60, 0), ("more", 20, 0)]
    assert rows[0]["tokens"] >= rows[0]["trained on"] > 1000
    table = biobench("corpus", "stats", folder).out.splitlines()
    assert len(table) == 4
    assert all(len(line) <= 80 for line in table)
    shown = biobench("corpus", "inspect", folder)
    assert "all shards are whole" in shown.out
    assert len(biobench("corpus", "inspect", folder, "--window", 0).out.split()) == 48
    assert "no window 100000" in biobench("corpus", "inspect", folder, "--window", 100000).refusal()

    before = {f.name: f.stat().st_mtime_ns for f in folder.glob("*.bin")}
    biobench("pretrain", "toy_detour", *SETS, "--quiet").ok()
    assert {f.name: f.stat().st_mtime_ns for f in folder.glob("*.bin")} == before, "pretrain took it as it was"
    words = biobench("corpus", "inspect", folder, "--window", 0, "--tokenizer", "runs/toy_detour/start").out
    assert any(word in words for word in ("patient", "fever", "fièvre", "douleur", "pain", "traitement"))

    damaged = next(folder.glob("train-*.bin"))
    whole = damaged.read_bytes()
    damaged.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    assert "content has changed" in biobench("corpus", "inspect", folder).refusal()


def test_a_build_that_is_stopped_goes_on(biobench: Run, text: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokenised, "DOCUMENTS", 5)
    monkeypatch.setattr(tokenised, "ALONE", 100)
    asked: list[int] = []
    monkeypatch.setattr(stop.StopFlag, "__call__", lambda _: (asked.append(1), len(asked) == 4)[1])
    said = biobench("corpus", "build", "toy_detour", *SETS, "--quiet")
    assert said.status == 75
    assert "continues" in said.err
    (journal,) = Path("runs/corpora").glob("*.parts/journal.jsonl")
    assert len(journal.read_text().splitlines()) == 3
    biobench("corpus", "build", "toy_detour", *SETS, "--quiet").ok()
