"""The app on every kind of folder: it opens, filters, and shows the report's numbers and nobody's markup."""

from __future__ import annotations

import html
import html.parser
import json
import random
import re
from dataclasses import replace

import pytest

from biobench.comparison.compare import compare
from biobench.comparison.ranking import shared_tasks
from biobench.report import charts
from biobench.report.details.marked import to_html
from biobench.report.details.mistakes import judge
from biobench.report.frame import build
from biobench.report.printers import render
from biobench.report.results import load
from biobench.report.tasks import shipped
from biobench.report.wide import percent
from biobench.schema.document import Document, Prediction, Span
from biobench.store import Store
from leaderboard import folder
from leaderboard.words import WORDS
from tests.helpers import compare_make
from tests.helpers.app_make import Cells, board, bodies, open_app, said, tables
from tests.helpers.floors_make import play
from tests.helpers.report_make import save_run, save_runs

NO_SCORES = ("±", "parameters", "window", "tokens/s")


def shown(app):
    """(model, task) -> percent of the board's cells; the mean under "mean". Models that stand twice fail."""
    frame = board(app)
    cells = {}
    for line in frame.to_dict("records"):
        for name in frame.columns:
            if isinstance(line[name], float) and line[name] == line[name] and name not in NO_SCORES:
                assert (line["model"], name) not in cells
                cells[line["model"], name] = line[name]
    return cells


def expected(report):
    cells = {}
    for row in report.rows:
        name = f"{row.model} [{row.variant}]" if row.variant else row.model
        cells[name, row.task] = 100 * row.mean
    for row in report.averages:
        cells[row.model, "mean"] = 100 * row.mean
    return cells


def test_an_empty_folder_opens_on_the_published_table(monkeypatch, tmp_path):
    app = open_app(monkeypatch, tmp_path / "nothing")
    assert "No runs here yet" in app.info[0].value
    assert app.radio(key="average").value == "paper"
    cells = shown(app)
    assert cells == expected(build(tmp_path / "nothing", "paper", suites=["fr"]))
    # over corpora; the paper prints 64.2 over tasks
    assert cells["ModernCamemBERT-bio-large CLM detour (25B)", "mean"] == pytest.approx(61.1)
    assert "Of the printed scores" in said(app)
    assert not any("told apart" in m.value for m in app.markdown), "printed means have no seeds"


def test_own_runs_open_on_macro_and_their_suite(monkeypatch, tmp_path):
    save_runs(tmp_path, "tiny", "bc5cdr", {42: 0.6, 43: 0.62, 44: 0.64})
    save_run(tmp_path, "tiny", "bc5cdr", 42, 0.1, limit=8)
    app = open_app(monkeypatch, tmp_path)
    assert app.radio(key="average").value == "macro"
    assert app.selectbox(key="suite").value == "en"
    assert not app.info
    cells = shown(app)
    assert cells == expected(build(tmp_path, "macro", suites=["en"]))
    assert cells["tiny [limit 8]", "bc5cdr"] == 10.0


@pytest.mark.parametrize("seed", range(4))
def test_every_number_is_the_reports(monkeypatch, tmp_path, seed):
    choose = random.Random(seed)
    for model in ("alpha", "beta", "gamma"):
        for task in choose.sample(["bc5cdr", "anatem", "gad", "quaero_emea", "quaero_medline"], 3):
            save_runs(tmp_path, model, task, {s: choose.random() for s in range(42, 42 + choose.randint(1, 3))})
    average = choose.choice(["macro", "micro", "weighted", "paper"])
    suite = choose.choice(["fr", "en"])
    sources = choose.sample(["run", "published"], choose.randint(1, 2))
    app = open_app(monkeypatch, tmp_path, average=average, suite=suite, sources=",".join(sources))
    report = build(tmp_path, average, suites=[suite], sources=sources)
    rows = json.loads(render(report, "json"))
    shared = () if any(row.source == "run" for row in report.averages) else shared_tasks(report.rows)
    if len(report.columns) > 1 and shared:
        means = build(tmp_path, average, suites=[suite], sources=sources, tasks=shared, incomplete=True).averages
        report = replace(report, averages=tuple(row for row in means if row.tasks == len(shared)))
    found = shown(app) if report.rows else {}
    assert found == expected(report)
    tasks = {(r["model"], r["task"]): 100 * r["mean"] for r in rows if not r["task"].startswith("avg_")}
    assert {key: value for key, value in found.items() if key[1] != "mean"} == tasks


