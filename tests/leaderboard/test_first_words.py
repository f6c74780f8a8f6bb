"""What the pages say to whoever meets them first."""

from __future__ import annotations

from leaderboard.address import unknown_page
from tests.helpers.app_make import board, open_app, texts


def test_a_search_shows_a_run_with_few_tasks_too(monkeypatch, runs):
    app = open_app(monkeypatch, runs, suite="English", search="onerror")
    (table,) = app.dataframe
    assert table.value["model"].str.contains("onerror").any()
    assert "few_en" not in [toggle.key for toggle in app.toggle]
    assert "No model on show has both a mean and a known cost (parameters)" in texts(app)
    assert "biobench export MODEL --format bibtex" in texts(app)


def test_page_one_says_what_boxes_are_for_and_what_ranks_are_possible(monkeypatch, runs, stores):
    told = texts(open_app(monkeypatch, runs, suite="English"))
    assert "Tick two to five rows to compare them (Space, by keyboard)." in told
    assert "it may differ from a mean that a publication prints" in told
    assert "possible" not in board(open_app(monkeypatch, stores["published"])).columns
    for store in ("runs", "published"):
        app = open_app(monkeypatch, stores[store])
        has_column = any("possible" in table.value for table in app.dataframe)
        assert ("Possible: the ranks among the runs here" in texts(app)) == has_column
        (link,) = app.get("page_link")
        assert link.proto.label == "Compare two to five models"


def test_no_protocol_in_the_list_is_longer_than_the_list_is_wide(monkeypatch, stores):
    app = open_app(monkeypatch, stores["shipped"])
    assert max(map(len, app.selectbox(key="protocol").options)) <= 30


def test_compare_says_which_protocol_it_took_and_refuses_two_names_of_the_same_runs(
    monkeypatch, stores
):
    small = [f"all-{name} [small protocol]" for name in ("mpnet-base-v2", "MiniLM-L6-v2")]
    app = open_app(monkeypatch, stores["shipped"], "compare", models=small)
    assert "Runs of all these models: small protocol" in texts(app)
    again = [*small, "all-MiniLM-L6-v2"]
    app = open_app(monkeypatch, stores["shipped"], "compare", models=again)
    assert "of one model under several protocols, which are never compared" in app.info[0].value
    assert "name two models, both under one protocol" in app.info[0].value
    assert not app.subheader


def test_compare_counts_differences_to_scores_without_spread_as_not_tested(monkeypatch, stores):
    models = ["all-MiniLM-L6-v2", "PubMedBERT"]
    app = open_app(monkeypatch, stores["shipped"], "compare", models=models)
    assert "Not tested: 2." in texts(app)
    assert "A is all-MiniLM-L6-v2, B is PubMedBERT." in texts(app)
    assert "The printed scores were made with other code" in texts(app)
    assert "losses" not in texts(app)
    assert "Line, low and high" not in texts(app), "the chart has neither"


def test_studies_on_a_part_of_the_mentions_say_which_and_words_are_explained(monkeypatch, stores):
    told = texts(open_app(monkeypatch, stores["shipped"], "pretraining"))
    assert "seen: scores on seen mentions, of the study “the detour against its twin" in told
    assert "No line: too few pretraining seeds" in told
    assert "corrected (Holm) for the differences of its own study, not for those of" in told
    assert "Holm's correction for the differences of this table, not of other studies" in told
    assert "Detour: the model learns for a while to predict the next word (CLM)" in told


def test_an_unknown_suite_or_order_in_the_address_is_said(monkeypatch, runs):
    app = open_app(monkeypatch, runs, suite="nowhere", sort="nothing")
    said = " ".join(warning.value for warning in app.warning)
    assert "nowhere" in said
    assert "nothing" in said


def test_a_model_under_two_protocols_has_two_names_in_the_table(monkeypatch, stores):
    names = board(open_app(monkeypatch, stores["shipped"], suite="English")).index
    assert names.is_unique


def test_an_unknown_page_in_the_address_is_known():
    paths = ("", "models", "board")
    assert unknown_page("http://here:8501/nopage?suite=English", paths) == "nopage"
    for known in ("", "models?model=nopage", "board/", "board/models"):
        assert unknown_page(f"http://here/{known}", paths) == ""
