"""What the charts hold: axes that rise, a front that nothing beats, differences that are sure or not."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import pairwise

import pytest

from biobench.report import charts
from biobench.report.rows import Row
from leaderboard.words import WORDS


def point(model, cost, score):
    return {"model": model, "cost": cost, "score": score, "low": score - 1, "high": score + 1}


POINTS = [point("small", 3e7, 60.0), point("idle", 1e8, 59.0), point("base", 1.1e8, 70.0), point("large", 3e8, 69.0)]


def test_the_front_holds_what_no_other_beats():
    assert [p["model"] for p in charts.front(POINTS)] == ["small", "base"]
    assert [p["model"] for p in charts.front(POINTS, more_is_better=True)] == ["large", "base"]


@pytest.mark.parametrize("points", [POINTS, POINTS[:1], [point("free", 0, 50.0), *POINTS]])
def test_the_cost_axis_rises_to_the_right(points):
    spec = charts.scatter(points, "parameters", WORDS).to_dict()
    domains = [
        layer["encoding"]["x"]["scale"]["domain"] for layer in spec["layer"] if "scale" in layer["encoding"]["x"]
    ]
    costs = [p["cost"] for p in points]
    assert domains
    assert all(low < min(costs) and max(costs) < high for low, high in domains)


MANY = [point(f"a model of a long name {n}", 2e7 * 1.7**n, 50 + 8 * n - n * n / 2) for n in range(6)]


@pytest.mark.parametrize("width", [240, 420, 700])
@pytest.mark.parametrize("faster", [False, True])
@pytest.mark.parametrize("points", [POINTS, MANY])
def test_names_leave_the_line_of_the_front_free(points, faster, width):
    points = [p | {"cost": 1e15 / p["cost"]} for p in points] if faster else points
    svg = charts.svg(charts.scatter(points, "cost", WORDS, more_is_better=faster), width)
    path = re.search(r'<path [^>]*d="(M[^"]*L[^"]*)"[^>]*stroke-dasharray', svg)
    corners = [tuple(map(float, pair.split(","))) for pair in re.findall(r"-?[\d.]+,-?[\d.]+", path[1])]
    dense = [
        (x1 + (x2 - x1) * i / 50, y1 + (y2 - y1) * i / 50)
        for (x1, y1), (x2, y2) in pairwise(corners)
        for i in range(51)
    ]
    shown = re.findall(
        r'<text [^>]*text-anchor="(start|end)" transform="translate\(([\d.-]+),([\d.-]+)\)"[^>]*>([^<]*)', svg
    )
    boxes = [(float(x), float(y), 6 * len(name), side) for side, x, y, name in shown if not name[0].isdigit()]
    assert len(boxes) >= 2
    for x, y, length, side in boxes:
        left = x if side == "start" else x - length
        crossed = [(px, py) for px, py in dense if left <= px <= left + length and y - 9 <= py <= y + 2]
        assert not crossed, (side, x, y, crossed[:2])


def test_differences_stand_by_size_and_say_which_are_sure():
    rows = [
        {"task": "a", "difference": 1.0, "low": -1.0, "high": 3.0},
        {"task": "b", "difference": 5.0, "low": 4.0, "high": 6.0},
        {"task": "c", "difference": -2.0, "low": None, "high": None},
    ]
    spec = charts.differences(rows, WORDS).to_dict()
    assert spec["layer"][2]["encoding"]["y"]["sort"] == ["b", "a", "c"]
    held = next(rows for rows in spec["datasets"].values() if rows and "sure" in rows[0] and len(rows) == 3)
    assert {row["task"]: row["sure"] for row in held} == {"a": False, "b": True, "c": False}


def test_long_names_are_cut_in_the_middle():
    names = ["org/" + 40 * "x" + f" [weights {end}]" for end in ("0a1b", "ffff")]
    assert len({charts.cut(name) for name in names}) == 2
    assert all(len(charts.cut(name)) <= charts.MOST_LETTERS for name in names)


def test_an_interval_that_is_drawn_holds_its_dot():
    sound = Row("a", "gad", "macro_f1", 0.60, 0.01, 0.58, 0.62, 4, "run")
    # one of four runs failed: the interval is about the three others, the mean about all
    failed = replace(sound, mean=0.45, failed=1, kept=0.60)
    for row in (sound, failed, replace(sound, n_seeds=2)):
        ends = charts.ends(row)
        assert ends["low"] is None or ends["low"] <= ends["score"] <= ends["high"]
    assert charts.ends(sound)["low"] == pytest.approx(58)


@pytest.mark.parametrize(("own", "low"), [(True, 1.0), (True, None), (False, None)])
def test_only_what_is_drawn_is_explained(own, low):
    rows = [{"line": "a", "score": 2.0, "low": low, "high": low, "rank": "1", "own": own}]
    keys = charts.marks_of(rows)
    assert ("filled_help" in keys) == own
    assert ("hollow_help" in keys) == (not own)
    assert ("line_help" in keys) == (low is not None)


def test_curves_over_lengths_keep_their_height_below_the_names():
    lengths = (512, 1024, 4096)
    heights = []
    for count in (1, 6):
        rows = [
            {"model": f"model {n}", "length": length, "score": 80.0, "read": True}
            for n in range(count)
            for length in lengths
        ]
        spec = charts.lengths(rows, "tokens", WORDS).to_dict()
        assert spec["layer"][0]["encoding"]["x"]["axis"]["values"] == list(lengths)
        heights.append(spec["height"])
    assert heights[1] - heights[0] >= 5 * 15, "a name takes at least 15 pixels"