def test_filters_narrow_the_board_and_go_into_the_link(monkeypatch, tmp_path):
    save_runs(tmp_path, "tiny", "bc5cdr", {42: 0.6})
    app = open_app(monkeypatch, tmp_path, average="micro")
    assert "suite" not in app.query_params, "an address that changes by itself catches the Back button"
    app.text_input(key="search").set_value("TINY").run()
    assert {model for model, _ in shown(app)} == {"tiny"}
    assert app.query_params["search"] == "TINY"
    app.toggle(key="complete").set_value(True).run()
    assert not app.exception
    assert "Nothing matches" in app.warning[0].value
    app.toggle(key="complete").set_value(False)
    app.text_input(key="search").set_value("camembert")
    app.multiselect(key="sources").set_value(["published"])
    app.radio(key="average").set_value("paper")
    app.selectbox(key="suite").set_value("fr").run()
    assert {task for _, task in shown(app)} > {"diamed", "mean"}
    assert all("camembert" in model.lower() for model, _ in shown(app))
    assert app.query_params["sources"] == "published"


def test_an_address_that_changes_wins_over_what_was_chosen_before(monkeypatch, tmp_path):
    app = open_app(monkeypatch, tmp_path, search="camembert")
    app.text_input(key="search").set_value("drbert").run()
    assert app.query_params["search"] == "drbert"
    # as the Back button does
    app.query_params["search"] = "camembert"
    app.run()
    assert app.text_input(key="search").value == "camembert"
    assert app.query_params["search"] == "camembert"


def test_tasks_that_matter_are_averaged_and_ranked(monkeypatch, tmp_path):
    for model, levels in (("wide", (0.9, 0.5, 0.5)), ("deep", (0.5, 0.8, 0.82))):
        for task, level in zip(("bc5cdr", "anatem", "gad"), levels, strict=True):
            save_runs(tmp_path, model, task, {s: level + s / 1e4 for s in range(42, 47)})
    app = open_app(monkeypatch, tmp_path)
    assert said(app).startswith("## **deep** has the highest mean: 71.1."), "on the tasks that both have"
    assert "No model has all tasks. Means are over the 3 of 11 that" in " ".join(c.value for c in app.caption)
    assert board(app).set_index("model")["rank"].to_dict().get("deep") == "1–2", (
        "their predictions are not these scores'"
    )
    app.multiselect(key="only").set_value(["anatem", "gad"]).run()
    assert not app.exception
    assert said(app).startswith("## **deep** has the highest mean: 81.4.")
    frame = board(app).set_index("model")
    assert frame.loc["deep", "mean"] == pytest.approx(81.44)
    assert [name for name in frame.columns if name in shipped()] == ["anatem", "gad"]
    app.multiselect(key="only").set_value(["bc5cdr"]).run()
    assert said(app).startswith("## **wide** has the highest mean: 90.4.")
    assert app.query_params["only"] == "bc5cdr"


def test_the_sentence_is_that_of_compare_and_the_table_says_the_possible_ranks(monkeypatch, tmp_path):
    for model, level in (("first", 0.92), ("second", 0.90), ("third", 0.2)):
        compare_make.save_runs(tmp_path, model, ("gad", "hoc", "anatem"), level, (42, 43, 44, 45))
    app = open_app(monkeypatch, tmp_path, suite="en")
    order = [line.split("**")[1] for line in [said(app)]]
    held = compare(["first", "second"], results_dir=tmp_path, suite="en")
    assert order[0] in ("first", "second")
    about = held.verdict[0].partition(" scores higher")[0].split(", ")[0]
    assert any(about in m.value for m in app.markdown)
    assert any("Not shown on these tasks" in m.value for m in app.markdown)
    assert board(app).set_index("model")["rank"].dropna().to_dict() == {"first": "1–2", "second": "1–2", "third": "3"}


