"""Means over tasks: how the variances of seeds, documents and corpora add up, written out."""

from __future__ import annotations

import math

import numpy as np
import pytest

from biobench.stats import (
    Answer,
    Counts,
    Estimand,
    Noise,
    TaskNoise,
    Variances,
    document_noise,
    mean_variances,
    task_weights,
    tasks_like_these,
    these_tasks,
)
from tests.helpers.stats_simulation import left_out_of


def answers(right: np.ndarray) -> Counts:
    """Counts of one-label accuracy from (seeds, documents) of right answers: a miss is one fp and
    one fn.
    """
    tp = right.astype(int)[..., None]
    return Counts.of(tp, 1 - tp, 1 - tp)


def two_models(
    seeds: tuple[int, int] = (4, 4), documents: int = 60
) -> tuple[np.ndarray, np.ndarray]:
    """(seeds, documents) of right answers of two models: hard documents are shared."""
    rng = np.random.default_rng(41)
    hard = rng.normal(0, 1.2, documents)
    models = []
    for gain, count in zip((1.0, 0.4), seeds, strict=True):
        mine = gain + hard + rng.normal(0, 0.6, documents) + rng.normal(0, 0.4, (count, 1))
        models.append(rng.random((count, documents)) < 1 / (1 + np.exp(-mine)))
    return models[0], models[1]


def test_a_mean_over_corpora_weighs_their_tasks():
    assert task_weights(["a", "b", "a", "c"]) == pytest.approx([1 / 6, 1 / 3, 1 / 6, 1 / 3])


def test_documents_of_a_corpus_vary_its_share_of_the_mean():
    """Two tasks of one corpus and a lone one; sums over all tasks: tests/comparison."""
    sides = tuple(left_out_of(answers(side), "micro") for side in two_models())
    found = mean_variances(
        [TaskNoise(corpus, ((8.0, 3.0),), sides) for corpus in "xxy"], task_weights("xxy")
    )
    assert found.seeds == ((0.5, 3.0), (0.5, 3.0), (2.0, 3.0))
    shared = document_noise([sides[0]] * 2, [sides[1]] * 2)
    lone = document_noise([sides[0]], [sides[1]])
    assert found.documents == ((shared.part[0] / 4, 59), (lone.part[0] / 4, 59))
    assert found.in_both == pytest.approx((shared.in_seeds + lone.in_seeds) / 4)


@pytest.mark.parametrize(
    ("seeds", "documents", "in_both", "expected"),
    [
        # (1 + 1 - .2)² / (1/8 + 1/99)
        ([(1.0, 8.0)], [(1.0, 99.0)], 0.2, (1.8, 1.8**2 / (1 / 8 + 1 / 99))),
        # never below one of the two alone
        ([(1.0, 8.0)], [(1.0, 99.0)], 1.5, (1.0, 1 / (1 / 8 + 1 / 99))),
        ([(1.0, 2.0), (0.5, 4.0)], [], 0.0, (1.5, 1.5**2 / (1 / 2 + 0.25 / 4))),
        ([(0.0, math.inf)], [(1.0, 9.0)], 0.0, (1.0, 9.0)),
        ([(0.0, math.inf)], [(0.0, 9.0)], 0.0, (0.0, math.inf)),
    ],
)
def test_both_noises_together_by_hand(seeds, documents, in_both, expected):
    found = these_tasks(0.5, Variances(tuple(seeds), tuple(documents), in_both))
    noise = found.noises[-1]
    assert noise.name == "seeds and documents"
    assert (noise.se**2, noise.df) == pytest.approx(expected)
    assert found.estimand is Estimand.THESE_TASKS


def test_a_longer_error_of_documents_never_makes_an_answer_surer():
    """The degrees of freedom of the sum jump from those of the seeds to those of the documents:
    alone they would make the interval narrower.
    """
    seeds = ((3.0**2, 2.0),)
    halves = [
        these_tasks(5.0, Variances(seeds, ((se**2, 99.0),))).interval().half_width
        for se in (0.1, 0.5, 1.0, 1.5, 2.0, 3.0, 5.0, 9.0)
    ]
    assert halves == sorted(halves)


