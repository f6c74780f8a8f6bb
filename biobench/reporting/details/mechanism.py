"""Charts of `biobench analyze`, from what its commands print with --json."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt

_ENDS = ("value", "low", "high")
_COLOURS = ("#1f5fa8", "#b5651d")


def cka_chart(analysis: Mapping[str, Any], *, estimator: str = "debiased") -> Any:
    """Divergence of the pair and of seed noise per layer, from what `analyze cka --json` prints.

    Below it their ratio where there is noise. Bars: 95% jackknife intervals over texts. estimator:
    ``debiased`` or ``biased``.
    """
    divergences = []
    ratios = []
    for line in analysis["lines"]:
        layer = line["where"]
        if line["estimator"] != estimator or not layer.isdigit():
            continue
        divergences.append(_point(layer, "the pair", line["divergence"], 100.0))
        if line["noise"] is not None:
            divergences.append(_point(layer, "seed noise", line["noise"], 100.0))
        if line["ratio"] is not None:
            ratios.append(_point(layer, "ratio", line["ratio"], 1.0))
    title = f"1 − CKA ({estimator}), {analysis['texts']} texts, {analysis['states']} states"
    chart = _by_layer(divergences, "divergence (%)", alt.Scale())
    chart = chart.properties(width=560, height=230, title=title)
    if not ratios:
        return chart
    # an interval without an upper end, or below the axis, is drawn to the axis's own end
    values = [ratio["value"] for ratio in ratios]
    domain = [min(0.5, 0.6 * min(values)), max(3.0, 1.6 * max(values))]
    scale = alt.Scale(type="log", domain=domain, clamp=True)
    equal = alt.Chart({"values": [{"value": 1}]}).mark_rule(strokeDash=[4, 4], color="#777")
    equal = equal.encode(y=alt.Y("value:Q", scale=scale))
    by_ratio = equal + _by_layer(ratios, "pair / noise", scale)
    return chart & by_ratio.properties(width=560, height=150)


def _by_layer(rows: Sequence[Mapping[str, Any]], title: str, scale: Any) -> Any:
    """Points with their intervals over the layers, joined, a colour a `what`."""
    tips = [alt.Tooltip(f"{end}:Q", format=".3f") for end in _ENDS]
    colours = alt.Scale(range=_COLOURS)
    legend = alt.Legend(orient="top")
    base = alt.Chart({"values": list(rows)}).encode(
        x=alt.X("layer:O", sort=None, axis=alt.Axis(labelAngle=0)),
        color=alt.Color("what:N", title=None, sort=None, scale=colours, legend=legend),
        tooltip=["layer:O", "what:N", *tips],
    )
    points = base.mark_line(point=alt.OverlayMarkDef(size=45))
    points = points.encode(y=alt.Y("value:Q", title=title, scale=scale))
    bars = base.mark_rule(strokeWidth=1.5, opacity=0.7)
    return bars.encode(y=alt.Y("low:Q", scale=scale), y2="high:Q") + points


def _point(
    layer: str, what: str, value: Mapping[str, float | None], scale: float
) -> dict[str, Any]:
    """A point, times the scale; an upper end that is not bounded is left at the largest float."""
    point: dict[str, Any] = {"layer": layer, "what": what}
    for end in _ENDS:
        bound = value[end]
        if bound is None:
            bound = math.inf
        point[end] = min(scale * bound, 1e300)
    return point
