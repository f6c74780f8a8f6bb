"""Options that several commands share, and how output is written."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from biobench.cli.options import shown
from biobench.errors import UsageError

DataDir = Annotated[str | None, shown("data_dir")]
ResultsDir = Annotated[str, shown("results_dir")]
Json = Annotated[bool, typer.Option("--json", help="Machine-readable output on stdout, nothing else there.")]
Overrides = Annotated[list[str], shown("overrides")]


def print_json(value: Any) -> None:
    """One JSON document on stdout."""
    sys.stdout.write(json.dumps(value, ensure_ascii=False, indent=2) + "\n")


def write_output(path: Path, text: str) -> None:
    """The file that `--output` names. Raises UsageError where it cannot be written."""
    try:
        path.write_text(text, encoding="utf-8", errors="replace")
    except OSError as error:
        what = f"{path} cannot be written: {error.strerror or error}"
        raise UsageError(what, hint="choose another --output") from error


def percent(value: float | None) -> str:
    """A fraction as percent with two decimals; a dash where there is none."""
    return "–" if value is None else f"{100 * value:.2f}"
