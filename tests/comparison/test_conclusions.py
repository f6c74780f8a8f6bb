"""What every comparison keeps, whatever is stored: words agree with intervals, the wider question
is never the surer, and nothing depends on names or order.
"""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from biobench.comparison.compare import compare
from biobench.comparison.correction import corrected
from biobench.comparison.ranks import Guessing
from biobench.reporting.results import load
from leaderboard.best_runs import verdict_on
from leaderboard.ranking import ranking
from tests.helpers.compare_make import documents as documents_of
from tests.helpers.compare_make import predictions, save, save_models

TASKS = ("gad", "hoc", "anatem")
MODELS = ("a", "b", "c", "d")


def store(folder, seed: int, models=MODELS, tasks=TASKS, rename=lambda name: name) -> None:
    """Models of nearby quality, with three to nine seeds each."""
    chance = random.Random(seed)
    for model in models:
        seeds = range(chance.choice((3, 5, 9)))
        level = chance.uniform(0.6, 0.8)
        for task in tasks:
            quality = level + chance.uniform(-0.05, 0.05)
            for run in seeds:
                answers = predictions(
                    documents_of(task, 40), quality, f"{seed} {model} {task} {run}"
                )
                save(folder, rename(model), task, run, count=40, said=answers)


@pytest.mark.parametrize("seed", range(6))
def test_words_agree_with_their_intervals_and_the_wider_question_is_never_surer(tmp_path, seed):
    store(tmp_path, seed)
    found = compare(MODELS, results_dir=tmp_path, pooled=True)
    for pair in found.pairs:
        for name, claim in (("here", pair.here), ("beyond", pair.beyond)):
            leaves_out_zero = 0.0 not in claim.interval
            assert (getattr(pair.verdict, name) == "shown") == leaves_out_zero
        assert pair.beyond.interval.half_width >= pair.here.interval.half_width
        assert pair.beyond.p >= pair.here.p
        assert not (pair.verdict.beyond == "shown" and pair.verdict.here != "shown")


@pytest.mark.parametrize("seed", range(4))
def test_the_sign_is_that_of_report_ranking_and_badge(tmp_path, seed):
    store(tmp_path, seed, models=("a", "b"))
    found = compare("a", "b", results_dir=tmp_path, pooled=True)
    (pair,) = found.pairs
    scores = {model.model: model.score for model in found.ranking}
    assert pair.difference == pytest.approx(scores["a"] - scores["b"], abs=1e-12)
    assert found.ranking[0].model == pair.better
    results = load(tmp_path)
    best = ranking(results, "en").best_runs[0]
    assert best.name == pair.better
    badge = verdict_on(results, best)
    again = compare(best.name, best.rivals[0], results_dir=tmp_path, tasks=best.tasks).pairs[0]
    assert badge.verdict == again.verdict
    assert badge.here == again.here


def test_names_and_order_change_nothing(tmp_path):
    names = {"a": "zz/model", "b": "m", "c": "A", "d": "0"}
    store(tmp_path / "plain", 3)
    store(tmp_path / "renamed", 3, rename=names.__getitem__)
    plain = compare(MODELS, results_dir=tmp_path / "plain", pooled=True)
    back = {new: old for old, new in names.items()}
    for order in (("d", "b", "a", "c"), MODELS[::-1]):
        renamed = compare([names[m] for m in order], results_dir=tmp_path / "renamed", pooled=True)
        pairs = {frozenset((back[p.first], back[p.second])): p for p in renamed.pairs}
        for pair in plain.pairs:
            other = pairs[frozenset((pair.first, pair.second))]
            assert pair.here.p == pytest.approx(other.here.p, rel=1e-12)
            assert pair.beyond.p == pytest.approx(other.beyond.p, rel=1e-12)
            assert pair.verdict == other.verdict
        ranks = {back[model.model]: model.ranks for model in renamed.ranking}
        assert ranks == {model.model: model.ranks for model in plain.ranking}


