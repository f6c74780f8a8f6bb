"""Accuracy of the needle runs of several seeds by length, position and template, with its
interval."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from biobench.schema.document import Document, Prediction
from biobench.schema.needle import Key, cell_of, keys_of


@dataclass(frozen=True, slots=True)
class Share:
    """Accuracy (0-1) over a slice, its interval, documents, and the independent groups among
    them."""

    mean: float
    low: float
    high: float
    documents: int
    groups: int


def grid(
    gold: Sequence[Document], runs: Sequence[Sequence[Prediction]], level: float = 0.95
) -> tuple[dict[Key, Share], dict[str, float]]:
    """(slice to share, document to the share of seeds that got it right) over the runs of several
    seeds.

    The interval is for other documents of the same kind: Wilson's, with as many independent
    observations as the spread between groups (pairs that share a haystack) leaves, so seeds add no
    documents. level: of the whole and of each length, which are asked in order; positions,
    templates and the cells of length and position have it together each, by Bonferroni's correction
    for their number.
    """
    labels_of = [{p.document: p.labels for p in run} for run in runs]
    hits: dict[str, float] = {}
    members: dict[Key, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for document in gold:
        right = [labels.get(document.id) == document.labels for labels in labels_of]
        hits[document.id] = sum(right) / len(right)
        cell = cell_of(document.id)
        if cell is None:
            continue
        for key in keys_of(cell):
            members[key][document.group].append(hits[document.id])
    sizes = Counter(map(_family, members))
    shares = {}
    for key, groups in members.items():
        shares[key] = _share(groups, 1 - (1 - level) / sizes[_family(key)])
    return shares, hits


def _family(key: Key) -> object:
    """Slices that are looked over together; those asked one by one are each their own."""
    length, position, template = key
    if position is None and template is None:
        return key
    return length is None, position is None, template is None


def _share(groups: Mapping[str, Sequence[float]], level: float) -> Share:
    rights = np.array([sum(values) for values in groups.values()])
    sizes = np.array([len(values) for values in groups.values()])
    total = int(sizes.sum())
    count = len(groups)
    mean = sum(rights.tolist()) / total
    # Variance of a ratio of sums over groups, as in cluster sampling.
    residual = math.fsum((rights - mean * sizes) ** 2)
    variance = residual * count / max(count - 1, 1) / total**2
    independent = mean * (1 - mean) / variance if variance > 0 else float(total)
    # Where everything is right (or the spread is chance's gift) there are no more observations than
    # documents.
    low, high = wilson(mean, min(independent, float(total)), level)
    return Share(mean, low, high, total, count)


def wilson(share: float, observations: float, level: float = 0.95) -> tuple[float, float]:
    """Wilson score interval of a share of `observations` (Wilson 1927); these need not be whole."""
    z = NormalDist().inv_cdf((1 + level) / 2)
    squared = z**2 / observations
    middle = (share + squared / 2) / (1 + squared)
    spread = math.sqrt(share * (1 - share) / observations + squared / (4 * observations))
    half = z / (1 + squared) * spread
    return max(0.0, middle - half), min(1.0, middle + half)
