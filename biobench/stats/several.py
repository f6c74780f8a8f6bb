"""Several claims at once: Holm's correction, and the ranks that the corrected pairs leave."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from biobench.stats.types import StatsInputError


@dataclass(frozen=True)
class HolmStep:
    """One p value in Holm's procedure.

    adjusted: the smallest family-wise error rate at which it passes. alpha: the level at which it
    was tested: where it passed, or where the procedure stopped. An interval of level 1 - alpha
    therefore leaves out zero exactly where the claim passed.
    """

    adjusted: float
    alpha: float
    passed: bool


def holm(p_values: Sequence[float | None], alpha: float = 0.05) -> tuple[HolmStep | None, ...]:
    """Holm's step-down procedure (1979) over all p values that there are, in the order given.

    Equal p values are tested at one level, the strictest of theirs, so that no level depends on
    the order. A p of None (no test) stays None and counts for nothing. Raises StatsInputError for
    numbers that are no p values.
    """
    tested = [(p, index) for index, p in enumerate(p_values) if p is not None]
    if not all(0 <= p <= 1 for p, _ in tested):
        raise StatsInputError(
            f"p values {[p for p, _ in tested]} are not between 0 and 1",
            hint="pass p values, or None for no test",
        )
    steps: list[HolmStep | None] = [None] * len(p_values)
    adjusted = 0.0
    passing = True
    step_alpha = alpha
    previous = -1.0
    for rank, (p, index) in enumerate(sorted(tested)):
        remaining = len(tested) - rank
        adjusted = max(adjusted, min(1.0, p * remaining))
        if passing and p != previous:
            step_alpha = alpha / remaining
            passing = p <= step_alpha
        previous = p
        steps[index] = HolmStep(adjusted, step_alpha, passing)
    return tuple(steps)


def possible_ranks(models: int, ahead: Iterable[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """Best and worst rank of each of ``models``, 1 being the highest.

    ahead: (better, worse), the pairs that differ after Holm's correction over all pairs. All ranges
    hold the true ranks together with the level of the correction.
    """
    pairs = list(ahead)
    ranks = []
    for model in range(models):
        ahead_of_it = sum(worse == model for _, worse in pairs)
        behind_it = sum(better == model for better, _ in pairs)
        ranks.append((1 + ahead_of_it, models - behind_it))
    return tuple(ranks)
