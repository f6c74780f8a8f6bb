"""The charts of the app: colours, formats and labels in one place; every number comes from the rows.

`words`: the labels, by key. `ink`: the colour of texts and quiet lines, legible on the reader's ground.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import altair as alt
import pandas as pd

from biobench.report.rows import Row
from biobench.schema.record import RunRecord

if TYPE_CHECKING:
    from biobench.report.details.pretraining import TrainingRun

BLUE, ORANGE = "#56B4E9", "#E69F00"
"""Two hues of the Okabe-Ito palette, apart for every kind of colour vision, on light and dark grounds."""
COLOURS = ("#56B4E9", "#E69F00", "#009E73", "#CC79A7", "#D55E00", "#0072B2")
"""Of the same palette: as many models or runs are drawn at once."""
INK, DARK_INK = "#5f5f5f", "#b4b4b4"
"""Of texts on a light and on a dark ground."""
FEW_SEEDS = 3
"""Below this many seeds an interval says next to nothing: none is shown."""
MOST_LINES = 15
"""Lines of the standing chart."""
MOST_INTERVALS = 40
"""Models of a scatter up to which it shows intervals: more of them overprint each other."""
MOST_LETTERS = 34
"""Letters of a name beside a chart."""
_SHORT = ".1~f"
"""Of an axis: one over a single value would print it with six digits."""
_CROWDED = 0.08
"""Share of an axis within which names of neighbours would overprint."""


def cut(name: str, most: int = MOST_LETTERS) -> str:
    """A long name without its middle: the ends tell variants apart."""
    half = (most - 1) // 2
    return name if len(name) <= most else f"{name[:half]}…{name[-half:]}"


def ends(row: Row) -> dict[str, float | None]:
    """score, low and high of a row in percent; the last two None where they would rest on too few seeds, or where a
    run failed: the interval is then about the others, and the mean may lie outside.
    """
    known = row.n_seeds >= FEW_SEEDS and not row.failed
    return {
        "score": 100 * row.mean,
        "low": _percent(row.low) if known else None,
        "high": _percent(row.high) if known else None,
    }


def marks_of(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Keys of the words for what `standing` draws of these rows, and for nothing else."""
    there = (
        ("filled_help", any(row["own"] for row in rows)),
        ("line_help", any(row["low"] is not None for row in rows)),
        ("hollow_help", not all(row["own"] for row in rows)),
    )
    return [key for key, is_drawn in there if is_drawn]


def standing(rows: Sequence[Mapping[str, Any]], words: Mapping[str, str], ink: str = INK) -> Any:
    """Best first: `line`, `score` with `low` and `high` (may be None), and `rank`; hollow where not `own` runs."""
    frame = pd.DataFrame(rows)
    numbered = [f"{name} #{i}" if list(frame["line"]).count(name) > 1 else name for i, name in enumerate(frame["line"])]
    frame["line"] = numbered
    y = alt.Y("line:N", sort=numbered, title=None, axis=alt.Axis(labelLimit=240, labelOverlap=False))
    x = alt.X(
        "score:Q",
        title=words["score"],
        scale=alt.Scale(zero=False, padding=12),
        axis=alt.Axis(tickCount=5, format=_SHORT),
    )
    values = [alt.Tooltip(f"{c}:Q", format=".1f") for c in ("score", "low", "high")]
    tips = [alt.Tooltip("line:N"), *values, alt.Tooltip("rank:N")]
    frame["at"] = frame["high"].astype(float).fillna(frame["score"])

    def marks(part: pd.DataFrame, mark: Callable[[alt.Chart], alt.Chart]) -> alt.Chart:
        return mark(alt.Chart(part)).encode(x=x, y=y, tooltip=tips)

    full, hollow, known = frame[frame["own"]], frame[~frame["own"]], frame[frame["low"].notna()]
    lines = alt.Chart(known).mark_rule(size=2, color=ORANGE)
    lines = lines.encode(x=alt.X("low:Q", title=words["score"]), x2="high:Q", y=y)
    ranks = alt.Chart(frame).mark_text(align="left", dx=8, color=ink)
    ranks = ranks.encode(x=alt.X("at:Q", title=words["score"]), y=y, text="rank:N")
    layers = [
        lines if len(known) else None,
        marks(full, lambda c: c.mark_circle(size=80, color=BLUE, opacity=1)) if len(full) else None,
        marks(hollow, lambda c: c.mark_point(size=70, color=BLUE)) if len(hollow) else None,
        ranks if frame["rank"].astype(bool).any() else None,
    ]
    # a layer without marks is an image without a text to whoever cannot see it
    return alt.layer(*(layer for layer in layers if layer is not None)).properties(height=alt.Step(24))


