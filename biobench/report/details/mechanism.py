"""Charts of `biobench analyze`, from what its commands print with --json."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from biobench.errors import UsageError

_VALUES = ("value", "low", "high")
_PAIR, _NOISE = "#1f5fa8", "#b5651d"


def cka_chart(analysis: Mapping[str, Any], *, estimator: str = "debiased") -> Any:
    """Divergence of the pair and of seed noise per layer, from what `analyze cka --json` prints.

    Below it their ratio where there is noise. Bars: 95% jackknife intervals over texts. estimator:
    ``debiased`` or
    ``biased``. Raises UsageError for data without such lines.
    """
    try:
        lines = [
            x for x in analysis["lines"] if x["estimator"] == estimator and x["where"].isdigit()
        ]
        title = f"1 − CKA ({estimator}), {analysis['texts']} texts, {analysis['states']} states"
    except (KeyError, TypeError, AttributeError) as error:
        raise UsageError(
            f"this is no CKA analysis: {error} is missing", hint="use `analyze cka --json`"
        ) from error
    if not lines:
        raise UsageError(
            f"the analysis has no lines of the estimator '{estimator}'", hint="debiased or biased"
        )
    chart = _by_layer(lines, title)
    ratios = [_point(x["where"], "ratio", x["ratio"], 1.0) for x in lines if x["ratio"] is not None]
    if ratios:
        chart = chart & _by_ratio(ratios)
    return chart


def _by_layer(lines: Sequence[Mapping[str, Any]], title: str) -> Any:
    import altair as alt

    pair, seeds = "the pair", "seed noise"
    rows = [_point(x["where"], pair, x["divergence"]) for x in lines]
    noise = [_point(x["where"], seeds, x["noise"]) for x in lines if x["noise"] is not None]
    colour = alt.Color(
        "what:N",
        title=None,
        scale=alt.Scale(domain=[pair, seeds], range=[_PAIR, _NOISE]),
        legend=alt.Legend(orient="top") if noise else None,
    )
    tips = [
        alt.Tooltip("layer:O"),
        alt.Tooltip("what:N"),
        *(alt.Tooltip(f"{x}:Q", format=".3f") for x in _VALUES),
    ]
    base = alt.Chart({"values": rows + noise}).encode(
        x=_across("layer"), color=colour, tooltip=tips
    )
    points = base.mark_line(point=alt.OverlayMarkDef(size=45)).encode(
        y=alt.Y("value:Q", title="divergence (%)")
    )
    bars = base.mark_rule(strokeWidth=1.5, opacity=0.7).encode(y="low:Q", y2="high:Q")
    return (bars + points).properties(width=560, height=230, title=title)


def _by_ratio(ratios: Sequence[Mapping[str, Any]]) -> Any:
    import altair as alt

    # an interval without an upper end, or below the axis, is drawn to the axis's own end
    values = [r["value"] for r in ratios]
    scale = alt.Scale(
        type="log", domain=[min(0.5, 0.6 * min(values)), max(3.0, 1.6 * max(values))], clamp=True
    )
    tips = [alt.Tooltip("layer:O"), *(alt.Tooltip(f"{x}:Q", format=".2f") for x in _VALUES)]
    base = alt.Chart({"values": list(ratios)}).encode(x=_across("layer"), tooltip=tips)
    dots = base.mark_point(filled=True, size=60, color=_PAIR).encode(
        y=alt.Y("value:Q", title="pair / noise", scale=scale)
    )
    spans = base.mark_rule(strokeWidth=1.5, color=_PAIR, opacity=0.7).encode(
        y=alt.Y("low:Q", scale=scale), y2=alt.Y2("high:Q")
    )
    one = alt.Chart({"values": [{"one": 1}]}).mark_rule(strokeDash=[4, 4], color="#777")
    return (one.encode(y=alt.Y("one:Q", scale=scale)) + spans + dots).properties(
        width=560, height=150
    )


def _across(title: str) -> Any:
    import altair as alt

    return alt.X("layer:O", title=title, sort=None, axis=alt.Axis(labelAngle=0))


def _point(
    layer: str, what: str, value: Mapping[str, float | None], scale: float = 100.0
) -> dict[str, Any]:
    """A point in percent; an upper end that is not bounded is left at the largest float."""
    ends = {
        name: min(scale * end, 1e300) if (end := value[name]) is not None else 1e300
        for name in _VALUES
    }
    return {"layer": layer, "what": what, **ends}
