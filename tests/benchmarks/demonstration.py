"""The table and the picture of docs/pretraining.md: what the studies that were run gave.

    biobench study results/study/pilot.yaml --out pilot --table --json > results/study/pilot.json
    biobench study results/study/longer.yaml --out longer --table --json > results/study/longer.json
    biobench study results/study/replication.yaml --out replication --table --json >
    results/study/replication.json
    biobench study results/study/unseen.yaml --out unseen --data-dir DATA --table --json
    --slice unseen > results/study/unseen.json
    (and --slice seen > results/study/seen.json)
    python -m tests.benchmarks.demonstration    # all, from those files

Each declaration whose scores lie next to it takes part. Means are over the tasks that all of them
have, computed here from the scores of the runs, so that budgets may be compared. The replication,
which has seeds of its own, has a table of its own. A test holds the page to what this would write.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import altair as alt
import pandas as pd
import vl_convert

from biobench.reporting import charts
from biobench.stats import holm
from biobench.workflows.study import Study, load_study, planned_runs
from biobench.workflows.study_table import ArmRow, table

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "results" / "study"
EXPLORED = (FOLDER / "pilot.yaml", FOLDER / "longer.yaml")
REPLICATION = FOLDER / "replication.yaml"
DECLARATIONS = (*EXPLORED, REPLICATION)
PAGE, PICTURE = ROOT / "docs" / "pretraining.md", ROOT / "docs" / "images" / "demonstration.svg"
UNSEEN = {"unseen": FOLDER / "unseen.json", "seen": FOLDER / "seen.json"}
"""Slice -> what the study of unseen mentions gave on it; the primary outcome first."""
UNSEEN_PICTURE = ROOT / "docs" / "images" / "unseen_study.svg"
START, END = "<!-- study: start -->", "<!-- study: end -->"
UNSEEN_START, UNSEEN_END = "<!-- unseen: start -->", "<!-- unseen: end -->"


@dataclass(frozen=True, slots=True)
class StudyScores:
    """One declaration and its scores. scores: run -> task -> primary score, the mean over
    fine-tuning seeds.
    """

    study: Study
    scores: Mapping[str, Mapping[str, float]]

    def rows(self, tasks: Sequence[str]) -> list[ArmRow]:
        """One row an arm and budget, over these tasks alone."""
        benchmark = self.study.benchmark
        declared = dict(
            zip(benchmark.all_ids, (*benchmark.tasks, *benchmark.secondary), strict=True)
        )
        chosen_tasks = tuple(declared[task] for task in tasks)
        benchmark = benchmark.model_copy(update={"tasks": chosen_tasks, "secondary": ()})
        study = self.study.model_copy(update={"benchmark": benchmark})
        chosen = {
            name: {t: v for t, v in of.items() if t in tasks} for name, of in self.scores.items()
        }
        return table(study, planned_runs(study, None), chosen)


def study_scores(declarations: Sequence[Path] = DECLARATIONS) -> list[StudyScores]:
    """The declarations whose scores lie next to them."""
    return [
        StudyScores(load_study(path), json.loads(stored.read_text(encoding="utf-8"))["runs"])
        for path in declarations
        if (stored := path.with_suffix(".json")).is_file()
    ]


def common(studies: Sequence[StudyScores]) -> list[str]:
    """Tasks that all of them have, in the order of the first: means are over these."""
    return [
        t
        for t in studies[0].study.benchmark.tasks
        if all(t in s.study.benchmark.tasks for s in studies)
    ]


def _lines(studies: Sequence[StudyScores]) -> list[tuple[StudyScores, ArmRow]]:
    """Small budgets first, arms as declared; means over the common tasks."""
    tasks = common(studies)
    found = [(s, row) for s in studies for row in s.rows(tasks)]
    return sorted(found, key=lambda line: (line[1].budget, line[0].study.arms.index(line[1].arm)))


def _words(tokens: int) -> str:
    return f"{tokens / 1e6:.1f} M"


def _by_seeds(studies: Sequence[StudyScores]) -> list[list[StudyScores]]:
    """Those with the same pretraining seeds together."""
    return [
        [s for s in studies if s.study.seeds == seeds]
        for seeds in dict.fromkeys(s.study.seeds for s in studies)
    ]


def _percent(value: float | None) -> str:
    return "–" if value is None else f"{100 * value:.1f}"


def arms(studies: Sequence[StudyScores]) -> str:
    """Budgets and arms down: the mean over the common tasks of each pretraining seed, and the
    difference.
    """
    study = studies[0].study
    seeds = " | ".join(f"seed {seed}" for seed in study.seeds)
    lines = [
        f"| tokens | arm | {seeds} | mean | difference to {study.reference} "
        "(corrected for the arms of its study) |",
        f"|--:|---|{'--:|' * len(study.seeds)}--:|--:|",
    ]
    for _, row in _lines(studies):
        cells = [
            _words(row.budget),
            row.arm,
            *(_percent(row.scores.get(seed)) for seed in study.seeds),
        ]
        gap = "–"
        if row.low is not None:
            gap = f"{100 * row.difference:+.1f} ({100 * row.low:+.1f} to {100 * row.high:+.1f})"
        lines.append(f"| {' | '.join([*cells, _percent(row.mean), gap])} |")
    return "\n".join(lines)


def differences(studies: Sequence[StudyScores]) -> list[tuple[str, ArmRow, float, float]]:
    """Everything that was looked at: (task, or "" for the mean; row; p; p with Holm's correction
    for all of them).
    """
    rows, mean = [("", row) for _, row in _lines(studies)], common(studies)
    for task in dict.fromkeys(
        task for s in studies for task in s.study.benchmark.all_ids if task not in mean
    ):
        rows += [
            (task, row)
            for s in studies
            if task in s.study.benchmark.all_ids
            for row in s.rows([task])
        ]
    rows = [(task, row) for task, row in rows if row.low is not None]
    steps = holm([row.p for _, row in rows])
    return [
        (task, row, row.p, step.adjusted)
        for (task, row), step in zip(rows, steps, strict=True)
        if step is not None
    ]


def picture(studies: Sequence[StudyScores]) -> str:
    """The mean over the common tasks of every pretraining seed, by arm and budget."""

    def tokens(one: StudyScores, budget: int) -> str:
        seeds = one.study.seeds
        return _words(budget) + (
            "" if seeds == studies[0].study.seeds else f", seeds {seeds[0]} to {seeds[-1]}"
        )

    points = [
        {"arm": row.arm, "tokens": tokens(one, row.budget), "seed": seed, "score": 100 * value}
        for one, row in _lines(studies)
        for seed, value in row.scores.items()
    ]
    budgets = [tokens(s, b) for s in studies for b in sorted(s.study.budgets)]
    arms = list(dict.fromkeys(a for s in studies for a in s.study.arms))
    title = f"mean macro F1 of {' and '.join(common(studies))}, percent"
    colours = alt.Scale(domain=budgets, range=list(charts.COLOURS[: len(budgets)]))
    top = alt.Legend(orient="top")
    chart = alt.Chart(pd.DataFrame(points)).mark_circle(size=80, opacity=0.8)
    chart = chart.encode(
        x=alt.X("score:Q", title=title, scale=alt.Scale(zero=False)),
        y=alt.Y("arm:N", sort=arms, title=None),
        yOffset=alt.YOffset("tokens:N", sort=budgets),
        color=alt.Color(
            "tokens:N", sort=budgets, title="tokens of pretraining", scale=colours, legend=top
        ),
    )
    return svg(chart.properties(height=alt.Step(22), width=560))


def svg(chart: alt.Chart | alt.LayerChart) -> str:
    """The chart as SVG, legible on light and dark grounds."""
    ink, quiet = "#777", "#8888"
    axis = alt.AxisConfig(
        labelColor=ink, titleColor=ink, gridColor="#8884", domainColor=quiet, tickColor=quiet
    )
    view, text = alt.ViewConfig(stroke=None), alt.MarkConfig(color=ink)
    drawn = chart.configure(
        background="transparent", font="sans-serif", view=view, axis=axis, text=text
    )
    return str(vl_convert.vegalite_to_svg(drawn.to_dict())) + "\n"


def unseen_rows() -> dict[str, tuple[ArmRow, ArmRow]]:
    """Slice -> twin and detour of the study of unseen mentions, as they are stored."""
    rows = {}
    for slice_name, path in UNSEEN.items():
        stored = json.loads(path.read_text(encoding="utf-8"))
        assert stored["slice"] == slice_name
        twin, detour = (
            ArmRow(**{name: value for name, value in row.items() if name != "mean"})
            for row in stored["rows"]
        )
        rows[slice_name] = twin, detour
    return rows


def unseen_table() -> str:
    """Slices down: the arms' means and the difference with its interval."""
    lines = ["| mentions | twin | detour | difference (95% interval) |", "|---|--:|--:|--:|"]
    for slice_name, (twin, detour) in unseen_rows().items():
        gap = f"{100 * detour.difference:+.1f}"
        interval = f"({100 * detour.low:+.1f} to {100 * detour.high:+.1f})"
        means = f"{_percent(twin.mean)} | {_percent(detour.mean)}"
        lines.append(f"| {slice_name} | {means} | {gap} {interval} |")
    return "\n".join(lines)


