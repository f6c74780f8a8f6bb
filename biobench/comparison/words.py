"""Numbers and names in the words of a verdict."""

from __future__ import annotations

from biobench.comparison.result import Compared
from biobench.report.literature.beside import NAMES
from biobench.stats import Interval, RankInterval


def points(difference: float) -> str:
    """A signed difference in points: ``+2.08``."""
    shown = f"{100 * difference:+.2f}"
    return "0.00" if float(shown) == 0 else shown


def ends(interval: Interval | None) -> str:
    """``0.07 to 4.08``, in points."""
    return "–" if interval is None else ends_of(interval)


def ends_of(interval: Interval) -> str:
    """As `ends`, of an interval that there is."""
    return f"{plain_points(interval.low)} to {plain_points(interval.high)}"


def plain_points(value: float) -> str:
    """A number of points without a sign for zero."""
    shown = f"{100 * value:.2f}"
    return "0.00" if float(shown) == 0 else shown


def p_value(p: float | None) -> str:
    """``0.045``: two significant digits; values below 0.0001 by that bound, a dash where there is no test."""
    if p is None:
        return "–"
    return "< 0.0001" if p < 1e-4 else f"{p:.2g}"


def equals(p: float | None) -> str:
    """``p = 0.045``."""
    return f"p {p_value(p)}" if p is not None and p < 1e-4 else f"p = {p_value(p)}"


def tasks_of(count: int) -> str:
    """``6 tasks``."""
    return "1 task" if count == 1 else f"{count} tasks"


def corpora_of(count: int) -> str:
    """``6 corpora``."""
    return "1 corpus" if count == 1 else f"{count} corpora"


def points_of(size: float) -> str:
    """``1 point``, ``0.5 points``: a margin or a wanted difference."""
    return "1 point" if round(100 * size, 9) == 1 else margin(100 * size)


def margin(size: float) -> str:
    """``3 points``."""
    return f"{size:g} points"


def metric_name(comparison: Compared) -> str:
    """The scores compared, in words."""
    names = set(comparison.metrics.values())
    return NAMES.get(next(iter(names)), next(iter(names))) if len(names) == 1 else NAMES["mixed"]


def joined(names: list[str]) -> str:
    """``a, b and c``."""
    if len(names) == 1:
        return names[0]
    return f"{', '.join(names[:-1])} and {names[-1]}"


def ranks(r: RankInterval) -> str:
    """``1–3``, or a single rank."""
    return str(r.low) if r.low == r.high else f"{r.low}–{r.high}"


def level_of(comparison: Compared) -> str:
    """``95%``."""
    return f"{100 * (1 - comparison.alpha):g}%"
