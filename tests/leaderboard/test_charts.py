"""What the charts hold: axes that rise, a front that nothing beats, differences that are sure or not."""

from __future__ import annotations

import pytest

from biobench.report import charts
from leaderboard.words import words


def point(model, cost, score):
    return {"model": model, "cost": cost, "score": score, "low": score - 1, "high": score + 1}


POINTS = [point("small", 3e7, 60.0), point("idle", 1e8, 59.0), point("base", 1.1e8, 70.0), point("large", 3e8, 69.0)]


def test_the_front_holds_what_no_other_beats():
    assert [p["model"] for p in charts.front(POINTS)] == ["small", "base"]
    assert [p["model"] for p in charts.front(POINTS, more_is_better=True)] == ["large", "base"]


@pytest.mark.parametrize("points", [POINTS, POINTS[:1], [point("free", 0, 50.0), *POINTS]])
def test_the_cost_axis_rises_to_the_right(points):
    spec = charts.scatter(points, "parameters", words("en")).to_dict()
    domains = [
        layer["encoding"]["x"]["scale"]["domain"] for layer in spec["layer"] if "scale" in layer["encoding"]["x"]
    ]
    costs = [p["cost"] for p in points]
    assert domains
    assert all(low < min(costs) and max(costs) < high for low, high in domains)


def test_differences_stand_by_size_and_say_which_are_sure():
    rows = [
        {"task": "a", "difference": 1.0, "low": -1.0, "high": 3.0},
        {"task": "b", "difference": 5.0, "low": 4.0, "high": 6.0},
        {"task": "c", "difference": -2.0, "low": None, "high": None},
    ]
    spec = charts.differences(rows, words("en")).to_dict()
    assert spec["layer"][2]["encoding"]["y"]["sort"] == ["b", "a", "c"]
    held = next(rows for rows in spec["datasets"].values() if rows and "sure" in rows[0] and len(rows) == 3)
    assert {row["task"]: row["sure"] for row in held} == {"a": False, "b": True, "c": False}


def test_long_names_are_cut_in_the_middle():
    names = ["org/" + 40 * "x" + f" [weights {end}]" for end in ("0a1b", "ffff")]
    assert len({charts.cut(name) for name in names}) == 2
    assert all(len(charts.cut(name)) <= charts.MOST_LETTERS for name in names)
