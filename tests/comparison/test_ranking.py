"""The board's first page says what `compare` says: one task set, one interval, one word for a pair."""

from __future__ import annotations

import pytest

from biobench.comparison.compare import compare
from biobench.comparison.ranking import (
    MOST,
    Lead,
    Leaders,
    first_pair,
    headline,
    lead_of,
    shared_tasks,
    suite_block,
    suite_order,
    with_mean,
)
from biobench.report.frame import build
from biobench.report.results import load
from biobench.report.row import Row
from biobench.report.tasks import shipped
from biobench.report.wide import ModelLine
from tests.helpers import compare_make
from tests.helpers.floors_make import play
from tests.helpers.report_make import save_runs

FRENCH = [i.id for i in shipped().values() if i.suite == "fr" and i.in_suite]
TASKS = ("gad", "anatem", "hoc", "bc5cdr")
SEEDS = (1, 2, 3, 4)


def stored(results, gap: float = 0.1, models: str = "abc", tasks=TASKS) -> None:
    for place, model in enumerate(models):
        compare_make.save_runs(results, model, tasks, 0.9 - gap * place, SEEDS)


def board(results, average="macro", suite="en") -> Leaders:
    loaded = load(results)
    lines = with_mean(suite_block(loaded, average, suite))
    names = [line.name for line in lines if line.source == "run"]
    return Leaders(lines, lead_of(loaded, names, average, suite=suite))


def said(standing: Leaders) -> list[str]:
    return headline(standing, lambda name: name, lambda value: f"{value:.1f}")


@pytest.mark.parametrize("gap", [0.1, 0.005, 0.0])
def test_board_and_compare_give_one_answer(tmp_path, gap):
    stored(tmp_path, gap)
    standing = board(tmp_path)
    first, second = (line.name for line in standing.lines[:2])
    held = compare(first, second, results_dir=tmp_path, suite="en")
    (pair,), (shown,) = held.pairs, standing.lead.pairs
    assert (shown.here, shown.beyond, shown.tasks) == (pair.here, pair.beyond, pair.tasks)
    assert shown.verdict.leads == (gap == 0.1)
    assert standing.badges[0] == (f"{shown.verdict.here.capitalize()} on these tasks", gap == 0.1)
    start = held.verdict[0].partition(", over seeds and test sets")[0]
    assert said(standing)[1].startswith(start), "the same sentence"
    assert f"after Holm's correction for {len(standing.lines) - 1} pairs" in said(standing)[1]
    leads = said(standing)[0].split(" ", 1)[1]
    assert leads.startswith("leads with") == shown.verdict.leads
    report = build(tmp_path, suites=["en"], tasks=TASKS, incomplete=True)
    means = {row.model: row.mean for row in report.averages if row.source == "run" and row.tasks == len(pair.tasks)}
    assert means[pair.first] - means[pair.second] == pytest.approx(pair.difference), "the report's means too"
    together = compare([line.name for line in standing.lines], results_dir=tmp_path, suite="en")
    assert standing.lead.ranks == {s.model: s.shown_ranks for s in together.standings}


def test_a_pair_is_asked_on_all_tasks_that_it_shares(tmp_path):
    """A third model with fewer tasks takes none from the first two."""
    stored(tmp_path, models="ab")
    compare_make.save_runs(tmp_path, "c", TASKS[:2], 0.3, SEEDS)
    standing = board(tmp_path)
    assert {line.task for line in standing.lead.pairs[0].tasks} == set(TASKS)


def test_the_first_models_alone_are_ranked(tmp_path):
    names = "abcdefghi"
    stored(tmp_path, 0.08, names, TASKS[:2])
    standing = board(tmp_path)
    assert len(standing.lead.ranks) == MOST < len(names)
    assert standing.ranks["a", "run"].startswith("1")
    assert ("i", "run") not in standing.ranks


