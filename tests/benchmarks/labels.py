"""Many labels: weights, loss targets, scores and threshold tuning against dense arrays and scikit-learn.

    python -m tests.benchmarks.labels [--documents 300] [--labels 10000] [--repeat 2]

Both sides start from the same sigmoid scores in memory and give the same numbers, which is checked. The
dense side holds documents x labels gold, and calls scikit-learn's f1_score once a threshold and average.
Seconds are the least of the repeats, bytes are the peak that tracemalloc saw in a run of its own.
"""

from __future__ import annotations

import argparse
import time
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import f1_score

from biobench.finetune.network import decide
from biobench.finetune.prepare import Prepared
from biobench.kinds.labels import GRID, threshold_scores
from tests.benchmarks.labels_make import dense, make_labels, multi_label_spec

Side = Callable[[], Any]


def sides(prepared: Prepared, chances: list[NDArray[np.float32]]) -> dict[str, tuple[Side, Side]]:
    """Work to (ours, dense); both return the same numbers."""
    split, spec = prepared.test, prepared.spec

    def weights() -> Any:
        found = prepared.kind.weights(spec, split)
        assert found is not None
        return found.numpy()

    def dense_weights() -> Any:
        gold = dense(prepared)
        return (len(gold) - gold.sum(0)) / np.maximum(gold.sum(0), 1)

    said = decide(prepared, split, chances, 0.5)
    names = ("macro_f1_all", "micro_f1", "weighted_f1")

    def scores() -> Any:
        values = prepared.score(split.documents, said).values
        return np.array([values[name] for name in names])

    def dense_scores() -> Any:
        gold, found = dense(prepared), np.stack(chances) > 0.5
        return np.array([f1_score(gold, found, average=a, zero_division=0) for a in ("macro", "micro", "weighted")])

    def tuning() -> Any:
        return np.array(threshold_scores(prepared, prepared.validation, chances))

    def dense_tuning() -> Any:
        gold, every = dense(prepared), np.stack(chances)
        return np.array([f1_score(gold, every > np.float32(t), average="micro", zero_division=0) for t in GRID])

    return {
        "positive weights": (weights, dense_weights),
        "scores of one validation": (scores, dense_scores),
        "threshold on a grid of 19": (tuning, dense_tuning),
    }


def seconds(side: Side, repeat: int) -> float:
    """The least wall seconds of `repeat` runs."""
    found = []
    for _ in range(repeat):
        began = time.perf_counter()
        side()
        found.append(time.perf_counter() - began)
    return min(found)


def peak(side: Side) -> int:
    """Bytes allocated at the peak of one run."""
    tracemalloc.start()
    side()
    found = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return found


def main() -> None:
    """Parse, check that both sides agree, time, print a row each."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--documents", type=int, default=300)
    parser.add_argument("--labels", type=int, default=10_000)
    parser.add_argument("--repeat", type=int, default=2)
    arguments = parser.parse_args()
    spec = multi_label_spec(metric={"paper": "micro_f1", "selection": "micro_f1"})
    prepared, chances = make_labels(arguments.documents, arguments.labels, spec)
    print(f"{arguments.documents} documents, {arguments.labels} labels")
    print("| | ours s | dense s | dense / ours | ours MiB | dense MiB |")
    for name, (ours, other) in sides(prepared, chances).items():
        np.testing.assert_allclose(ours(), other(), rtol=1e-5)
        a, b = seconds(ours, arguments.repeat), seconds(other, arguments.repeat)
        sizes = [f"{peak(side) / 2**20:.1f}" for side in (ours, other)]
        print(f"| {name} | {a:.3f} | {b:.3f} | {b / a:.0f}x | {sizes[0]} | {sizes[1]} |", flush=True)


if __name__ == "__main__":
    main()
