"""What a paired comparison of two probes' accuracies can see, by simulation."""

from __future__ import annotations

import math

import numpy as np

from biobench.stats.means import pooled_df, t_from_se
from biobench.stats.types import Estimand, StatsInputError


def accuracy_power(
    examples: int,
    seeds: int,
    *,
    difference: float = 0.05,
    base: float = 0.6,
    agreement: float = 0.5,
    seed_sd: float = 0.01,
    alpha: float = 0.05,
    draws: int = 600,
    random_state: int = 1,
) -> float:
    """Share of simulated experiments in which the better of two models is found better (two-sided p < alpha).

    Both models answer the same examples with the same number of probe seeds. An example's chance of a right
    answer is Beta with mean `base` (the other model: `base` + `difference`); `agreement` is the correlation
    between two seeds of one model on an example. The models' chances are drawn independently of each other,
    which is the hardest case short of models that are right on opposite examples. `seed_sd` shifts all chances
    of a seed together. The test: mean difference over its standard error, examples and seeds both redrawn
    (variances add, degrees of freedom by Satterthwaite 1946; with one seed, examples alone). Raises
    StatsInputError.
    """
    if examples < 2 or seeds < 1 or draws < 1:
        raise StatsInputError(f"{examples} examples, {seeds} seeds", hint="at least two examples and one seed")
    if not (0 < base < 1 and 0 < base + difference < 1 and 0 < agreement < 1):
        raise StatsInputError("base, base + difference and agreement lie between 0 and 1", hint="0.6, 0.05, 0.5")
    rng = np.random.default_rng(random_state)
    # Two Bernoulli draws from one Beta(a, b) chance have the correlation 1 / (a + b + 1).
    strength = 1 / agreement - 1
    detections = 0
    for _ in range(draws):
        hits = []
        for mean in (base + difference, base):
            chance = rng.beta(mean * strength, (1 - mean) * strength, size=(examples, 1))
            moved = np.clip(chance + rng.normal(0, seed_sd, size=(1, seeds)), 0, 1)
            hits.append(rng.random((examples, seeds)) < moved)
        detections += _better(hits[0].astype(float) - hits[1], alpha)
    return detections / draws


def _better(differences: np.ndarray, alpha: float) -> bool:
    """Whether the mean of (examples, seeds) differences is above 0 at this level, two-sided."""
    examples, seeds = differences.shape
    parts = [(float(differences.mean(axis=1).var(ddof=1)) / examples, examples - 1.0)]
    if seeds > 1:
        # Of the spread between seeds, only what the examples' own noise does not explain is the seeds'.
        noise = float(differences.var(axis=0, ddof=1).mean()) / examples
        parts.append((max(0.0, float(differences.mean(axis=0).var(ddof=1)) - noise) / seeds, seeds - 1.0))
    mean, variance = float(differences.mean()), sum(v for v, _ in parts)
    test = t_from_se(mean, math.sqrt(variance), pooled_df(parts), n=examples, estimand=Estimand.THIS_TASK)
    return test.p is not None and test.p < alpha and mean > 0
