"""What a verdict costs: ``python -m tests.benchmarks.statistics``.

Makes counts of 10 models x 21 tasks x 5 seeds, of the size of the two suites' test splits, and
prints the processor seconds of all pairs: documents redrawn, these tasks, tasks like these, Holm's
correction, possible ranks.
"""

from __future__ import annotations

import argparse
import time
from itertools import combinations, groupby

import numpy as np

from biobench import stats
from biobench.stats import Counts, Redrawn, TaskRuns

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


def suite(models: int, seeds: int, rng: np.random.Generator) -> list[TaskRuns]:
    """Two gold labels a document and models of 40 to 90% recall."""
    tasks = []
    for index, (corpus, groups, labels) in enumerate(SHAPES):
        gold = rng.poisson(2.0 / labels, size=(groups, labels)).astype(np.uint8)
        gold[0] += 1
        runs = []
        for recall in np.linspace(0.4, 0.9, models):
            tp = rng.binomial(gold, recall, size=(seeds, groups, labels)).astype(np.uint8)
            fp = rng.poisson(0.5 / labels, size=tp.shape).astype(np.uint8)
            runs.append(Counts.of(tp, fp, gold - tp))
        tasks.append(
            TaskRuns.of(
                f"task{index}", runs, "macro", groups=[f"{corpus}-{g}" for g in range(groups)]
            )
        )
    return tasks


def verdict(tasks: list[TaskRuns]) -> tuple[tuple[int, int], ...]:
    """Possible ranks of the models, every pair tested on these tasks and on tasks like these."""
    corpora = [corpus for corpus, _, _ in SHAPES]
    drawn: list[list[tuple[Redrawn, ...]]] = [
        stats.redraw([tasks[i] for i in members])
        for _, members in groupby(range(len(tasks)), key=lambda i: corpora[i])
    ]
    weights = [float(w) for w in stats.task_weights(corpora)]
    flat = [row for corpus in drawn for row in corpus]
    pairs = list(combinations(range(len(tasks[0].models)), 2))
    tests = []
    for a, b in pairs:
        noise = [
            stats.document_noise(
                [row[a] for row in rows], [row[b] for row in rows], paired=[True] * len(rows)
            )
            for rows in drawn
        ]
        first, second = ([row[who].full for row in flat] for who in (a, b))
        parts = [(n.variance / len(drawn) ** 2, n.df) for n in noise]
        twice = sum(n.twice for n in noise) / len(drawn) ** 2
        test = stats.these_tasks(first, second, weights=weights, documents=parts, twice=twice).test
        gaps = np.array([x.mean() - y.mean() for x, y in zip(first, second, strict=True)])
        stats.tasks_like_these(gaps, corpora, test)
        tests.append(test)
    corrected = stats.holm([test.p for test in tests])
    ahead = [
        (pair if test.estimate > 0 else pair[::-1])
        for pair, test, p in zip(pairs, tests, corrected, strict=True)
        if p is not None and p <= 0.05
    ]
    return stats.possible_ranks(len(tasks[0].models), ahead)


def main() -> None:
    """Prints the processor seconds."""
    parser = argparse.ArgumentParser(description="processor seconds of a verdict")
    parser.add_argument("--models", type=int, default=10)
    parser.add_argument("--seeds", type=int, default=5)
    arguments = parser.parse_args()
    tasks = suite(arguments.models, arguments.seeds, np.random.default_rng(0))
    began = time.process_time()
    ranks = verdict(tasks)
    taken = time.process_time() - began
    print(
        f"{arguments.models} models x {len(SHAPES)} tasks x {arguments.seeds} seeds: {taken:.2f} "
        f"s of CPU"
    )
    print("possible ranks: " + ", ".join(f"{low}–{high}" for low, high in ranks))


if __name__ == "__main__":
    main()
