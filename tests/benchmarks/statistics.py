"""What a verdict costs: ``python -m tests.benchmarks.statistics``.

Makes counts of 10 models x 21 tasks x 5 seeds, of the size of the two suites' test splits, and
prints the processor seconds of all pairs: documents left out, these tasks, tasks like these, Holm's
correction, possible ranks.
"""

from __future__ import annotations

import argparse
import time
from itertools import combinations

import numpy as np

from biobench import stats
from biobench.stats import Counts, LeftOut, TaskNoise

#: (corpus, groups of test documents, labels): the shape of 8 French and 13 English test splits.
SHAPES = [
    ("cantemist", 130, 30),
    ("cantemist", 130, 100),
    ("cantemist", 130, 100),
    ("distemist", 48, 50),
    ("meddialog", 600, 5),
    ("diamed", 154, 22),
    ("emea", 15, 10),
    ("medline", 833, 10),
    ("chemprot", 800, 5),
    ("phenotype", 300, 13),
    ("cos", 1000, 8),
    ("social", 200, 15),
    ("deid", 500, 18),
    ("anatem", 400, 1),
    ("bc5cdr", 500, 2),
    ("jnlpba", 404, 5),
    ("ncbi", 100, 1),
    ("gad", 530, 2),
    ("hoc", 315, 10),
    ("bc2gm", 500, 1),
    ("ddi", 190, 5),
]


Model = list[LeftOut]
"""One model on every task."""


def suite(models: int, seeds: int, rng: np.random.Generator) -> list[Model]:
    """Two gold labels a document and models of 40 to 90% recall."""
    recalls = np.linspace(0.4, 0.9, models)
    left_out: list[Model] = [[] for _ in recalls]
    for corpus, groups, labels in SHAPES:
        gold = rng.poisson(2.0 / labels, size=(groups, labels)).astype(np.uint8)
        gold[0] += 1
        names = [f"{corpus}-{group}" for group in range(groups)]
        for model, recall in zip(left_out, recalls, strict=True):
            tp = rng.binomial(gold, recall, size=(seeds, groups, labels)).astype(np.uint8)
            fp = rng.poisson(0.5 / labels, size=tp.shape).astype(np.uint8)
            counts = Counts.of(tp, fp, gold - tp)
            model.append(stats.left_out(counts, "macro", groups=names))
    return left_out


def verdict(models: list[Model]) -> tuple[tuple[int, int], ...]:
    """Possible ranks of the models, every pair tested on these tasks and on tasks like these."""
    corpora = [corpus for corpus, _, _ in SHAPES]
    weights = stats.task_weights(corpora)
    pairs = list(combinations(range(len(models)), 2))
    answers = []
    for first, second in pairs:
        noises, gaps = [], []
        for corpus, a, b in zip(corpora, models[first], models[second], strict=True):
            seeds = (stats.seed_part(a.full), stats.seed_part(b.full))
            noises.append(TaskNoise(corpus, seeds, (a, b)))
            gaps.append(float(a.full.mean() - b.full.mean()))
        answer = stats.these_tasks(float(weights @ gaps), stats.mean_variances(noises, weights))
        assert answer is not None
        stats.tasks_like_these(np.array(gaps), corpora, answer)
        answers.append(answer)
    ahead = []
    steps = stats.holm([answer.p for answer in answers])
    for pair, answer, step in zip(pairs, answers, steps, strict=True):
        if step is not None and step.passed:
            ahead.append(pair if answer.estimate > 0 else pair[::-1])
    return stats.possible_ranks(len(models), ahead)


def main() -> None:
    """Prints the processor seconds."""
    parser = argparse.ArgumentParser(description="processor seconds of a verdict")
    parser.add_argument("--models", type=int, default=10)
    parser.add_argument("--seeds", type=int, default=5)
    arguments = parser.parse_args()
    began = time.process_time()
    ranks = verdict(suite(arguments.models, arguments.seeds, np.random.default_rng(0)))
    taken = time.process_time() - began
    print(
        f"{arguments.models} models x {len(SHAPES)} tasks x {arguments.seeds} seeds: {taken:.2f} "
        f"s of CPU"
    )
    print("possible ranks: " + ", ".join(f"{low}–{high}" for low, high in ranks))


if __name__ == "__main__":
    main()
