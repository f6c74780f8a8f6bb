"""How many spans of two sets can be paired by overlap, each used at most once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy

Offsets = tuple[int, int]
"""Characters [start, end)."""


def overlap_matches(gold: Sequence[Offsets], predicted: Sequence[Offsets]) -> int:
    """Size of a maximum matching between two span sets, an edge being at least one shared character.

    Maximum, not first come first served: with nested or long spans the order in which a greedy pairing
    looks at them changes its result, and a score must not depend on order. Hopcroft-Karp (scipy).
    """
    if not gold or not predicted:
        return 0
    if len(gold) == 1 or len(predicted) == 1:
        return int(any(a < d and c < b for a, b in gold for c, d in predicted))
    g, f = np.array(gold), np.array(predicted)
    touches = (g[:, None, 0] < f[None, :, 1]) & (f[None, :, 0] < g[:, None, 1])
    degrees = touches.sum(axis=0)
    if degrees.max() <= 1 and touches.sum(axis=1).max() <= 1:
        return int(degrees.sum())
    # named in full: most scores need no such graph, and importing this part of scipy takes longer than they do
    edges = scipy.sparse.csr_matrix(touches.astype(np.int8))
    matching = scipy.sparse.csgraph.maximum_bipartite_matching(edges, perm_type="column")
    return int((matching >= 0).sum())
