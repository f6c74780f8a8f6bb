"""The sentence at the top of the board: who leads, whether it is sure, the best of the small models."""

from __future__ import annotations

from dataclasses import replace

from biobench.comparison.placing import Placing
from biobench.comparison.standing import MOST_NAMED, WORDS, Leaders, headline, what_means_are
from biobench.report.rows import Row
from biobench.report.wide import ModelLine


def line(name: str, mean: float, source: str = "run", spread: float | None = 0.01, parameters: int | None = None):
    low, high = (None, None) if spread is None else (mean - spread, mean + spread)
    row = Row(name, "avg_en", "macro_f1", mean, spread, low, high, 5, source, parameters=parameters)  # type: ignore[arg-type]
    return ModelLine(name, "", source, {}, row)


def sentences(lines, placed):
    return headline(Leaders(tuple(lines), placed), WORDS, lambda one: one.name, lambda value: f"{value:.1f}")


def test_a_sure_lead_and_a_shared_place_are_said_apart():
    lines = [line("a", 0.8), line("b", 0.7)]
    assert sentences(lines, {"a": Placing(1, 1, ()), "b": Placing(2, 2, ())}) == [
        "a leads with 80.0.",
        "On these tasks its lead over every other model with runs is larger than seeds explain.",
    ]
    assert sentences(lines, {"a": Placing(1, 2, ("b",)), "b": Placing(1, 2, ("a",))})[1] == (
        "Not told apart from it with other seeds: b."
    )


def test_of_many_that_share_the_place_a_few_are_named():
    lines = [line(f"m{i}", 0.8 - i / 1000) for i in range(MOST_NAMED + 3)]
    alike = tuple(one.name for one in lines[1:])
    assert sentences(lines, {"m0": Placing(1, len(lines), alike)})[1] == (
        "Not told apart from it with other seeds: m1, m2, m3 and 2 more."
    )


def test_without_a_rival_or_a_spread_nothing_is_claimed():
    assert sentences([line("a", 0.8)], {})[1] == WORDS["alone"]
    few = [line("a", 0.8, spread=None), line("b", 0.1, spread=None)]
    assert sentences(few, {"a": Placing(1, 2, ("b",))})[1] == WORDS["unknown_spread"]
    assert sentences([], {}) == [WORDS["no_leader"]]


def test_a_printed_mean_above_the_runs_does_not_lead_them():
    printed = line("paper", 0.95, "published", None)
    assert sentences([printed, line("a", 0.8), line("b", 0.7)], {"a": Placing(1, 1, ())})[0] == "a leads with 80.0."
    assert sentences([printed], {}) == [
        "Of the printed scores, paper has the highest mean: 95.0.",
        WORDS["printed_unsure"],
    ]


def test_the_best_of_the_small_is_named_unless_it_leads():
    lines = [line("large", 0.8, parameters=395_000_000), line("base", 0.75, parameters=110_000_000)]
    small = line("small", 0.6, parameters=33_000_000)
    placed = {"large": Placing(1, 1, ())}
    assert sentences([*lines, small, line("unknown", 0.7)], placed)[2] == (
        "Best below 100 million parameters: small with 60.0."
    )
    assert len(sentences(lines, placed)) == 2
    assert len(sentences([small, *lines], {"small": Placing(1, 1, ())})) == 2


def badges(lines, placed, elsewhere=None):
    return [key for key, _ in Leaders(tuple(lines), placed, elsewhere).badges]


def test_the_badges_say_of_the_lead_what_the_sentence_says():
    lines = [line("a", 0.8), line("b", 0.7)]
    sure, shared = {"a": Placing(1, 1, ())}, {"a": Placing(1, 2, ("b",))}
    assert badges(lines, sure) == ["badge_sure"], "nothing is known of other tasks"
    assert badges(lines, sure, True) == ["badge_sure", "badge_elsewhere"]
    assert badges(lines, shared, False) == ["badge_shared", "badge_here_alone"]
    for unknown in ([line("a", 0.8)], [line("a", 0.8, spread=None), line("b", 0.7)], [line("p", 0.9, "published")]):
        assert badges(unknown, sure if len(unknown) > 1 else {}) == ["badge_unknown"]
    assert badges([], {}) == []


def test_what_the_means_are_is_said_with_their_number_of_tasks():
    row = replace(line("a", 0.8).average, tasks=8)
    one = ModelLine("a", "", "run", {}, row)
    shown = WORDS | {"macro": "Macro F1"}
    assert what_means_are(Leaders((one,), {}), "macro", shown) == "Macro F1, in percent: mean over 8 tasks."
    assert what_means_are(Leaders((line("a", 0.8),), {}), "macro", shown) == "Macro F1, in percent, on one task."
    assert what_means_are(Leaders((), {}), "macro", shown) == ""


def test_ranks_are_ranges_of_runs_and_an_order_in_brackets_of_printed_means():
    lines = (
        line("paper", 0.9, "published"),
        line("a", 0.8),
        line("b", 0.7),
        line("c", 0.6),
        line("floor", 0.1, "floor"),
    )
    standing = Leaders(lines, {"a": Placing(1, 2, ("b",)), "b": Placing(1, 2, ("a",)), "c": Placing(3, 3, ())})
    assert standing.ranks == {
        ("paper", "published"): "(1)",
        ("a", "run"): "1–2",
        ("b", "run"): "1–2",
        ("c", "run"): "3",
    }
