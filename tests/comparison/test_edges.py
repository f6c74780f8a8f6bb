"""Where a verdict is easily wrong: ties, printed scores, guessing, splits and few documents.

Each store is asked in both orders: the words are the same, whichever model is named first.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from biobench.comparison.compare import Comparison, compare
from biobench.errors import UsageError
from biobench.reporting.baselines import no_skill
from biobench.reporting.entrants import find_entrants
from biobench.reporting.results import load
from biobench.schema.record import Resampling
from tests.helpers.baselines_make import play
from tests.helpers.compare_make import save, save_errors, save_models, save_runs

PAPER = """\
id: paper
source: Someone
url: https://example.org
citation: Someone
values: paper.csv
decimals: 1
caption: {en: Micro F1.}
readings: {gad: Micro F1.}
"""
COLUMNS = (
    "model,size,objective,language,task,value_percent,average_claimed,average_likely,seeds,"
    "sd_percent\n"
)


def publish(results: Path, **printed: str) -> None:
    """Printed micro F1 on gad: model -> ``value,seeds,sd``."""
    folder = results / "published"
    folder.mkdir(parents=True)
    (folder / "paper.yaml").write_text(PAPER)
    rows = []
    for model, numbers in printed.items():
        value, seeds, sd = numbers.split(",")
        rows.append(f"{model},base,MLM,en,gad,{value},micro_f1,micro_f1,{seeds},{sd}\n")
    (folder / "paper.csv").write_text(COLUMNS + "".join(rows))


def save_folds(results: Path, model: str, folds: int) -> None:
    """Runs on so many of four splits of a corpus."""
    for fold in range(folds):
        splits = Resampling(fold=fold, folds=4, train_documents=900)
        save(results, model, "gad", 42 + fold, 0.7, count=100, resampling=splits)


def both_orders(results: Path, *names: str, **options: object) -> Comparison:
    """The comparison, whose words do not depend on which model was named first."""
    held = compare(*names, results_dir=results, **options)
    turned = compare(*reversed(names), results_dir=results, **options)
    assert held.verdict == turned.verdict
    assert held.notes == turned.notes
    if len(names) == 2:
        assert held.text() == turned.text(), "the tables have the sign of the words"
    return held


def opposite_tasks(results: Path) -> None:
    """Each model is better on one task by as much as on the other it is worse."""
    for seed in (1, 2, 3):
        for task, (of_a, of_b) in {"gad": (1, 3), "hoc": (3, 1)}.items():
            save_errors(results, "a", task, seed, range(of_a + seed), 40)
            save_errors(results, "b", task, seed, range(of_b + seed), 40)


def same_seeds_in_another_order(results: Path) -> None:
    """Scores whose sums differ in the last digit when they are added up in turn."""
    for seed, (of_a, of_b) in enumerate(((1, 4), (2, 1), (4, 2)), 1):
        save_errors(results, "a", "gad", seed, range(of_a), 7)
        save_errors(results, "b", "gad", seed, range(of_b), 7)


def too_few_seeds(results: Path) -> None:
    save_runs(results, "a", ("gad", "hoc"), 0.8, (1, 2))
    save_runs(results, "b", ("gad", "hoc"), 0.6, (1,))


def failed_on_both_sides(results: Path) -> None:
    for seed in range(5):
        save(results, "a", "gad", seed, 0.1 if seed == 4 else 0.9, count=200)
        save(results, "b", "gad", seed, 0.1 if seed == 3 else 0.8, count=200)


@pytest.mark.parametrize(
    ("store", "options", "words"),
    [
        (opposite_tasks, {"average": "micro"}, "both models have the same mean. Not shown for"),
        (
            same_seeds_in_another_order,
            {"average": "micro"},
            "both models have the same scores. Not shown for this task: 0.0 points, 95% interval -",
        ),
        (too_few_seeds, {}, "a has two seeds; b has one seed. The difference is"),
        (failed_on_both_sides, {}, "2 failed runs (a on gad, seed 4; b on gad, seed 3)"),
    ],
)
def test_words_do_not_depend_on_which_model_is_named_first(
    tmp_path: Path, store: Callable[[Path], None], options: dict[str, object], words: str
) -> None:
    store(tmp_path)
    held = both_orders(tmp_path, "a", "b", **options)
    assert words in " ".join(held.verdict)


@pytest.mark.parametrize(
    ("printed", "rival", "words"),
    [
        (
            "80.0,10,0.5",
            "two",
            "above the mean of two; two has two seeds on gad, so not",
        ),
        ("80.0,10,0.5", "outside", "; outside has no seeds on gad, so not tested."),
        ("80.0,1,", "three", "; P has a printed mean without spread on gad, so not tested."),
        ("80.0,2,0.5", "three", "; P has a printed spread over fewer than three seeds on gad, so "),
        ("80.0,10,0.5", "three", "over seeds alone: test-set noise is not in it."),
        ("80.0,10,0.5", "Q", "; Q has a printed mean without spread on gad, so not tested."),
    ],
)
def test_a_printed_score_is_tested_where_both_sides_have_a_spread_over_seeds(
    tmp_path: Path, printed: str, rival: str, words: str
) -> None:
    publish(tmp_path, P=printed, Q="70.0,1,")
    save_runs(tmp_path, "two", ("gad",), 0.6, (1, 2), count=200)
    save_models(tmp_path, "gad", three=0.6)
    save(tmp_path, "outside", "gad", 0, 0.6, count=200, origin="outside")
    held = both_orders(tmp_path, "P", rival, average="micro")
    assert words in held.verdict[0]
    assert (held.pairs[0].here is None) == ("so not tested" in held.verdict[0])


def test_runs_over_splits_have_no_printed_counterpart(tmp_path: Path) -> None:
    publish(tmp_path, P="80.0,10,0.5")
    save_folds(tmp_path, "run", 4)
    held = both_orders(tmp_path, "P", "run", average="micro")
    assert held.pairs[0].reason == "printed scores have no splits to pair with on gad"


def test_a_printed_leader_below_the_baseline_leads_nobody(tmp_path: Path) -> None:
    play(tmp_path, "gad", 0.9)
    publish(tmp_path, P="80.0,10,0.5", Q="70.0,10,0.5")
    held = both_orders(tmp_path, "P", "Q", average="micro")
    assert (
        "10.0 points above the printed mean of Q. Not shown: P is not above guessing."
        in (held.verdict[0])
    )
    assert held.pairs[0].verdict.here == "not shown"


def test_predictions_made_elsewhere_are_of_no_split(tmp_path: Path) -> None:
    save_folds(tmp_path, "run", 3)
    save(tmp_path, "elsewhere", "gad", 0, 0.6, count=100, origin="outside")
    for names in (("run", "elsewhere"), ("elsewhere", "run")):
        with pytest.raises(UsageError, match="no split in common"):
            compare(*names, results_dir=tmp_path)


def test_a_name_that_another_one_gets_for_being_named_twice_stays_a_model(tmp_path: Path) -> None:
    save_models(tmp_path, "gad", **{"m": 0.9, "m #2": 0.3})
    entrants = find_entrants(["m", "m", "m #2"], load(tmp_path))
    assert [entrant.label for entrant in entrants] == ["m", "m #2", "m #2 #2"]
    assert [entrant.model for entrant in entrants] == ["m", "m", "m #2"]


def test_a_printed_spread_that_reaches_the_baseline_is_not_above_guessing(tmp_path: Path) -> None:
    play(tmp_path, "gad", 0.79)
    publish(tmp_path, P="80.0,3,2.0", Q="80.0,3,0.2", R="70.0,3,0.2")
    guessing = {}
    for name in ("P", "Q"):
        held = both_orders(tmp_path, name, "R", average="micro")
        guessing[name] = held.pairs[0].verdict.guessing
    assert guessing == {"P": True, "Q": False}


def test_a_model_that_guesses_on_a_task_leads_nobody_there(tmp_path: Path) -> None:
    for task in ("gad", "hoc"):
        play(tmp_path, task, 0.75)
    save_models(tmp_path, "gad", a=0.9, b=0.4)
    save_models(tmp_path, "hoc", a=0.6, b=0.4)
    held = both_orders(tmp_path, "a", "b")
    assert "Task by task, a is shown to be ahead on 1 of 2" in held.verdict[1]


def test_on_a_needle_what_looks_at_the_text_is_chance_too(tmp_path: Path) -> None:
    play(tmp_path, "needle_fr", 0.5)
    (record,) = load(tmp_path).baselines
    words = record.policies[1].model_copy(
        update={"name": "bag of words", "scores": {"accuracy": 0.6}}
    )
    record = record.model_copy(update={"policies": (*record.policies, words)})
    as_topic = record.model_copy(update={"type": "single_label"})
    needle = record.model_copy(update={"type": "needle"})
    assert ("needle_fr", "accuracy") not in no_skill([as_topic])
    assert no_skill([needle])["needle_fr", "accuracy"] == 0.6


def test_two_corpora_that_differ_leave_other_tasks_without_an_interval(tmp_path: Path) -> None:
    save_models(tmp_path, "gad", a=0.9, b=0.2)
    save_models(tmp_path, "hoc", a=0.9, b=0.7)
    held = both_orders(tmp_path, "a", "b")
    assert held.verdict[0].endswith("Not shown for other tasks like these: too few corpora.")


@pytest.mark.parametrize("name", ["", "unsen"])
def test_a_slice_that_does_not_exist_is_refused(tmp_path: Path, name: str) -> None:
    save_models(tmp_path, "gad", a=0.9, b=0.4)
    with pytest.raises(UsageError, match=f"there is no slice '{name}'"):
        compare("a", "b", results_dir=tmp_path, slice=name)


def test_three_documents_show_nothing(tmp_path: Path) -> None:
    for seed in (1, 2, 3):
        save_errors(tmp_path, "right", "gad", seed, range(0), 3)
        save_errors(tmp_path, "wrong", "gad", seed, range(3), 3)
    held = both_orders(tmp_path, "right", "wrong", average="micro")
    assert held.verdict[0].startswith(
        "On gad (micro F1), right scores higher than wrong. Not shown for this task: 100.0 points"
    )
    assert held.verdict[1].startswith("No difference is so large")


def test_the_summary_of_several_models_counts_what_was_tested(tmp_path: Path) -> None:
    save_models(tmp_path, "gad", a=0.9, b=0.6, c=0.6)
    assert compare("a", "b", "c", results_dir=tmp_path).verdict[-1] == (
        "Shown to differ after Holm's correction: 2 of 3 pairs on these tasks; possible ranks on "
        "these tasks: a 1, b 2–3, c 2–3."
    )
    publish(tmp_path, Q="70.0,1,")
    assert (
        "1 of the 1 tested of 3 pairs on these tasks;"
        in (compare("a", "b", "Q", results_dir=tmp_path, average="micro").verdict[-1])
    )


def test_ranks_are_corrected_for_all_pairs_whatever_a_plan_declares(tmp_path: Path) -> None:
    for model, quality in (("a", 0.72), ("b", 0.6), ("c", 0.6), ("d", 0.6)):
        save_runs(tmp_path, model, ("gad",), quality, (1, 2, 3), count=400)
    plan = tmp_path / "plan.yaml"
    plan.write_text("pairs: [[a, b]]\n", encoding="utf-8")
    names = ("a", "b", "c", "d")
    held, planned = (compare(names, results_dir=tmp_path, plan=file) for file in (None, plan))
    declared = next(pair for pair in planned.pairs if not pair.exploratory)
    assert declared.here.p_corrected < held.pairs[0].here.p_corrected
    assert planned.ranking == held.ranking
    assert (
        "1 of 1 declared pairs on these tasks, corrected for these alone; 1 of 5 other pairs on "
        "these tasks, corrected for all; possible ranks on these tasks, corrected for all 6 pairs:"
    ) in planned.verdict[-1]
    assert replace(declared, verdict=held.pairs[0].verdict) != held.pairs[0]


def test_levels_do_not_depend_on_the_order_of_models_with_the_same_scores(tmp_path: Path) -> None:
    for model, wrong in (("a", 9), ("b", 9), ("c", 1)):
        for seed in (1, 2, 3):
            save_errors(tmp_path, model, "gad", seed, range(wrong + seed), 40)
    held = both_orders(tmp_path, "a", "b", "c", average="micro")
    turned = both_orders(tmp_path, "b", "c", "a", average="micro")
    assert "Shown for this task: 20.0 points, 98.33% interval" in held.verdict[0]
    assert turned.verdict == held.verdict


def test_notes_on_plans_and_splits_are_in_order_of_names(tmp_path: Path) -> None:
    for model, folds in (("a", 4), ("b", 3), ("c", 4)):
        save_folds(tmp_path, model, folds)
    plan = tmp_path / "plan.yaml"
    plan.write_text("pairs: [[a, b]]\nseeds: [1]\n", encoding="utf-8")
    held = both_orders(tmp_path, "a", "b", "c", plan=plan)
    assert "gad: compared on the 3 common splits" in held.notes
    assert "exploratory, not in the declared plan: a – c, b – c" in held.notes


def test_a_printed_mean_is_known_no_better_than_it_was_rounded(tmp_path: Path) -> None:
    publish(tmp_path, P="80.0,5,0.0", Q="79.9,5,0.0")
    held = both_orders(tmp_path, "P", "Q", average="micro")
    assert held.pairs[0].verdict.here == "not shown"
    row = next(line for line in held.text().splitlines() if line.startswith("gad "))
    assert row.split().count("–") == 4, "neither documents nor both, nor their p and number"


def test_the_wider_question_names_the_level_that_its_interval_has(tmp_path: Path) -> None:
    """The closest pair is decided about at a lower level there than on these tasks."""
    for task, shift in (("gad", 2), ("hoc", 0), ("anatem", -2)):
        for seed in (1, 2, 3):
            for model, wrong in (("a", 10), ("b", 30), ("c", 60 + shift)):
                save_errors(tmp_path, model, task, seed, range(wrong + seed - 2), 100)
    held = compare("a", "b", "c", results_dir=tmp_path, average="micro")
    widened = 0
    for pair in held.pairs:
        wider = pair.beyond.interval
        again = pair.beyond.answer.interval(wider.level)
        assert (wider.low, wider.high) == pytest.approx((again.low, again.high), abs=1e-9)
        assert wider.half_width >= pair.here.interval.half_width - 1e-12
        widened += wider.half_width == pytest.approx(pair.here.interval.half_width)
    assert widened


def test_every_line_fits_into_the_terminal(tmp_path: Path) -> None:
    save_models(tmp_path, "gad", "hoc", a=0.9, b=0.6, c=0.5)
    text = compare("a", "b", "c", results_dir=tmp_path).text(80)
    assert max(map(len, text.splitlines())) <= 80


def test_failed_runs_are_counted_beside_printed_scores_and_untested_ones(tmp_path: Path) -> None:
    publish(tmp_path, P="80.0,5,0.5")
    for seed in range(5):
        save(tmp_path, "run", "gad", seed, 0.1 if seed == 4 else 0.9, count=200)
    held = both_orders(tmp_path, "P", "run", average="micro")
    assert "counting 1 failed run (run on gad, seed 4)" in held.verdict[0]


def test_the_bare_name_means_the_runs_without_a_bracket(tmp_path: Path) -> None:
    save_models(tmp_path, "gad", x=0.9, y=0.6)
    save(tmp_path, "x", "gad", 0, 0.5, count=200, origin="checkpoint", track="ready")
    held = both_orders(tmp_path, "x", "y")
    assert held.pairs[0].tasks[0].n_first in (1, 3)
    assert held.pairs[0].better == "x"
    assert "over seeds and test sets." in held.verdict[0]


def test_on_several_splits_pairs_and_ranking_are_over_the_same(tmp_path: Path) -> None:
    """A model is not ahead because the others also have the hard splits."""
    for model, wrong in (("a", (10, 10, 10, 60, 60)), ("b", (20, 20, 20))):
        for fold, errors in enumerate(wrong):
            splits = Resampling(fold=fold, folds=5, train_documents=900)
            wrong_documents = range(errors + fold)
            save_errors(tmp_path, model, "gad", 42 + fold, wrong_documents, 100, resampling=splits)
    held = both_orders(tmp_path, "a", "b", average="micro")
    assert [model.model for model in held.ranking] == ["a", "b"]
    assert held.pairs[0].better == "a"
    assert held.ranking[0].score - held.ranking[1].score == pytest.approx(0.1)


def test_a_name_of_several_checkpoints_is_refused(tmp_path: Path) -> None:
    save_models(tmp_path, "gad", x=0.8, y=0.6)
    save_models(tmp_path, "hoc", y=0.6)
    save(tmp_path, "x", "hoc", 0, 0.8, count=200, origin="checkpoint", track="ready")
    with pytest.raises(UsageError, match=r"'x' stands for several checkpoints: .* on gad; .* on h"):
        compare("x", "y", results_dir=tmp_path)
    assert compare("x", "y", results_dir=tmp_path, tasks="gad").tasks == ("gad",)


@pytest.mark.parametrize("again", ["x [training.epochs=1]", "x"])
def test_two_names_of_the_same_runs_are_refused(again: str, tmp_path: Path) -> None:
    save_runs(tmp_path, "x", ("gad",), 0.8, overrides=("training.epochs=1",), spec="other")
    save_runs(tmp_path, "y", ("gad",), 0.6, overrides=("training.epochs=1",), spec="other")
    for others in ((), ("y",)):
        with pytest.raises(UsageError, match=r"^x and x .* stand for the same scores on these"):
            compare("x", again, *others, results_dir=tmp_path)
    save_runs(tmp_path, "x", ("gad",), 0.8)
    with pytest.raises(UsageError, match=r"of one model under several protocols, which are never"):
        compare("x", "x [training.epochs=1]", results_dir=tmp_path)
    notes = compare("x", "y", results_dir=tmp_path).notes
    told = "gad: of x the runs [training.epochs=1] are compared; its full runs have no"
    assert any(note.startswith(told) for note in notes)
    publish(tmp_path, P="80.0,3,2.0")
    with pytest.raises(UsageError, match=r"^P and P #2 stand for the same scores"):
        compare("P", "P", results_dir=tmp_path, average="micro")


def test_a_choice_of_conditions_is_asked_for_whoever_is_named_first(tmp_path: Path) -> None:
    """One model has other weights on another task, which stand in the bracket of all its lines."""
    for seed in (1, 2, 3):
        for model, wrong in (("x", 2), ("y", 9)):
            save_errors(tmp_path, model, "gad", seed, range(wrong + seed), 40)
            save(tmp_path, model, "gad", seed, spec="other", identity={"version": 2})
    run = save(tmp_path, "x", "hoc", 1)
    path = next((tmp_path / "runs" / "hoc").glob("*.json"))
    path.write_text(path.read_text().replace(run.model.hash, "f" * 64))
    said = set()
    for names in (("x", "y"), ("y", "x")):
        with pytest.raises(UsageError, match="gad: runs under 2 conditions are stored") as caught:
            compare(*names, results_dir=tmp_path, average="micro", tasks="gad")
        said.add(caught.value.hint)
    (hint,) = said
    name = next(name for name in hint.split("'")[1::2] if "version 2" not in name)
    named = compare(name, "y", results_dir=tmp_path, average="micro", tasks="gad")
    assert named.pairs[0].difference == pytest.approx(7 / 40), "what the hint says can be typed"


def test_the_verdict_names_no_address_and_the_notes_name_the_way_out(tmp_path: Path) -> None:
    for model in ("a", "b"):
        save_runs(tmp_path, model, ("gad",), 0.8, redacted=True)
    held = compare("a", "b", results_dir=tmp_path, data_dir=tmp_path / "nowhere")
    assert "test-set noise is unknown on gad (task gad: no data below" in held.verdict[0]
    assert "http" not in held.verdict[0]
    assert any("http" in note for note in held.notes)
