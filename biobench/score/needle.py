"""Accuracy of needle predictions by length, position and template; the cells stand in the documents' ids."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist

from biobench.schema.document import Document, Prediction
from biobench.schema.needle import Cell, cell_of

Key = tuple[int | None, str | None, str | None]
"""A slice of the grid: length, position and template, None for all."""


@dataclass(frozen=True, slots=True)
class Share:
    """Accuracy (0-1) over a slice, its 95% interval, documents, and the independent groups among them."""

    mean: float
    low: float
    high: float
    documents: int
    groups: int


def keys_of(cell: Cell) -> tuple[Key, ...]:
    """The slices that a cell counts in: all, each margin, and length x position."""
    length, position, template = cell
    return (
        (None, None, None),
        (length, None, None),
        (None, position, None),
        (None, None, template),
        (length, position, None),
    )


def name_of(key: Key) -> str:
    """How a slice is called in the scores: ``accuracy.512.start``, ``accuracy.drug``."""
    return ".".join(["accuracy", *(str(part) for part in key if part is not None)])


def accuracies(gold: Sequence[Document], predictions: Sequence[Prediction]) -> dict[str, float]:
    """Name to accuracy of every slice but the whole; nothing where the ids name no cells."""
    said = {p.document: p.labels for p in predictions}
    right: dict[Key, list[int]] = defaultdict(lambda: [0, 0])
    for document in gold:
        cell = cell_of(document.id)
        if cell is None:
            continue
        for key in keys_of(cell)[1:]:
            right[key][0] += said.get(document.id) == document.labels
            right[key][1] += 1
    order = sorted(right, key=lambda k: (k[2] is not None, k[0] is None, k[0] or 0, k[1] or "", k[2] or ""))
    return {name_of(key): right[key][0] / right[key][1] for key in order}


def grid(
    gold: Sequence[Document], runs: Sequence[Sequence[Prediction]], level: float = 0.95
) -> tuple[dict[Key, Share], dict[str, float]]:
    """(slice to share, document to the share of seeds that got it right) over the runs of several seeds.

    The interval is for other documents of the same kind: Wilson's, with as many independent observations as
    the spread between groups (pairs that share a haystack) leaves, so seeds add no documents. level: of each
    interval.
    """
    said = [{p.document: p.labels for p in run} for run in runs]
    hits = {d.id: sum(run.get(d.id) == d.labels for run in said) / len(said) for d in gold}
    members: dict[Key, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for document in gold:
        cell = cell_of(document.id)
        if cell is not None:
            for key in keys_of(cell):
                members[key][document.group].append(hits[document.id])
    return {key: _share(groups, level) for key, groups in members.items()}, hits


def _share(groups: Mapping[str, Sequence[float]], level: float) -> Share:
    sizes = [len(own) for own in groups.values()]
    total, count = sum(sizes), len(groups)
    mean = sum(map(sum, groups.values())) / total
    # Variance of a ratio of sums over groups, as in cluster sampling.
    residual = math.fsum((sum(own) - mean * len(own)) ** 2 for own in groups.values())
    variance = residual * count / max(count - 1, 1) / total**2
    independent = mean * (1 - mean) / variance if variance > 0 else float(total)
    # Where everything is right (or the spread is chance's gift) there are no more observations than documents.
    low, high = wilson(mean, min(independent, float(total)), level)
    return Share(mean, low, high, total, count)


def wilson(share: float, observations: float, level: float = 0.95) -> tuple[float, float]:
    """Wilson score interval of a share of `observations` (Wilson 1927); these need not be whole."""
    z = NormalDist().inv_cdf((1 + level) / 2)
    squared = z**2 / observations
    middle = (share + squared / 2) / (1 + squared)
    half = z / (1 + squared) * math.sqrt(share * (1 - share) / observations + squared / (4 * observations))
    return max(0.0, middle - half), min(1.0, middle + half)