def front(rows: Sequence[Mapping[str, Any]], *, more_is_better: bool = False) -> list[Mapping[str, Any]]:
    """The points that no other one beats in score at the same `cost` or a better one, by cost."""
    best: list[Mapping[str, Any]] = []
    for row in sorted(rows, key=lambda r: (-r["cost"] if more_is_better else r["cost"], -r["score"])):
        if not best or row["score"] > best[-1]["score"]:
            best.append(row)
    return best


def scatter(
    rows: Sequence[Mapping[str, Any]],
    cost: str,
    words: Mapping[str, str],
    *,
    more_is_better: bool = False,
    ink: str = INK,
) -> Any:
    """`score` (with `low` and `high`, which may be None) over `cost`, which rises to the right on a logarithmic axis.

    A dot a `model`; those of the front bear their names, as far as these do not overprint, and are joined.
    """
    frame = pd.DataFrame(rows)
    kind: Any = "log" if (frame["cost"] > 0).all() else "linear"
    spread = float(frame["cost"].max()) > float(frame["cost"].min())
    low, high = float(frame["cost"].min()), float(frame["cost"].max())
    # a domain of one's own: padding in pixels turned the axis round on narrow screens
    room = (high / low) ** 0.12 if kind == "log" and spread else 1.5
    domain = (
        [low / room, high * room] if kind == "log" else [low - 0.1 * (high - low) - 1, high + 0.1 * (high - low) + 1]
    )
    scale = alt.Scale(type=kind, nice=False, zero=False, domain=domain)
    x = alt.X("cost:Q", title=cost, scale=scale, axis=alt.Axis(format="~s", tickCount=4, labelOverlap=True))
    y = alt.Y(
        "score:Q",
        title=words["score"],
        scale=alt.Scale(zero=False, padding=24),
        axis=alt.Axis(tickCount=5, format=_SHORT),
    )
    known = frame.dropna()
    lines = alt.Chart(known).mark_rule(color=ORANGE).encode(x=x, y="low:Q", y2="high:Q")
    dots = alt.Chart(frame).mark_circle(size=80, color=BLUE, opacity=1)
    dots = dots.encode(
        x=x, y=y, tooltip=["model:N", alt.Tooltip("cost:Q", format="~s"), alt.Tooltip("score:Q", format=".1f")]
    )
    best = front(rows, more_is_better=more_is_better)
    edge = alt.Chart(pd.DataFrame(best)).mark_line(color=ink, strokeDash=[4, 4]).encode(x=x, y=y)
    # names to the left of dots in the right half, or they would leave the chart
    middle = (low * high) ** 0.5 if kind == "log" else (low + high) / 2
    # the line rises or falls as a whole: names below it on the one side and above it on the other leave it free
    rising = not more_is_better
    named = []
    for right in (True, False):
        part = pd.DataFrame(_apart([row for row in best if (row["cost"] <= middle) == right], frame))
        mark = alt.Chart(part).mark_text(
            align="left" if right else "right", dx=6 if right else -6, dy=15 if right == rising else -10, color=ink
        )
        named += [mark.encode(x=x, y=y, text="model:N")] if len(part) else []
    # a single dot has no line to join it: an empty layer would be an image without a text
    layers = [*([lines] if 0 < len(known) <= MOST_INTERVALS else []), *([edge] if len(best) > 1 else []), dots, *named]
    return alt.layer(*layers).properties(height=250)