def test_what_is_unknown_of_one_task_is_unknown_of_the_mean():
    a, b = (left_out_of(answers(side), "micro") for side in two_models())
    known = TaskNoise("x", ((1.0, 3.0),), (a, b))
    weights = task_weights("xy")
    without_seeds = mean_variances([known, TaskNoise("y", None, (a, b))], weights)
    assert (without_seeds.seeds, len(without_seeds.documents)) == (None, 2)
    assert these_tasks(0.1, without_seeds).estimand is Estimand.THESE_RUNS
    without_documents = mean_variances([known, TaskNoise("y", ((1.0, 3.0),), None)], weights)
    assert without_documents.documents is None
    assert these_tasks(0.1, without_documents).estimand is Estimand.THESE_TEST_SETS
    nothing = mean_variances([TaskNoise("x", None, None)], task_weights("x"))
    assert these_tasks(0.1, nothing) is None


def test_a_side_without_training_has_no_noise_of_seeds():
    a, b = (left_out_of(answers(side[:1]), "micro") for side in two_models())
    found = these_tasks(0.1, mean_variances([TaskNoise("x", (), (a, b))], task_weights("x")))
    assert found.estimand is Estimand.THESE_TASKS
    assert found.noises[0].se == 0
    assert found.p == these_tasks(0.1, Variances(None, ((found.noises[1].se ** 2, 59.0),))).p


def test_splits_enter_every_noise_once():
    found = these_tasks(1.0, Variances(((1.0, 4.0),), ((2.0, 99.0),), splits=((3.0, 9.0),)))
    assert [noise.se**2 for noise in found.noises] == pytest.approx([4.0, 5.0, 6.0])


#: arXiv:2605.12438, base models, French, percent: CLM detour (10B) minus its MLM twin (10B).
GAPS = np.array([4.9, 3.3, 6.1, 2.0, 1.1, 4.0, 0.1, 0.5])
CORPORA = ("cantemist",) * 3 + ("distemist", "meddialog", "diamed", "emea", "medline")


def surely(estimate: float) -> Answer:
    """About these tasks, without noise."""
    return Answer(estimate, (Noise("seeds", 0.0, math.inf),), Estimand.THESE_TASKS)


def test_the_t_over_corpora_by_hand():
    """The first three tasks share a corpus and become 14.3 / 3 = 4.7667. Mean of the six: 2.0778;
    squared deviations add to 18.2882, so sd = 1.9125, se = 0.7808, t = 2.6612 on 5 degrees of
    freedom; t(0.975, 5) = 2.5706.
    """
    mean = float(task_weights(CORPORA) @ GAPS)
    found = tasks_like_these(GAPS, CORPORA, surely(mean), resolution=0.1)
    assert found.estimate == pytest.approx(2.0778, abs=1e-4)
    assert found.noises[-1].df == 5
    interval = found.interval()
    assert (interval.low, interval.high) == pytest.approx((0.0707, 4.0848), abs=1e-4)
    assert 0.04 < found.p < 0.05
    assert found.estimand is Estimand.TASKS_LIKE_THESE
    # taken as eight independent tasks it would look stronger than it is
    apart = tasks_like_these(GAPS, list("abcdefgh"), surely(float(GAPS.mean())))
    assert apart.p < 0.01 < found.p


def test_the_wider_question_is_subject_to_every_noise_of_the_narrower_one():
    within = Answer(0.3, (Noise("seeds", 2.0, 4.0),), Estimand.THESE_TASKS)
    found = tasks_like_these(np.array([0.2, 0.4]), "ab", within)
    assert found.noises[:-1] == within.noises
    assert found.p >= within.p
    assert found.interval().half_width >= within.interval().half_width


def test_one_corpus_says_nothing_of_other_tasks():
    assert tasks_like_these(np.array([0.1, 0.2]), ["x", "x"], surely(0.15)) is None


def test_rounded_scores_that_agree_by_rounding_are_no_proof():
    gaps = np.array([0.1, 0.1])
    assert tasks_like_these(gaps, "ab", surely(0.1)).p == 0.0
    assert tasks_like_these(gaps, "ab", surely(0.1), resolution=0.1).p > 0.1
    # but a real gulf survives it
    far = np.full(4, 100.0)
    assert tasks_like_these(far, "abcd", surely(100.0), resolution=0.1).p < 1e-9
