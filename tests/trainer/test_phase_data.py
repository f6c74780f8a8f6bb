"""Phases with a corpus, a window length, a batch and a rotary base of their own."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from transformers import AutoConfig, AutoModelForMaskedLM

from biobench.errors import BioBenchError, SpecError
from trainer import api
from trainer.corpus.shards import Corpus
from trainer.ledger import Ledger
from trainer.model.families import layers_of
from trainer.pretrain import PretrainingResult
from trainer.train.progress import Tick, read_metrics


@pytest.fixture
def two(small: list[str], tmp_path: Path) -> list[str]:
    """Two sources; the decay reads longer windows of one of them, in smaller batches, with slower rotations."""
    for name, count in (("notes", 160), ("abstracts", 80)):
        lines = (json.dumps({"text": f"{name} {number} " + "the patient has a cough " * 12}) for number in range(count))
        (tmp_path / f"{name}.jsonl").write_text("\n".join(lines), encoding="utf-8")
    sources = [
        {"id": name, "path": f"{name}.jsonl", "language": language}
        for name, language in (("notes", "en"), ("abstracts", "fr"))
    ]
    return [
        *(s for s in small if not s.startswith(("corpus.sources", "corpus.cache"))),
        f"corpus.root={tmp_path}",
        f"corpus.cache={tmp_path / 'corpora'}",
        f"corpus.sources={json.dumps(sources)}",
        "corpus.held_out=0.2",
        'phases.1.corpus={"shares": {"abstracts": 0.75, "notes": 0.25}}',
        "phases.1.sequence_length=96",
        'phases.1.batch={"sequences": 4, "micro": 2}',
        "phases.1.rope_base=500000",
    ]


def train(overrides: list[str], out: Path, **options: object) -> PretrainingResult:
    return api.pretrain("toy_detour", out=out, overrides=overrides, progress="none", **options)  # type: ignore[arg-type]


def ledger_of(result: PretrainingResult) -> Ledger:
    assert result.ledger is not None
    return result.ledger


def test_a_phase_reads_its_own_mixture_windows_and_batch(two: list[str], tmp_path: Path) -> None:
    result = train(two, tmp_path / "run")
    first, second = ledger_of(result).phases
    assert (first.corpus, first.sequence_length, first.batch_sequences, first.rope_base) == (None, None, None, None)
    assert second.corpus is not None
    assert second.corpus.sources["abstracts"] == pytest.approx(0.75, abs=0.02)
    assert (second.sequence_length, second.batch_sequences, second.rope_base) == (96, 4, 500000.0)
    assert (second.tokens, second.steps) == (3072, 8)
    assert second.first_sample == 0, "another corpus is read from its beginning"
    assert ledger_of(result).tokens == first.tokens + second.tokens
    assert result.model is not None
    card = (result.model / "README.md").read_text(encoding="utf-8")
    assert "- Phase detour" not in card


def test_validation_is_told_by_source_and_language(two: list[str], tmp_path: Path) -> None:
    result = train(two, tmp_path / "run")
    for record in ledger_of(result).phases:
        assert record.validation_losses is not None
        assert set(record.validation_losses) == {
            "source notes",
            "source abstracts",
            "language en",
            "language fr",
        }
        assert record.validation_losses["source notes"] == record.validation_losses["language en"]
        assert record.validation_losses["source notes"] != record.validation_losses["source abstracts"]
    lines = [line for line in read_metrics(tmp_path / "run" / "metrics.jsonl") if line["event"] == "evaluation"]
    assert lines[-1]["losses"] == ledger_of(result).phases[-1].validation_losses


def test_held_out_windows_of_a_source_hold_nothing_else(two: list[str], tmp_path: Path) -> None:
    folders = api.build_corpus("toy_detour", overrides=two, progress="none")
    assert folders is not None
    assert len(folders) == 2
    from biobench.core.tokenizer import load_tokenizer

    train(two, tmp_path / "run")
    tokenizer = load_tokenizer(tmp_path / "run" / "start")
    corpus = Corpus(folders[0])
    windows = corpus.held_out_sources()
    assert list(windows) == ["notes", "abstracts"]
    import numpy as np

    for name, rows in windows.items():
        text = tokenizer.decode(corpus.held_out.read(np.array(rows)).ravel())
        assert name in text
        assert ({"notes", "abstracts"} - {name}).pop() not in text


def test_the_rotary_base_is_that_of_the_phase_and_of_the_export(two: list[str], tmp_path: Path) -> None:
    result = train(two, tmp_path / "run")
    assert result.model is not None
    before = AutoConfig.from_pretrained(tmp_path / "run" / "phases" / "detour").rope_parameters
    after = AutoConfig.from_pretrained(result.model).rope_parameters
    assert before["full_attention"]["rope_theta"] != 500000.0
    assert after["full_attention"]["rope_theta"] == 500000.0
    assert after["sliding_attention"] == before["sliding_attention"]
    raw = json.loads((result.model / "config.json").read_text(encoding="utf-8"))
    assert raw["global_rope_theta"] == 500000.0, "transformers 4 reads this name"
    model = AutoModelForMaskedLM.from_pretrained(result.model)
    assert len(layers_of(model)) == 3


class KilledError(Exception):
    """A kill."""


def test_a_kill_in_the_phase_changes_no_bit(two: list[str], tmp_path: Path) -> None:
    whole = train(two, tmp_path / "whole")
    overrides = [*two, "checkpoints.every=384", "checkpoints.keep=9"]

    def kill(tick: Tick) -> None:
        if tick.done >= 15:
            raise KilledError

    with pytest.raises(KilledError):
        api.pretrain("toy_detour", out=tmp_path / "cut", overrides=overrides, progress=kill)
    again = train(overrides, tmp_path / "cut", resume=True)
    assert ledger_of(again).model_hash == ledger_of(whole).model_hash
    assert [p.order_hash for p in ledger_of(again).phases] == [p.order_hash for p in ledger_of(whole).phases]


def test_a_corpus_that_a_phase_returns_to_is_continued(two: list[str], tmp_path: Path) -> None:
    phases = [
        {"name": "a", "objective": "clm", "tokens": 1536},
        {"name": "b", "objective": "clm", "tokens": 1536, "corpus": {"shares": {"notes": 1.0}}},
        {"name": "c", "objective": "clm", "tokens": 1536},
        {"name": "d", "objective": "clm", "tokens": 1536, "data": "restart"},
        {"name": "e", "objective": "clm", "tokens": 1536},
    ]
    overrides = [*(o for o in two if not o.startswith("phases")), f"phases={json.dumps(phases)}"]
    records = ledger_of(train(overrides, tmp_path / "run")).phases
    assert [(r.first_sample, r.last_sample) for r in records] == [(0, 31), (0, 31), (32, 63), (0, 31), (32, 63)]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ('phases.1.corpus={"shares": {"abstracts": 0.75}}', "do not sum to 1"),
        ('phases.1.corpus={"shares": {"letters": 1.0}}', "no source of the corpus"),
        ("phases.1.corpus={}", "either sources or shares"),
        ("phases.1.sequence_length=100000", "longer than the model"),
    ],
)
def test_a_wrong_phase_is_refused_before_anything_is_trained(
    two: list[str], tmp_path: Path, change: str, message: str
) -> None:
    without_base = [o for o in two if not o.startswith("phases.1.rope_base")]
    with pytest.raises(BioBenchError, match=message):
        train([*without_base, change], tmp_path / "run")


def test_a_model_with_learned_positions_has_no_rotary_base(small: list[str], tmp_path: Path) -> None:
    overrides = [
        *(s for s in small if "local_attention" not in s),
        "base.config.model_type=bert",
        "base.config.local_attention=null",
        "base.config.global_attn_every_n_layers=null",
        "phases.1.rope_base=500000",
    ]
    with pytest.raises((BioBenchError, SpecError), match="rotary"):
        train(overrides, tmp_path / "run")
