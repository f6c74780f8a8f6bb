"""The scales of charts' axes."""

from __future__ import annotations

from typing import Any

import altair as alt
import pandas as pd

LEAST_POINTS = 10
"""Points that an axis of scores is wide at least: half a point is no wide spread."""


def cost_scale(costs: pd.Series[float]) -> tuple[Any, float]:
    """A logarithmic scale, and the cost in the middle of the axis."""
    low = costs.min()
    high = costs.max()
    # a domain of one's own: padding in pixels turned the axis round on narrow screens
    if low <= 0:
        return alt.Scale(domain=[low - 1, high * 1.1 + 1]), (low + high) / 2
    room = max((high / low) ** 0.15, 1.3)
    return alt.Scale(type="log", domain=[low / room, high * room]), (low * high) ** 0.5


def score_scale(scores: pd.Series[float]) -> Any:
    """A scale around scores in percent, which may be unknown."""
    low = scores.min()
    high = scores.max()
    if high - low >= LEAST_POINTS:
        return alt.Scale(zero=False, padding=10)
    start = min(max((low + high - LEAST_POINTS) / 2, 0), 100 - LEAST_POINTS)
    return alt.Scale(domain=[start, start + LEAST_POINTS], padding=10)
