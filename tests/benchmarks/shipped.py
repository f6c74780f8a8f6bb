"""The runs that stand under `results/`, and what the README shows of them.

    python -m tests.benchmarks.shipped collect FOLDER   # runs and floors of FOLDER into results/
    python -m tests.benchmarks.shipped readme           # the README's table and picture, from results/

`collect` takes finished runs under the small protocol of the tasks in `TASKS`, whose licences let ids, offsets and
labels be passed on; no text is in a store. Of `MODELS` those appear that have runs. One without runs of every task
stands below the others, unranked, and a cell of fewer seeds says so. A test holds the README to what `readme` would
write.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import altair as alt
import pandas as pd

from biobench.comparison.compare import compare
from biobench.report import charts
from biobench.report.frame import build
from biobench.report.results import load
from biobench.report.row import Row
from biobench.report.wide import percent
from biobench.store import Store
from biobench.store.floors import save_floor, scan_floors

ROOT = Path(__file__).resolve().parents[2]
RESULTS, README, PICTURE = ROOT / "results", ROOT / "README.md", ROOT / "docs" / "images" / "results.svg"
TASKS = (
    "gad",
    "hoc",
    "ncbi_disease",
    "bc5cdr",
    "anatem",
    "quaero_medline",
    "needle_en",
    "needle_fr",
)
PAIR = ("causal-detour-1.1M", "masked-twin-1.1M")
"""Encoders of the study `results/study/longer.yaml`: compared with each other alone."""
MODELS = (
    "all-mpnet-base-v2",
    "all-MiniLM-L6-v2",
    "paraphrase-MiniLM-L3-v2",
    "random-all-MiniLM-L6-v2",
    "random-all-mpnet-base-v2",
    *PAIR,
)
RANDOM = "random-"
"""Before the name of the checkpoint whose architecture and tokenizer a random-weights encoder has."""
PROTOCOL = "small protocol"
COMPARED = 2
"""Seeds of both models from which a task enters their comparison: below, no word of certainty is given."""
START, END = "<!-- results: start -->", "<!-- results: end -->"


def collect(folder: Path) -> int:
    """Copy what `folder` holds of `TASKS` and is not here yet, as it was written; the number of runs."""
    source, target = Store(folder), Store(RESULTS)
    here = {record.key for record in target.records()}
    records = [
        r
        for r in source.records()
        if r.task.id in TASKS and r.model.id in MODELS and r.limit is None and r.key not in here
    ]
    for record in records:
        target.copy(source, record)
    floors, findings = scan_floors(folder)
    assert not findings, findings
    known = {(floor.task, floor.task_hash, floor.data_hash) for floor in scan_floors(RESULTS)[0]}
    for floor in floors:
        if floor.task in TASKS and (floor.task, floor.task_hash, floor.data_hash) not in known:
            save_floor(RESULTS, floor)
    return len(records)


@dataclass(frozen=True, slots=True)
class Shown:
    """The own runs' rows of a results folder, and the best floor of each of their tasks."""

    folder: Path
    own: tuple[Row, ...]
    floors: tuple[Row, ...]

    @property
    def tasks(self) -> list[str]:
        """Those with a run, in the order of `TASKS`."""
        return [task for task in TASKS if any(row.task == task for row in self.own)]

    @property
    def ranked(self) -> list[str]:
        """Models with runs of every task, best mean first."""
        means = {m: sum(row.mean for row in self.of(m)) for m in MODELS if len(self.of(m)) == len(self.tasks)}
        return sorted(means, key=lambda m: -means[m])

    @property
    def unranked(self) -> list[str]:
        """Models that lack a task, in the order of `MODELS`."""
        return [m for m in MODELS if 0 < len(self.of(m)) < len(self.tasks)]

    def of(self, model: str) -> list[Row]:
        """A model's rows."""
        return [row for row in self.own if row.model == model]

    def pairs(self) -> Iterator[tuple[str, str]]:
        """Which comparisons are made: a checkpoint with its random twin, every other one with the best ranked one.

        The two of the study are compared with each other.
        """
        models = [m for m in (*self.ranked, *self.unranked) if m not in PAIR]
        first = models[0] if models else ""
        for model in models:
            other = model.removeprefix(RANDOM)
            if other != model and other in models:
                yield other, model
            elif model != first:
                yield first, model
        if all(map(self.of, PAIR)):
            yield PAIR

    def shared(self, one: str, other: str) -> list[str]:
        """Tasks on which both have seeds enough, needles left out as `compare` does."""
        full = {(row.model, row.task) for row in self.own if row.n_seeds >= COMPARED}
        return [t for t in self.tasks if not t.startswith("needle") and {(one, t), (other, t)} <= full]


def shown(folder: Path = RESULTS) -> Shown:
    """What `folder` holds of `MODELS` and `TASKS` under the small protocol."""
    report = build(load(folder), "macro", tasks=TASKS, sources=["run", "baseline"])
    own = tuple(row for row in report.rows if row.source == "run" and row.variant == PROTOCOL and row.model in MODELS)
    best = {row.task: row for row in sorted(report.rows, key=lambda r: r.mean) if row.source == "baseline"}
    return Shown(folder, own, tuple(best[t] for t in dict.fromkeys(row.task for row in own) if t in best))