def test_the_interval_is_at_the_level_at_which_holm_decided(tmp_path):
    store(tmp_path, 1)
    pairs = compare(MODELS, results_dir=tmp_path, pooled=True).pairs
    levels = sorted(pair.here.interval.level for pair in pairs)
    shown = sum(pair.verdict.here == "shown" for pair in pairs)
    # the first is tested at .05 / 6, the next at .05 / 5, those after the first failure all alike
    steps = [1 - 0.05 / (6 - passed) for passed in range(min(shown + 1, 6))]
    assert {round(level, 9) for level in levels} == {round(level, 9) for level in steps}
    assert all(pair.tested == 6 for pair in pairs)


def test_sameness_is_corrected_for_all_pairs(tmp_path):
    store(tmp_path, 2)
    pairs = compare(MODELS, results_dir=tmp_path, pooled=True).pairs
    assert all(pair.same is None for pair in pairs), "too few runs"
    uncorrected = [pair.answer.p_outside(0.2) for pair in pairs]
    many = [with_sixty_seeds(pair) for pair in pairs]
    together = corrected(many, alpha=0.05, rope=0.2, guessing=Guessing())
    alone = [corrected([pair], alpha=0.05, rope=0.2, guessing=Guessing())[0] for pair in many]
    assert [pair.same.p_corrected for pair in alone] == pytest.approx(uncorrected)
    assert min(pair.same.p_corrected for pair in together) == pytest.approx(6 * min(uncorrected))
    for pair in (*together, *alone):
        within = pair.same.interval.low > -0.2 and pair.same.interval.high < 0.2
        assert (pair.verdict.same == "shown") == within


def with_sixty_seeds(pair):
    """The same numbers, as if of sixty seeds."""
    return replace(pair, tasks=tuple(replace(t, n_first=60, n_second=60) for t in pair.tasks))


def test_the_detectable_difference_is_corrected_for_all_pairs(tmp_path):
    store(tmp_path, 1)
    several = compare(MODELS, results_dir=tmp_path, pooled=True).pairs[0]
    alone = compare(MODELS[:2], results_dir=tmp_path, pooled=True).pairs[0]
    assert several.answer == alone.answer
    assert several.detectable == pytest.approx(several.answer.detectable(alpha=0.05 / 6))
    assert several.detectable > alone.detectable


def test_a_side_without_training_has_no_seeds_and_the_sentence_says_so(tmp_path):
    save_models(tmp_path, "gad", trained=0.6)
    save(tmp_path, "made elsewhere", "gad", 0, 0.9, count=200, origin="outside")
    found = compare("made elsewhere", "trained", results_dir=tmp_path)
    assert found.pairs[0].untrained == ("made elsewhere",)
    assert found.pairs[0].verdict.here == "shown"
    assert "(made elsewhere was not trained here: no seeds on its side)" in found.verdict[0]
    save(tmp_path, "another", "gad", 0, 0.5, count=200, origin="outside")
    both = compare("made elsewhere", "another", results_dir=tmp_path)
    assert both.pairs[0].verdict.here == "shown"
    assert "test sets alone (no side was trained here, so seeds play no part)" in both.verdict[0]
    assert both.pairs[0].tasks[0].seeds is None, "no column of seeds without seeds"


def test_what_one_model_alone_was_made_with_stands_behind_its_name(tmp_path):
    save_models(tmp_path, "gad", trained=0.6)
    for model in ("bought", "found"):
        save(tmp_path, model, "gad", 0, 0.9, count=200, origin="checkpoint", track="ready")
    mixed = compare("trained", "bought", results_dir=tmp_path)
    assert "(macro F1; bought: ready-made)" in mixed.verdict[0]
    assert "(macro F1; ready-made)" in compare("bought", "found", results_dir=tmp_path).verdict[0]


def test_single_tasks_are_counted_after_a_correction_over_tasks(tmp_path):
    save_models(tmp_path, TASKS[0], a=0.9, b=0.9)
    save_models(tmp_path, *TASKS[1:], a=0.9, b=0.5)
    found = compare("a", "b", results_dir=tmp_path)
    assert found.pairs[0].tasks_shown == (2, 0)
    assert found.verdict[1] == (
        "Task by task, a is shown to be ahead on 2 of 3 (Holm's correction over the tasks)."
    )
