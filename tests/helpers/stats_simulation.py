"""Simulated test sets and suites whose true values are known; shared by the statistics tests."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from biobench.stats import (
    Counts,
    DocumentNoise,
    MeanTest,
    TaskRuns,
    compare_seeds,
    document_noise,
    redraw,
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


@dataclass(frozen=True)
class OnTasks:
    """First minus second model: seeds of the first task, documents of each corpus, and all of them
    together.
    """

    seeds: MeanTest
    documents: tuple[DocumentNoise | None, ...]
    total: MeanTest | None


def compare_counts(
    tasks: list[TaskRuns],
    corpora: str = "",
    *,
    paired: bool = True,
    draws: int = 1000,
    level: float = 0.95,
) -> OnTasks:
    """The first two models of each task, a corpus by its letter (each task its own where none is
    given).
    """
    names = corpora or "".join(chr(97 + i) for i in range(len(tasks)))
    sizes = {name: names.count(name) for name in names}
    noise, parts, twice, scores = [], [], 0.0, []
    for name, size in sizes.items():
        rows = redraw(
            [task for task, of in zip(tasks, names, strict=True) if of == name], draws=draws
        )
        scores += [(row[0].full, row[1].full, 1 / (len(sizes) * size)) for row in rows]
        one = document_noise(
            [row[0] for row in rows], [row[1] for row in rows], paired=[paired] * size
        )
        noise.append(one)
        if one is not None:
            parts.append((one.variance / len(sizes) ** 2, one.df))
            twice += one.twice / len(sizes) ** 2
    known = parts if len(parts) == len(sizes) else None
    first, second, weights = zip(*scores, strict=True)
    total = these_tasks(
        first,
        second,
        weights=weights,
        paired=[paired] * len(tasks),
        documents=known,
        twice=twice if known else 0.0,
        level=level,
    )
    return OnTasks(
        compare_seeds(first[0], second[0], paired=paired, level=level), tuple(noise), total.test
    )


def one_task(name: str, counts: list[Counts], groups: list[str]) -> TaskRuns:
    """A task by macro F1."""
    return TaskRuns.of(name, counts, "macro", groups=groups)
