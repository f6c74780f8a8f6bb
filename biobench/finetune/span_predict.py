"""From a span head's scores to the spans it says are there."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from biobench.encode.spans import Found
from biobench.encode.tokens import Encoded
from biobench.models.crf import BEGIN, LAST, UNIT
from biobench.models.span_head import SpanScores

_THRESHOLD = 0.5


def found_spans(scores: SpanScores, encoded: Sequence[Encoded], *, paper: bool) -> list[Found]:
    """Per window: (spans, 4) first unit, last unit, type, probability; units counted in the document.

    A span and type counts when its own sigmoid passes 0.5, so one span may have two types. Outermost spans
    longer than the scorer's band are taken from the tagger's best path. paper: column 0 stands for no
    mention, and a span has its best type only.
    """
    chances = torch.sigmoid(scores.logits).masked_fill(~scores.inside[..., None], 0.0)
    if paper:
        chances = chances[..., 1:]
        best = chances == chances.max(dim=-1, keepdim=True).values
        chances = chances * best
    at = (chances > _THRESHOLD).nonzero()
    values = chances[at[:, 0], at[:, 1], at[:, 2]].cpu().numpy()
    rows = at.cpu().numpy()
    long = _longer(scores) if scores.crf is not None and not paper else [[] for _ in encoded]
    found: list[Found] = []
    begin = 0
    for window, extra, count in zip(encoded, long, scores.counts, strict=True):
        mine = (rows[:, 0] >= begin) & (rows[:, 0] < begin + count)
        first = rows[mine, 0] - begin
        spans = np.stack([first, first + rows[mine, 1], rows[mine, 2], values[mine]], axis=1).astype(np.float64)
        spans = np.concatenate([spans, np.asarray(extra, dtype=np.float64).reshape(-1, 4)])
        spans[:, :2] = window.words[spans[:, :2].astype(np.int64)]
        found.append(spans)
        begin += count
    return found


def _longer(scores: SpanScores) -> list[list[tuple[int, int, int, float]]]:
    """Per sequence, the tagger's spans beyond the band; the score is the lesser chance of begin and end."""
    assert scores.crf is not None
    assert scores.emissions is not None
    assert scores.mask is not None
    assert scores.sums is not None
    longest = scores.logits.shape[1]
    found: list[list[tuple[int, int, int, float]]] = [[] for _ in scores.counts]
    if max(scores.counts) <= longest:
        return found
    rows = [at for at, count in enumerate(scores.counts) if count > 0]
    tags = scores.crf.viterbi(scores.emissions, scores.mask).cpu().numpy()
    chances: Tensor = scores.crf.log_marginals(scores.emissions, scores.mask, scores.sums).exp()
    begins = (chances[..., BEGIN] + chances[..., UNIT]).cpu().numpy()
    ends = (chances[..., LAST] + chances[..., UNIT]).cpu().numpy()
    for place, row in enumerate(rows):
        for first, kind in np.argwhere(tags[place] == BEGIN).tolist():
            last = first + int(np.argmax(tags[place, first:, kind] == LAST))
            if last - first >= longest:
                score = float(min(begins[place, first, kind], ends[place, last, kind]))
                found[row].append((first, last, kind, score))
    return found
