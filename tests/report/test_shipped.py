"""The runs that stand under results/: sound, scored as their predictions say, free of text, and as the README shows."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from biobench.report.rescore import rescore_all
from biobench.schema.protocols import SMALL, protocol_named_by
from biobench.store import Store
from tests.benchmarks import shipped
from tests.helpers.compare_make import save_runs

pytestmark = pytest.mark.skipif(not (shipped.RESULTS / "runs").is_dir(), reason="an installed copy has no runs")


def records():
    """Of a clone those under version control; beside them may lie a user's own."""
    stored = Store(shipped.RESULTS).records()
    return [r for r in stored if r.task.id in shipped.TASKS and r.model.id in shipped.MODELS]


def test_every_stored_score_comes_out_of_the_predictions(tmp_path: Path) -> None:
    store, copies = Store(shipped.RESULTS), Store(tmp_path)
    whole = records()
    assert len(whole) >= 40
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


def test_every_model_with_runs_is_shown_and_the_ranked_ones_are_compared() -> None:
    it = shipped.shown()
    assert {row.model for row in it.own} == {record.model.id for record in records()}
    assert {row.task for row in it.floors} == {row.task for row in it.own}
    assert len(it.ranked) >= 3
    first, *others = it.ranked
    assert all(len(it.shared(first, other)) >= 4 for other in others)


def test_the_readme_is_what_the_runs_give() -> None:
    text = shipped.README.read_text(encoding="utf-8")
    assert shipped.readme(text, shipped.shown()) == text, "python -m tests.benchmarks.shipped readme"


def small(results: Path, model: str, tasks: tuple[str, ...], quality: float, seeds: tuple[int, ...]) -> None:
    """Runs of single-label documents in the small protocol's name."""
    save_runs(results, model, tasks, quality, seeds, overrides=SMALL.of(kind="single_label", unit="sentence"))


def test_a_model_of_few_tasks_or_seeds_is_shown_unranked_and_hides_nobody(tmp_path: Path) -> None:
    small(tmp_path, "all-MiniLM-L6-v2", ("gad", "ncbi_disease", "bc5cdr"), 0.6, (42, 43, 44))
    small(tmp_path, "random-all-MiniLM-L6-v2", ("gad", "ncbi_disease", "bc5cdr"), 0.4, (42, 43, 44))
    before = shipped.shown(tmp_path)
    whole = shipped.verdict(before)
    small(tmp_path, "all-mpnet-base-v2", ("gad", "bc5cdr"), 0.95, (42, 43))
    small(tmp_path, "random-all-mpnet-base-v2", ("bc5cdr",), 0.4, (42,))
    it = shipped.shown(tmp_path)
    assert it.ranked == ["all-MiniLM-L6-v2", "random-all-MiniLM-L6-v2"], "0.95 on two tasks is no mean of three"
    assert it.unranked == ["all-mpnet-base-v2", "random-all-mpnet-base-v2"]
    lines = shipped.table(it).splitlines()
    assert [line.split(" | ")[0] for line in lines[2:6]] == [f"| {m}" for m in (*it.ranked, *it.unranked)]
    cells = [cell.strip() for cell in lines[4].strip("|").split("|")]
    assert cells[2] == "–"
    assert all(cell.endswith("(2 seeds)") for cell in (cells[1], cells[3]))
    assert lines[5].count("–") == 2
    assert "(1 seed)" in lines[5]
    assert "seed" not in lines[2] + lines[3]
    assert "all-mpnet-base-v2, random-all-mpnet-base-v2 without all tasks below, unranked" in lines[-1]
    assert list(it.pairs()) == [
        ("all-MiniLM-L6-v2", "random-all-MiniLM-L6-v2"),
        ("all-MiniLM-L6-v2", "all-mpnet-base-v2"),
        ("all-mpnet-base-v2", "random-all-mpnet-base-v2"),
    ]
    said = shipped.verdict(it)
    assert said.startswith(whole), "a model more changes nothing of what is said of the others"
    assert "`biobench compare all-MiniLM-L6-v2 all-mpnet-base-v2 --task gad,bc5cdr`:" in said
    assert "random-all-mpnet-base-v2" not in said, "one seed is not compared"
    assert "all-mpnet-base-v2" in shipped.picture(it)


def test_a_store_without_a_whole_model_is_shown_too(tmp_path: Path) -> None:
    small(tmp_path, "all-MiniLM-L6-v2", ("gad",), 0.6, (42, 43))
    small(tmp_path, "all-mpnet-base-v2", ("bc5cdr",), 0.6, (42, 43))
    it = shipped.shown(tmp_path)
    assert (it.ranked, it.unranked) == ([], ["all-mpnet-base-v2", "all-MiniLM-L6-v2"])
    assert shipped.verdict(it) == ""
    assert "2 seeds unless" in shipped.table(it)
