"""Phases with a corpus, a window length and a batch of their own."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from biobench.errors import BioBenchError
from tests.helpers.trainer_make import train
from trainer import api
from trainer.ledger import Ledger
from trainer.pretrain import PretrainingResult
from trainer.train.progress import Tick


@pytest.fixture(scope="module")
def two(small: list[str], tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Two sources; the decay reads longer windows of another mixture, in smaller batches."""
    root = tmp_path_factory.mktemp("two")
    for name, count in (("notes", 160), ("abstracts", 80)):
        lines = (json.dumps({"text": f"{name} {number} " + "the patient has a cough " * 12}) for number in range(count))
        (root / f"{name}.jsonl").write_text("\n".join(lines), encoding="utf-8")
    sources = [{"id": name, "path": f"{name}.jsonl"} for name in ("notes", "abstracts")]
    return [
        *(s for s in small if not s.startswith(("corpus.sources", "corpus.cache"))),
        f"corpus.root={root}",
        f"corpus.cache={root / 'corpora'}",
        f"corpus.sources={json.dumps(sources)}",
        "corpus.held_out=0.2",
        'phases.1.corpus={"shares": {"abstracts": 0.75, "notes": 0.25}}',
        "phases.1.sequence_length=96",
        'phases.1.batch={"sequences": 4, "micro": 2}',
    ]


def ledger_of(result: PretrainingResult) -> Ledger:
    assert result.ledger is not None
    return result.ledger


class KilledError(Exception):
    """A kill."""


def test_a_phase_reads_its_own_text_and_a_kill_in_it_changes_no_bit(two: list[str], tmp_path: Path) -> None:
    whole = ledger_of(train(tmp_path / "whole", two))
    first, second = whole.phases
    assert (first.corpus, first.sequence_length, first.batch_sequences) == (None, None, None)
    assert second.corpus is not None
    assert second.corpus.sources["abstracts"] == pytest.approx(0.75, abs=0.02)
    assert (second.sequence_length, second.batch_sequences, second.tokens, second.steps) == (96, 4, 3072, 8)
    assert second.first_sample == 0, "another corpus is read from its beginning"
    assert whole.tokens == first.tokens + second.tokens
    overrides = [*two, "checkpoints.every=384", "checkpoints.keep=9"]

    def kill(tick: Tick) -> None:
        if tick.done >= 15:
            raise KilledError

    with pytest.raises(KilledError):
        api.pretrain("toy_detour", out=tmp_path / "cut", overrides=overrides, progress=kill)
    again = ledger_of(train(tmp_path / "cut", overrides, resume=True))
    assert again.model_hash == whole.model_hash
    assert [p.order_hash for p in again.phases] == [p.order_hash for p in whole.phases]


def test_a_corpus_that_a_phase_returns_to_is_continued(two: list[str], tmp_path: Path) -> None:
    phases = [
        {"name": "a", "objective": "clm", "tokens": 1536},
        {"name": "b", "objective": "clm", "tokens": 1536, "corpus": {"shares": {"notes": 1.0}}},
        {"name": "c", "objective": "clm", "tokens": 1536},
        {"name": "d", "objective": "clm", "tokens": 1536, "data": "restart"},
        {"name": "e", "objective": "clm", "tokens": 1536},
    ]
    overrides = [*(o for o in two if not o.startswith("phases")), f"phases={json.dumps(phases)}"]
    records = ledger_of(train(tmp_path / "run", overrides)).phases
    assert [(r.first_sample, r.last_sample) for r in records] == [(0, 31), (0, 31), (32, 63), (0, 31), (32, 63)]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ('phases.1.corpus={"shares": {"abstracts": 0.75}}', "do not sum to 1"),
        ('phases.1.corpus={"shares": {"letters": 1.0}}', "no source of the corpus"),
        ("phases.1.corpus={}", "shares"),
        ("phases.1.sequence_length=100000", "longer than the model"),
    ],
)
def test_a_wrong_phase_is_refused_before_anything_is_trained(
    two: list[str], tmp_path: Path, change: str, message: str
) -> None:
    with pytest.raises(BioBenchError, match=message):
        train(tmp_path / "run", [*two, change])
