"""docs/demonstration.md says what the stored scores of the pilot study say."""

from __future__ import annotations

import json
from dataclasses import asdict

import pytest

from biobench.workflows.study import load_study, planned_runs, table
from tests.benchmarks import demonstration

pytestmark = pytest.mark.skipif(not demonstration.STORED.is_file(), reason="an installed copy has no study")


def test_the_page_is_what_the_study_gave() -> None:
    text = demonstration.PAGE.read_text(encoding="utf-8")
    assert demonstration.page(text) == text, "python -m tests.benchmarks.demonstration"


def test_the_stored_rows_follow_from_the_scores_of_its_runs() -> None:
    study, root = load_study(demonstration.DECLARATION)
    stored = json.loads(demonstration.STORED.read_text(encoding="utf-8"))
    runs = planned_runs(study, root, None)
    assert set(stored["runs"]) == {run.name for run in runs}
    assert all(set(scores) == set(study.benchmark.tasks) for scores in stored["runs"].values())
    rows = [asdict(row) | {"mean": row.mean} for row in table(study, runs, stored["runs"])]
    assert json.loads(json.dumps(rows)) == stored["rows"]


def test_a_difference_is_named_only_where_its_interval_leaves_zero_out() -> None:
    study, root = load_study(demonstration.DECLARATION)
    scores = {
        run.name: dict.fromkeys(study.benchmark.tasks, 0.4 + 0.01 * run.seed - 0.2 * (run.arm == "causal"))
        for run in planned_runs(study, root, None)
    }
    scores = {
        name: {
            t: v + 0.02 * ("detour" in name and "s2" in name) + 0.001 * name.startswith("causal-1.2M-s1")
            for t, v in s.items()
        }
        for name, s in scores.items()
    }
    rows = [asdict(row) | {"mean": row.mean} for row in table(study, planned_runs(study, root, None), scores)]
    said = demonstration.sentences(study, {"rows": rows, "runs": scores})
    assert "the causal arm is worse than the twin by 20.0 points (95% interval -20.1 to -19.8" in said
    assert "detour arm is" not in said
    assert "Not told apart from the twin: detour at 1.2 M" in said
