"""The runs that stand under results/: sound, scored as their predictions say, free of text, and as the README shows."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from biobench.report.rescore import rescore_all
from biobench.schema.protocols import protocol_named_by
from biobench.store import Store
from tests.benchmarks import shipped

pytestmark = pytest.mark.skipif(not (shipped.RESULTS / "runs").is_dir(), reason="an installed copy has no runs")


def records():
    """Of a clone those under version control; beside them may lie a user's own."""
    stored = Store(shipped.RESULTS).records()
    return [r for r in stored if r.task.id in shipped.TASKS and r.model.id in shipped.MODELS]


def test_every_stored_score_comes_out_of_the_predictions(tmp_path: Path) -> None:
    store, copies = Store(shipped.RESULTS), Store(tmp_path)
    whole = records()[::3]
    assert len(whole) >= 14
    for record in whole:
        # without its scores: what comes back was computed
        copies.copy(store, record.model_copy(update={"scores": dict.fromkeys(record.scores, 0.0)}))
    outcomes = rescore_all(tmp_path)
    assert [row.outcome for row in outcomes if row.outcome == "failed"] == []
    again = {(r.task.id, r.key): r.scores for r in copies.records()}
    assert again == {(r.task.id, r.key): r.scores for r in whole}


def test_the_files_hold_no_text_and_are_small() -> None:
    files = [p for folder in ("runs", "floors") for p in (shipped.RESULTS / folder).rglob("*") if p.is_file()]
    assert sum(p.stat().st_size for p in files) < 30e6
    for record in records():
        table = pq.read_table(Store(shipped.RESULTS).path_of(record))
        assert "text" not in table.column_names
        labels = {
            label for name in ("gold_labels", "labels") for row in table.column(name).to_pylist() for label in row
        }
        assert labels <= set(record.task.labels)
        assert record.limit is None
        assert not record.overrides or protocol_named_by(record.overrides) == "small"


def test_the_readme_is_what_the_runs_give() -> None:
    text = shipped.README.read_text(encoding="utf-8")
    assert shipped.readme(text, shipped.reported()) == text, "python -m tests.benchmarks.shipped readme"
    rows = [line for line in shipped.block(shipped.reported()).splitlines() if line.startswith("| ")][1:]
    assert len(rows) <= shipped.MOST_ROWS
    assert "| all-MiniLM-L6-v2, this code | 73.8 ±3.6 |" in "\n".join(rows)
    assert "small" not in "".join(rows)
