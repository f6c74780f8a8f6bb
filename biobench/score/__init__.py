"""Scores from predictions and gold, by the contract of docs/results.md. Free of torch.

`compute` gives every average of one run; `counts` gives the per-group counts from which any average
can be recomputed, for the bootstrap; `scored` fills a record's scores; `rescore` recomputes those
of a whole store.
"""

from biobench.score.averages import Scores
from biobench.score.compute import compute, score_task, scored
from biobench.score.counting import GroupCounts, ScoreError, counts, oracle, shares
from biobench.score.rescore import Rescored, rescore
from biobench.score.slices import SLICES, Part, parts_of

__all__ = [
    "SLICES",
    "GroupCounts",
    "Part",
    "Rescored",
    "ScoreError",
    "Scores",
    "compute",
    "counts",
    "oracle",
    "parts_of",
    "rescore",
    "score_task",
    "scored",
    "shares",
]