def _apart(best: Sequence[Mapping[str, Any]], frame: pd.DataFrame) -> list[Mapping[str, Any]]:
    """Of the points on one side of the chart, best first, those whose names overprint no name before."""
    height = max(float(frame["score"].max() - frame["score"].min()), 1e-9)
    named: list[Mapping[str, Any]] = []
    for row in sorted(best, key=lambda r: -r["score"]):
        if all(abs(row["score"] - other["score"]) > _CROWDED * height for other in named):
            named.append(row)
    return named


def seeds(rows: Sequence[Row], names: Sequence[str], by: str, words: Mapping[str, str]) -> Any:
    """Per task or model (`by`, called `names`): a dot a seed, the mean, its interval. None where no row has seeds."""
    points, means = [], []
    for name, row in zip(names, rows, strict=True):
        means.append({by: name} | ends(row))
        points += [
            {by: name, "score": 100 * value, "seed": seed} for seed, value in zip(row.seeds, row.values, strict=True)
        ]
    if not points:
        return None
    y = alt.Y(f"{by}:N", sort=list(names), title=None, axis=alt.Axis(labelLimit=320, labelOverlap=False))
    x = alt.X("score:Q", title=words["score"], scale=alt.Scale(zero=False), axis=alt.Axis(tickCount=8, format=_SHORT))
    tips = [alt.Tooltip("seed:O"), alt.Tooltip("score:Q", format=".1f")]
    dots = alt.Chart(pd.DataFrame(points)).mark_circle(size=45, opacity=0.7, color=BLUE).encode(x=x, y=y, tooltip=tips)
    frame = pd.DataFrame(means)
    known = frame.dropna()
    lines = alt.Chart(known).mark_rule(size=2, color=ORANGE).encode(x="low:Q", x2="high:Q", y=y)
    ticks = alt.Chart(frame).mark_tick(thickness=3, size=16, color=ORANGE).encode(x=x, y=y)
    return alt.layer(*([lines] if len(known) else []), dots, ticks).properties(height=alt.Step(26))


def strip(
    tasks: Sequence[str],
    scores: Mapping[str, Mapping[str, float | None]],
    field: Mapping[str, Sequence[float]],
    floors: Mapping[str, float],
    words: Mapping[str, str],
    ink: str = INK,
) -> Any:
    """One model among the others, task by task: a quiet stroke for each other model, the floor, and its own dot.

    scores: task -> `ends`. field: task -> the other models' scores in percent. floors: task -> the best policy's.
    """
    y = alt.Y("task:N", sort=list(tasks), title=None, axis=alt.Axis(labelLimit=200, labelOverlap=False))
    x = alt.X("score:Q", title=words["score"], scale=alt.Scale(zero=False), axis=alt.Axis(tickCount=8, format=_SHORT))
    parts = [
        (pd.DataFrame(rows), words[key])
        for key, rows in (
            ("others", [{"task": task, "score": score} for task in tasks for score in field.get(task, ())]),
            ("floor", [{"task": task, "score": floors[task]} for task in tasks if task in floors]),
            ("this_model", [{"task": task} | dict(scores[task]) for task in tasks]),
        )
        if rows
    ]
    legend = [name for _, name in parts]
    colours = {words["others"]: ink, words["floor"]: COLOURS[4], words["this_model"]: BLUE}
    colour = alt.Color(
        "what:N",
        title=None,
        scale=alt.Scale(domain=legend, range=[colours[name] for name in legend]),
        # a phone has no room for three names in a line
        legend=alt.Legend(orient="top", symbolType="square", symbolOpacity=1, columns=2),
    )
    layers = []
    for frame, name in parts:
        chart = alt.Chart(frame.assign(what=name))
        tips = ["task:N", "what:N", alt.Tooltip("score:Q", format=".1f")]
        if name == words["this_model"]:
            marks = chart.mark_circle(size=90, opacity=1)
            known = frame.assign(what=name).dropna()
            if len(known):
                layers.append(alt.Chart(known).mark_rule(size=2, color=ORANGE).encode(x="low:Q", x2="high:Q", y=y))
        else:
            thick = name == words["floor"]
            marks = chart.mark_tick(thickness=3 if thick else 1.5, size=14, opacity=1 if thick else 0.6)
        layers.append(marks.encode(x=x, y=y, color=colour, tooltip=tips))
    return alt.layer(*layers).properties(height=alt.Step(22))


