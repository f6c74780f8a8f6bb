"""Results in long form: one row a run and metric, and a run, label and metric; what data frames are made of."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Collection, Iterator
from typing import Any

from biobench.report.escape import for_csv
from biobench.report.floors import no_skill
from biobench.report.groups import RunGroup
from biobench.report.table import Results

COLUMNS = (
    "model",
    "variant",
    "task",
    "suite",
    "language",
    "source",
    "seed",
    "metric",
    "label",
    "value",
    "support",
    "key",
    "failed",
)
"""value: a fraction (0-1) for scores. label: empty but for scores of one label. support: gold of that label. failed:
the run did not train, by its macro F1 or, where the kind has none, the score that published ones are compared with
(`stats.failed_runs`)."""


def tidy(
    results: Results,
    *,
    labels: bool = False,
    tasks: Collection[str] | None = None,
    suites: Collection[str] | None = None,
    models: Collection[str] | None = None,
    sources: Collection[str] | None = None,
) -> list[dict[str, Any]]:
    """A row a run and metric, all averages that the record holds; with `labels`, also a row a run, label and metric.

    Only what was run or submitted has seeds: published values are in `report.table.build`. tasks, suites, models,
    sources: keep only these. Raises StoreError where a record is gone or damaged.
    """
    return [
        row
        for group in results.groups
        if _wanted(group.task, tasks)
        and _wanted(results.infos[group.task].suite, suites)
        and _wanted(group.model, models)
        and _wanted(group.source, sources)
        for row in _of_group(results, group, labels)
    ]


def _wanted(value: str, allowed: Collection[str] | None) -> bool:
    return allowed is None or value in allowed


def _of_group(results: Results, group: RunGroup, labels: bool) -> Iterator[dict[str, Any]]:
    info = results.infos[group.task]
    base = {
        "model": group.model,
        "variant": group.variant,
        "task": group.task,
        "suite": info.suite,
        "language": info.language,
        "source": group.source,
    }
    headline = "macro_f1" if group.scores("macro_f1") is not None else info.paper
    failed = group.failed(headline, no_skill(results.floors))
    for i, brief in enumerate(group.briefs):
        run = base | {"seed": brief.seed, "failed": failed[i]}
        for metric, value in brief.scores.items():
            yield run | {"metric": metric, "label": "", "value": value, "support": None, "key": brief.key}
        if not labels:
            continue
        for label, scores in group.records[i].per_label.items():
            support = int(scores["support"])
            for metric in ("precision", "recall", "f1"):
                if metric in scores:
                    score = {"metric": metric, "label": label, "value": scores[metric]}
                    yield run | score | {"support": support, "key": brief.key}


def as_csv(rows: list[dict[str, Any]]) -> str:
    """The rows under `COLUMNS`; cells that a spreadsheet would take for formulas are text."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(COLUMNS)
    for row in rows:
        cells = [row[name] for name in COLUMNS]
        writer.writerow(["" if c is None else for_csv(c) if isinstance(c, str) else repr(c) for c in cells])
    return stream.getvalue()


def as_json(rows: list[dict[str, Any]]) -> str:
    """The rows as one JSON list."""
    return json.dumps(rows, ensure_ascii=False, indent=2, allow_nan=False) + "\n"
