"""`biobench report`."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from biobench.cli.console.arguments import (
    Averaging,
    DataDir,
    Output,
    SliceName,
    StoredResults,
    Tasks,
    check_known,
    several,
)

SOURCES = ("published", "run", "frozen", "external", "submitted", "baseline", "oracle")


def report(
    *,
    format_: Annotated[
        Literal["table", "md", "csv", "latex", "json", "html"],
        typer.Option("--format", help="Form of the table."),
    ] = "table",
    average: Averaging = "paper",
    task: Tasks = [],  # noqa: B006
    suite: Annotated[
        list[str],
        typer.Option("--suite", help="fr, en, needle; or alone blurb, drbenchmark, a YAML file."),
    ] = [],  # noqa: B006
    source: Annotated[
        list[str],
        typer.Option("--source", callback=several, help=f"Only these rows: {', '.join(SOURCES)}."),
    ] = [],  # noqa: B006
    model: Annotated[list[str], typer.Option("--model", help="Only this model; repeatable.")] = [],  # noqa: B006
    incomplete: Annotated[
        bool, typer.Option("--incomplete", help="Average incomplete suites too.")
    ] = False,
    slice_: SliceName = None,
    curve: Annotated[
        bool, typer.Option("--curve", help="Scores over training texts (run --fractions).")
    ] = False,
    notes: Annotated[bool, typer.Option("--notes", help="table: every note in full.")] = False,
    every_run: Annotated[
        bool, typer.Option("--all", help="table: also runs with few of the tasks.")
    ] = False,
    seeds: Annotated[
        bool, typer.Option("--per-seed", help="csv, json: a row a run and metric.")
    ] = False,
    labels: Annotated[
        bool, typer.Option("--per-label", help="As --per-seed, with each label's scores.")
    ] = False,
    probabilities: Annotated[
        bool,
        typer.Option(
            "--probabilities", help="As --per-seed, with ECE, Brier score, AUROC and AUPRC."
        ),
    ] = False,
    data_dir: DataDir = None,
    results_dir: StoredResults = "results",
    output: Output = None,
    as_json: Annotated[bool, typer.Option("--json", help="The same as --format json.")] = False,
) -> None:
    """The results table: own runs with their intervals first, then the published scores of the same
    tasks.
    """
    format_ = "json" if as_json else format_
    check_known(source, SOURCES, "--source")
    from biobench.cli.report_text import Filters, ReportRequest, write_report

    request = ReportRequest(
        format=format_,
        average=average,
        filters=Filters(tasks=task, suites=suite, sources=source, models=model),
        slice=slice_,
        incomplete=incomplete,
        all_notes=notes,
        all_runs=every_run or bool(model),
        curve=curve,
        per_seed=seeds,
        per_label=labels,
        probabilities=probabilities,
        data_dir=data_dir,
    )
    write_report(request, results_dir, output)
