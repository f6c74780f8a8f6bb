"""Simulated test sets and suites whose true values are known; shared by the statistics tests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from biobench.stats import (
    Answer,
    Average,
    Counts,
    LeftOut,
    TaskNoise,
    left_out,
    mean_variances,
    seed_part,
    task_weights,
    these_tasks,
)
from biobench.stats.types import FloatArray


@dataclass(frozen=True)
class Population:
    """Documents with Bernoulli gold per label, and models that find it with some recall.

    prevalence, recalls: (labels,), (models, labels). false_rate: false positives per document and
    label, as a share of the prevalence. shared: share of errors that models and seeds have in
    common (hard documents). seed_sd: sd of a run's recall around its model's.
    """

    prevalence: FloatArray
    recalls: FloatArray
    false_rate: float = 0.3
    shared: float = 0.5
    seed_sd: float = 0.0

    def run_recalls(self, seeds: int, rng: np.random.Generator) -> FloatArray:
        """(models, seeds, labels): what each run's recall is on any test set."""
        noise = rng.normal(0, self.seed_sd, size=(len(self.recalls), seeds, 1))
        return np.clip(self.recalls[:, None, :] + noise, 0.02, 0.98)

    def sample(self, groups: int, recalls: FloatArray, rng: np.random.Generator) -> list[Counts]:
        """Counts of every model on one new test set; ``recalls`` from ``run_recalls``."""
        labels = self.prevalence.size
        gold = rng.random((groups, labels)) < self.prevalence
        shape = (*recalls.shape[:2], groups, labels)
        luck = rng.random((groups, labels))
        own = rng.random(shape)
        luck = np.where(rng.random(shape) < self.shared, luck, own)
        tp = gold & (luck < recalls[:, :, None, :])
        fp = ~gold & (own < self.false_rate * self.prevalence)
        missed = gold & ~tp
        return [
            Counts.of(*(part.astype(int) for part in parts))
            for parts in zip(tp, fp, missed, strict=True)
        ]


def left_out_of(counts: Counts, average: Average = "macro", corpus: str = "") -> LeftOut:
    """With the groups named by their position; those of one corpus share their names."""
    return left_out(counts, average, groups=[f"{corpus}{i}" for i in range(counts.n_groups)])


def compare_left_out(
    first: Sequence[LeftOut], second: Sequence[LeftOut], corpora: Sequence[str]
) -> tuple[Answer | None, FloatArray]:
    """First minus second model on tasks of these corpora, and the difference on each task."""
    noises, differences = [], []
    for corpus, *sides in zip(corpora, first, second, strict=True):
        differences.append(float(sides[0].full.mean() - sides[1].full.mean()))
        seeds = None
        if min(side.full.size for side in sides) > 1:
            seeds = (seed_part(sides[0].full), seed_part(sides[1].full))
        noises.append(TaskNoise(corpus, seeds, (sides[0], sides[1])))
    weights = task_weights(corpora)
    gaps = np.array(differences)
    return these_tasks(float(weights @ gaps), mean_variances(noises, weights)), gaps
