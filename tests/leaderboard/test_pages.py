"""Every page on every kind of folder, and the numbers of each."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import replace
from types import SimpleNamespace
from urllib.parse import unquote

import pytest

from biobench.comparison.compare import compare
from biobench.reporting.curve import answer, curves_of
from biobench.reporting.details.mistakes import SIDES
from biobench.reporting.details.needle import map_html, needle_grids
from biobench.reporting.frame import build
from biobench.reporting.results import load
from biobench.reporting.tasks import shipped
from leaderboard import page
from leaderboard.board import _choose_views
from leaderboard.launch import RESULTS_VARIABLE
from leaderboard.needle import read_grids
from leaderboard.tasks import names_of
from tests.helpers import compare_make
from tests.helpers.app_make import (
    PATHS,
    board,
    board_texts,
    bodies,
    cell_texts,
    open_app,
    table_with,
    texts,
)
from tests.helpers.baselines_make import play
from tests.helpers.report_make import save_run, save_runs
from tests.helpers.view_make import save_needle, save_pretraining
from tests.leaderboard.conftest import HOSTILE
from tests.reporting.test_curve import FIRST, SECOND, TASK, save_curve


@pytest.fixture(scope="session")
def damaged(tmp_path_factory):
    results = tmp_path_factory.mktemp("damaged")
    save_runs(results, "tiny", "bc5cdr", {42: 0.6, 43: 0.7})
    save_pretraining(results / "pretraining", steps=10)
    next(results.glob("runs/bc5cdr/*.json")).write_text('{"model": "<script>"}')
    (results / "pretraining" / "detour" / "ledger.json").write_text("{}")
    (results / "pretraining" / "cka.json").write_text('{"pair": 1, "lines": 2}')
    return results


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("kind", ["absent", "damaged", "runs", "demo"])
def test_every_page_opens_on_every_folder(monkeypatch, damaged, stores, tmp_path, path, kind):
    folder = {"absent": tmp_path / "none", "damaged": damaged} | stores
    app = open_app(monkeypatch, folder[kind], path)
    assert not app.error
    assert app.title[0].value
    assert "<script" not in "".join(bodies(app))
    if kind == "damaged" and path in ("", "pretraining"):
        assert any("Findings" in e.label for e in app.expander)


def test_the_table_is_the_reports(monkeypatch, runs):
    app = open_app(monkeypatch, runs, suite="English", few_en="true")
    frame, shown, report = board(app), board_texts(app), build(runs, "paper", suites=["en"])
    assert frame.loc["org/low", "result"] == "run here"
    limited = frame.loc["org/low [limit 8]"]
    assert limited["result"] == "run here, limit 8"
    assert limited.isna()["rank"], "a limited run has no rank"
    rows = {
        (r.model, r.task): r
        for r in report.rows
        if r.source in ("run", "published") and not r.variant
    }
    for (model, task), row in rows.items():
        assert frame.loc[[model]][task].dropna().iloc[0] == pytest.approx(100 * row.mean, abs=0.006)
        cell = next(text for text in shown.loc[[model]][task] if text != "–")
        assert cell.split()[0] == f"{100 * row.mean:.1f}"
        assert ("±" in cell) == (row.n_seeds >= 3 and row.margin is not None)
    assert shown.loc["best baseline, no encoder", "gad"] == "30.0"
    assert HOSTILE in frame.index, "a name is text"


def test_runs_with_few_tasks_stand_behind_one_line(monkeypatch, runs):
    app = open_app(monkeypatch, runs, suite="English")
    assert HOSTILE not in board(app).index
    (few,) = (toggle for toggle in app.toggle if toggle.key == "few_en")
    assert few.label.replace("\\", "") == "English: show 2 more models run here, with 1 of 11 tasks"
    few.set_value(True).run()
    assert HOSTILE in board(app).index
    assert "org/high" in board(app).index, "four of eleven tasks are more than a third"


def test_a_search_without_a_match_says_so_where_nothing_is_ranked(monkeypatch, tmp_path):
    """The French tasks have a baseline, and no run under the protocol that is chosen."""
    save_run(tmp_path, "org/part", "gad", 42, 0.9, limit=8)
    play(tmp_path, "quaero_medline", 0.3)
    app = open_app(monkeypatch, tmp_path, protocol="limit 8", search="zzz")
    said = [info.value for info in app.info]
    assert said == ["Nothing matches these filters."] * 4, "two tables, and their cards"


def test_cards_tell_models_apart_that_are_not_shown_yet(monkeypatch, tmp_path):
    for revision, share in (("a" * 40, 0.9), ("b" * 40, 0.5)):
        save_run(tmp_path, f"org/model@{revision}", "gad", 42, share)
    monkeypatch.setattr("leaderboard.table.FIRST_CARDS", 1)
    query = {"suite": "English", "search": "org/", "few_en": "true"}
    (cards,) = bodies(open_app(monkeypatch, tmp_path, **query))
    assert "org/model@aaaaaaa<" in cards


def test_two_models_whose_names_print_alike_stand_on_one_task_page(monkeypatch, tmp_path):
    for name in ("org/tiny\x01", "org/tiny\x02"):
        compare_make.save_runs(tmp_path, name, ("hoc",), 0.7, (42, 43))
    app = open_app(monkeypatch, tmp_path, "tasks", task="hoc")
    *_, first, second = table_with(app, "support in test").value.columns
    assert first == second.strip() != second


def test_one_pair_has_one_answer_on_both_pages_and_in_the_terminal(monkeypatch, runs):
    """That it is the answer of the best runs and of the report, test_ranking says."""
    comparison = compare("org/high", "org/middle", results_dir=runs)
    (pair,) = comparison.pairs
    interval = pair.here.interval
    numbers = f"{100 * pair.difference:.1f} points"
    ends = f"95% interval {100 * interval.low:.1f} to {100 * interval.high:.1f}"
    word = f"{pair.verdict.here.capitalize()} for the mean of these 4 tasks"
    badge = f"{pair.verdict.here} on these tasks"
    app = open_app(monkeypatch, runs, "compare")
    assert app.multiselect(key="models").value == ["org/high", "org/middle"]
    assert all(part in texts(app) for part in (numbers, ends, word))
    assert all(part in comparison.text() for part in (numbers, ends, word))
    first_page = texts(open_app(monkeypatch, runs, suite="English"))
    assert all(part in first_page for part in (numbers, ends, badge))


def test_page_one_ranks_by_the_average_of_its_switch_and_of_the_address(monkeypatch, two_orders):
    query = {"suite": "English", "tasks": "bc5cdr", "few_en": "true"}
    app = open_app(monkeypatch, two_orders, **query)
    assert "Best run here: lopsided, 66.7 on bc5cdr" in texts(app).replace("*", "")
    app.selectbox(key="average").set_value("macro").run()
    linked = open_app(monkeypatch, two_orders, average="macro F1", **query)
    for shown in (app, linked):
        assert board(shown).index[0] == "org/even"
        assert "Best run here: even" in texts(shown).replace("*", "")
        assert "Each task counts by macro F1" in texts(shown)


def test_a_headline_says_of_which_tasks_each_mean_is(monkeypatch, stores, demo):
    app = open_app(monkeypatch, stores["shipped"], suite="English", average="macro F1")
    assert "English" in [heading.value for heading in app.subheader]
    told = texts(app).replace("*", "")
    assert "Best published on gad and hoc: PubMedBERT, mean 75.2." in told
    french = texts(open_app(monkeypatch, stores["shipped"], suite="French"))
    assert "cantemist, fracco_100 and fracco_30 are of one corpus." in french
    assert "Best run here: all-MiniLM-L6-v2, 70.6 ±6.3 on gad and ncbi_disease." in told
    whole = open_app(monkeypatch, demo)
    assert whole.subheader[0].value.endswith("2 tasks"), "the same for all that it says"


def test_runs_of_another_protocol_are_shown_and_ranked_under_their_own_choice(monkeypatch, stores):
    whole = open_app(monkeypatch, stores["shipped"], suite="English")
    small = board(whole)[board(whole)["result"] == "run here, small protocol"]
    assert len(small) == 5, "those with more than a third of the tasks"
    assert small["rank"].isna().all()
    assert "Shown, not ranked: small protocol" in texts(whole)
    assert "Best run here under the small protocol" in texts(whole)
    searched = open_app(monkeypatch, stores["shipped"], suite="English", search="pubmed")
    assert "not ranked" not in texts(searched), "of rows that are not shown nothing is said"
    query = {"protocol": "small protocol", "few_en": "true"}
    chosen = board(open_app(monkeypatch, stores["shipped"], suite="English", **query))
    own = chosen[chosen["result"] == "run here, small protocol"]
    assert own["rank"].notna().any()
    assert chosen["rank"].isna()["PubMedBERT"], "a full run is not ranked under it"


def test_a_model_page_has_its_scores_and_the_best_under_its_protocol(monkeypatch, runs):
    app = open_app(monkeypatch, runs, "models", model="org/middle")
    assert app.title[0].value == "org/middle"
    table = table_with(app, "behind the best").value.set_index("task")
    assert len(table) == 4
    gad = table.loc["tasks?task=gad#gad"]
    sources = ("run", "published")
    best = max(
        r.mean
        for r in build(runs, "paper", tasks=["gad"]).rows
        if r.source in sources and not r.partial
    )
    mean = gad["score"]
    assert gad["behind the best"] == pytest.approx(100 * best - mean, abs=0.06)
    assert gad["best baseline"] == 30.0
    for name in ("PubMedBERT · published", "PubMedBERT"):
        published = open_app(monkeypatch, runs, "models", model=name)
        assert published.title[0].value == "PubMedBERT", "also where it names one row"
        assert "no runs, so no seeds" in texts(published)
        assert not published.warning
    about = published.table[0].value[" "]
    assert about["weights"].startswith("<https://huggingface.co/microsoft/BiomedNLP-BiomedBERT-")
    assert about["licence"] == "mit"
    assert "<https://arxiv.org/abs/" in about["published in"]
    (command,) = [each.value for each in published.code]
    assert command.startswith("biobench run microsoft/")
    assert command.endswith("--suite en")
    twin = open_app(monkeypatch, runs, "models", model="ModernBERT-bio-base MLM twin (50B)")
    assert twin.table[0].value[" "]["weights"] == "no public ones known"
    assert not twin.code


def test_a_task_on_which_a_model_guesses_ranks_nobody(monkeypatch, stores):
    app = open_app(monkeypatch, stores["shipped"], "models", model="all-MiniLM-L6-v2")
    assert "not above guessing, left out: pubmedqa" in texts(app)
    shown = {metric.label: metric.value for metric in app.metric}
    assert shown["English, other tasks, not ranked"] == "0 of 1 tasks"
    guessed = table_with(app, "remark").value
    assert guessed["remark"].tolist() == ["not above guessing"]
    assert "behind the best" not in guessed.columns
    tasks = open_app(monkeypatch, stores["shipped"], "tasks").selectbox(key="task")
    assert tasks.value == "anatem" == tasks.options[0], "models learn it"
    assert tasks.options.index("pubmedqa") > tasks.options.index("gad")


def test_a_task_page_shows_thirty_lines_and_all_on_demand(monkeypatch, tmp_path):
    for number in range(40):
        save_run(tmp_path, f"org/model-{number}", "jnlpba", 42, 0.3 + number / 100)
    app = open_app(monkeypatch, tmp_path, "tasks", task="jnlpba")
    for lines in (30, 49):
        assert len(table_with(app, "result").value) == lines
        app.toggle[0].set_value(True).run()
    assert any("Deviations" in e.label for e in app.expander)


def test_a_task_page_calls_a_row_by_one_name_that_tells_it_apart(monkeypatch, stores):
    app = open_app(monkeypatch, stores["shipped"], "tasks", task="anatem")
    listed = set(table_with(app, "result").value["model"].str.partition("#")[2].map(unquote))
    *_, first, second, third, fourth = table_with(app, "support in test").value.columns
    assert {first, second, third, fourth} < listed
    assert {"paraphrase-MiniLM-L3-v2", "paraphrase-MiniLM-L3-v2 [small protocol]"} < listed
    (cards,) = bodies(app)
    assert "result run here, small protocol" in cards
    lines = [
        ("org/m", "", "run"),
        ("org/m", "", "published"),
        ("org/m", "small protocol", "run"),
        ("oracle", "", "oracle"),
        ("no mention", "", "baseline"),
    ]
    assert list(names_of(lines).values()) == [
        "m · run here",
        "m · published",
        "m [small protocol]",
        "the oracle",
        "baseline: no mention",
    ]


def test_a_task_page_shows_seen_and_unseen_mentions_as_the_report_does(monkeypatch, stores):
    app = open_app(monkeypatch, stores["shipped"], "tasks", task="ncbi_disease")
    table = table_with(app, "unseen").value
    unseen = build(stores["shipped"], "paper", tasks=["ncbi_disease"], slice="unseen")
    (row,) = (r for r in unseen.rows if (r.model, r.variant) == ("all-MiniLM-L6-v2", ""))
    shown = table[table["model"].str.contains("all-MiniLM-L6-v2")].iloc[0]
    assert shown["unseen"] == pytest.approx(100 * row.mean)
    assert shown["unseen"] < shown["seen"]
    assert "Seen and unseen mentions" in [heading.value for heading in app.subheader]
    other = open_app(monkeypatch, stores["shipped"], "tasks", task="gad")
    assert "Seen and unseen mentions" not in [heading.value for heading in other.subheader]


def test_a_task_page_draws_the_learning_curves_and_answers_what_more_texts_give(
    monkeypatch, tmp_path
):
    save_curve(tmp_path, "org/slow", FIRST)
    save_curve(tmp_path, "org/steep", SECOND)
    app = open_app(monkeypatch, tmp_path, "tasks", task=TASK)
    assert "Learning curves" in [heading.value for heading in app.subheader]
    curves = curves_of(load(tmp_path), TASK)
    assert all(answer(curve) in texts(app).replace("\u200b", "") for curve in curves)
    drawn = [json.loads(chart.proto.spec) for chart in app.get("vega_lite_chart")]
    (layers,) = [spec["layer"] for spec in drawn if "share" in json.dumps(spec)]
    assert [layer["mark"]["type"] for layer in layers] == ["area", "line"]


def test_errors_open_the_documents_of_a_cell_and_lay_two_runs_side_by_side(monkeypatch, runs):
    app = open_app(monkeypatch, runs, "errors", model="org/middle", task="gad")
    confusion = app.dataframe[0].value.set_index("gold")
    every = confusion.to_numpy().sum()
    wrong = every - sum(confusion.loc[name, name] for name in confusion.index)
    assert f"{wrong} of {every} documents" in texts(app)
    app = open_app(monkeypatch, runs, "errors", model="org/middle", task="gad", against="org/high")
    counts = app.dataframe[0].value
    assert tuple(counts.columns) == ("label", *SIDES)
    assert counts["only B right"].sum() > counts["only A right"].sum()
    told = texts(app)
    assert "have something that A alone has right; the marks are of what B predicts" in told
    assert "1 means that the sentence asserts an association" in told, "what the spec says of it"


def test_the_needle_map_is_the_grid(runs):
    (grid,) = [g for g in needle_grids(runs) if g.task == "needle_fr"]
    shown = map_html(grid, "<b>name</b>")
    cells = [grid.share(n, p) for n in (*grid.lengths, None) for p in (*grid.positions, None)]
    scored = [
        tuple(f"{100 * v:.1f}" for v in (s.mean, s.low, s.high)) for s in cells if s is not None
    ]
    assert re.findall(r">([\d.]+)<br><small>([\d.]+)–([\d.]+)</small></td>", shown) == scored
    assert shown.count(">n/a<") == len(cells) - len(scored)
    assert "<b>name" not in shown


def test_a_length_beyond_the_window_is_said_to_be_not_read(monkeypatch, runs):
    app = open_app(monkeypatch, runs, "needle", task="needle_fr")
    assert "org/high reads furthest: up to 1,024" in texts(app)
    shown = cell_texts(table_with(app, "reads up to"))
    assert shown[["2,048", "4,096"]].to_numpy().tolist() == [["not read", "not read"]]
    assert not shown[["512", "1,024"]].isin(["not read"]).any(axis=None)
    at_chance = open_app(monkeypatch, runs, "needle", task="needle_en")
    assert "No model here is above chance, so none leads" in texts(at_chance)


def test_pretraining_shows_ledgers_and_published_experiments(monkeypatch, runs):
    app = open_app(monkeypatch, runs, "pretraining")
    assert app.multiselect(key="runs").value == ["detour", "twin"]
    assert app.success[0].value == "matched"
    assert {"Loss", "Learning rate", "Tokens a second"} <= {head.value for head in app.header}
    assert len(app.table) == len(load(runs).experiments[0].experiments)


def test_a_replication_stands_below_what_it_repeats_and_says_what_became_of_it(monkeypatch, stores):
    app = open_app(monkeypatch, stores["shipped"], "pretraining")
    assert "longer, detour: repeated with 5 new seeds (replication): did not repeat." in texts(app)
    titles = [e.label.partition("\\:")[0] for e in app.expander]
    assert titles.index("replication") == titles.index("longer") + 1
    assert "Tasks scored: bc5cdr, ncbi_disease." in texts(app)
    arms = [cell_texts(table) for table in app.dataframe if "pretraining seeds" in table.value]
    assert any(table.iloc[0]["pretraining seeds"] == "5 (4, 5, 6, 7, 8)" for table in arms)


def test_documents_without_text_are_counted_and_say_what_to_set(monkeypatch, stores):
    monkeypatch.delenv("BIOBENCH_DATA_DIR", raising=False)
    app = open_app(monkeypatch, stores["demo"], "errors")
    told = texts(app)
    assert "Set BIOBENCH_DATA_DIR to the folder of the corpora" in told
    assert not bodies(app), "no card without its text"


def test_errors_without_the_corpus_say_where_it_was_looked_for(monkeypatch, stores, tmp_path):
    monkeypatch.setenv("BIOBENCH_DATA_DIR", str(tmp_path / "corpora"))
    query = {"model": "all-MiniLM-L6-v2", "task": "gad"}
    app = open_app(monkeypatch, stores["shipped"], "errors", **query)
    told = app.info[0].value.replace("\\", "")
    assert told == (
        f"No text: the folder {tmp_path / 'corpora'} has no files of gad. Set BIOBENCH_DATA_DIR to "
        "the folder of the corpora and start the board again. How to get the files: "
        "`biobench data status gad --steps`"
    )
    assert "135 of 534 documents are wrong" in texts(app)


def test_messages_do_not_tell_where_the_folder_lies(monkeypatch, tmp_path):
    monkeypatch.setenv(page.RESULTS_VARIABLE, str(tmp_path))
    monkeypatch.setenv(page.PRETRAINING_VARIABLE, str(tmp_path / "training"))
    assert page.text(f"{tmp_path}/runs/a.json: not JSON") == "runs/a.json\\: not JSON"
    assert str(tmp_path) not in page.text(f"{tmp_path}/training/detour/metrics.jsonl:3")


MARKUP = [
    ":material/verified: reproduced",
    "&colon;material/verified&colon;",
    "https://evil.example",
    "HTTP://evil.example/a",
    "www.evil.example",
    "WWW.evil.example",
    "mailto:a@b.example",
    "a@b.example",
    "[a](https://evil.example)",
    "main> <https://evil.example",
    "`x` $x$ ~x~ **x** :red[x] :green-badge[x] :smile:",
]


@pytest.mark.parametrize("name", MARKUP)
def test_names_are_neither_markup_nor_links(name):
    """Streamlit makes icons of directives, and links of bare addresses, whatever is escaped."""
    shown = page.literal(name)
    assert re.search(r"(?i)www\.|://[^\u200b]|:[a-z/]|@[a-z]", shown) is None
    assert re.search(r"(?<!\\)[`*_\[\]<>|~$:#&]", shown) is None
    assert page.link(name) == (f"<{name}>" if name == "https://evil.example" else shown)


def test_a_submitted_needle_run_is_no_other_row_of_the_run_here(tmp_path, monkeypatch):
    """The copy has the key, the start and the scores of the original."""
    save_needle(tmp_path, "org/one", 1024, 0.9)
    shutil.copytree(tmp_path / "runs", tmp_path / "submitted" / "one" / "runs")
    monkeypatch.setenv(RESULTS_VARIABLE, str(tmp_path))
    grids = read_grids(load(tmp_path).groups)
    assert [grid.source for grid in grids] == ["run", "submitted"]


def test_a_view_whose_runs_have_no_score_is_not_opened(monkeypatch):
    """It is none of the views that can be chosen."""
    monkeypatch.setattr(
        "leaderboard.board.st.radio", lambda _, options, opening, **layout: options[opening]
    )
    infos = {"gad": replace(shipped()["gad"], in_suite=False)}
    loaded = SimpleNamespace(groups=[SimpleNamespace(task="gad")], infos=infos)
    assert _choose_views(loaded, ["fr", "en"]) == ("fr", "en")
    assert _choose_views(loaded, ["fr", "en", "other en"]) == ("other en",)
