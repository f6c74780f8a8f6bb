"""One model on one task: the seed part and the test-set part of its uncertainty, shown apart."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from biobench.stats.counts import Average, Counts, check_average, f1_scores
from biobench.stats.means import CONSTANT, SINGLE, t_from_se
from biobench.stats.resample import group_weights, jackknife_se, leave_one_out, rare_labels, score_draws
from biobench.stats.types import Estimand, Interval, StatsInputError, as_values, check_level, is_zero

Method = Literal["auto", "bootstrap", "jackknife"]

#: Draws from which a standard error is taken: its own relative error is 1/sqrt(2 draws), 1.6%.
SE_DRAWS = 2_000
#: Below this many groups with gold, a label makes the bootstrap's standard error too small: a label seen
#: once is either there with its value or absent. tests/stats/test_coverage_documents.py shows both.
RARE = 10


@dataclass(frozen=True)
class SeedSummary:
    """Mean and spread over seeds; sd and interval are None for one seed, and ``note`` says so."""

    n: int
    mean: float
    sd: float | None
    interval: Interval | None
    note: str | None


@dataclass(frozen=True)
class DocumentSummary:
    """What another test set of the same size would do to the score (the mean over these seeds).

    score, se: fractions. interval: score ± t x se over groups - 1 degrees of freedom, cut to [0, 1].
    method: where the se comes from. rare_labels: scored labels with gold in fewer than 10 groups.
    """

    score: float
    se: float | None
    interval: Interval | None
    method: str
    n_groups: int
    rare_labels: int
    note: str | None


def seed_interval(scores: ArrayLike, *, level: float = 0.95) -> SeedSummary:
    """Mean, sd (n - 1) and t interval over the seeds' scores, in the scores' unit.

    Estimand: the mean score of this recipe over all seeds, on this test set. Nominal (0.95 at 3, 5, 9
    seeds) for normal seed noise; a normal or percentile interval covers 0.74 to 0.91 there.
    Equal scores give an interval of no width, a single one gives none.
    """
    x = as_values(scores, "scores over seeds")
    check_level(level)
    mean = float(x.mean())
    if x.size == 1:
        return SeedSummary(1, mean, None, None, SINGLE)
    sd = float(x.std(ddof=1))
    if is_zero(sd, float(abs(x).max())):
        interval = Interval(mean, mean, level, "all seeds equal", Estimand.NEW_SEEDS)
        return SeedSummary(int(x.size), mean, 0.0, interval, CONSTANT)
    test = t_from_se(mean, sd / np.sqrt(x.size), x.size - 1, n=int(x.size), estimand=Estimand.NEW_SEEDS, level=level)
    return SeedSummary(int(x.size), mean, sd, test.interval, None)


def document_interval(
    counts: Counts,
    average: Average,
    *,
    evaluated: ArrayLike | None = None,
    method: Method = "auto",
    draws: int = SE_DRAWS,
    level: float = 0.95,
    seed: int = 0,
) -> DocumentSummary:
    """Test-set noise of the mean score over the runs in ``counts``, by resampling document groups.

    Estimand: the expected score of these runs on another test set of this size from the same source.
    method: ``bootstrap`` recomputes F1 in every draw; ``jackknife`` leaves out one group at a time;
    ``auto`` takes the bootstrap unless some label that weighs in the average has gold in fewer than 10
    groups. Nominal coverage from about 50 groups on and scores not within a few errors of 0 or 1; with
    rare labels the jackknife is nominal to somewhat wide. One group: no interval.
    """
    check_average(average)
    check_level(level)
    score = float(f1_scores(counts, average, evaluated).mean())
    rare = rare_labels(counts, average, evaluated, RARE)
    groups = counts.n_groups
    if groups == 1:
        return DocumentSummary(score, None, None, "none", 1, rare, "one group of documents: nothing to resample")
    chosen = choose_method(method, rare)
    if chosen == "jackknife":
        se = jackknife_se(leave_one_out(counts, average, evaluated).mean(axis=1))
    else:
        rng = np.random.default_rng(seed)
        parts = [
            score_draws(counts, weights, average, evaluated).mean(axis=1)
            for weights in group_weights(groups, draws, rng)
        ]
        se = float(np.concatenate(parts).std(ddof=1))
    test = t_from_se(
        score,
        se,
        groups - 1,
        n=groups,
        estimand=Estimand.NEW_DOCUMENTS,
        level=level,
        method=f"t on the {chosen} standard error",
    )
    interval = test.interval.clipped(0.0, 1.0) if test.interval else None
    note = f"{rare} labels have gold in fewer than {RARE} groups" if rare else None
    return DocumentSummary(score, se, interval, chosen, groups, rare, note)


def choose_method(method: Method, rare: int) -> Literal["bootstrap", "jackknife"]:
    """``auto`` resolved: the bootstrap where no label is rare."""
    if method == "auto":
        return "jackknife" if rare else "bootstrap"
    if method not in ("bootstrap", "jackknife"):
        raise StatsInputError(f"unknown method {method!r}", hint="auto, bootstrap or jackknife")
    return method
