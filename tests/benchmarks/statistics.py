"""What the suite statistics cost: ``python -m tests.benchmarks.statistics``.

Makes counts of 50 models x 19 tasks x 9 seeds, of the size of the two suites' test splits, and prints the
seconds of each step and the peak memory. Nothing is asserted: a benchmark, not a test.
"""

from __future__ import annotations

import argparse
import resource
import sys
import time
from collections.abc import Iterator

import numpy as np

from biobench.stats.counts import Counts
from biobench.stats.hierarchy import DOCUMENT_DRAWS, document_pools, rank_intervals, suite_draws
from biobench.stats.paired import compare_task
from biobench.stats.ranking import compare_many
from biobench.stats.runs import TaskRuns
from biobench.stats.types import Estimand

#: (cluster, groups of test documents, labels): the shape of 8 French and 11 English test splits.
SHAPES = [
    ("cantemist", 130, 30), ("cantemist", 130, 100), ("cantemist", 130, 100), ("distemist", 48, 50),
    ("meddialog", 600, 5), ("diamed", 154, 22), ("emea", 15, 10), ("medline", 833, 10), ("chemprot", 800, 5),
    ("phenotype", 300, 13), ("cos", 1000, 8), ("social", 200, 15), ("deid", 500, 18), ("anatem", 400, 1),
    ("bc5cdr", 500, 2), ("jnlpba", 404, 5), ("ncbi", 100, 1), ("gad", 530, 2), ("hoc", 315, 10),
]  # fmt: skip


def suite(models: int, seeds: int, rng: np.random.Generator) -> Iterator[TaskRuns]:
    """The tasks one by one, with two gold labels a document and models of 40 to 90% recall."""
    skill = np.linspace(0.4, 0.9, models)
    for index, (cluster, groups, labels) in enumerate(SHAPES):
        gold = rng.poisson(2.0 / labels, size=(groups, labels)).astype(np.uint8)
        gold[0] += 1
        runs = []
        for recall in skill:
            tp = rng.binomial(gold, recall, size=(seeds, groups, labels)).astype(np.uint8)
            fp = rng.poisson(0.5 / labels, size=tp.shape).astype(np.uint8)
            runs.append(Counts.of(tp, fp, gold - tp))
        ids = [f"{cluster}-{group}" for group in range(groups)]
        yield TaskRuns.of(f"task{index}", runs, "macro", cluster=cluster, groups=ids)


def main() -> None:
    """Runs every step once and prints its cost."""
    parser = argparse.ArgumentParser(description="seconds and peak memory of the suite statistics")
    parser.add_argument("--models", type=int, default=50)
    parser.add_argument("--seeds", type=int, default=9)
    parser.add_argument("--draws", type=int, default=10_000)
    arguments = parser.parse_args()
    rng = np.random.default_rng(0)
    names = [f"model{index}" for index in range(arguments.models)]
    print(f"{arguments.models} models x {len(SHAPES)} tasks x {arguments.seeds} seeds, {arguments.draws} draws")

    start = time.perf_counter()
    for _ in suite(arguments.models, arguments.seeds, rng):
        pass
    making = time.perf_counter() - start
    _line("making the counts alone", making)
    base = _peak()
    start = time.perf_counter()
    pools = document_pools(suite(arguments.models, arguments.seeds, rng))
    _line(f"document draws ({DOCUMENT_DRAWS} a cluster)", time.perf_counter() - start - making)
    for estimand in (Estimand.TASKS_LIKE_THESE, Estimand.THESE_TASKS):
        start = time.perf_counter()
        draws = suite_draws(pools, estimand=estimand, draws=arguments.draws)
        ranks = rank_intervals(draws, names)
        _line(f"rank intervals, {estimand.value}", time.perf_counter() - start)
    start = time.perf_counter()
    scores = [[pool.scores[0, model].tolist() for pool in pools] for model in range(arguments.models)]
    many = compare_many(scores, names, clusters=[pool.cluster for pool in pools])
    _line(f"all {len(many.pairs)} pairs: t, Wilcoxon, Holm, letters", time.perf_counter() - start)
    task = next(suite(2, arguments.seeds, rng))
    start = time.perf_counter()
    compare_task(task.models[0], task.models[1], "macro", method="bootstrap", draws=arguments.draws)
    _line("two models on one task, bootstrap", time.perf_counter() - start)
    print(f"peak memory {_peak() / 2**20:.0f} MiB, of which {base / 2**20:.0f} MiB before the statistics")
    print(f"most skilled model: rank {ranks[-1].rank}, interval {ranks[-1].low}-{ranks[-1].high}")


def _line(what: str, seconds: float) -> None:
    print(f"{seconds:7.2f} s  {what}")


def _peak() -> int:
    """Peak resident bytes of this process so far (macOS counts bytes, Linux KiB)."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


if __name__ == "__main__":
    main()