def differences(rows: Sequence[Mapping[str, Any]], words: Mapping[str, str], ink: str = INK) -> Any:
    """Per task, largest first: `difference`, `low` and `high` in points (the ends may be None) around zero.

    Filled where the interval leaves out zero, hollow and grey where it does not or is unknown.
    """
    frame = pd.DataFrame(rows).sort_values("difference", ascending=False)
    frame["sure"] = (frame["low"].astype(float) > 0) | (frame["high"].astype(float) < 0)
    y = alt.Y("task:N", sort=list(frame["task"]), title=None, axis=alt.Axis(labelLimit=200, labelOverlap=False))
    x = alt.X("difference:Q", title=words["difference"], axis=alt.Axis(tickCount=8, format=_SHORT))
    colour = alt.condition("datum.sure", alt.value(BLUE), alt.value(ink))
    zero = alt.Chart(pd.DataFrame({"zero": [0]})).mark_rule(strokeDash=[4, 4], color=ink).encode(x="zero:Q")
    known = frame.dropna()
    lines = alt.Chart(known).mark_rule(size=2).encode(x="low:Q", x2="high:Q", y=y, color=colour)
    tips = ["task:N", *(alt.Tooltip(f"{c}:Q", format="+.1f") for c in ("difference", "low", "high"))]
    dots = alt.Chart(frame).mark_point(size=70, opacity=1)
    dots = dots.encode(
        x=x,
        y=y,
        tooltip=tips,
        color=colour,
        fill=alt.condition("datum.sure", alt.value(BLUE), alt.value("transparent")),
    )
    return alt.layer(zero, *([lines] if len(known) else []), dots).properties(height=alt.Step(24))


def lengths(rows: Sequence[Mapping[str, Any]], unit: str, words: Mapping[str, str]) -> Any:
    """`score` by `length`, a line a `model`; hollow where the length is not `read`."""
    frame = pd.DataFrame(rows)
    ordered = list(dict.fromkeys(row["model"] for row in rows))
    measured = sorted({row["length"] for row in rows})
    axis = alt.Axis(format="d", values=measured, labelOverlap=True)
    x = alt.X("length:Q", title=unit, scale=alt.Scale(type="log", base=2, nice=False), axis=axis)
    y = alt.Y("score:Q", title=words["score"], scale=alt.Scale(domain=[40, 100], clamp=True))
    colour = alt.Color("model:N", sort=ordered, title=None, scale=alt.Scale(range=list(COLOURS)))
    colour = colour.legend(orient="top", columns=1, labelLimit=320, rowPadding=0)
    tips = ["model:N", "length:Q", alt.Tooltip("score:Q", format=".1f")]
    layers = [alt.Chart(frame).mark_line().encode(x=x, y=y, color=colour)]
    full, hollow = frame[frame["read"]], frame[~frame["read"]]
    if len(full):
        layers.append(alt.Chart(full).mark_circle(size=70, opacity=1).encode(x=x, y=y, color=colour, tooltip=tips))
    if len(hollow):
        layers.append(alt.Chart(hollow).mark_point(size=60).encode(x=x, y=y, color=colour, tooltip=tips))
    # the height is that of the whole picture: a line of the legend must not flatten the curves
    return alt.layer(*layers).properties(height=260 + 18 * len(ordered))


