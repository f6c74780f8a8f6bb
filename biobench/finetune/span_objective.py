"""The losses of span heads, as sums over a micro-batch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits

from biobench.encode.spans import outermost
from biobench.encode.tokens import Ints
from biobench.models.crf import BEGIN, INSIDE, LAST, UNIT
from biobench.models.span_head import SpanScores

_NEGATIVES, _SAMPLED = 500, 512
"""Of the code behind the published table: spans that are no mention, and spans in all, that a sample trains on."""


def span_loss(scores: SpanScores, targets: Sequence[NDArray[Any]], *, paper: bool) -> Tensor:
    """Negative log likelihood of the outermost spans' tags, plus the binary loss of every span and type.

    targets: per sequence (spans, 3): first unit, last unit, type. paper: the sampled loss instead.
    """
    if paper:
        return _sampled_loss(scores, targets)
    wanted = torch.zeros_like(scores.logits)
    begins = np.cumsum([0, *scores.counts[:-1]])
    for begin, rows in zip(begins, targets, strict=True):
        rows = _short(rows, scores.logits.shape[1])
        first, last, kind = (torch.from_numpy(column).to(wanted.device) for column in rows.T)
        wanted[first + int(begin), last - first, kind] = 1.0
    cells = binary_cross_entropy_with_logits(scores.logits, wanted, reduction="none")
    total = (cells * scores.inside[..., None]).sum()
    if scores.crf is None:
        return total
    assert scores.emissions is not None
    assert scores.mask is not None
    assert scores.sums is not None
    tags = torch.from_numpy(tag_targets(targets, scores.counts, scores.emissions.shape[2])).to(wanted.device)
    likelihood = scores.crf.log_likelihood(scores.emissions, scores.mask, tags, scores.sums)
    return total - likelihood.sum()


def tag_targets(targets: Sequence[NDArray[Any]], counts: Sequence[int], types: int) -> Ints:
    """(sequences with units, units of the longest, types) BIOUL tags of the outermost spans of each type."""
    kept = [(rows, n) for rows, n in zip(targets, counts, strict=True) if n > 0]
    tags = np.zeros((len(kept), max(n for _, n in kept), types), dtype=np.int64)
    for row, (spans, _) in enumerate(kept):
        for first, last, kind in outermost(spans).tolist():
            if first == last:
                tags[row, first, kind] = UNIT
                continue
            tags[row, first + 1 : last, kind] = INSIDE
            tags[row, first, kind], tags[row, last, kind] = BEGIN, LAST
    return tags


def _short(rows: NDArray[Any], longest: int) -> NDArray[Any]:
    """The spans that the band holds."""
    kept: NDArray[Any] = rows[rows[:, 1] - rows[:, 0] < longest]
    return kept


def sampled(rows: NDArray[Any], count: int, longest: int) -> int:
    """How many spans the sampled loss takes of a sequence of `count` units."""
    rows = _short(rows, longest)
    cells = sum(min(longest, count - at) for at in range(count))
    distinct = len({(int(a), int(b)) for a, b, _ in rows})
    return min(_SAMPLED, len(rows) + min(_NEGATIVES, cells - distinct))


def _sampled_loss(scores: SpanScores, targets: Sequence[NDArray[Any]]) -> Tensor:
    """Sum over sampled spans of the mean over columns of the binary loss; column 0 stands for no mention.

    A sequence gives all its mentions and its first 500 other spans in order of position, shuffled and cut at
    512, as in the author's code. A span of two types gives two rows that contradict each other.
    """
    total = scores.logits.sum() * 0.0
    begin = 0
    for rows, count in zip(targets, scores.counts, strict=True):
        rows = _short(rows, scores.logits.shape[1])
        gold = {(int(a), int(b)) for a, b, _ in rows}
        others: list[tuple[int, int, int]] = []
        for first in range(count):
            if len(others) >= _NEGATIVES:
                break
            reach = min(first + scores.logits.shape[1], count)
            others += [(first, last, 0) for last in range(first, reach) if (first, last) not in gold]
        drawn = [(a, b, kind + 1) for a, b, kind in rows.tolist()] + others[:_NEGATIVES]
        chosen = torch.tensor(drawn, dtype=torch.long).view(-1, 3)
        chosen = chosen[torch.randperm(len(chosen))[:_SAMPLED]].to(scores.logits.device)
        logits = scores.logits[begin + chosen[:, 0], chosen[:, 1] - chosen[:, 0]]
        wanted = torch.zeros_like(logits)
        wanted[torch.arange(len(chosen), device=logits.device), chosen[:, 2]] = 1.0
        total = total + binary_cross_entropy_with_logits(logits, wanted, reduction="sum") / logits.shape[1]
        begin += count
    return total
