"""`biobench export`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from biobench.cli.common import ResultsDir, write_output


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command("export")(export)


def export(
    model: Annotated[
        str, typer.Argument(metavar="MODEL", help="A model of the results folder, as the report names it.")
    ],
    format_: Annotated[
        str, typer.Option("--format", help="model-card, eval-results, every-eval-ever or bibtex.")
    ] = "model-card",
    dataset: Annotated[
        str | None, typer.Option("--dataset", metavar="ORG/NAME", help="eval-results: the benchmark's hub dataset.")
    ] = None,
    results_dir: ResultsDir = "results",
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Write to a file, not to stdout.")] = None,
) -> None:
    """A model's results as metadata for the model hub, as Every Eval Ever JSON, or its tasks' BibTeX."""
    from biobench.export.formats import export as run

    text = run(model, format_, results_dir, dataset=dataset)
    if output is None:
        sys.stdout.buffer.write(text.encode("utf-8", "replace"))
    else:
        write_output(output, text)
