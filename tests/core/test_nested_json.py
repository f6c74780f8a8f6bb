"""JSON that is nested without end, beside a checkpoint and in a shared results folder: as damaged
as any other.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from biobench.core.layouts import layout_hint
from biobench.data.scaffold import scaffold
from biobench.data.sniff import Wanted
from biobench.errors import BioBenchError
from biobench.reporting.details.pretraining import read_pretraining
from biobench.runs.provenance import contamination
from biobench.store.claims import read_heartbeat

NESTED = "[" * 100_000
KEY = "a" * 32


def test_a_ledger_beside_a_strangers_checkpoint_tells_nothing(tmp_path: Path) -> None:
    """Before, the run that had been trained ended as failed."""
    (tmp_path / "ledger.json").write_text(NESTED)
    assert contamination(tmp_path, "b" * 64, "gad", "c" * 64, tmp_path / "results") is None


def test_a_ledger_beside_a_training_curve_hides_no_curve(tmp_path: Path) -> None:
    point = {"event": "train", "phase": "p", "tokens": 8, "loss": 1.5}
    (tmp_path / "run").mkdir()
    lines = (json.dumps(point), NESTED, json.dumps(point))
    (tmp_path / "run" / "metrics.jsonl").write_text("\n".join(lines))
    (tmp_path / "run" / "ledger.json").write_text(NESTED)
    (tmp_path / "cka.json").write_text(NESTED)
    read = read_pretraining(tmp_path)
    assert [[point.loss for point in run.points] for run in read.runs] == [[1.5, 1.5]]
    assert [finding.file for finding in read.findings] == [
        "cka.json",
        "run/metrics.jsonl:2",
    ]


def test_a_config_of_an_adapter_names_no_base(tmp_path: Path) -> None:
    (tmp_path / "adapter_config.json").write_text(NESTED)
    assert "adapter of 'BASE'" in layout_hint(tmp_path, "")


def test_a_cell_of_a_table_is_no_label(tmp_path: Path) -> None:
    cell = NESTED + "]" * len(NESTED)
    (tmp_path / "notes.tsv").write_text("text\tlabel\n" + f"some words\t{cell}\n" * 3)
    wanted = Wanted(text="text", label="label")
    with pytest.raises(BioBenchError) as caught:
        scaffold(tmp_path / "notes.tsv", "notes", wanted=wanted)
    assert len(str(caught.value)) < 1_000


def test_a_claim_is_none(tmp_path: Path) -> None:
    (tmp_path / "claim").write_text(NESTED)
    assert read_heartbeat(tmp_path / "claim") is None
