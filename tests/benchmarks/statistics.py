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
from biobench.stats import Counts, LeftOut
from tests.helpers.stats_simulation import compare_left_out, left_out_of

GROUPS = "130 130 130 48 600 154 15 833 800 300 1000 200 500 400 501 404 100 530 315 502 190"
LABELS = "30 100 100 50 5 22 10 10 5 13 8 15 18 1 2 5 1 2 10 1 5"
"""Groups of test documents, and labels, of 8 French and 13 English test splits. Those of 130 groups
are of one corpus.
"""


def suite(models: int, seeds: int, rng: np.random.Generator) -> list[list[LeftOut]]:
    """Of each model all tasks: two gold labels a document and models of 40 to 90% recall."""
    recalls = np.linspace(0.4, 0.9, models)
    left_out: list[list[LeftOut]] = [[] for _ in recalls]
    for groups, labels in zip(GROUPS.split(), map(int, LABELS.split()), strict=True):
        gold = rng.poisson(2.0 / labels, size=(int(groups), labels)).astype(np.uint8)
        gold[0] += 1
        for tasks, recall in zip(left_out, recalls, strict=True):
            tp = rng.binomial(gold, recall, size=(seeds, *gold.shape)).astype(np.uint8)
            fp = rng.poisson(0.5 / labels, size=tp.shape).astype(np.uint8)
            tasks.append(left_out_of(Counts.of(tp, fp, gold - tp), corpus=groups))
    return left_out


def verdict(models: list[list[LeftOut]]) -> tuple[tuple[int, int], ...]:
    """Possible ranks of the models, every pair tested on these tasks and on tasks like these."""
    corpora = GROUPS.split()
    pairs = list(combinations(range(len(models)), 2))
    answers = []
    for first, second in pairs:
        answer, gaps = compare_left_out(models[first], models[second], corpora)
        assert answer is not None
        stats.tasks_like_these(gaps, corpora, answer)
        answers.append(answer)
    steps = stats.holm([answer.p for answer in answers])
    ahead = []
    for pair, answer, step in zip(pairs, answers, steps, strict=True):
        if step is not None and step.passed:
            ahead.append(pair if answer.estimate > 0 else pair[::-1])
    return stats.possible_ranks(len(models), ahead)


def main() -> None:
    """Prints the processor seconds."""
    parser = argparse.ArgumentParser(description="processor seconds of a verdict")
    parser.add_argument("--models", type=int, default=10)
    parser.add_argument("--seeds", type=int, default=5)
    given = parser.parse_args()
    began = time.process_time()
    ranks = verdict(suite(given.models, given.seeds, np.random.default_rng(0)))
    seconds = time.process_time() - began
    print(f"{given.models} models x 21 tasks x {given.seeds} seeds: {seconds:.2f} s of CPU")
    print("possible ranks: " + ", ".join(f"{low}–{high}" for low, high in ranks))


if __name__ == "__main__":
    main()
