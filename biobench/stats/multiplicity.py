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
    if not known:
        return tuple(None for _ in p_values)
    from statsmodels.stats.multitest import multipletests

    adjusted = iter(multipletests(known, method="holm")[1])
    return tuple(None if p is None else min(1.0, float(next(adjusted))) for p in p_values)
