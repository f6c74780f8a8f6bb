"""What a reader sees: charts whose axes rise and whose names stand by the front; names that are
short and unlike.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from biobench.reporting import charts
from biobench.reporting.charts import MOST_LETTERS
from biobench.reporting.details.pretraining import Point, TrainingRun
from biobench.reporting.escape import LONGEST
from biobench.reporting.names import labels, shorten, without_revisions
from biobench.reporting.printers import plain_note
from biobench.reporting.row import Row
from leaderboard.numbers import cell_text


def point(model, cost, score):
    return {"model": model, "cost": cost, "score": score, "result": "published", "here": False}


POINTS = [
    point("small", 3e7, 60.0),
    point("idle", 1e8, 59.0),
    point("base", 1.1e8, 70.0),
    point("large", 3e8, 69.0),
]


@pytest.mark.parametrize("points", [POINTS, POINTS[:1], [point("free", 0, 50.0), *POINTS]])
def test_the_cost_axis_rises_to_the_right_and_holds_every_dot(points):
    spec = charts.scatter(points, "parameters").to_dict()
    costs = [p["cost"] for p in points]
    for layer in spec["layer"]:
        low, high = layer["encoding"]["x"]["scale"]["domain"]
        assert low < min(costs)
        assert max(costs) < high
    assert "tooltip" in spec["layer"][0]["encoding"]


def test_the_front_that_no_cheaper_model_beats_has_names():
    spec = charts.scatter(POINTS, "parameters").to_dict()
    named = [
        row["model"]
        for layer in spec["layer"][1:]
        for row in spec["datasets"][layer["data"]["name"]]
    ]
    assert sorted(named) == ["base", "small"]


def test_differences_stand_in_their_order_and_say_which_are_sure():
    rows = (("b", 5.0, 4.0, 6.0), ("a", 1.0, -1.0, 3.0), ("c", -2.0, None, None))
    names = ("task", "difference", "low", "high")
    lines = [dict(zip(names, row, strict=True)) for row in rows]
    spec = charts.differences(lines, "task").to_dict()
    assert spec["layer"][2]["encoding"]["y"]["sort"] == ["b", "a", "c"]
    held = next(
        rows for rows in spec["datasets"].values() if rows and "sure" in rows[0] and len(rows) == 3
    )
    assert {row["task"]: row["sure"] for row in held} == {"a": False, "b": True, "c": False}


def mark(name, score, result):
    return {"task": name, "score": score, "low": None, "high": None, "result": result}


def test_scores_have_a_shape_a_result_and_quiet_dots_and_ticks_behind():
    others = [{"task": "gad", "name": "other", "score": 70.0}]
    bars = [{"task": "gad", "name": "bag of words", "score": 60.0}]
    points = [mark("gad", 80.0, "published"), mark("hoc", 75.0, "run here")]
    spec = charts.scores(points, "task", behind=others, baselines=bars).to_dict()
    assert [layer["mark"]["type"] for layer in spec["layer"]] == ["circle", "tick", "point"]
    encoded = spec["layer"][-1]["encoding"]
    assert encoded["shape"]["scale"]["domain"] == ["published", "run here"]
    assert encoded["y"]["sort"] == ["gad", "hoc"]
    alone = charts.scores(points[:1], "task").to_dict()["layer"][-1]["encoding"]
    assert alone["shape"]["legend"] is None, "one kind of result needs no legend"


def test_scores_within_one_point_are_drawn_on_ten():
    near = [mark("gad", 54.6, "run here"), mark("hoc", 55.2, "run here")]
    low, high = scores_scale(near)["domain"]
    assert high - low == 10
    assert (low + high) / 2 == pytest.approx(54.9)
    assert scores_scale([mark("gad", 99.5, "run here")])["domain"] == [90, 100]
    assert "domain" not in scores_scale(near, [{"task": "gad", "score": 70.0}])


def scores_scale(points, behind=()):
    """Of the horizontal axis."""
    *_, marks = charts.scores(points, "task", behind=behind).to_dict()["layer"]
    return marks["encoding"]["x"]["scale"]


def test_numbers_above_a_hundred_have_no_decimals():
    assert cell_text(2126.12) == "2,126"
    assert cell_text(100.0) == "100.0"
    assert cell_text(3.04) == "3.0"


def test_a_legend_grows_over_the_names_beside_the_chart():
    """On a phone, what stands right of them is cut."""
    chart = charts.legible(charts.parts([mark("gad", 80.0, "run")], "task", "result"), charts.INK)
    assert "end" in chart.to_dict()["config"]["legend"]["layout"]["expr"]


def test_curves_keep_the_order_of_their_steps():
    rows = [{"arm": "twin", "step": step, "score": 70.0} for step in ("4 of 100", "10 of 100")]
    encoded = charts.curves(rows, "arm").to_dict()["encoding"]
    assert encoded["x"]["sort"] == ["4 of 100", "10 of 100"]


def test_no_line_joins_two_phases_of_a_training():
    points = []
    for phase, tokens in (("clm", 10), ("clm", 20), ("decay", 30)):
        fields = {"loss": 2.0, "learning_rate": None, "tokens_per_second": None}
        points.append(Point(event="train", phase=phase, tokens=tokens, **fields))
    run = TrainingRun("detour", tuple(points), None, None)
    spec = charts.over_tokens([run], "loss", "loss", ".1f").to_dict()
    rule, name, lines, _ = spec["layer"]
    assert lines["encoding"]["detail"]["field"] == "phase"
    for layer in (rule, name):
        assert spec["datasets"][layer["data"]["name"]] == [
            {"run": "detour", "phase": "decay", "tokens": 30}
        ]


def test_a_length_that_is_not_read_is_one_word_and_no_dot():
    read = [{"model": model, "length": 512, "score": 90.0} for model in "ab"]
    beyond = [{"model": model, "length": 1024, "score": None} for model in "ab"]
    spec = charts.lengths([*read, *beyond], "tokens").to_dict()
    line, dots, words = spec["layer"][2:]
    for layer in (line, dots):
        assert spec["datasets"][layer["data"]["name"]] == read
    (note,) = spec["datasets"][words["data"]["name"]]
    assert (note["text"], note["models"], note["score"]) == ("not read by 2", "a, b", 40)


def test_an_interval_that_is_drawn_holds_its_dot():
    sound = Row("a", "gad", "macro_f1", 0.60, 0.01, 0.58, 0.62, 4, "run")
    # one of four runs failed: the interval is about the three others, the mean about all
    failed = replace(sound, mean=0.45, failed=1, kept=0.60)
    for row in (sound, failed, replace(sound, n_seeds=2)):
        ends = charts.ends(row)
        assert ends["low"] is None or ends["low"] <= ends["score"] <= ends["high"]
    assert charts.ends(sound)["low"] == pytest.approx(58)


FIRST, SECOND = (
    "0123456789abcdef0123456789abcdef01234567",
    "fedcba9876543210fedcba9876543210fedcba98",
)
KEY = 64 * "e"


def test_owner_and_revision_are_dropped_where_nothing_else_is_called_so():
    names = [f"almanach/camembert-bio@{FIRST}", "org/encoder"]
    assert labels(names) == {names[0]: "camembert-bio", names[1]: "encoder"}
    assert without_revisions(names) == {names[0]: "almanach/camembert-bio", names[1]: "org/encoder"}


def test_what_tells_two_models_apart_stays():
    owners = ["one/encoder", "two/encoder"]
    assert labels(owners) == {name: name for name in owners}
    revisions = [f"org/encoder@{FIRST}", f"org/encoder@{SECOND}"]
    assert list(labels(revisions).values()) == ["org/encoder@0123456", "org/encoder@fedcba9"]
    assert list(without_revisions(revisions).values()) == [
        "org/encoder@0123456",
        "org/encoder@fedcba9",
    ]
    three = ["one/encoder", "two/encoder", f"two/encoder@{FIRST}"]
    assert len(set(labels(three).values())) == 3


def test_a_revision_in_brackets_or_a_text_is_cut_and_other_digits_are_not():
    assert (
        shorten(f"a@{FIRST} [limit 16] beats b@{SECOND}.")
        == "a@0123456 [limit 16] beats b@fedcba9."
    )
    assert shorten(f"sha256 a@{KEY}") == f"sha256 a@{KEY}", "64 digits are no revision"


def test_hostile_and_long_names_stay_one_short_line():
    name = "x\u202egnp.exe\n<script>" + 200 * "y"
    (label,) = labels([name]).values()
    assert not {"\u202e", "\n"} & set(label)
    assert len(label) <= MOST_LETTERS
    assert labels([]) == {}


@pytest.mark.parametrize("depth", [0, 1, 5, 50])
@pytest.mark.parametrize("name", ["a.json", f"{KEY}.json", f"{KEY}-{30 * 'f'}.json"])
def test_the_name_of_a_file_stays_whole(depth, name):
    word = str(Path("/srv", *[20 * "d"] * depth, name))
    note = plain_note(f"{word}: not JSON")
    assert note.endswith(f"/{name}: not JSON")
    assert len(note.split()[0]) <= LONGEST
