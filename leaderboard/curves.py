"""Altair charts of pretraining: a line a run over tokens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt
import pandas as pd

from biobench.report.details.pretraining import TrainingRun

COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00")
"""Okabe-Ito; as many runs are drawn at once."""


def losses(runs: Sequence[TrainingRun], words: Mapping[str, str]) -> Any:
    """Loss over tokens: lines of training, dots of the evaluations, one colour a run."""
    frame = _frame(runs, "loss")
    colour = _colour(runs, words)
    x = alt.X("tokens:Q", title=words["tokens"], axis=alt.Axis(format="~s"))
    y = alt.Y("loss:Q", title=words["loss"], scale=alt.Scale(zero=False))
    tips = ["run:N", "phase:N", alt.Tooltip("tokens:Q", format=","), alt.Tooltip("loss:Q", format=".4f")]
    lines = alt.Chart(frame[frame["event"] == "train"]).mark_line().encode(x=x, y=y, color=colour, tooltip=tips)
    dots = alt.Chart(frame[frame["event"] == "evaluation"]).mark_point(size=55, filled=True, shape="diamond")
    return alt.layer(lines, dots.encode(x=x, y=y, color=colour, tooltip=tips)).properties(height=340)


def over_tokens(runs: Sequence[TrainingRun], field: str, format: str, words: Mapping[str, str]) -> Any:
    """`field` of the training points over tokens, in the colours of `losses`. None where no point has it."""
    frame = _frame(runs, field)
    frame = frame[frame["event"] == "train"].dropna()
    if frame.empty:
        return None
    return (
        alt.Chart(frame)
        .mark_line()
        .encode(
            x=alt.X("tokens:Q", title=words["tokens"], axis=alt.Axis(format="~s")),
            y=alt.Y(f"{field}:Q", title=None, axis=alt.Axis(format=format)),
            color=_colour(runs, words, legend=False),
            tooltip=["run:N", "phase:N", alt.Tooltip("tokens:Q", format=","), f"{field}:Q"],
        )
        .properties(height=220)
    )


def _frame(runs: Sequence[TrainingRun], field: str) -> pd.DataFrame:
    rows = [
        {"run": run.name, "phase": p.phase, "event": p.event, "tokens": p.tokens, field: getattr(p, field)}
        for run in runs
        for p in run.points
    ]
    return pd.DataFrame(rows)


def _colour(runs: Sequence[TrainingRun], words: Mapping[str, str], *, legend: bool = True) -> alt.Color:
    names = [run.name for run in runs]
    return alt.Color(
        "run:N",
        title=words["training_run"],
        scale=alt.Scale(domain=names, range=list(COLOURS[: len(names)])),
        legend=alt.Legend(orient="top", title=None, labelLimit=300, columns=2) if legend else None,
    )