def curves(records: Sequence[RunRecord], metric: str, words: Mapping[str, str]) -> Any:
    """Validation score over steps, a line a seed. None where the records hold no such curve."""
    rows: list[dict[str, Any]] = [
        {"step": point.step, "score": 100 * point.validation[metric], "seed": record.seed}
        for record in records
        for point in record.training.curve
        if metric in point.validation
    ]
    if not rows:
        return None
    return (
        alt.Chart(pd.DataFrame(rows))
        .mark_line(point=True)
        .encode(
            x=alt.X("step:Q", title=words["step"], axis=alt.Axis(format="~s")),
            y=alt.Y("score:Q", title=words["score"], scale=alt.Scale(zero=False), axis=alt.Axis(format=_SHORT)),
            color=alt.Color("seed:O", title=words["seed"], scale=alt.Scale(scheme="viridis")),
            tooltip=["seed:O", "step:Q", alt.Tooltip("score:Q", format=".1f")],
        )
    )


def losses(runs: Sequence[TrainingRun], words: Mapping[str, str]) -> Any:
    """Loss over tokens: lines of training, dots of the evaluations, one colour a run."""
    frame = _points(runs, "loss")
    colour = _run_colour(runs, words)
    x = alt.X("tokens:Q", title=words["tokens"], axis=alt.Axis(format="~s"))
    y = alt.Y("loss:Q", title=words["loss"], scale=alt.Scale(zero=False))
    values = [alt.Tooltip("tokens:Q", format=","), alt.Tooltip("loss:Q", format=".4f")]
    tips = [alt.Tooltip("run:N"), alt.Tooltip("phase:N"), *values]
    marks: dict[str, Callable[[alt.Chart], alt.Chart]] = {
        "train": lambda chart: chart.mark_line(),
        "evaluation": lambda chart: chart.mark_point(size=55, filled=True, shape="diamond"),
    }
    parts = [(mark, frame[frame["event"] == event]) for event, mark in marks.items()]
    layers = [mark(alt.Chart(part)).encode(x=x, y=y, color=colour, tooltip=tips) for mark, part in parts if len(part)]
    return alt.layer(*layers).properties(height=340)


def over_tokens(runs: Sequence[TrainingRun], field: str, format: str, words: Mapping[str, str]) -> Any:
    """`field` of the training points over tokens, in the colours of `losses`. None where no point has it."""
    frame = _points(runs, field)
    frame = frame[frame["event"] == "train"].dropna()
    if frame.empty:
        return None
    return (
        alt.Chart(frame)
        .mark_line()
        .encode(
            x=alt.X("tokens:Q", title=words["tokens"], axis=alt.Axis(format="~s")),
            y=alt.Y(f"{field}:Q", title=None, axis=alt.Axis(format=format)),
            color=_run_colour(runs, words, legend=False),
            tooltip=["run:N", "phase:N", alt.Tooltip("tokens:Q", format=","), f"{field}:Q"],
        )
        .properties(height=220)
    )


def _points(runs: Sequence[TrainingRun], field: str) -> pd.DataFrame:
    rows = [
        {"run": run.name, "phase": p.phase, "event": p.event, "tokens": p.tokens, field: getattr(p, field)}
        for run in runs
        for p in run.points
    ]
    return pd.DataFrame(rows, columns=["run", "phase", "event", "tokens", field])


def _run_colour(runs: Sequence[TrainingRun], words: Mapping[str, str], *, legend: bool = True) -> alt.Color:
    names = [run.name for run in runs]
    return alt.Color(
        "run:N",
        title=words["training_run"],
        scale=alt.Scale(domain=names, range=list(COLOURS[: len(names)])),
        legend=alt.Legend(orient="top", title=None, labelLimit=300, columns=2) if legend else None,
    )


def svg(chart: Any, width: int = 560, ink: str = "#777") -> str:
    """The chart as an SVG text that loads nothing, its letters in the reader's sans serif and in the colour `ink`."""
    import vl_convert

    axis = alt.AxisConfig(labelColor=ink, titleColor=ink, gridColor="#8884", domainColor="#8888", tickColor="#8888")
    specification = chart.properties(width=width).configure(
        background="transparent",
        font="sans-serif",
        view=alt.ViewConfig(stroke=None),
        axis=axis,
        text=alt.MarkConfig(color=ink),
    )
    return str(vl_convert.vegalite_to_svg(specification.to_dict()))


def _percent(value: float | None) -> float | None:
    return None if value is None else 100 * value
