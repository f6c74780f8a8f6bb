"""Runs that could be taken for each other are told apart, and links and empty pages say what is so."""

from __future__ import annotations

import pytest

from biobench.report.details.needle import needle_grids
from biobench.report.render import render
from biobench.report.table import build
from biobench.report.tasks import shipped
from biobench.store import Store
from leaderboard.board import _complete
from tests.helpers.app_make import open_app, tables
from tests.helpers.floors_make import play
from tests.helpers.report_make import save_run, save_runs
from tests.helpers.view_make import save_needle

SEP = "\x1f"
FRENCH = [i.id for i in shipped().values() if i.suite == "fr" and i.in_suite]


def test_the_best_is_sought_among_runs_of_the_same_protocol(monkeypatch, tmp_path):
    save_runs(tmp_path, "tiny", "gad", {42: 0.60})
    save_runs(tmp_path, "tiny", "gad", {42: 0.50}, limit=16)
    save_run(tmp_path, "lucky", "gad", 42, 0.99, limit=16)
    save_run(tmp_path, "other", "gad", 42, 0.98, overrides=("training.epochs=1",), spec="other")
    save_run(tmp_path, "other", "gad", 42, 0.97, track="tuned")
    save_run(tmp_path, "full", "gad", 42, 0.81)

    def best(model, variant="", source="run"):
        app = open_app(monkeypatch, tmp_path, view="model_view", model=SEP.join((model, variant, source)))
        row = next(f.value for f in app.dataframe if "task" in f.value.columns).set_index("task").loc["gad"]
        return row["best here"], round(row["behind the best"], 9)

    assert best("tiny") == ("81.0 (full)", 21.0)
    assert best("tiny", "limit 16") == ("99.0 (lucky [limit 16])", 49.0)
    assert best("other", "tuned") == ("97.0 (other [tuned])", 0.0)
    assert best("PubMedBERT", source="published") == ("81.0 (full)", 1.7)


@pytest.fixture
def twice(tmp_path):
    """One name in one's own runs, in a submission, and in a limited run."""
    save_runs(tmp_path, "tiny", "gad", dict.fromkeys(range(42, 51), 0.6))
    save_run(tmp_path, "tiny", "gad", 42, 0.5, limit=8)
    save_runs(tmp_path / "submitted" / "s", "tiny", "gad", {42: 0.9})
    return tmp_path


def test_own_runs_are_browsed_beside_a_submission_of_the_same_name(monkeypatch, twice):
    app = open_app(monkeypatch, twice, view="errors_view")
    assert app.selectbox(key="errors_model").options == ["tiny", "tiny · submitted", "tiny [limit 8]"]
    assert len(app.selectbox(key="errors_seed").options) == 9
    app.selectbox(key="errors_model").set_value("tiny\x1esubmitted").run()
    assert app.selectbox(key="errors_seed").options == ["42"]
    linked = open_app(monkeypatch, twice, view="errors_view", errors_model="tiny\x1esubmitted")
    assert linked.selectbox(key="errors_seed").options == ["42"]


def test_tables_name_every_line_apart(monkeypatch, twice):
    save_runs(twice, "label", "gad", {42: 0.6})
    for end in "ab":
        save_runs(twice, 200 * "x" + end, "gad", {42: 0.6})
    app = open_app(monkeypatch, twice, view="efficiency_view", efficiency_task="gad")
    names = app.dataframe[0].value["model"].tolist()
    assert {"tiny · own runs", "tiny · submitted", "tiny [limit 8]", "label"} < set(names)
    assert len(set(names)) == len(names) == 6
    labels = next(
        f.value
        for f in open_app(monkeypatch, twice, view="task_view", task="gad").dataframe
        if "support in test" in f.value.columns
    )
    assert labels["label"].tolist() == ["Disease", "Drug", "Other"]
    assert {"label ", "tiny · own runs", "tiny · submitted"} < set(labels.columns)
    assert len(labels.columns) == 2 + 6