def unseen_picture() -> str:
    """Detour minus twin: a dot a pretraining seed, and the mean with its interval."""
    points, means = [], []
    for slice_name, (twin, detour) in unseen_rows().items():
        for seed, score in detour.scores.items():
            points.append({"mentions": slice_name, "points": 100 * (score - twin.scores[seed])})
        means.append(
            {
                "mentions": slice_name,
                "points": 100 * detour.difference,
                "low": 100 * detour.low,
                "high": 100 * detour.high,
            }
        )
    title = "detour minus twin, points of micro F1"
    y = alt.Y("mentions:N", sort=list(UNSEEN), title=None)
    dots = alt.Chart(pd.DataFrame(points)).mark_circle(size=60, opacity=0.6)
    dots = dots.encode(x=alt.X("points:Q", title=title), y=y, color=alt.value(charts.COLOURS[0]))
    mean = alt.Chart(pd.DataFrame(means)).encode(y=y, color=alt.value("#777"))
    interval = mean.mark_rule(strokeWidth=2).encode(x="low:Q", x2="high:Q")
    centre = mean.mark_tick(thickness=3, size=18).encode(x="points:Q")
    zero = alt.Chart(pd.DataFrame([{"points": 0}])).mark_rule(strokeDash=[4, 4], color="#777")
    layers = alt.layer(zero.encode(x="points:Q"), dots, interval, centre)
    return svg(layers.properties(height=alt.Step(36), width=560))


def block(studies: Sequence[StudyScores]) -> str:
    """What stands between the page's markers."""
    image = "![Mean score of every pretraining seed, by arm and budget](images/demonstration.svg)"
    return "\n\n".join([START, image, *map(arms, _by_seeds(studies)), END])


def page(text: str, studies: Sequence[StudyScores]) -> str:
    """The page with the block made anew."""
    text = _replaced(text, START, END, block(studies))
    image = "![Detour minus twin on unseen and on seen mentions](images/unseen_study.svg)"
    unseen = "\n\n".join([UNSEEN_START, image, unseen_table(), UNSEEN_END])
    return _replaced(text, UNSEEN_START, UNSEEN_END, unseen)


def _replaced(text: str, start: str, end: str, made: str) -> str:
    head, _, tail = text.partition(start)
    return head + made + tail.partition(end)[2]


if __name__ == "__main__":
    here = study_scores()
    PICTURE.write_text(picture(here), encoding="utf-8")
    UNSEEN_PICTURE.write_text(unseen_picture(), encoding="utf-8")
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8"), here), encoding="utf-8")
