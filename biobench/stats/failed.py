"""Runs that did not train: far below the other seeds of their task, or no better than no skill."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from numpy.typing import ArrayLike

from biobench.stats.types import as_values

#: How far below the median of its siblings a run must lie, in units of their spread (1.4826 x MAD).
FAR = 6.0
#: And at least so far, as a fraction: seeds of a working recipe differ by less (fifteen points).
LEAST = 0.15
#: Siblings below which nothing is called far from them.
FEWEST = 2


def failed_runs(scores: ArrayLike, no_skill: float | None = None) -> tuple[bool, ...]:
    """Which runs of one model on one task failed, in the order of the seeds.

    scores: fractions. no_skill: what the best policy without skill scores there; a run at or below it failed,
    whatever its siblings did, unless all of them are there: then the task is not learnt, which is a result. Else a
    run failed that lies below the median of its siblings by more than 15 points and 6 robust standard deviations of
    theirs. Half of the runs or more are never far below the rest.
    """
    x = as_values(scores, "scores over seeds").tolist()
    at_floor = [no_skill is not None and score <= no_skill for score in x]
    if all(at_floor):
        at_floor = [False] * len(x)
    if len(x) <= FEWEST or max(x) - min(x) <= LEAST:
        # none is so far from any other
        return tuple(at_floor)
    far = []
    for place, score in enumerate(x):
        others = x[:place] + x[place + 1 :]
        middle = median(others)
        spread = 1.4826 * median(abs(other - middle) for other in others)
        far.append(middle - score > max(LEAST, FAR * spread))
    return tuple(below or gone for below, gone in zip(far, at_floor, strict=True))


def without_failed(scores: Sequence[float], failed: Sequence[bool]) -> tuple[float, ...]:
    """The scores of the runs that did not fail."""
    return tuple(score for score, lost in zip(scores, failed, strict=True) if not lost)
