"""`biobench report`."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from biobench.cli.console.arguments import (
    Averaging,
    DataDir,
    Json,
    Output,
    SliceName,
    StoredResults,
    Tasks,
    several,
)


def report(
    *,
    format_: Literal["table", "md", "csv", "latex", "json", "html"] = "table",
    average: Averaging = "paper",
    task: Tasks = [],  # noqa: B006
    suite: list[str] = [],  # noqa: B006
    source: Annotated[list[str], typer.Option(callback=several)] = [],  # noqa: B006
    model: list[str] = [],  # noqa: B006
    incomplete: bool = False,
    slice_: SliceName = None,
    curve: bool = False,
    notes: bool = False,
    per_seed: bool = False,
    per_label: bool = False,
    probabilities: bool = False,
    data_dir: DataDir = None,
    results_dir: StoredResults = "results",
    output: Output = None,
    as_json: Json = False,
) -> None:
    """The results table: own runs with their intervals first, then the published scores of the same
    tasks.

    format_: Form of the table.
    suite: fr, en, needle; or alone blurb, drbenchmark, a YAML file.
    source: Only these rows: published, run, frozen, external, submitted, baseline, oracle.
    model: Only this model; repeatable.
    incomplete: Average incomplete suites too.
    curve: Scores over training texts (run --fractions).
    notes: table: every note in full.
    per_seed: csv, json: a row a run and metric.
    per_label: As --per-seed, with each label's scores.
    probabilities: As --per-seed, with ECE, Brier score, AUROC and AUPRC.
    as_json: The same as --format json.
    """
    format_ = "json" if as_json else format_
    from biobench.cli.report_text import Filters, ReportRequest, write_report

    request = ReportRequest(
        format=format_,
        average=average,
        filters=Filters(tasks=task, suites=suite, sources=source, models=model),
        slice=slice_,
        incomplete=incomplete,
        all_notes=notes,
        curve=curve,
        per_seed=per_seed,
        per_label=per_label,
        probabilities=probabilities,
        data_dir=data_dir,
    )
    write_report(request, results_dir, output)
