"""The correction for many tests. A p of None (untestable) stays None and counts for nothing."""

from __future__ import annotations

from collections.abc import Sequence

from biobench.stats.types import StatsInputError


def holm(p_values: Sequence[float | None]) -> tuple[float | None, ...]:
    """Holm's step-down adjusted p values (Holm 1979), in the order given: the family-wise error rate."""
    known = [p for p in p_values if p is not None]
    for p in known:
        if not 0 <= p <= 1:
            raise StatsInputError(f"p value {p} is not between 0 and 1", hint="pass p values, or None for no test")
    # statsmodels has this test too, and collects garbage at each call: 0.15 s in a process that holds a large board
    adjusted, greatest = dict[int, float](), 0.0
    for rank, place in enumerate(sorted(range(len(known)), key=known.__getitem__)):
        greatest = max(greatest, (len(known) - rank) * known[place])
        adjusted[place] = min(1.0, greatest)
    places = iter(range(len(known)))
    return tuple(None if p is None else adjusted[next(places)] for p in p_values)
