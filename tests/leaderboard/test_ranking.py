"""Page one's ranking: who is ranked over what, where the best run ranks, and that its verdict is
that of `compare`.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from biobench.comparison.compare import compare
from biobench.reporting.frames import results
from biobench.reporting.results import load
from leaderboard.best_runs import best_run_facts, best_run_sentence, rival_sentence, verdict_on
from leaderboard.lines import shared_tasks
from leaderboard.ranking import first_pair, possible_ranks, ranking, views
from tests.helpers import compare_make
from tests.helpers.baselines_make import play
from tests.helpers.report_make import save_run, save_runs

SHIPPED = Path(__file__).parents[2] / "results"

TASKS = ("gad", "anatem", "hoc", "bc5cdr")
SEEDS = (1, 2, 3, 4)


def stored(results, gap: float = 0.1, models: str = "abc", tasks=TASKS) -> None:
    for place, model in enumerate(models):
        compare_make.save_runs(results, model, tasks, 0.9 - gap * place, SEEDS)


def best(results, view="en"):
    return ranking(load(results), view).best_runs[0]


@pytest.mark.parametrize("gap", [0.1, 0.005, 0.0])
def test_the_best_run_and_compare_give_one_answer(tmp_path, gap):
    stored(tmp_path, gap)
    first = best(tmp_path)
    shown = verdict_on(load(tmp_path), first)
    (pair,) = compare(first.name, first.rivals[0], results_dir=tmp_path).pairs
    assert shown == pair
    assert (shown.verdict.here == "shown") == (gap == 0.1)
    assert f"{100 * abs(pair.difference):.1f} points" in rival_sentence(shown)
    assert {line.task for line in shown.tasks} == set(first.tasks) == set(TASKS)
    assert first_pair(load(tmp_path)) == ((first.name, first.rivals[0]), first.tasks)
    report = results(tmp_path).report(suites=["en"], tasks=TASKS, incomplete=True)
    means = {
        row.model: row.mean
        for row in report.averages
        if row.source == "run" and row.tasks == len(pair.tasks)
    }
    assert means[pair.first] - means[pair.second] == pytest.approx(pair.difference), (
        "the report's means too"
    )


def test_published_models_are_ranked_over_the_whole_suite_and_runs_that_lack_a_task_are_not(
    tmp_path,
):
    save_runs(tmp_path, "part", "gad", {42: 0.9, 43: 0.91, 44: 0.92})
    one = ranking(load(tmp_path), "en")
    assert len(one.shared) == 11
    assert [e.rank for e in one.entries] == [*range(1, 10), None]
    assert one.entries[-1].name == "part"
    over = ranking(load(tmp_path), "en", ["gad"])
    assert (over.entries[0].name, over.entries[0].rank, over.shared) == ("part", 1, ("gad",))


def test_protocols_never_share_a_ranking(tmp_path):
    save_runs(tmp_path, "full", "gad", {42: 0.5, 43: 0.51})
    save_runs(tmp_path, "lucky", "gad", {42: 0.99, 43: 0.98}, track="tuned")
    save_runs(tmp_path, "part", "gad", {42: 0.99}, limit=8)
    one = ranking(load(tmp_path), "en", ["gad"])
    ranks = {e.model: e.rank for e in one.entries}
    assert ranks["lucky"] is None is ranks["part"]
    assert ranks["full"] == 10
    tuned = ranking(load(tmp_path), "en", ["gad"], "tuned")
    assert [e.model for e in tuned.entries if e.rank] == ["lucky"]
    said = [(b.protocol, b.name, len(b.published)) for b in one.best_runs]
    assert said == [("", "full", 9), ("tuned", "lucky [tuned]", 0)], (
        "printed scores are of full runs"
    )


def test_a_ready_made_row_is_ranked_under_its_own_protocol(tmp_path):
    stored(tmp_path, models="a")
    for task in TASKS:
        compare_make.save(tmp_path, "ready", task, 0, 0.7, origin="checkpoint", track="ready")
    for protocol, ranked in (("", "a"), ("ready-made", "ready")):
        one = ranking(load(tmp_path), "en", TASKS, protocol)
        assert [e.model for e in one.entries if e.rank and e.is_run] == [ranked]


def test_the_sentence_counts_published_models_and_baselines(tmp_path):
    save_runs(tmp_path, "tiny", "gad", {42: 0.77, 43: 0.771, 44: 0.769})
    play(tmp_path, "gad", 0.3)
    run = best(tmp_path)
    assert best_run_sentence(run) == "Best run here: tiny, 77.0 ±0.2 on gad."
    assert list(best_run_facts(run)) == [
        "tiny is 2.7 points below the best published there "
        "(ModernBERT-bio-large CLM detour (50B), 79.7).",
        "tiny is above 3 of 9 published models.",
        "tiny is above the best baseline on 1 of 1 tasks.",
    ]


def test_a_run_at_chance_is_not_above_guessing(tmp_path):
    save_runs(tmp_path, "tiny", "gad", {42: 0.2, 43: 0.31, 44: 0.25})
    play(tmp_path, "gad", 0.3)
    assert best(tmp_path).guessing
    assert "not above guessing" in best_run_sentence(best(tmp_path))


def test_a_full_run_goes_before_a_pair_of_another_protocol_and_of_published_models(tmp_path):
    names, tasks = first_pair(load(tmp_path))
    assert names[0] == "ModernCamemBERT-bio-large CLM detour (25B)"
    assert len(tasks) == 8
    save_run(tmp_path, "tiny", "gad", 42, 0.5)
    wanted = ("tiny", "ModernBERT-bio-large CLM detour (50B)"), ("gad",)
    assert first_pair(load(tmp_path)) == wanted
    for model in "ab":
        save_runs(tmp_path, model, "gad", {42: 0.9, 43: 0.91}, track="tuned")
    assert first_pair(load(tmp_path)) == wanted


def test_tasks_of_no_suite_have_a_view_of_their_own(tmp_path):
    stored(tmp_path, models="ab", tasks=("demo_first", "demo_names"))
    assert views(load(tmp_path)) == ["fr", "en", "other en"]
    one = ranking(load(tmp_path), "other en")
    assert [(e.name, e.rank) for e in one.entries] == [("a", 1), ("b", 2)]
    assert not one.published


def test_the_average_that_is_asked_for_orders_the_ranking_and_decides_its_verdict(two_orders):
    loaded = load(two_orders)
    means = {}
    for average, leader in (("paper", "org/lopsided"), ("macro", "org/even")):
        ranked = ranking(loaded, "en", ("bc5cdr",), average=average)
        pair = verdict_on(loaded, ranked.best_runs[0], average)
        assert next(e.name for e in ranked.entries if e.is_run) == pair.better == leader
        assert first_pair(loaded, average)[0][0] == leader
        assert set(possible_ranks(loaded, ranked)) == {"org/even", "org/lopsided"}
        means[average] = pair.means
    assert means["paper"][0] == pytest.approx(2 / 3)
    assert means["macro"][1] == pytest.approx((2 / 3 + 1 + 0) / 3)
    whole = ranking(loaded, "en", average="macro")
    printed = {task for e in whole.entries if not e.is_run for task in e.cells}
    assert printed == {"gad", "hoc"}, "other tasks are printed under other averages"


def test_runs_are_judged_on_the_same_tasks_under_every_average():
    """Of the shipped runs, whose published rivals have macro F1 on two tasks alone."""
    loaded = load(SHIPPED)
    for view in ("fr", "en"):
        tasks = {}
        for average in ("paper", "macro"):
            ranked = ranking(loaded, view, average=average)
            tasks[average] = {best.protocol: best.tasks for best in ranked.best_runs}
        assert tasks["paper"] == tasks["macro"] != {}, view


def test_shared_tasks_are_those_with_the_most_scores():
    lines = {
        ("a", "", "run"): {"x", "y"},
        ("b", "", "run"): {"x", "y", "z"},
        ("c", "", "run"): {"z"},
    }
    assert shared_tasks(lines, "zyx") == ("y", "x")
    alone = {("d", "", "run"): {"u", "v", "w", "x", "y", "z"}}
    assert shared_tasks(lines | alone, "zyxwvu") == ("y", "x"), "one line compares nothing"
    assert shared_tasks(alone, "zyxwvu") == tuple("zyxwvu")
    assert shared_tasks({}, "xyz") == ()


def test_runs_of_one_mean_have_no_leader(tmp_path):
    stored(tmp_path, 0.0, "a")
    for model, seeds in (("a", (1, 2, 3)), ("b", (3, 1, 2))):
        for seed, quality in zip(seeds, (1.0, 1.0, 1.0), strict=True):
            compare_make.save(tmp_path, model, "pubmedqa", seed, quality)
    first = next(b for b in ranking(load(tmp_path), "other en").best_runs)
    pair = verdict_on(load(tmp_path), first)
    assert pair.is_tied
    assert rival_sentence(pair).startswith("a and b, the best two runs, have the same mean, 95%")
