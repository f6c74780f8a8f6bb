"""Charts of the CKA report."""

from __future__ import annotations

from typing import Any

from trainer.analysis_cka import GROUPS, Report

_OWN, _NOISE = "#1f5fa8", "#b5651d"


def cka_chart(report: Report, *, estimator: str = "debiased") -> Any:
    """Divergence of the pair and of seed noise per layer, and below it their ratio where there is noise.

    Bars: 95% jackknife intervals over texts.
    """
    import altair as alt

    lines = [x for x in report.lines if x.estimator == estimator and x.where.isdigit()]
    rows = []
    for line in lines:
        rows.append(_row(line.where, "the pair", line.divergence))
        if line.noise is not None:
            rows.append(_row(line.where, "seed noise", line.noise))
    depth = alt.X("layer:O", title="layer", sort=None, axis=alt.Axis(labelAngle=0))
    colour = alt.Color(
        "what:N",
        title=None,
        scale=alt.Scale(domain=["the pair", "seed noise"], range=[_OWN, _NOISE]),
        legend=alt.Legend(orient="top") if report.noise else None,
    )
    tips = [alt.Tooltip("layer:O"), alt.Tooltip("what:N"), *(alt.Tooltip(f"{x}:Q", format=".3f") for x in _VALUES)]
    base = alt.Chart(_data(rows)).encode(x=depth, color=colour)
    points = base.mark_line(point=alt.OverlayMarkDef(size=45)).encode(
        y=alt.Y("value:Q", title="divergence (%)"), tooltip=tips
    )
    bars = base.mark_rule(strokeWidth=1.5, opacity=0.7).encode(y="low:Q", y2="high:Q", tooltip=tips)
    above = (bars + points).properties(
        width=560, height=230, title=f"1 − CKA ({estimator}), {report.texts} texts, {report.states} states"
    )
    ratios = [_row(x.where, "ratio", x.ratio, 1.0) for x in lines if x.ratio is not None]
    if not ratios:
        return above
    # an interval without an upper end, or below the axis, is drawn to the axis's own end
    top = max(3.0, 1.6 * max(r["value"] for r in ratios))
    floor = min(0.5, 0.6 * min(r["value"] for r in ratios))
    scale = alt.Scale(type="log", domain=[floor, top], clamp=True)
    below = alt.Chart(_data(ratios)).encode(x=depth)
    dots = below.mark_point(filled=True, size=60, color=_OWN).encode(
        y=alt.Y("value:Q", title="pair / noise", scale=scale), tooltip=[alt.Tooltip("value:Q", format=".2f")]
    )
    spans = below.mark_rule(strokeWidth=1.5, color=_OWN, opacity=0.7).encode(
        y=alt.Y("low:Q", scale=scale), y2=alt.Y2("high:Q")
    )
    one = (
        alt.Chart(_data([{"one": 1}])).mark_rule(strokeDash=[4, 4], color="#777").encode(y=alt.Y("one:Q", scale=scale))
    )
    return above & (one + spans + dots).properties(width=560, height=150)


def whole_chart(report: Report, *, estimator: str = "debiased") -> Any:
    """The chart of the pair and, where there is a series, its chart below."""
    chart = cka_chart(report, estimator=estimator)
    if not report.series:
        return chart
    # each has colours of its own, or the second would have none for its groups
    return (chart & series_chart(report, estimator=estimator)).resolve_scale(color="independent")


def series_chart(report: Report, *, estimator: str = "debiased") -> Any:
    """Divergence over the pairs of a series, one line for all layers and one a group."""
    import altair as alt

    points = [*[(p.pair, p.lines) for p in report.series], (report.pair, report.lines)]
    rows = [
        _row(str(number), line.where, line.divergence) | {"pair": " : ".join(pair)}
        for number, (pair, lines) in enumerate(points, 1)
        for line in lines
        if line.estimator == estimator and line.where in (*GROUPS, "all")
    ]
    base = alt.Chart(_data(rows)).encode(
        x=alt.X("layer:O", title="pair of the series", sort=None, axis=alt.Axis(labelAngle=0)),
        color=alt.Color("what:N", title="layers", sort=["all", *GROUPS]),
        tooltip=[alt.Tooltip("pair:N"), *(alt.Tooltip(f"{x}:Q", format=".2f") for x in _VALUES)],
    )
    lines = base.mark_line(point=True).encode(y=alt.Y("value:Q", title="divergence (%)"))
    return (base.mark_rule(opacity=0.6).encode(y="low:Q", y2="high:Q") + lines).properties(
        width=560, height=260, title=f"Divergence along the series ({estimator})"
    )


def _data(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Rows as the data of a chart, carried inside it."""
    return {"values": rows}


_VALUES = ("value", "low", "high")


def _row(layer: str, what: str, value: Any, scale: float = 100.0) -> dict[str, Any]:
    """A point in percent; an end that is not a number that JSON has is left at the largest float."""
    ends = {name: min(scale * getattr(value, name), 1e300) for name in _VALUES}
    return {"layer": layer, "what": what, **ends}
