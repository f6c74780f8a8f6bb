"""What docs/demonstration.md shows of the pilot study.

    biobench study results/study/pilot.yaml --out pilot --table --json > results/study/pilot.json
    python -m tests.benchmarks.demonstration    # tables, sentences and picture, from that file

A test holds the page to what this would write.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from statistics import fmean
from typing import Any

import altair as alt
import pandas as pd

from biobench.report import charts
from biobench.workflows.study import Study, load_study, planned_runs

ROOT = Path(__file__).resolve().parents[2]
DECLARATION = ROOT / "results" / "study" / "pilot.yaml"
STORED = DECLARATION.with_suffix(".json")
PAGE, PICTURE = ROOT / "docs" / "demonstration.md", ROOT / "docs" / "images" / "demonstration.svg"
START, END = "<!-- pilot: start -->", "<!-- pilot: end -->"


def _words(tokens: int) -> str:
    return f"{tokens / 1e6:.1f} M"


def _in_order(study: Study, rows: list[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Small budgets first, arms as declared."""
    return sorted(rows, key=lambda row: (row["budget"], study.arms.index(row["arm"])))


def arms(study: Study, stored: Mapping[str, Any]) -> str:
    """Budgets and arms down: the mean over tasks of each pretraining seed, and the difference to the reference."""
    seeds = " | ".join(f"seed {seed}" for seed in study.seeds)
    lines = [
        f"| tokens | arm | {seeds} | mean | difference to {study.reference} (95% interval) |",
        f"|--:|---|{'--:|' * len(study.seeds)}--:|--:|",
    ]
    for row in _in_order(study, stored["rows"]):
        each = " | ".join(f"{100 * row['scores'][str(s)]:.1f}" if str(s) in row["scores"] else "–" for s in study.seeds)
        difference = "–"
        if row["low"] is not None:
            difference = f"{100 * row['difference']:+.1f} ({100 * row['low']:+.1f} to {100 * row['high']:+.1f})"
        lines.append(f"| {_words(row['budget'])} | {row['arm']} | {each} | {100 * row['mean']:.1f} | {difference} |")
    return "\n".join(lines)


def by_task(study: Study, stored: Mapping[str, Any]) -> str:
    """Budgets and arms down, tasks across: the mean over pretraining seeds."""
    tasks = study.benchmark.tasks
    lines = [f"| tokens | arm | {' | '.join(tasks)} |", f"|--:|---|{'--:|' * len(tasks)}"]
    runs = planned_runs(study, DECLARATION.parent, None)
    for row in _in_order(study, stored["rows"]):
        names = {run.name for run in runs if (run.arm, run.budget) == (row["arm"], row["budget"])}
        scores = [stored["runs"][name] for name in sorted(names & stored["runs"].keys())]
        cells = " | ".join(f"{100 * fmean(of[t] for of in scores):.1f}" for t in tasks)
        lines.append(f"| {_words(row['budget'])} | {row['arm']} | {cells} |")
    return "\n".join(lines)


def sentences(study: Study, stored: Mapping[str, Any]) -> str:
    """Which differences have an interval without 0, and how many were looked at."""
    rows = [row for row in _in_order(study, stored["rows"]) if row["low"] is not None]
    shown = [row for row in rows if row["low"] > 0 or row["high"] < 0]
    if not rows:
        return "No arm has two seeds yet."
    lines = []
    for row in shown:
        side = "better" if row["low"] > 0 else "worse"
        lines.append(
            f"At {_words(row['budget'])} tokens the {row['arm']} arm is {side} than the {study.reference} by "
            f"{abs(100 * row['difference']):.1f} points (95% interval {100 * row['low']:+.1f} to "
            f"{100 * row['high']:+.1f} over {len(row['scores'])} pretraining seeds)."
        )
    rest = [f"{row['arm']} at {_words(row['budget'])}" for row in rows if row not in shown]
    if rest:
        lines.append(f"Not told apart from the {study.reference}: {', '.join(rest)}.")
    lines.append(f"{len(rows)} differences were looked at; the intervals are not corrected for that.")
    return " ".join(lines)


def picture(study: Study, stored: Mapping[str, Any]) -> str:
    """The mean over tasks of every pretraining seed, by arm and budget."""
    points = [
        {"arm": row["arm"], "tokens": _words(row["budget"]), "seed": seed, "score": 100 * value}
        for row in _in_order(study, stored["rows"])
        for seed, value in row["scores"].items()
    ]
    budgets = [_words(b) for b in sorted(study.budgets)]
    chart = (
        alt.Chart(pd.DataFrame(points))
        .mark_circle(size=80, opacity=0.8)
        .encode(
            x=alt.X("score:Q", title="mean of the tasks' macro F1, percent", scale=alt.Scale(zero=False)),
            y=alt.Y("arm:N", sort=list(study.arms), title=None),
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
    return charts.svg(chart, width=560) + "\n"


def block(study: Study, stored: Mapping[str, Any]) -> str:
    """What stands between the page's markers."""
    parts = [
        START,
        "![Mean score of every pretraining seed, by arm and budget](images/demonstration.svg)",
        arms(study, stored),
        sentences(study, stored),
        "By task, the mean over pretraining seeds:",
        by_task(study, stored),
        END,
    ]
    return "\n\n".join(parts)


def page(text: str) -> str:
    """The page with the block made anew."""
    study, _ = load_study(DECLARATION)
    before, _, rest = text.partition(START)
    return before + block(study, json.loads(STORED.read_text(encoding="utf-8"))) + rest.partition(END)[2]


if __name__ == "__main__":
    declared, _ = load_study(DECLARATION)
    PICTURE.write_text(picture(declared, json.loads(STORED.read_text(encoding="utf-8"))), encoding="utf-8")
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