def test_revisions_are_short_baselines_are_one_row_and_what_is_below_them_is_said(monkeypatch, tmp_path):
    for seed, score in ((42, 0.2), (43, 0.21)):
        made = save_run(tmp_path, "org/tiny", "gad", seed, score)
        model = made.model.model_copy(update={"revision": "0123456789" * 4})
        Store(tmp_path).update(made.model_copy(update={"model": model}))
    save_runs(tmp_path, "good", "gad", {42: 0.8, 43: 0.81})
    play(tmp_path, "gad", 0.3)
    app = open_app(monkeypatch, tmp_path, sources="run,baseline")
    frame = board(app).set_index("model")
    assert set(frame.index) == {"org/tiny", "good", "baseline"}
    assert frame.loc["baseline", "gad"] == pytest.approx(30.0)
    assert frame.loc["org/tiny", "Notes"] == "▽"
    assert "below the baseline on gad" in frame.loc["org/tiny", "notes in words"]
    assert frame.loc["good", "Notes"] != frame.loc["good", "Notes"] or not frame.loc["good", "Notes"]
    assert frame.loc["org/tiny", "hub"] == f"https://huggingface.co/org/tiny/tree/{'0123456789' * 4}"
    assert "±" not in frame, "two seeds say next to nothing of the spread"


def test_a_damaged_record_is_shown_and_the_rest_works(monkeypatch, tmp_path):
    save_runs(tmp_path, "tiny", "bc5cdr", {42: 0.6, 43: 0.7})
    broken = next(tmp_path.glob("runs/*/*.json"))
    broken.write_text('{"record_version": 1, "model": "<script>"}')
    app = open_app(monkeypatch, tmp_path)
    assert any(broken.name in t.value for t in app.text)
    assert ("tiny", "bc5cdr") in shown(app)


def test_new_runs_appear_after_a_reload(monkeypatch, tmp_path):
    save_run(tmp_path, "tiny", "bc5cdr", 42, 0.6)
    app = open_app(monkeypatch, tmp_path)
    save_run(tmp_path, "late", "bc5cdr", 42, 0.7)
    app.run()
    assert shown(app)["late", "bc5cdr"] == 70.0


def test_records_that_are_copied_over_others_are_seen(monkeypatch, tmp_path):
    for name, score in (("board", 0.6), ("newer", 0.7)):
        save_run(tmp_path / name, "tiny", "bc5cdr", 42, score)
    app = open_app(monkeypatch, tmp_path / "board")
    for path in (tmp_path / "newer").glob("runs/*/*.json"):
        # as cp does: the file is written over, its folder stays as it is
        (tmp_path / "board" / path.relative_to(tmp_path / "newer")).write_bytes(path.read_bytes())
    app.run()
    assert shown(app)["tiny", "bc5cdr"] == 60.0
    watch = folder._watch(str((tmp_path / "board").resolve()))
    look = watch.look(after=0)
    assert look is not None
    look.join()
    app.run()
    assert shown(app)["tiny", "bc5cdr"] == 70.0


def test_a_page_that_is_opened_waits_for_the_files_to_be_looked_at(monkeypatch, tmp_path):
    for name, score in (("board", 0.6), ("newer", 0.7)):
        save_run(tmp_path / name, "tiny", "bc5cdr", 42, score)
    monkeypatch.setattr(folder, "SECONDS", 0.0)
    open_app(monkeypatch, tmp_path / "board")
    for path in (tmp_path / "newer").glob("runs/*/*.json"):
        (tmp_path / "board" / path.relative_to(tmp_path / "newer")).write_bytes(path.read_bytes())
    assert shown(open_app(monkeypatch, tmp_path / "board"))["tiny", "bc5cdr"] == 70.0


