"""Page one of folders without a whole suite: printed scores alone, demo runs, limited runs."""

from __future__ import annotations

import pytest

from tests.helpers.app_make import board, bodies, open_app, said
from tests.helpers.report_make import save_run, save_runs

LEADER = "ModernCamemBERT-bio-large CLM detour (25B)"
DEMO = ("demo_ner", "demo_topic")


def captions(app):
    return " ".join(caption.value for caption in app.caption)


def test_printed_scores_name_their_first_whole_and_say_what_their_order_is_worth(monkeypatch, tmp_path):
    app = open_app(monkeypatch, tmp_path)
    assert LEADER in said(app), "a name without its middle may be that of another model"
    assert "below" not in app.info[0].value, "the scores stand above"
    assert "In brackets" in captions(app)
    assert "Ranks:" not in captions(app), "nothing is ranked"
    assert "±" not in app.dataframe[0].value.columns, "printed means have no spread"


@pytest.fixture
def demo(tmp_path):
    for task in DEMO:
        save_runs(tmp_path, "tiny", task, {42: 0.50, 43: 0.52, 44: 0.51})
        save_runs(tmp_path, "other", task, {42: 0.60, 43: 0.62, 44: 0.61})
    return tmp_path


def test_demo_runs_are_ranked_over_their_own_tasks(monkeypatch, demo):
    app = open_app(monkeypatch, demo, suite="en")
    assert said(app).startswith("## **other** leads with 61.0.")
    assert "other tasks that they share: demo\\_ner, demo\\_topic" in captions(app)
    frame = board(app).set_index("model")
    assert list(frame.loc[["other", "tiny"], "mean"]) == pytest.approx([61.0, 51.0])
    assert list(frame.index[:2]) == ["other", "tiny"], "before printed lines, which have no mean here"
    (cards,) = [part for part in bodies(app) if "bb-cards" in part]
    assert "61.0" in cards


def test_demo_runs_stand_beside_a_suite_and_not_in_it(monkeypatch, demo):
    for task in ("gad", "bc5cdr"):
        save_runs(demo, "tiny", task, {42: 0.70, 43: 0.72, 44: 0.71})
        save_runs(demo, "other", task, {42: 0.60, 43: 0.62, 44: 0.61})
    app = open_app(monkeypatch, demo, suite="en")
    assert said(app).startswith("## **tiny** leads with 71.0.")
    assert "demo" not in captions(app)


def test_limited_runs_lead_nothing(monkeypatch, tmp_path):
    for model, score in (("tiny", 0.5), ("other", 0.6)):
        for seed in (42, 43):
            save_run(tmp_path, model, "bc5cdr", seed, score, limit=16)
    app = open_app(monkeypatch, tmp_path, suite="en")
    assert "none leads" in said(app)
    assert "never averaged and never ranked" in captions(app)
    assert list(board(app)["model"][:2]) == ["other [limit 16]", "tiny [limit 16]"], "the reader's own runs first"
    assert not [part for part in bodies(app) if "bb-cards" in part], "no mean, no card: a phone shows the table"


def test_a_single_whole_task_needs_no_such_words(monkeypatch, tmp_path):
    save_runs(tmp_path, "tiny", "gad", {42: 0.5, 43: 0.52, 44: 0.51})
    save_run(tmp_path, "tiny", "gad", 42, 0.9, limit=16)
    app = open_app(monkeypatch, tmp_path, suite="en", sources="run")
    assert said(app).startswith("## **tiny** leads with 51.0.")
    assert "never averaged" not in captions(app)
