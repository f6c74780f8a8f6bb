"""The chart of a CKA analysis, from the JSON alone."""

from __future__ import annotations

import json
from typing import Any

import pytest

from biobench.errors import UsageError
from biobench.report.details.mechanism import cka_chart


def line(where: str, value: float, noise: float | None, high: float | None = 3.0) -> dict[str, Any]:
    """One layer or group as `analyze cka --json` prints it."""
    return {
        "where": where,
        "estimator": "debiased",
        "divergence": {"value": value, "low": value - 0.01, "high": value + 0.01},
        "noise": None if noise is None else {"value": noise, "low": noise / 2, "high": noise * 2},
        "ratio": None if noise is None else {"value": value / noise, "low": 0.5, "high": high},
    }


def analysis(noise: float | None = None, high: float | None = 3.0) -> dict[str, Any]:
    """Two layers and their groups."""
    lines = [line(where, 0.2 + 0.1 * n, noise, high) for n, where in enumerate(("0", "1", "low", "all"))]
    return {"pair": ["a", "b"], "lines": lines, "texts": 40, "states": "mean"}


def drawn(chart: Any) -> dict[str, Any]:
    """The chart's Vega-Lite, which holds only what JSON has."""
    found: dict[str, Any] = json.loads(json.dumps(chart.to_dict(), allow_nan=False))
    return found


def test_a_pair_alone_has_its_layers_in_percent() -> None:
    found = drawn(cka_chart(analysis()))
    assert "vconcat" not in found
    (rows,) = found["datasets"].values()
    assert [(r["layer"], r["what"]) for r in rows] == [("0", "the pair"), ("1", "the pair")]
    assert rows[1]["value"] == pytest.approx(30)
    assert (rows[1]["low"], rows[1]["high"]) == (pytest.approx(29), pytest.approx(31))


def test_noise_adds_its_line_and_the_ratio_whose_end_may_not_be_bounded() -> None:
    text = json.dumps(drawn(cka_chart(analysis(0.1, None))))
    assert text.count('"seed noise"') >= 3
    assert "pair / noise" in text
    assert "1e+300" in text


def test_other_data_is_refused_in_one_line() -> None:
    with pytest.raises(UsageError, match="no CKA analysis: 'lines' is missing"):
        cka_chart({"pair": []})
    with pytest.raises(UsageError, match="no lines of the estimator 'biased'"):
        cka_chart(analysis(), estimator="biased")