def test_files_are_looked_at_by_one_thread_and_not_at_every_click(tmp_path):
    save_run(tmp_path, "tiny", "bc5cdr", 42, 0.6)
    watch = folder.Watch(str(tmp_path))
    watch.read(load(tmp_path))
    assert watch.look() is None
    looks = [watch.look(after=0) for _ in range(20)]
    for look in looks:
        if look is not None:
            look.join()
    assert looks[0] is not None
    assert watch.changes == 0


@pytest.mark.parametrize(
    "name", ["<img src=x onerror=alert(1)>", "[a](javascript:alert(1))", "x" * 10_000, "\u202eevil"]
)
def test_hostile_names_stay_text(monkeypatch, tmp_path, name):
    save_run(tmp_path, name, "bc5cdr", 42, 0.6, windows={"truncated_documents": 1})
    app = open_app(monkeypatch, tmp_path)
    tables(app)  # fails on any element beyond those of a plain table or list
    assert 60.0 in shown(app).values()
    assert not any(name in m.value for m in app.markdown)


def test_a_nonsense_link_falls_back(monkeypatch, tmp_path):
    app = open_app(monkeypatch, tmp_path, average="best", suite="xx", sources="<b>", complete="maybe")
    assert app.radio(key="average").value == "paper"
    assert app.selectbox(key="suite").value == "fr"


def test_the_model_view_shows_its_own_numbers(monkeypatch, tmp_path):
    save_runs(tmp_path, "tiny", "bc5cdr", {42: 0.6, 43: 0.62, 44: 0.64})
    save_runs(tmp_path, "tiny", "gad", {42: 0.7})
    save_runs(tmp_path, "better", "gad", {42: 0.8})
    play(tmp_path, "gad", 0.3)
    app = open_app(monkeypatch, tmp_path, view="model_view", model="\x1f".join(("tiny", "", "run")))
    assert app.title[0].value == "tiny"
    table = next(f.value for f in app.dataframe if "task" in f.value.columns).set_index("task")
    rows = {r.task: r for r in build(tmp_path, "macro", models=["tiny"]).rows}
    assert table["score"].to_dict() == {t: percent(r) for t, r in rows.items()}
    assert table.loc["gad", "behind the best"] == pytest.approx(10.0)
    assert table.loc["gad", "best here"] == "80.0 (better)"
    assert table["baseline"].to_dict() == {"bc5cdr": "–", "gad": "30.0 (majority)"}


def test_the_model_view_of_a_published_model(monkeypatch, tmp_path):
    app = open_app(monkeypatch, tmp_path / "none", view="model_view")
    assert any("Published scores only" in c.value for c in app.caption)


@pytest.mark.parametrize("task", ["diamed", "bc5cdr", "needle_fr"])
def test_the_task_view_opens(monkeypatch, tmp_path, task):
    save_runs(tmp_path, "tiny", "bc5cdr", {42: 0.6, 43: 0.62})
    app = open_app(monkeypatch, tmp_path, view="task_view", task=task, average="micro")
    known = app.selectbox(key="task").options
    assert app.title[0].value
    assert len(known) >= 19
    if task == "bc5cdr":
        labels = next(f.value for f in app.dataframe if "label" in f.value.columns)
        assert labels["label"].tolist() == ["Disease", "Drug", "Other"]
        assert labels["support in test"].tolist() == [2, 3, 0]


def test_views_survive_hostile_names_and_an_empty_folder(monkeypatch, tmp_path):
    save_run(tmp_path, "<b>x</b>[a](b)\x1f$e$", "bc5cdr", 42, 0.6)
    for view in ("model_view", "task_view"):
        open_app(monkeypatch, tmp_path, view=view)
        open_app(monkeypatch, tmp_path / "empty", view=view, average="weighted")


