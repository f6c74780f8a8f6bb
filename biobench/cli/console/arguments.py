"""Options that several commands share."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Annotated, Literal

import typer

from biobench.cli.console.options import shown
from biobench.errors import UsageError
from biobench.schema.strict import suggest


def several(texts: list[str]) -> list[str]:
    """Values of a repeatable option, of which `a,b` gives two; the name of a file stays whole."""
    values: list[str] = []
    for text in texts:
        values += [text] if os.path.exists(text) else filter(None, text.split(","))
    return values


def _is_there(context: typer.Context, folder: str) -> str:
    """Raises UsageError where a results folder was named and is not there; the default one need not
    exist.
    """
    source = context.get_parameter_source("results_dir")
    if source is not None and source.name != "DEFAULT" and not Path(folder).is_dir():
        hint = (
            "name the folder that `biobench run --results-dir` wrote; without the option it is "
            "./results"
        )
        raise UsageError(f"there is no results folder '{folder}'", hint=hint)
    return folder


DataDir = Annotated[str | None, shown("data_dir")]
ResultsDir = Annotated[str, shown("results_dir")]
StoredResults = Annotated[str, shown("results_dir", callback=_is_there)]
Averaging = Annotated[
    Literal["paper", "macro", "micro", "weighted"],
    typer.Option(
        "--average",
        metavar="NAME",
        help="paper (each task's published one), macro, micro or weighted.",
    ),
]
SliceName = Annotated[
    Literal["seen", "unseen", "rare", "frequent", "clean"] | None,
    typer.Option(
        "--slice",
        metavar="NAME",
        help="seen or unseen (mentions), rare or frequent (labels), clean (documents).",
    ),
]
Tasks = Annotated[
    list[str],
    typer.Option(
        "--task", callback=several, metavar="ID_OR_YAML", help="Only this task; repeatable."
    ),
]
Output = Annotated[
    Path | None, typer.Option("--output", "--out", "-o", help="Write to this file, not to stdout.")
]
IncludeAgreement = Annotated[
    bool, typer.Option("--include-agreement", help="Write data under an agreement too.")
]
Json = Annotated[
    bool, typer.Option("--json", help="Machine-readable output on stdout, nothing else there.")
]
Count = Annotated[int, typer.Option(min=1)]
Device = Annotated[str, shown("device")]
Offline = Annotated[bool, shown("offline")]
Overrides = Annotated[list[str], shown("overrides")]
Threads = Annotated[int | None, shown("threads", help="CPU threads (default: as usable).")]


def check_known(values: Iterable[str], allowed: Collection[str], option: str) -> None:
    """Raises UsageError for the first value that is not among `allowed`."""
    for value in values:
        if value not in allowed:
            from biobench.reporting.escape import plain

            hint = suggest(value, [plain(name) for name in allowed])
            raise UsageError(f"{option} '{plain(value)}' is not known", hint=hint)