def test_the_best_needle_run_is_one_over_the_same_lengths(monkeypatch, tmp_path):
    save_needle(tmp_path, "short", 512, 0.99)
    save_needle(tmp_path, "long", 4096, 0.6)
    app = open_app(monkeypatch, tmp_path, view="model_view", model=SEP.join(("long", "", "run")))
    table = next(f.value for f in app.dataframe if "task" in f.value.columns).set_index("task")
    assert table.loc["needle_fr", "best here"].endswith("(long)")
    assert table.loc["needle_fr", "behind the best"] == 0.0


def test_a_needle_map_of_a_submission_says_so(monkeypatch, tmp_path):
    save_needle(tmp_path, "tiny", 512, 0.9)
    save_needle(tmp_path / "submitted" / "s", "tiny", 512, 0.6)
    app = open_app(monkeypatch, tmp_path, view="needle_view")
    assert app.query_params["maps"] == "tiny\x1ftiny\x1esubmitted"
    assert app.multiselect(key="maps").options == ["tiny", "tiny · submitted"]


def test_a_needle_run_without_lengths_in_its_protocol_is_said_and_the_others_are_shown(monkeypatch, tmp_path):
    save_needle(tmp_path, "good", 512, 0.9)
    save_needle(tmp_path, "bad", 512, 0.9)
    store = Store(tmp_path)
    for record in store.records():
        if record.model.id == "bad":
            store.update(record.model_copy(update={"protocol": {"reader": {"lengths": 5}}}))
    app = open_app(monkeypatch, tmp_path, view="needle_view")
    assert "names no lengths" in app.warning[0].value
    assert len(tables(app)) == 1


def test_a_folder_of_refused_runs_says_why_it_looks_empty(monkeypatch, tmp_path):
    save_runs(tmp_path, "tiny", "gad", {42: 0.6})
    play(tmp_path, "gad", 0.3, why="the surface tells the answer")
    app = open_app(monkeypatch, tmp_path)
    assert not app.info
    assert "fail their gate" in app.warning[0].value
    assert any("the surface tells the answer" in t.value for t in app.text)
    for view in ("errors_view", "efficiency_view"):
        assert "fail their gate" in open_app(monkeypatch, tmp_path, view=view).warning[0].value


def test_one_stray_run_does_not_bar_the_comparison_of_the_other_tasks(monkeypatch, tmp_path):
    for task in FRENCH[:3]:
        save_runs(tmp_path, "full", task, {42: 0.6, 43: 0.61})
    for task in FRENCH[:2]:
        save_runs(tmp_path, "mixed", task, {42: 0.7, 43: 0.71})
    save_run(tmp_path, "mixed", FRENCH[2], 42, 0.9, limit=8)
    asked = {"view": "compare_view", "models": SEP.join(("full", "mixed"))}
    app = open_app(monkeypatch, tmp_path, **asked)
    assert app.multiselect(key="compare_tasks").options == FRENCH[:3]
    app.multiselect(key="compare_tasks").set_value(FRENCH[:2]).run()
    assert not app.error
    linked = open_app(monkeypatch, tmp_path, **asked, compare_tasks=",".join([*FRENCH[:2], "<b>"]))
    for page in (app, linked):
        table = next(f.value for f in page.dataframe if "difference, points" in f.value.columns)
        assert sorted(table["task"]) == sorted(FRENCH[:2])
    assert app.query_params["compare_tasks"] == ",".join(FRENCH[:2])


def test_complete_rows_are_downloaded_as_they_are_shown(tmp_path):
    for task in FRENCH:
        save_run(tmp_path, "whole", task, 42, 0.6)
    save_run(tmp_path, "part", FRENCH[0], 42, 0.6)
    save_run(tmp_path, "whole", "gad", 42, 0.6)
    report = _complete(build(tmp_path, "macro", sources=["run"]))
    assert {(r.model, r.task) for r in report.rows} == {("whole", task) for task in FRENCH}
    assert [c.id for c in report.columns if c.suite == "en"] == []
    assert "part" not in render(report, "csv")