def test_the_compare_view_says_what_compare_says(monkeypatch, tmp_path):
    for task, gap in (("bc5cdr", 0.1), ("anatem", 0.12), ("gad", 0.08), ("hoc", 0.09)):
        save_runs(tmp_path, "tiny", task, {42: 0.5, 43: 0.52, 44: 0.51})
        save_runs(tmp_path, "better", task, {42: 0.5 + gap, 43: 0.52 + gap, 44: 0.515 + gap})
    app = open_app(monkeypatch, tmp_path, view="compare_view", models="\x1f".join(("better", "tiny")))
    found = compare(["better", "tiny"], results_dir=tmp_path, average="macro")
    texts = [t.value for t in app.text]
    assert found.verdict[0] in said(app)
    assert texts[: len(found.verdict) - 1] == list(found.verdict[1:])
    assert [m.value for m in app.metric] == ["4", "0", "0"]
    table = next(f.value for f in app.dataframe if "difference, points" in f.value.columns)
    lines = {line.task: line for line in found.pairs[0].tasks}
    assert dict(zip(table["task"], table["difference, points"], strict=True)) == {
        task: 100 * line.difference for task, line in lines.items()
    }


def test_the_compare_view_of_published_models_says_that_nothing_is_tested(monkeypatch, tmp_path):
    names = ["ModernCamemBERT-bio-base CLM detour (10B)", "ModernCamemBERT-bio-base MLM twin (10B)", "DrBERT"]
    app = open_app(monkeypatch, tmp_path / "none", view="compare_view", models="\x1f".join(names))
    assert "printed without spread, so not tested" in " ".join([said(app), *(t.value for t in app.text)])
    assert not app.exception
    app.multiselect(key="models").set_value(names[:1]).run()
    assert "at least two" in app.info[0].value


def test_the_compare_view_turns_errors_into_words(monkeypatch, tmp_path):
    save_run(tmp_path, "<b>tiny</b>", "bc5cdr", 42, 0.5)
    names = "\x1f".join(("<b>tiny</b>", "DrBERT"))
    app = open_app(monkeypatch, tmp_path, view="compare_view", models=names)
    assert app.error
    assert not app.exception


def open_errors(monkeypatch, folder, **query):
    return open_app(monkeypatch, folder, view="errors_view", **query)


def test_the_errors_view_counts_what_the_scores_count(monkeypatch, tmp_path):
    made = save_run(tmp_path, "tiny", "bc5cdr", 42, 0.6)
    monkeypatch.setenv("BIOBENCH_DATA_DIR", str(tmp_path / "nothing"))
    app = open_errors(monkeypatch, tmp_path)
    table = app.dataframe[0].value.set_index("label")
    # the miniature run: both mentions of note 0 right, one Disease of note 1 missed and a Drug too many there,
    # one Drug of note 2 missed
    assert table.loc["Drug"].to_dict() == {
        "missed": 1,
        "spurious": 1,
        "wrong label": 0,
        "wrong boundary": 0,
        "wrong label and boundary": 0,
        "right": 2,
    }
    assert made.task.gold_labels == ("Disease", "Drug")
    assert any("text is not stored" in c.value for c in app.caption)
    blocks = bodies(app)
    assert len(blocks) == 2
    app.selectbox(key="errors_label").set_value("Disease").run()
    assert len(bodies(app)) == 1


def test_the_errors_view_withholds_agreement_data(monkeypatch, tmp_path):
    save_run(tmp_path, "tiny", "deid", 42, 0.6, redacted=True)
    app = open_errors(monkeypatch, tmp_path)
    assert "under an agreement" in app.info[0].value
    assert not bodies(app)


def test_the_errors_view_shows_text_that_is_at_hand_and_escapes_it(monkeypatch, tmp_path):
    from tests.helpers.submission_make import honest_run

    honest_run(tmp_path, model="<i>tiny</i>")
    app = open_errors(monkeypatch, tmp_path)
    assert not any("text is not stored" in c.value for c in app.caption)
    blocks = bodies(app)
    assert len(blocks) == 10
    assert all("<p" in body and "<script" not in body for body in blocks)


