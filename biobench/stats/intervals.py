"""One model on one task: the seed part and the test-set part of its uncertainty, shown apart."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from biobench.stats.counts import Average, Counts, check_average, f1_scores
from biobench.stats.means import EQUAL, SINGLE, in_a_row, moments, resampled_se
from biobench.stats.resample import group_weights, jackknife_se, leave_one_out, rare_labels, score_draws
from biobench.stats.types import (
    ROUNDING,
    Estimand,
    Interval,
    Samples,
    StatsInputError,
    as_values,
    check_level,
    is_zero,
)

Method = Literal["auto", "bootstrap", "jackknife"]

#: Draws from which a standard error is taken: its own relative error is 1/sqrt(2 draws), 1.6%.
SE_DRAWS = 2_000
#: Below this many groups with gold, a label makes the bootstrap's standard error too small: a label seen
#: once is either there with its value or absent. tests/stats/test_coverage_documents.py shows both.
RARE = 10


@dataclass(frozen=True)
class SeedSummary:
    """Mean and spread over seeds; sd is None for one seed, interval for one or equal scores; ``note`` says so."""

    n: int
    mean: float
    sd: float | None
    interval: Interval | None
    note: str | None


@dataclass(frozen=True)
class DocumentSummary:
    """What another test set of the same size would do to the score (the mean over these seeds).

    score, se: fractions. interval: t with groups - 1 degrees of freedom, on the logit scale, so that it
    stays in [0, 1] and is the longer on the side of one half.
    method: where the se comes from. rare_labels: scored labels with gold in fewer than 10 groups.
    """

    score: float
    se: float | None
    interval: Interval | None
    method: str
    n_groups: int
    rare_labels: int
    note: str | None


def seed_interval(
    scores: ArrayLike, *, level: float = 0.95, resolution: float = 0.0, ratio: float = 0.0
) -> SeedSummary:
    """Mean, sd (n - 1) and t interval over the seeds' scores, in the scores' unit.

    Estimand: the mean score of this recipe over all seeds, on this test set. Nominal (0.95 at 3, 5, 9
    seeds) for normal seed noise; a normal or percentile interval covers 0.74 to 0.91 there.
    resolution: the step of the scores (one document of the test set); the interval is never narrower than its
    rounding error makes it. A single score gives no interval, and neither do equal ones: a t would have no width,
    which says nothing of the spread over further seeds. ratio: where the scores are of several splits of one corpus,
    test documents to training documents (see ``resampled_se``); the interval is then of the mean score over corpora
    like this one.
    """
    return seed_intervals(
        [as_values(scores, "scores over seeds").tolist()], resolutions=[resolution], ratios=[ratio], level=level
    )[0]


def seed_intervals(
    samples: Samples, *, resolutions: Sequence[float], ratios: Sequence[float], level: float = 0.95
) -> list[SeedSummary]:
    """``seed_interval`` of many samples at once; resolutions, ratios: one a sample."""
    check_level(level)
    if not samples:
        return []
    values, sizes = in_a_row(samples)
    means, sds, largest = moments(values, sizes)
    equal = sds <= ROUNDING * np.maximum(1.0, largest)
    se = resampled_se(np.maximum(sds, np.divide(resolutions, math.sqrt(12))), sizes, ratios)
    halves = np.where(se <= ROUNDING, 0.0, special.stdtrit(sizes - 1.0, (1 + level) / 2) * se)
    summaries = []
    columns = (array.tolist() for array in (sizes, means, sds, equal, halves))
    for n, mean, sd, is_equal, half, ratio in zip(*columns, ratios, strict=True):
        if n == 1 or is_equal:
            summaries.append(SeedSummary(n, mean, None if n == 1 else 0.0, None, SINGLE if n == 1 else EQUAL))
            continue
        estimand = Estimand.THIS_TASK if ratio else Estimand.NEW_SEEDS
        interval = Interval(mean - half, mean + half, level, "t" if half else "no variation", estimand)
        summaries.append(SeedSummary(n, mean, sd, interval, None))
    return summaries


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
    groups. Nominal coverage (0.93 to 0.97) from about 50 groups and twenty errors on, a little wide (0.98)
    below; with rare labels the jackknife ranges from nominal to somewhat wide (0.93 to 0.99). One group: no
    interval. A score that no draw changes (a perfect one) has an interval of no width and a note with the
    rule of three (3 / groups).
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
    notes = [f"{rare} labels have gold in fewer than {RARE} groups"] if rare else []
    if is_zero(se, 0.0):
        notes.append(f"no draw changes the score; up to {3 / groups:.1%} of documents could still do so")
    interval = _logit_interval(score, se, groups - 1, level, f"t on the {chosen} standard error of the logit")
    return DocumentSummary(score, se, interval, chosen, groups, rare, "; ".join(notes) or None)


def _logit_interval(score: float, se: float, df: float, level: float, method: str) -> Interval:
    """score ± t x se on the scale of log(score / (1 - score)), where a few errors near 1 are symmetric."""
    if is_zero(se, 0.0):
        return Interval(score, score, level, "no variation", Estimand.NEW_DOCUMENTS)
    half = float(special.stdtrit(df, (1 + level) / 2)) * se / (score * (1 - score))
    low, high = (float(special.expit(special.logit(score) + end)) for end in (-half, half))
    return Interval(low, high, level, method, Estimand.NEW_DOCUMENTS)


def choose_method(method: Method, rare: int) -> Literal["bootstrap", "jackknife"]:
    """``auto`` resolved: the bootstrap where no label is rare."""
    if method == "auto":
        return "jackknife" if rare else "bootstrap"
    if method not in ("bootstrap", "jackknife"):
        raise StatsInputError(f"unknown method {method!r}", hint="auto, bootstrap or jackknife")
    return method
