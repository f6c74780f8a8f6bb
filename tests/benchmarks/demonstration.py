"""The table and the picture of docs/pretraining.md: what the studies that were run gave.

    biobench study results/study/pilot.yaml --out pilot --table --json > results/study/pilot.json
    biobench study results/study/longer.yaml --out longer --table --json > results/study/longer.json
    python -m tests.benchmarks.demonstration    # both, from those files

Each declaration beside which its scores lie takes part. Means are over the tasks that all of them have, computed here
from the scores of the runs, so that budgets may be compared. A test holds the page to what this would write.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import altair as alt
import pandas as pd
import vl_convert
from scipy import special

from biobench.report import charts
from biobench.stats import holm
from biobench.workflows.study import ArmRow, Study, load_study, planned_runs, table

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "results" / "study"
DECLARATIONS = (FOLDER / "pilot.yaml", FOLDER / "longer.yaml")
PAGE, PICTURE = ROOT / "docs" / "pretraining.md", ROOT / "docs" / "images" / "demonstration.svg"
START, END = "<!-- study: start -->", "<!-- study: end -->"
SAME = ("reference", "overrides", "seeds")
"""Fields in which the declarations must agree, so that their rows may stand in one table."""


@dataclass(frozen=True, slots=True)
class Told:
    """One declaration and its scores. scores: run -> task -> primary score, the mean over fine-tuning seeds."""

    study: Study
    scores: Mapping[str, Mapping[str, float]]

    def rows(self, tasks: Sequence[str]) -> list[ArmRow]:
        """One row an arm and budget, over these tasks alone."""
        benchmark = self.study.benchmark.model_copy(update={"tasks": tuple(tasks)})
        study = self.study.model_copy(update={"benchmark": benchmark})
        chosen = {name: {t: v for t, v in of.items() if t in tasks} for name, of in self.scores.items()}
        return table(study, planned_runs(study, None), chosen)


def told(declarations: Sequence[Path] = DECLARATIONS) -> list[Told]:
    """The declarations whose scores lie beside them. Raises ValueError where two may not stand in one table."""
    found = []
    for path in declarations:
        stored = path.with_suffix(".json")
        if stored.is_file():
            study = load_study(path)
            found.append(Told(study, json.loads(stored.read_text(encoding="utf-8"))["runs"]))
    for other in found[1:]:
        if differing := [f for f in SAME if getattr(found[0].study, f) != getattr(other.study, f)]:
            raise ValueError(f"'{found[0].study.name}' and '{other.study.name}' differ in {', '.join(differing)}")
        if not common([found[0], other]):
            raise ValueError(f"'{found[0].study.name}' and '{other.study.name}' share no task")
        if shared := set(found[0].study.budgets) & set(other.study.budgets):
            raise ValueError(f"the budget {min(shared)} is declared twice")
    return found


def common(studies: Sequence[Told]) -> list[str]:
    """Tasks that all of them have, in the order of the first: means are over these."""
    return [t for t in studies[0].study.benchmark.tasks if all(t in s.study.benchmark.tasks for s in studies)]


def others(studies: Sequence[Told]) -> list[str]:
    """Tasks that only some have, or that stand beside the mean."""
    every = dict.fromkeys(task for s in studies for task in s.study.benchmark.all_ids)
    return [task for task in every if task not in common(studies)]


def _lines(studies: Sequence[Told]) -> list[tuple[Told, ArmRow]]:
    """Small budgets first, arms as declared; means over the common tasks."""
    tasks = common(studies)
    found = [(s, row) for s in studies for row in s.rows(tasks)]
    return sorted(found, key=lambda line: (line[1].budget, line[0].study.arms.index(line[1].arm)))


def _words(tokens: int) -> str:
    return f"{tokens / 1e6:.1f} M"


def _percent(value: float | None) -> str:
    return "–" if value is None else f"{100 * value:.1f}"


def _difference(row: ArmRow) -> str:
    if row.difference is None or row.low is None or row.high is None:
        return "–"
    return f"{100 * row.difference:+.1f} ({100 * row.low:+.1f} to {100 * row.high:+.1f})"


def arms(studies: Sequence[Told]) -> str:
    """Budgets and arms down: the mean over the common tasks of each pretraining seed, and the difference."""
    study = studies[0].study
    seeds = " | ".join(f"seed {seed}" for seed in study.seeds)
    lines = [
        f"| tokens | arm | {seeds} | mean | difference to {study.reference} (95% interval) |",
        f"|--:|---|{'--:|' * len(study.seeds)}--:|--:|",
    ]
    for _, row in _lines(studies):
        each = " | ".join(_percent(row.scores.get(seed)) for seed in study.seeds)
        lines.append(f"| {_words(row.budget)} | {row.arm} | {each} | {_percent(row.mean)} | {_difference(row)} |")
    return "\n".join(lines)


def chance(row: ArmRow) -> float:
    """p of the t test that the row's interval comes from; the row has one."""
    assert row.difference is not None
    assert row.low is not None
    assert row.high is not None
    freedom = len(row.scores) - 1
    t = row.difference / ((row.high - row.low) / 2) * special.stdtrit(freedom, 0.975)
    return float(2 * special.stdtr(freedom, -abs(t)))