def test_a_leader_that_is_not_above_guessing_leads_nobody(tmp_path):
    stored(tmp_path)
    for task in TASKS:
        play(tmp_path, task, 0.95)
    standing = board(tmp_path)
    assert standing.badges == [("Not above guessing", False)]
    assert said(standing)[0].startswith("a has the highest mean: ")
    assert "a is not above guessing" in said(standing)[1]


def test_runs_of_other_conditions_and_single_models_are_not_tested(tmp_path):
    compare_make.save_runs(tmp_path, "a", TASKS, 0.9, SEEDS)
    compare_make.save_runs(tmp_path, "b", TASKS, 0.5, SEEDS, track="tuned")
    standing = board(tmp_path)
    assert standing.lead == Lead(ranks={})
    assert standing.badges == [("Not tested", False)]
    assert said(standing)[1] == "No other model here has runs on these tasks under the same protocol."


def line(name: str, mean: float, source: str = "run", parameters: int | None = None) -> ModelLine:
    row = Row(name, "avg_en", "macro_f1", mean, 0.01, mean, mean, 5, source, parameters=parameters)  # type: ignore[arg-type]
    return ModelLine(name, "", source, {}, row)


def test_printed_means_lead_nobody_and_small_models_are_named():
    printed = line("paper", 0.95, "published")
    assert said(Leaders((printed,), Lead())) == [
        "Of the printed scores, paper has the highest mean: 95.0.",
        "Printed means come without spread, so their order is not tested.",
    ]
    assert said(Leaders((), Lead())) == ["No model has a score on every task asked for, so none leads."]
    both = Leaders((printed, line("a", 0.8), line("b", 0.7, parameters=20_000_000)), Lead())
    assert said(both)[0] == "a has the highest mean: 80.0."
    assert said(both)[-1] == "Best below 100 million parameters: b with 70.0."
    assert both.ranks == {("paper", "published"): "(1)"}


def test_the_suite_with_the_most_of_its_tasks_run_comes_first(tmp_path):
    assert suite_order(load(tmp_path)) == ["fr", "en", "needle"]
    for model, score in (("alpha", 0.6), ("beta", 0.5), ("gamma", 0.4)):
        for task in (FRENCH[0], "gad", "bc5cdr", "hoc"):
            save_runs(tmp_path, model, task, {42: score, 43: score + 0.01, 44: score + 0.02})
    results = load(tmp_path)
    assert suite_order(results) == ["en", "fr", "needle"]
    assert first_pair(results, "macro") == ("en", ("alpha", "beta"))


def test_without_runs_the_first_pair_is_printed(tmp_path):
    suite, names = first_pair(load(tmp_path), "paper")
    assert suite == "fr"
    assert len(names) == 2


def rows(model: str, tasks: str, source: str = "run", partial: bool = False) -> list[Row]:
    return [Row(model, t, "macro_f1", 0.5, None, None, None, 1, source, partial=partial) for t in tasks]  # type: ignore[arg-type]


def test_the_set_with_the_most_scores_is_shared() -> None:
    lines = [*rows("a", "pqrs"), *rows("b", "pqr"), *rows("c", "pqt"), *rows("d", "z")]
    assert shared_tasks(lines) == ("p", "q"), "six scores either way: more models"
    assert shared_tasks([*lines, *rows("e", "pqrs")]) == ("p", "q", "r")
    assert shared_tasks(rows("a", "pq")) == ()
    assert shared_tasks([*rows("a", "p"), *rows("b", "p", "published"), *rows("c", "p", partial=True)]) == ()
    assert shared_tasks([*rows("a", "p"), *rows("b", "q")]) == ()


def test_tasks_outside_the_suites_are_shared_only_where_no_other_is() -> None:
    lines = [*rows("a", "pqz"), *rows("b", "pqz")]
    assert shared_tasks(lines, {"q", "z"}) == ("p",)
    assert shared_tasks(lines, {"p", "q", "z"}) == ("p", "q", "z")
    assert shared_tasks([*rows("a", "pz"), *rows("b", "z")], {"z"}) == ("z",)
