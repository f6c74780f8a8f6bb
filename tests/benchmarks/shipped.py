"""The runs that stand under `results/`, and the README's table of them.

    python -m tests.benchmarks.shipped collect FOLDER   # runs and baselines of FOLDER into results/
    python -m tests.benchmarks.shipped readme           # the README's table, from what `biobench
    report` prints
    python -m tests.benchmarks.shipped picture          # docs/images/unseen.svg, of the same runs

`collect` takes finished runs of the tasks in `TASKS`, whose licences let ids, offsets and labels be
passed on; no text is in a store. A test holds the README to what `readme` would write.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import sys
from pathlib import Path
from typing import Any

import vl_convert

from biobench.reporting import charts
from biobench.store import Store
from biobench.store.baselines import save_baseline, scan_baselines

ROOT = Path(__file__).resolve().parents[2]
RESULTS, README = ROOT / "results", ROOT / "README.md"
PICTURE = ROOT / "docs" / "images" / "unseen.svg"
TASKS = (
    "gad",
    "hoc",
    "pubmedqa",
    "ncbi_disease",
    "bc5cdr",
    "anatem",
    "quaero_medline",
    "needle_en",
    "needle_fr",
)
COLUMNS = ("gad", "ncbi_disease", "quaero_medline", "pubmedqa")
PUBLISHED = (
    *("PubMedBERT", "ModernBERT-base", "CamemBERT-bio"),
    "ModernBERT-bio-base CLM detour (50B)",
)
MODELS = (
    *(
        "all-mpnet-base-v2",
        "all-MiniLM-L6-v2",
        "paraphrase-MiniLM-L3-v2",
        "random-all-MiniLM-L6-v2",
    ),
    *("random-all-mpnet-base-v2", "causal-detour-1.1M", "masked-twin-1.1M"),
)
MOST_ROWS = 6
COMMAND = f"biobench report --average paper --task {','.join(COLUMNS)}"
START, END = "<!-- results: start -->", "<!-- results: end -->"


def collect(folder: Path) -> int:
    """Copy what `folder` holds of `TASKS` and is not here yet, as it was written; the number of
    runs.
    """
    source, target = Store(folder), Store(RESULTS)
    here = {record.key for record in target.records()}
    whole = [
        r
        for r in source.records()
        if r.task.id in TASKS and r.model.id in MODELS and r.limit is None
    ]
    records = [r for r in whole if r.key not in here]
    for record in records:
        target.copy(source, record)
    baselines, findings = scan_baselines(folder)
    assert not findings, findings
    known = {
        (baseline.task, baseline.task_hash, baseline.data_hash)
        for baseline in scan_baselines(RESULTS)[0]
    }
    for baseline in baselines:
        if (
            baseline.task in TASKS
            and (baseline.task, baseline.task_hash, baseline.data_hash) not in known
        ):
            save_baseline(RESULTS, baseline)
    return len(records)


def reported(*options: str, folder: Path = RESULTS) -> list[dict[str, Any]]:
    """The rows that `COMMAND` prints with these options and `--format json`, of the tasks in
    `COLUMNS`.
    """
    from biobench.cli.main import main

    argv, out = sys.argv, io.StringIO()
    sys.argv = [*COMMAND.split(), *options, "--format", "json", "--results-dir", os.fspath(folder)]
    try:
        with contextlib.redirect_stdout(out), contextlib.suppress(SystemExit):
            main()
    finally:
        sys.argv = argv
    return [row for row in json.loads(out.getvalue()) if row["task"] in COLUMNS]


def block(rows: list[dict[str, Any]], unseen: list[dict[str, Any]]) -> str:
    """What stands between the README's markers: published models, full-protocol runs, the best
    baseline, and scores on unseen mentions.
    """
    full = [row for row in rows if row["source"] == "run" and not row["variant"]]
    baselines = [row for row in rows if row["source"] == "baseline"]
    ours = list(dict.fromkeys(row["model"] for row in full))
    lines = [
        (f"{m}, published", [r for r in rows if (r["model"], r["source"]) == (m, "published")])
        for m in PUBLISHED
    ]
    lines = lines[: MOST_ROWS - 1 - len(ours)]
    lines += [
        (f"{model}, this code", [row for row in full if row["model"] == model]) for model in ours
    ]
    lines.append(("*best baseline*", sorted(baselines, key=lambda row: row["mean"])))
    table = [f"| | {' | '.join(COLUMNS)} |", f"|---|{'--:|' * len(COLUMNS)}"]
    for name, of in lines:
        cells = {row["task"]: cell(row) for row in of}  # the last one wins: of baselines the best
        table.append(f"| {name} | {' | '.join(cells.get(task, '–') for task in COLUMNS)} |")
    words = (
        "Percent: micro F1 for entities, accuracy for pubmedqa, macro F1 else. Published: "
        "arXiv:2605.12438. ± is half of\n"
        "the 95% interval over seeds; *guessing*: not shown to be above answers that read no text. "
        "Baselines: bag of\nwords, training dictionary, majority class. Both MiniLM models are "
        "small; pubmedqa's 450 training texts\nare too few for them."
    )
    return "\n".join(
        [START, *table, "", words, "", unseen_words(unseen), "", "```bash", COMMAND, "```", END]
    )


def unseen_words(rows: list[dict[str, Any]]) -> str:
    """What the full-protocol runs score on mentions that training does not hold."""
    full = [row for row in rows if row["source"] == "run" and not row["variant"]]
    tasks = [task for task in COLUMNS if any(row["task"] == task for row in full)]
    lines = []
    for model in dict.fromkeys(row["model"] for row in full):
        score_of = {row["task"]: row["mean"] for row in full if row["model"] == model}
        scores = " and ".join(f"{100 * score_of[task]:.1f}" for task in tasks if task in score_of)
        lines.append(f"{model} {scores}")
    return (
        f"On mentions that training does not hold (`--slice unseen`; {' and '.join(tasks)}):\n"
        f"{', '.join(lines)}."
    )


def cell(row: dict[str, Any]) -> str:
    """``73.8 ±3.6``, in percent; behind it that the model guesses, or the seeds that failed."""
    if row["guessing"]:
        return f"{100 * row['mean']:.1f} (guessing)"
    if row["failed"]:
        return f"{100 * row['mean']:.1f} ({row['failed']} failed)"
    margin = "" if row["low"] is None else f" ±{50 * (row['high'] - row['low']):.1f}"
    return f"{100 * row['mean']:.1f}{margin}"


def readme(text: str, rows: list[dict[str, Any]], unseen: list[dict[str, Any]]) -> str:
    """The README with the block made anew."""
    before, _, rest = text.partition(START)
    return before + block(rows, unseen) + rest.partition(END)[2]


def picture() -> str:
    """Seen and unseen mentions of the full-protocol runs, as SVG."""
    rows = []
    for part in ("seen", "unseen"):
        for row in reported("--slice", part):
            if row["source"] == "run" and not row["variant"]:
                name = f"{row['model']}, {row['task']}"
                rows.append({"model": name, "part": part, "score": 100 * row["mean"]})
    drawn = charts.parts(rows, "model", "part").properties(width=420)
    return str(vl_convert.vegalite_to_svg(drawn.to_dict())) + "\n"


if __name__ == "__main__":
    if sys.argv[1:2] == ["collect"] and len(sys.argv) == 3:
        print(f"{collect(Path(sys.argv[2]))} runs more in {RESULTS.name}/runs")
    elif sys.argv[1:] == ["readme"]:
        README.write_text(
            readme(README.read_text(encoding="utf-8"), reported(), reported("--slice", "unseen")),
            encoding="utf-8",
        )
    elif sys.argv[1:] == ["picture"]:
        PICTURE.write_text(picture(), encoding="utf-8")
    else:
        sys.exit(__doc__)