def differences(studies: Sequence[Told]) -> list[tuple[str, ArmRow, float, float]]:
    """Everything that was looked at: (task, or "" for the mean; row; p; p with Holm's correction for all of them)."""
    rows = [("", row) for _, row in _lines(studies)]
    rows += [
        (task, row)
        for task in others(studies)
        for s in studies
        if task in s.study.benchmark.all_ids
        for row in s.rows([task])
    ]
    rows = [(task, row) for task, row in rows if row.low is not None]
    alone = [chance(row) for _, row in rows]
    return [(*row, p, corrected) for row, p, corrected in zip(rows, alone, holm(alone), strict=True)]


def picture(studies: Sequence[Told]) -> str:
    """The mean over the common tasks of every pretraining seed, by arm and budget."""
    points = [
        {"arm": row.arm, "tokens": _words(row.budget), "seed": seed, "score": 100 * value}
        for _, row in _lines(studies)
        for seed, value in row.scores.items()
    ]
    budgets = [_words(b) for b in sorted(b for s in studies for b in s.study.budgets)]
    chart = (
        alt.Chart(pd.DataFrame(points))
        .mark_circle(size=80, opacity=0.8)
        .encode(
            x=alt.X(
                "score:Q",
                title=f"mean macro F1 of {' and '.join(common(studies))}, percent",
                scale=alt.Scale(zero=False),
            ),
            y=alt.Y("arm:N", sort=list(dict.fromkeys(a for s in studies for a in s.study.arms)), title=None),
            yOffset=alt.YOffset("tokens:N", sort=budgets),
            color=alt.Color(
                "tokens:N",
                sort=budgets,
                title="tokens of pretraining",
                scale=alt.Scale(domain=budgets, range=list(charts.COLOURS[: len(budgets)])),
                legend=alt.Legend(orient="top"),
            ),
        )
        .properties(height=alt.Step(22))
    )
    ink, quiet = "#777", "#8888"  # legible on light and dark grounds
    axis = alt.AxisConfig(labelColor=ink, titleColor=ink, gridColor="#8884", domainColor=quiet, tickColor=quiet)
    drawn = chart.properties(width=560).configure(
        background="transparent",
        font="sans-serif",
        view=alt.ViewConfig(stroke=None),
        axis=axis,
        text=alt.MarkConfig(color=ink),
    )
    return str(vl_convert.vegalite_to_svg(drawn.to_dict())) + "\n"


def block(studies: Sequence[Told]) -> str:
    """What stands between the page's markers."""
    image = "![Mean score of every pretraining seed, by arm and budget](images/demonstration.svg)"
    return "\n\n".join([START, image, arms(studies), END])


def page(text: str, studies: Sequence[Told]) -> str:
    """The page with the block made anew."""
    before, _, rest = text.partition(START)
    return before + block(studies) + rest.partition(END)[2]


if __name__ == "__main__":
    here = told()
    PICTURE.write_text(picture(here), encoding="utf-8")
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8"), here), encoding="utf-8")
