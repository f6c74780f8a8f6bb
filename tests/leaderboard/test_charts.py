"""What the charts hold: axes that rise, a front that nothing beats, differences that are sure or not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from biobench.report import charts
from biobench.report.row import Row


def point(model, cost, score):
    return {"model": model, "cost": cost, "score": score, "result": "published", "here": False}


POINTS = [point("small", 3e7, 60.0), point("idle", 1e8, 59.0), point("base", 1.1e8, 70.0), point("large", 3e8, 69.0)]


@pytest.mark.parametrize("points", [POINTS, POINTS[:1], [point("free", 0, 50.0), *POINTS]])
def test_the_cost_axis_rises_to_the_right_and_holds_every_dot(points):
    spec = charts.scatter(points, "parameters").to_dict()
    costs = [p["cost"] for p in points]
    for layer in spec["layer"]:
        low, high = layer["encoding"]["x"]["scale"]["domain"]
        assert low < min(costs)
        assert max(costs) < high
    assert "tooltip" in spec["layer"][0]["encoding"]


def test_names_stand_beside_what_no_cheaper_model_beats():
    spec = charts.scatter(POINTS, "parameters").to_dict()
    named = [row["model"] for layer in spec["layer"][1:] for row in spec["datasets"][layer["data"]["name"]]]
    assert sorted(named) == ["base", "small"]


def test_differences_stand_by_size_and_say_which_are_sure():
    rows = [
        {"task": "a", "difference": 1.0, "low": -1.0, "high": 3.0},
        {"task": "b", "difference": 5.0, "low": 4.0, "high": 6.0},
        {"task": "c", "difference": -2.0, "low": None, "high": None},
    ]
    spec = charts.differences(rows).to_dict()
    assert spec["layer"][2]["encoding"]["y"]["sort"] == ["b", "a", "c"]
    held = next(rows for rows in spec["datasets"].values() if rows and "sure" in rows[0] and len(rows) == 3)
    assert {row["task"]: row["sure"] for row in held} == {"a": False, "b": True, "c": False}


def test_an_interval_that_is_drawn_holds_its_dot():
    sound = Row("a", "gad", "macro_f1", 0.60, 0.01, 0.58, 0.62, 4, "run")
    # one of four runs failed: the interval is about the three others, the mean about all
    failed = replace(sound, mean=0.45, failed=1, kept=0.60)
    for row in (sound, failed, replace(sound, n_seeds=2)):
        ends = charts.ends(row)
        assert ends["low"] is None or ends["low"] <= ends["score"] <= ends["high"]
    assert charts.ends(sound)["low"] == pytest.approx(58)