def test_marked_text_is_escaped_and_whole():
    document = Document("<d>", "g", "", "test", spans=(Span(0, 8, "<L>"), Span(9, 12, "X")))
    text = "<script> &amp; x"
    (judged,) = judge([document], [Prediction("<d>", spans=(Span(0, 5, "<L>"), Span(13, 16, "Y")))])
    shown = to_html(judged, text, WORDS)
    parser = Cells()
    parser.feed(shown)
    assert parser.tags == {"div", "small", "p", "span", "ul", "li", "b"}
    paragraph = shown[shown.index("<p ") : shown.index("</p>")]
    assert html.unescape(re.sub(r"<[^>]*>", "", paragraph)) == text


def test_the_efficiency_view_shows_cost_and_score(monkeypatch, tmp_path):
    save_runs(tmp_path, "tiny", "bc5cdr", {42: 0.6, 43: 0.62})
    app = open_app(monkeypatch, tmp_path, view="efficiency_view")
    (row,) = build(tmp_path, "macro", sources=["run"]).rows
    table = app.dataframe[0].value
    assert table.to_dict("records") == [{"model": "tiny", "parameters": row.parameters, "score": 61.0}]
    app.selectbox(key="efficiency_cost").set_value("train_tokens_per_second").run()
    assert app.dataframe[0].value["tokens a second in training"].tolist() == [row.train_tokens_per_second]
    app.selectbox(key="efficiency_cost").set_value("energy_kwh").run()
    assert "not known" in app.info[0].value
    app = open_app(monkeypatch, tmp_path / "none", view="efficiency_view")
    assert "no runs" in app.info[0].value


def test_costs_of_a_submission_are_claimed_and_ranked_among_none_that_were_measured(monkeypatch, tmp_path):
    """Before, a submission that claimed 0.001 s of training led the chart of costs."""
    save_runs(tmp_path, "tiny", "bc5cdr", {42: 0.6, 43: 0.62})
    save_runs(tmp_path / "submitted" / "s", "org/quick", "bc5cdr", {42: 0.7, 43: 0.72})
    drawn: list[list[dict[str, object]]] = []
    monkeypatch.setattr(charts, "front", lambda points, **_: drawn.append(points) or points)
    app = open_app(monkeypatch, tmp_path, view="efficiency_view", efficiency_cost="seconds")
    assert app.dataframe[0].value.set_index("model")["cost is"].to_dict() == {
        "tiny": "measured",
        "org/quick": "claimed",
    }
    assert {str(point["model"]) for points in drawn for point in points} == {"tiny"}


@pytest.mark.parametrize(
    ("view", "note"),
    [
        ("board", "tells nothing of the spread over others"),
        ("task_view", "tells nothing of the spread over others"),
        ("compare_view", "compared on the 3 common seeds"),
    ],
)
def test_notes_stand_on_the_page(monkeypatch, tmp_path, view, note):
    save_runs(tmp_path, "a", "bc5cdr", {42: 0.5, 43: 0.5, 44: 0.5})
    save_runs(tmp_path, "b", "bc5cdr", {42: 0.4, 43: 0.5, 44: 0.6, 45: 0.7})
    link = {"view": view, "task": "bc5cdr", "models": "a\x1fb"}
    assert note in "\n".join(text.value for text in open_app(monkeypatch, tmp_path, **link).text)


@pytest.mark.parametrize(
    ("licence", "shown"),
    [
        (None, "not recorded"),
        ("apache-2.0", "[apache-2.0](https://spdx.org/licenses/Apache-2.0.html)"),
        ("of-our-own", "of-our-own"),
    ],
)
def test_the_model_view_names_the_licence(monkeypatch, tmp_path, licence, shown):
    saved = save_run(tmp_path, "tiny", "gad", 42, 0.7)
    model = saved.model.model_copy(update={"licence": licence})
    Store(tmp_path).update(saved.model_copy(update={"model": model}))
    app = open_app(monkeypatch, tmp_path, view="model_view", model="\x1f".join(("tiny", "", "run")))
    assert app.table[0].value.iloc[:, 0].to_dict()["licence"] == shown
