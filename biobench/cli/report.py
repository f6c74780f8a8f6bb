"""`biobench report`."""

from __future__ import annotations

import re
import sys
from typing import Annotated, Any, Literal, get_args

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
from biobench.cli.console.output import write_output
from biobench.errors import UsageError

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
    notes: Annotated[bool, typer.Option("--notes", help="table: every note in full.")] = False,
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
    for chosen, option in (
        (seeds, "--per-seed"),
        (labels, "--per-label"),
        (probabilities, "--probabilities"),
    ):
        if chosen and format_ not in ("csv", "json"):
            raise UsageError(
                f"{option} has no place in a {format_}", hint="add --format csv or --format json"
            )
    from biobench.data.catalog import SUITES, load_task
    from biobench.data.suite import load_suite, suite_names
    from biobench.report import printers
    from biobench.report.frame import build, cells
    from biobench.report.frames import COLUMNS, tidy
    from biobench.report.results import load
    from biobench.report.row import AverageName
    from biobench.report.suite import build_suite

    results = load(results_dir)
    if slice_ is not None:
        from biobench.report.slices import sliced

        results, incomplete = sliced(results, slice_), True
    specs = {load_task(name).id: name for name in task if name.endswith((".yaml", ".yml"))}
    task = [*specs, *(name for name in task if name not in specs.values())]
    check_known(task, results.infos, "--task")
    named = next(
        (name for name in suite if name in suite_names() or name.endswith((".yaml", ".yml"))), None
    )
    declared = None if named is None or named == "all" else load_suite(named)
    if declared is None:
        check_known(suite, {*SUITES, *(info.suite for info in results.infos.values())}, "--suite")
    elif len(suite) > 1:
        raise UsageError(f"--suite {named} has a report of its own", hint="give it alone")
    if model:
        rows = [row.model for name in get_args(AverageName) for row in cells(results, name).rows]
        groups = (*results.groups, *(refusal.group for refusal in results.refusals))
        check_known(model, {*rows, *(group.model for group in groups)}, "--model")
    filters: dict[str, Any] = {"tasks": task or None, "suites": suite or None}
    filters |= {"sources": source or None, "models": model or None}
    below = ""
    if seeds or labels or probabilities:
        data = tidy(
            results,
            labels=labels,
            probabilities=probabilities,
            data_dir=data_dir,
            specs=specs,
            **filters,
        )
        text = printers.as_csv(COLUMNS, data) if format_ == "csv" else printers.as_json(data)
    else:
        if declared is not None:
            shown = build_suite(results, declared, suite[0], incomplete=incomplete)
        else:
            if format_ not in ("csv", "json") and not any(filters.values()):
                # the tasks that were run or submitted; where none was, everything published is on
                # show
                ran = dict.fromkeys(
                    g.task for g in (*results.groups, *(r.group for r in results.refusals))
                )
                filters["tasks"] = list(ran) or None
            shown = build(results, average, **filters, incomplete=incomplete)
            if filters["tasks"] is not None and not source:
                others = {v.task for v in results.published} - {
                    results.infos[t].published_as for t in filters["tasks"]
                }
                more = (
                    f"* published values of {len(others)} more tasks: `biobench report "
                    f"--source published`\n"
                )
                below = more if others else ""
        if format_ == "table" and output is None and sys.stdout.isatty():
            printers.print_table(shown, notes=notes)
            sys.stdout.write(below)
            return
        text = (
            printers.to_text(shown, notes=notes) + below
            if format_ == "table"
            else printers.render(shown, format_)
        )
    if output is None:
        # CSV carries names whole, and a terminal must take no part of them for a command
        command = r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]"
        sys.stdout.write(re.sub(command, "\ufffd", text) if sys.stdout.isatty() else text)
    else:
        write_output(output, text)
