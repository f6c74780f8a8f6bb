"""The runs that stand under `results/`, and what the README shows of them.

    python -m tests.benchmarks.shipped collect FOLDER   # runs and floors of FOLDER into results/
    python -m tests.benchmarks.shipped readme           # the README's table and picture, from results/

`collect` takes finished runs under the small protocol of the tasks in `TASKS`, whose licences let ids, offsets and
labels be passed on; no text is in a store. A test holds the README to what `readme` would write.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import altair as alt
import pandas as pd

from biobench.comparison.compare import compare
from biobench.report import charts
from biobench.report.rows import Row
from biobench.report.table import build, load
from biobench.report.wide import percent
from biobench.store import Store
from biobench.store.floors import save_floor, scan_floors

ROOT = Path(__file__).resolve().parents[2]
RESULTS, README, PICTURE = ROOT / "results", ROOT / "README.md", ROOT / "docs" / "images" / "results.svg"
TASKS = ("gad", "hoc", "ncbi_disease", "bc5cdr", "quaero_medline", "needle_en", "needle_fr")
MODELS = ("all-MiniLM-L6-v2", "paraphrase-MiniLM-L3-v2", "random-all-MiniLM-L6-v2")
PROTOCOL = "small protocol"
START, END = "<!-- results: start -->", "<!-- results: end -->"


def collect(folder: Path) -> int:
    """Copy what `folder` holds of `TASKS`; the number of runs."""
    source, target = Store(folder), Store(RESULTS)
    records = [r for r in source.records() if r.task.id in TASKS and r.model.id in MODELS and r.limit is None]
    for record in records:
        target.copy(source, record)
    floors, findings = scan_floors(folder)
    assert not findings, findings
    for floor in floors:
        if floor.task in TASKS:
            save_floor(RESULTS, floor)
    return len(records)


def rows() -> tuple[list[Row], list[Row]]:
    """The shipped runs' rows, and the best floor of each of their tasks."""
    report = build(load(RESULTS), "macro", tasks=TASKS, sources=["run", "floor"])
    own = [row for row in report.rows if row.source == "run" and row.variant == PROTOCOL and row.model in MODELS]
    best = {row.task: row for row in sorted(report.rows, key=lambda r: r.mean) if row.source == "floor"}
    return own, [best[task] for task in dict.fromkeys(row.task for row in own) if task in best]


def _models(own: Sequence[Row]) -> list[str]:
    """Best first, by the mean over tasks that all have."""
    tasks = set.intersection(*({row.task for row in own if row.model == m} for m in {row.model for row in own}))
    means = {m: sum(r.mean for r in own if r.model == m and r.task in tasks) for m in {row.model for row in own}}
    return sorted(means, key=lambda m: -means[m])


def _tasks(own: Sequence[Row]) -> list[str]:
    return [task for task in TASKS if any(row.task == task for row in own)]


def table() -> str:
    """Models down, tasks across, in Markdown."""
    own, floors = rows()
    tasks = _tasks(own)
    cells = {(row.model, row.task): row for row in own}
    seeds = sorted({row.n_seeds for row in own})
    lines = [f"| macro F1 | {' | '.join(tasks)} |", f"|---|{'--:|' * len(tasks)}"]
    lines += [f"| {model} | {' | '.join(percent(cells.get((model, t))) for t in tasks)} |" for model in _models(own)]
    best = {row.task: row for row in floors}
    lines.append(f"| *best floor* | {' | '.join(f'*{100 * best[t].mean:.1f}*' if t in best else '–' for t in tasks)} |")
    many = f"{seeds[0]} to {seeds[-1]} seeds" if len(seeds) > 1 else f"{seeds[0]} seeds"
    hours = sum((row.seconds or 0) * row.n_seeds for row in own) / 3600
    caption = (
        f"Small protocol (at most 2,000 training texts and 600 steps; whole test sets), {many}, one CPU core, "
        f"{hours:.1f} hours in all. ± is half the 95% interval over seeds. Floors read the whole training split: "
        "a model below one has learnt less from its 2,000 texts than counting learns from all."
    )
    return "\n".join([*lines, "", caption])


def verdict_tasks(own: Sequence[Row]) -> list[str]:
    """The tasks on which every model has three seeds, needles left out as `compare` does."""
    full = {(row.model, row.task) for row in own if row.n_seeds > 2}
    return [t for t in _tasks(own) if not t.startswith("needle") and all((m, t) in full for m in MODELS)]


def verdict() -> str:
    """What `compare` says of the best model and each other one, first sentence or two."""
    own, _ = rows()
    first, *others = _models(own)
    tasks = verdict_tasks(own)
    texts = []
    for other in others:
        lines = compare(first, other, results_dir=RESULTS, tasks=tasks).verdict
        texts.append(
            f"`biobench compare {first} {other} --task {','.join(tasks)}`:\n> " + " ".join(map(str, lines[:2]))
        )
    return "\n\n".join(texts)


def picture() -> str:
    """Every seed of every model, task by task, with the best floor."""
    own, floors = rows()
    order = _models(own)
    points = [{"task": row.task, "model": row.model, "score": 100 * value} for row in own for value in row.values] + [
        {"task": row.task, "model": "best floor", "score": 100 * row.mean} for row in floors
    ]
    names = [*order, "best floor"]
    colour = alt.Color(
        "model:N",
        sort=names,
        title=None,
        scale=alt.Scale(domain=names, range=[*charts.COLOURS[: len(order)], "#888888"]),
        legend=alt.Legend(orient="top", columns=2, labelLimit=300),
    )
    frame = pd.DataFrame(points)
    y = alt.Y("task:N", sort=_tasks(own), title=None)
    x = alt.X("score:Q", title="macro F1, percent", scale=alt.Scale(zero=False))
    dots = alt.Chart(frame[frame["model"] != "best floor"]).mark_circle(size=80, opacity=0.8)
    ticks = alt.Chart(frame[frame["model"] == "best floor"]).mark_tick(thickness=3, size=18)
    chart = alt.layer(*(mark.encode(x=x, y=y, color=colour) for mark in (ticks, dots))).properties(height=alt.Step(30))
    return charts.svg(chart, width=560) + "\n"


def block() -> str:
    """What stands between the README's markers."""
    return (
        f"{START}\n![Scores of every seed, with the best floor of each task](docs/images/results.svg)\n\n{table()}\n\n"
        f"{verdict()}\n{END}"
    )


def readme(text: str) -> str:
    """The README with the block made anew."""
    before, _, rest = text.partition(START)
    return before + block() + rest.partition(END)[2]


if __name__ == "__main__":
    if sys.argv[1:2] == ["collect"] and len(sys.argv) == 3:
        print(f"{collect(Path(sys.argv[2]))} runs in {RESULTS.name}/runs")
    elif sys.argv[1:] == ["readme"]:
        PICTURE.write_text(picture(), encoding="utf-8")
        README.write_text(readme(README.read_text(encoding="utf-8")), encoding="utf-8")
    else:
        sys.exit(__doc__)
