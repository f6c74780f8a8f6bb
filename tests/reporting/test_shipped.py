"""The runs and studies under results/: sound, scored as their predictions say, free of text, and as
the pages show.
"""

from __future__ import annotations

import json
import re
from dataclasses import asdict
from itertools import chain
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from biobench.reporting.details.needle import needle_grids, render_grid
from biobench.reporting.rescore import rescore_all
from biobench.schema.protocols import protocol_named_by
from biobench.store import Store
from biobench.workflows.study import load_study, planned_runs
from biobench.workflows.study_table import table
from tests.benchmarks import demonstration, shipped

pytestmark = pytest.mark.skipif(
    not (shipped.RESULTS / "runs").is_dir(), reason="an installed copy has no runs"
)


def records():
    """Of a clone those under version control; a user's own may lie next to them."""
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
    size = 0
    for folder in ("runs", "floors"):
        paths = (shipped.RESULTS / folder).rglob("*")
        size += sum(path.stat().st_size for path in paths if path.is_file())
    assert size < 30e6
    for record in records():
        table = pq.read_table(Store(shipped.RESULTS).path_of(record))
        assert "text" not in table.column_names
        for name in ("gold_labels", "labels"):
            assert set(chain(*table.column(name).to_pylist())) <= set(record.task.labels)
        assert record.limit is None
        assert not record.overrides or protocol_named_by(record.overrides) == "small"


def test_the_readme_is_what_the_runs_give() -> None:
    text = shipped.README.read_text(encoding="utf-8")
    unseen = shipped.reported("--slice", "unseen")
    assert shipped.readme(text, shipped.reported(), unseen) == text, (
        "python -m tests.benchmarks.shipped readme"
    )
    rows = [
        line
        for line in shipped.block(shipped.reported(), unseen).splitlines()
        if line.startswith("| ")
    ][1:]
    assert len(rows) <= shipped.MOST_ROWS
    assert "| all-MiniLM-L6-v2, this code | 73.8 ±3.6 |" in "\n".join(rows)
    assert "small" not in "".join(rows)


def test_the_picture_of_unseen_mentions_is_what_the_runs_give() -> None:
    assert shipped.PICTURE.read_text(encoding="utf-8") == shipped.picture(), (
        "python -m tests.benchmarks.shipped picture"
    )


def test_the_needle_table_of_the_tasks_page_is_of_the_shipped_runs():
    page = (shipped.RESULTS.parent / "docs" / "tasks.md").read_text()
    grids = {(grid.task, grid.model): grid for grid in needle_grids(shipped.RESULTS)}
    printed = render_grid(grids["needle_en", "all-MiniLM-L6-v2"])
    (quoted,) = re.findall(r"```text\n(all-MiniLM-L6-v2 · needle_en.+?)```", page, re.DOTALL)
    assert quoted in printed


def test_the_page_is_what_the_studies_gave() -> None:
    text = demonstration.PAGE.read_text(encoding="utf-8")
    assert demonstration.page(text, demonstration.study_scores()) == text, (
        "python -m tests.benchmarks.demonstration"
    )
    assert demonstration.UNSEEN_PICTURE.read_text(encoding="utf-8") == (
        demonstration.unseen_picture()
    )


def test_the_text_next_to_the_table_states_what_was_computed() -> None:
    text = " ".join(demonstration.PAGE.read_text(encoding="utf-8").split())
    looked_at = demonstration.differences(demonstration.study_scores(demonstration.EXPLORED))
    (detour,) = [d for d in looked_at if (d[0], d[1].arm, d[1].budget) == ("", "detour", 2_400_000)]
    _, row, _, corrected = detour
    assert len(looked_at) == 9
    assert (
        f"scores {100 * row.difference:.1f} points above its twin. This is one of nine differences"
        in text
    )
    assert f"(p = {corrected:.2f})" in text
    assert f"{100 * row.difference:+.1f} ({100 * row.low:+.1f} to {100 * row.high:+.1f})" in text
    assert corrected > 0.05
    ((_, again, _, _),) = demonstration.differences(
        demonstration.study_scores([demonstration.REPLICATION])
    )
    shown = f"{100 * again.difference:+.1f} ({100 * again.low:+.1f} to {100 * again.high:+.1f})"
    assert f"`results/study/replication.yaml`): {shown}. **The finding did not repeat.**" in text
    assert again.low < 0 < again.high < row.difference


def test_the_text_on_unseen_mentions_states_what_was_computed() -> None:
    text = " ".join(demonstration.PAGE.read_text(encoding="utf-8").split())
    twin, detour = demonstration.unseen_rows()["unseen"]
    assert detour.shown
    assert detour.test_sets
    assert all(score > twin.scores[seed] for seed, score in detour.scores.items())
    assert not demonstration.unseen_rows()["seen"][1].shown
    runs = json.loads(demonstration.UNSEEN["unseen"].read_text(encoding="utf-8"))["runs"]
    gains = {}
    for task in ("ncbi_disease", "bc5cdr"):
        by_seed = [
            runs[f"detour-2.4M-s{seed}"][task] - runs[f"twin-2.4M-s{seed}"][task]
            for seed in detour.scores
        ]
        gains[task] = 100 * sum(by_seed) / len(by_seed)
    said = (
        "with each of the ten seeds, {ncbi_disease:.1f} points on `ncbi_disease` and {bc5cdr:.1f}"
    )
    assert said.format(**gains) in text


@pytest.mark.parametrize("path", demonstration.UNSEEN.values(), ids=demonstration.UNSEEN)
def test_the_noise_of_test_sets_makes_no_interval_of_the_study_narrower(path: Path) -> None:
    stored = json.loads(path.read_text(encoding="utf-8"))
    study = load_study(demonstration.FOLDER / "unseen.yaml")
    assert stored["study"] == study.name
    rows = table(study, planned_runs(study, None), stored["runs"])
    for row, kept in zip(rows, stored["rows"], strict=True):
        assert {str(seed): score for seed, score in row.scores.items()} == kept["scores"]
        assert row.difference == kept["difference"]
        if row.low is not None:
            assert kept["low"] <= row.low < row.high <= kept["high"]


def test_the_stored_rows_follow_from_the_scores_of_their_runs() -> None:
    for path in demonstration.DECLARATIONS:
        study = load_study(path)
        stored = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
        runs = planned_runs(study, None)
        assert set(stored["runs"]) == {run.name for run in runs}
        assert all(
            set(scores) == set(study.benchmark.all_ids) for scores in stored["runs"].values()
        )
        rows = [asdict(row) | {"mean": row.mean} for row in table(study, runs, stored["runs"])]
        assert json.loads(json.dumps(rows)) == stored["rows"]