def test_a_suite_average_costs_what_its_tasks_cost(monkeypatch, tmp_path):
    for place, task in enumerate(FRENCH):
        made = save_run(tmp_path, "tiny", task, 42, 0.6)
        Store(tmp_path).update(made.model_copy(update={"cost": made.cost.model_copy(update={"seconds": 10.0 + place})}))
    app = open_app(monkeypatch, tmp_path, view="efficiency_view", efficiency_task="avg_fr", efficiency_cost="seconds")
    (row,) = app.dataframe[0].value.to_dict("records")
    assert row["seconds a run"] == 10 + (len(FRENCH) - 1) / 2


def test_links_carry_what_changes_the_page(monkeypatch, tmp_path):
    for model, level in (("a", 0.6), ("b", 0.7)):
        for task in FRENCH[:3]:
            save_runs(tmp_path, model, task, {42: level, 43: level + 0.01})
    app = open_app(monkeypatch, tmp_path, suite="en")
    assert app.selectbox(key="suite").value == "en"
    app.selectbox(key="suite").set_value("fr").run()
    assert "suite" not in app.query_params, "the first suite is what a link without a choice means"
    app = open_app(monkeypatch, tmp_path, view="compare_view", models=SEP.join("aab"), documents="1")
    assert app.multiselect(key="models").value == ["a", "b"]
    assert app.toggle(key="documents").value is True
    app.toggle(key="documents").set_value(False).run()
    assert "documents" not in app.query_params
    app = open_app(monkeypatch, tmp_path, view="errors_view", errors_kinds="missed,<b>", errors_label="Drug")
    assert app.multiselect(key="errors_kinds").value == ["missed"]
    assert app.selectbox(key="errors_label").value == "Drug"
    app.selectbox(key="errors_label").set_value("").run()
    assert "errors_label" not in app.query_params
    assert app.query_params["errors_kinds"] == "missed"


def test_a_link_to_what_is_not_here_says_so(monkeypatch, tmp_path):
    save_runs(tmp_path, "a", "gad", {42: 0.6})
    save_runs(tmp_path, "b", "gad", {42: 0.6})
    app = open_app(monkeypatch, tmp_path, view="model_view", model=SEP.join(("<b>gone</b>", "", "run")))
    assert app.title[0].value == "a"
    assert "\\<b\\>gone" in app.warning[0].value
    app.selectbox(key="curve_task").set_value("gad").run()
    assert not app.warning, "said once"
    app = open_app(monkeypatch, tmp_path, view="compare_view", models=SEP.join(("a", "gone", "b")))
    assert app.multiselect(key="models").value == ["a", "b"]
    assert "gone" in app.warning[0].value
    for view, query in (("errors_view", {"errors_model": "b"}), ("compare_view", {"models": SEP.join("ab")})):
        assert not open_app(monkeypatch, tmp_path, view=view, **query).warning


def test_the_needle_is_ranked_by_the_length_read(monkeypatch, tmp_path):
    save_needle(tmp_path, "short", 512, 1.0, pairs=20)
    save_needle(tmp_path, "long", 4096, 0.95, pairs=20)
    short, long = sorted(needle_grids(tmp_path), key=lambda g: g.window)
    assert (short.reads_up_to, long.reads_up_to) == (512, 4096)
    assert short.over_all_lengths == pytest.approx((short.share(512).mean + 3 * 0.5) / 4), "beyond the window: guessing"
    app = open_app(monkeypatch, tmp_path, view="needle_view")
    table = next(f.value for f in app.dataframe if "reads up to" in f.value.columns)
    assert table["model"].tolist() == ["long", "short"]
    assert table.set_index("model").loc["short", ["1024", "2048", "4096"]].isna().all()
