"""docs/pretraining.md says what the stored scores of the studies say."""

from __future__ import annotations

import json
from dataclasses import asdict

import pytest

from biobench.workflows.study import load_study, planned_runs, table
from tests.benchmarks import demonstration

PILOT = demonstration.DECLARATIONS[0]
pytestmark = pytest.mark.skipif(not PILOT.with_suffix(".json").is_file(), reason="an installed copy has no study")


def test_the_page_is_what_the_studies_gave() -> None:
    text = demonstration.PAGE.read_text(encoding="utf-8")
    assert demonstration.page(text, demonstration.study_scores()) == text, "python -m tests.benchmarks.demonstration"


def test_the_text_beside_the_table_states_what_was_computed() -> None:
    text = " ".join(demonstration.PAGE.read_text(encoding="utf-8").split())
    looked_at = demonstration.differences(demonstration.study_scores())
    (detour,) = [d for d in looked_at if (d[0], d[1].arm, d[1].budget) == ("", "detour", 2_400_000)]
    _, row, _, corrected = detour
    assert len(looked_at) == 9
    assert f"scores {100 * row.difference:.1f} points above its twin. This is one of nine differences" in text
    assert f"(p = {corrected:.2f})" in text
    assert f"{100 * row.difference:+.1f} ({100 * row.low:+.1f} to {100 * row.high:+.1f})" in text


def test_the_stored_rows_follow_from_the_scores_of_their_runs() -> None:
    stored_ones = [p for p in demonstration.DECLARATIONS if p.with_suffix(".json").is_file()]
    assert stored_ones
    for path in stored_ones:
        study = load_study(path)
        stored = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
        runs = planned_runs(study, None)
        assert set(stored["runs"]) == {run.name for run in runs}
        assert all(set(scores) == set(study.benchmark.all_ids) for scores in stored["runs"].values())
        rows = [asdict(row) | {"mean": row.mean} for row in table(study, runs, stored["runs"])]
        assert json.loads(json.dumps(rows)) == stored["rows"]
