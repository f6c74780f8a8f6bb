"""`biobench export`."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from biobench.cli.console.common import Output, ResultsDir, check_results_dir, write_output


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command("export")(export)


def export(
    context: typer.Context,
    model: Annotated[
        str, typer.Argument(metavar="MODEL", help="A model of the results folder, as the report names it.")
    ],
    *,
    format_: Annotated[
        str, typer.Option("--format", help="model-card, eval-results, every-eval-ever, bibtex, csv or latex.")
    ] = "model-card",
    dataset: Annotated[
        str | None, typer.Option("--dataset", metavar="ORG/NAME", help="eval-results: the benchmark's hub dataset.")
    ] = None,
    push: Annotated[
        str | None,
        typer.Option(
            "--push",
            metavar="ORG/MODEL",
            help="model-card, eval-results: open a request that adds them to this repository of the hub.",
        ),
    ] = None,
    results_dir: ResultsDir = "results",
    output: Output = None,
) -> None:
    """A model's results as metadata for the model hub, as Every Eval Ever JSON, as a table, or its tasks' BibTeX."""
    check_results_dir(context, results_dir)
    from biobench.export.formats import export as run

    text = run(model, format_, results_dir, dataset=dataset)
    if push is not None:
        from biobench.export.push import push_results

        typer.echo(f"request: {push_results(push, text, format_)}")
    if output is None and push is None:
        sys.stdout.buffer.write(text.encode("utf-8", "replace"))
    elif output is not None:
        write_output(output, text)
