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
    check_known,
    several,
)

Format = Literal["table", "md", "csv", "latex", "json", "html"]
SOURCES = ("published", "run", "frozen", "external", "submitted", "baseline", "oracle")


def report(
    *,
    format_: Annotated[Format, typer.Option("--format", metavar="NAME")] = "table",
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

    format_: table, md, csv, latex, json or html.
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
    check_known(source, SOURCES, "--source")  # before what takes a second to load
    from biobench.cli import report_text as forms
    from biobench.cli.console.output import write_text
    from biobench.reporting.frame import build
    from biobench.reporting.results import load
    from biobench.reporting.slices import sliced
    from biobench.reporting.suite import build_suite

    if as_json:
        format_ = "json"
    options = {"--per-seed": per_seed, "--per-label": per_label, "--probabilities": probabilities}
    forms.check_format(format_, options, curve=curve)
    results = load(results_dir)
    if slice_ is not None:
        results, incomplete = sliced(results, slice_), True
    specs = forms.own_specs(task)
    filters = forms.Filters(
        tasks=[*specs, *(name for name in task if name not in specs.values())],
        suites=suite,
        sources=source,
        models=model,
    )
    declared = forms.declared_suite(suite)
    forms.check_filters(filters, results, declared)
    if curve:
        write_text(forms.curves_text(filters, results, average, format_), output)
    elif any(options.values()):
        rows = forms.rows_of_runs(
            filters,
            results,
            format_,
            labels=per_label,
            probabilities=probabilities,
            data_dir=data_dir,
            specs=specs,
        )
        write_text(rows, output)
    elif declared is not None:
        table = build_suite(results, declared, suite[0], incomplete=incomplete)
        forms.write_table(table, format_, output, notes=notes)
    else:
        filters = forms.shown_filters(filters, results, format_)
        table = build(results, average, **filters.arguments(), incomplete=incomplete)
        below = forms.no_runs(filters, results) + forms.more_published(filters, results)
        below += forms.in_short(table)
        forms.write_table(table, format_, output, notes=notes, below=below)