def _cell(row: Row | None, most: int) -> str:
    text = percent(row)
    if row is None or row.n_seeds == most:
        return text
    return f"{text} ({row.n_seeds} seed{'s' * (row.n_seeds > 1)})"


def table(it: Shown) -> str:
    """Models down, tasks across, in Markdown."""
    tasks, most = it.tasks, max(row.n_seeds for row in it.own)
    cells = {(row.model, row.task): row for row in it.own}
    lines = [f"| macro F1 | {' | '.join(tasks)} |", f"|---|{'--:|' * len(tasks)}"]
    lines += [
        f"| {model} | {' | '.join(_cell(cells.get((model, t)), most) for t in tasks)} |"
        for model in [*it.ranked, *it.unranked]
    ]
    best = {row.task: row for row in it.floors}
    lines.append(f"| *best floor* | {' | '.join(f'*{100 * best[t].mean:.1f}*' if t in best else '–' for t in tasks)} |")
    return "\n".join([*lines, "", _caption(it, most)])


def _caption(it: Shown, most: int) -> str:
    records = [r for r in Store(it.folder).records() if r.model.id in MODELS and r.task.id in TASKS]
    devices = " and ".join(sorted({r.provenance.device for r in records}))
    threads = sorted({r.provenance.threads for r in records})
    hours = sum((row.seconds or 0) * row.n_seeds for row in it.own) / 3600
    parts = [
        "Small protocol (at most 2,000 training texts and 600 steps; whole test sets), "
        f"{most} seeds unless a cell says otherwise; {devices}, {' or '.join(map(str, threads))} "
        f"thread{'s' * (threads != [1])}, {hours:.1f} hours in all.",
        "± is half the 95% interval over seeds.",
    ]
    if any(row.failed for row in it.own):
        parts.append("A failed run learnt nothing: it scores like a guess, or far below its other seeds.")
    if it.unranked:
        parts.append(f"Best mean first; {', '.join(it.unranked)} without all tasks below, unranked.")
    parts.append(
        "Floors read the whole training split: a model below one has learnt less from its few texts than counting "
        "learns from all."
    )
    return " ".join(parts)


def verdict(it: Shown) -> str:
    """What `compare` says of each pair that has common tasks: its headline."""
    texts = []
    for one, other in it.pairs():
        tasks = it.shared(one, other)
        if tasks:
            said = compare(one, other, results_dir=it.folder, tasks=tasks).verdict[0]
            texts.append(f"`biobench compare {one} {other} --task {','.join(tasks)}`:\n> {said}")
    return "\n\n".join(texts)


def picture(it: Shown) -> str:
    """Every seed of every model, task by task, with the best floor."""
    order = [*it.ranked, *it.unranked]
    points = [
        {"task": row.task, "model": row.model, "score": 100 * value} for row in it.own for value in row.values
    ] + [{"task": row.task, "model": "best floor", "score": 100 * row.mean} for row in it.floors]
    names = [*order, "best floor"]
    colour = alt.Color(
        "model:N",
        sort=names,
        title=None,
        scale=alt.Scale(domain=names, range=[*charts.COLOURS[: len(order)], "#888888"]),
        legend=alt.Legend(orient="top", columns=2, labelLimit=300),
    )
    frame = pd.DataFrame(points)
    y = alt.Y("task:N", sort=it.tasks, title=None)
    x = alt.X("score:Q", title="macro F1, percent", scale=alt.Scale(zero=False))
    dots = alt.Chart(frame[frame["model"] != "best floor"]).mark_circle(size=80, opacity=0.8)
    ticks = alt.Chart(frame[frame["model"] == "best floor"]).mark_tick(thickness=3, size=18)
    chart = alt.layer(*(mark.encode(x=x, y=y, color=colour) for mark in (ticks, dots))).properties(height=alt.Step(30))
    return charts.svg(chart, width=560) + "\n"


def block(it: Shown) -> str:
    """What stands between the README's markers."""
    return (
        f"{START}\n![Scores of every seed, with the best floor of each task](docs/images/results.svg)\n\n"
        f"{table(it)}\n\n{verdict(it)}\n{END}"
    )


def readme(text: str, it: Shown) -> str:
    """The README with the block made anew."""
    before, _, rest = text.partition(START)
    return before + block(it) + rest.partition(END)[2]


if __name__ == "__main__":
    if sys.argv[1:2] == ["collect"] and len(sys.argv) == 3:
        print(f"{collect(Path(sys.argv[2]))} runs more in {RESULTS.name}/runs")
    elif sys.argv[1:] == ["readme"]:
        here = shown()
        PICTURE.write_text(picture(here), encoding="utf-8")
        README.write_text(readme(README.read_text(encoding="utf-8"), here), encoding="utf-8")
    else:
        sys.exit(__doc__)
