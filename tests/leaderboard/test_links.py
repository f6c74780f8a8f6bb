"""What stands in the address of a page."""

from __future__ import annotations

import pytest
from streamlit.testing.v1 import AppTest

from tests.helpers.app_make import open_app, texts
from tests.leaderboard.conftest import HOSTILE, TASKS

OPENINGS = {
    "models": {"model": HOSTILE},
    "tasks": {"task": "anatem"},
    "compare": {"models": ["org/high", "org/middle"], "only": sorted(TASKS)},
    "errors": {"model": HOSTILE, "task": "bc5cdr", "seed": "42"},
    "needle": {"task": "needle_en", "models": "org/low"},
}
"""Page -> the choices that it opens with over `runs`."""


@pytest.mark.parametrize("path", OPENINGS)
def test_the_address_names_every_choice_that_other_data_would_change(monkeypatch, runs, path):
    assert dict(open_app(monkeypatch, runs, path).query_params) == OPENINGS[path]


def test_a_choice_of_another_page_that_this_one_does_not_have_leaves_the_address():
    app = AppTest.from_function(draw_two_pages, default_timeout=60)
    assert app.run().selectbox(key="task").value == app.query_params["task"] == "gad"
    app.session_state["is_second"] = True
    app.run()
    assert app.selectbox(key="task").value == app.query_params["task"] == "needle_en"


def draw_two_pages():
    """Two choices with one name in the link."""
    import streamlit as st

    from leaderboard.choices import choose

    tasks = ["needle_en", "needle_fr"] if "is_second" in st.session_state else ["gad", "hoc"]
    choose("Task", tasks, "task", from_data=True)


def test_other_models_are_compared_over_all_their_tasks(monkeypatch, runs):
    app = open_app(monkeypatch, runs, "compare", models=["org/high", "org/low"], only=["gad"])
    assert app.multiselect(key="only").value == ["gad"]
    app.multiselect(key="models").set_value(["org/low", "org/middle"]).run()
    assert app.multiselect(key="only").value == []
    assert "only" not in app.query_params


def test_a_link_to_the_opening_pair_without_tasks_is_of_all_tasks(monkeypatch, runs):
    opening = OPENINGS["compare"]
    app = open_app(monkeypatch, runs, "compare", models=opening["models"])
    assert app.multiselect(key="only").value == []
    assert dict(app.query_params) == {"models": opening["models"]}


def test_a_link_to_what_is_not_here_says_so(monkeypatch, runs):
    app = open_app(monkeypatch, runs, "models", model="<b>gone</b>")
    assert "<b>gone</b>" in texts(app)
    app = open_app(monkeypatch, runs, "compare", models=["org/high", "gone", "org/low"])
    assert app.multiselect(key="models").value == ["org/high", "org/low"]
    assert "gone" in texts(app)
