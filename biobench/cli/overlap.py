"""`biobench data overlap`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from biobench.cli.console.common import DataDir, Json, ResultsDir, print_json, several


def overlap(
    corpus: Annotated[
        Path,
        typer.Argument(
            metavar="CORPUS_OR_LEDGER",
            help="Training text (folder, .txt, .jsonl, .parquet), or the ledger or folder of a pretraining run.",
        ),
    ],
    *,
    task: Annotated[list[str], typer.Option("--task", callback=several, help="Only this task; repeatable.")] = [],  # noqa: B006
    model: Annotated[
        str | None, typer.Option("--model", help="The model that was trained on CORPUS; a run names its own.")
    ] = None,
    data_dir: DataDir = None,
    results_dir: ResultsDir = "results",
    as_json: Json = False,
) -> None:
    """Exact and 13-gram overlap of training text with each task's validation and test documents.

    Where the model is known, the result is kept in --results-dir, in its records and in those of later runs.
    """
    from biobench.workflows.overlap import measure

    rows, measured, noted = measure(corpus, task, model, data_dir, results_dir)
    if as_json:
        print_json([row.as_dict() | {"excluded": measured[row.task].excluded} for row in rows])
        return
    for row in rows:
        excluded = "; the corpus excludes all of them" if measured[row.task].excluded else ""
        typer.echo(
            f"{row.task} {row.split}: {row.exact} of {row.documents} documents verbatim, "
            f"{row.touched} share a 13-gram, {row.ngrams_seen} of {row.ngrams} 13-grams seen "
            f"({row.short} documents too short to tell){excluded}"
        )
    if noted is not None:
        typer.echo(f"kept in {Path(results_dir) / 'overlap'}, {noted[1]} stored runs of {noted[0]} noted", err=True)
