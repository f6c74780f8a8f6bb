"""docs/pretraining.md says what the stored scores of the studies say, however many declarations there are."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import pytest
import yaml

from biobench.workflows.study import load_study, planned_runs, table
from tests.benchmarks import demonstration

PILOT = demonstration.DECLARATIONS[0]
pytestmark = pytest.mark.skipif(not PILOT.with_suffix(".json").is_file(), reason="an installed copy has no study")

Score = Callable[[str, int, str], float]
"""From arm, seed and task."""


def test_the_page_is_what_the_studies_gave() -> None:
    text = demonstration.PAGE.read_text(encoding="utf-8")
    assert demonstration.page(text, demonstration.told()) == text, "python -m tests.benchmarks.demonstration"


def test_the_text_beside_the_table_states_what_was_computed() -> None:
    text = " ".join(demonstration.PAGE.read_text(encoding="utf-8").split())
    looked_at = demonstration.differences(demonstration.told())
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


def declared(folder: Path, name: str, score: Score, **changes: object) -> Path:
    """The pilot's declaration with changes (`tasks` of its benchmark), and made-up scores of its runs beside it."""
    text = yaml.safe_load(PILOT.read_text(encoding="utf-8"))
    if tasks := changes.pop("tasks", None):
        text["benchmark"]["tasks"] = tasks
    folder.mkdir(exist_ok=True)
    shutil.copy(PILOT.parent / "recipe.yaml", folder)
    path = folder / f"{name}.yaml"
    path.write_text(yaml.safe_dump(text | {"name": name} | changes), encoding="utf-8")
    study = load_study(path)
    runs = {
        run.name: {task: score(run.arm, run.seed, task) for task in study.benchmark.tasks}
        for run in planned_runs(study, None)
    }
    path.with_suffix(".json").write_text(json.dumps({"study": name, "rows": [], "runs": runs}), encoding="utf-8")
    return path


def plain(arm: str, seed: int, task: str) -> float:
    """The causal arm 20 points below, detour and random order above in one seed each, the needle far above all."""
    of = {"twin": 0.4, "detour": 0.4 + 0.02 * (seed == 2), "random_order": 0.4 + 0.02 * (seed == 3), "causal": 0.2}
    return of[arm] + 0.01 * seed + 0.001 * (arm == "causal" and seed == 1) + 0.5 * (task == "needle_en")


def test_p_is_that_of_the_interval_and_holm_counts_all_that_was_looked_at(tmp_path: Path) -> None:
    # differences of -0.199, -0.2 and -0.2: t = -599 on 2 degrees of freedom; by Holm the smallest of three, times three
    looked_at = demonstration.differences(demonstration.told([declared(tmp_path, "one", plain)]))
    (causal,) = [d for d in looked_at if d[1].arm == "causal"]
    assert causal[2:] == (pytest.approx(2.8e-06, rel=0.01), pytest.approx(8.4e-06, rel=0.01))
    assert len(looked_at) == 3


def test_two_declarations_stand_in_one_table_with_means_over_the_tasks_that_both_have(tmp_path: Path) -> None:
    first = declared(tmp_path, "one", plain)
    second = declared(
        tmp_path,
        "two",
        lambda arm, seed, task: plain(arm, seed, task) + 0.1,
        budgets=[2_400_000],
        tasks=["needle_en", "bc5cdr", "ncbi_disease"],
    )
    studies = demonstration.told([second, first, tmp_path / "not_run.yaml"])
    assert demonstration.others(studies) == ["needle_en"]
    lines = demonstration.arms(studies).splitlines()
    assert [line.split(" | ")[:2] for line in lines[2:]] == [
        [f"| {budget}", arm] for budget in ("1.2 M", "2.4 M") for arm in ("twin", "detour", "causal", "random_order")
    ]
    # the needle's 0.5 more is in no mean: 0.4 + 0.1 + 0.01, 0.02, 0.03
    assert lines[6] == "| 2.4 M | twin | 51.0 | 52.0 | 53.0 | 52.0 | – |"
    assert lines[2] == "| 1.2 M | twin | 41.0 | 42.0 | 43.0 | 42.0 | – |"
    assert len(demonstration.differences(studies)) == 9


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"overrides": ["base.tokenizer.vocabulary=2048"], "budgets": [2_400_000]}, "differ in overrides"),
        ({"seeds": [1, 2], "budgets": [2_400_000]}, "differ in seeds"),
        ({"tasks": ["gad"], "budgets": [2_400_000]}, "share no task"),
        ({}, "the budget 1200000 is declared twice"),
    ],
)
def test_declarations_that_differ_in_more_than_budget_and_tasks_are_refused(
    tmp_path: Path, changes: dict[str, object], said: str
) -> None:
    paths = [declared(tmp_path, "one", plain), declared(tmp_path, "two", plain, **changes)]
    with pytest.raises(ValueError, match=said):
        demonstration.told(paths)
