"""Options that several commands share, and how output is written."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from biobench.cli.console.options import shown
from biobench.core.files import temporary_file
from biobench.core.threads import prepare_threads
from biobench.errors import UsageError
from biobench.runs.table import percent as percent
from biobench.schema.strict import suggest


def several(texts: list[str]) -> list[str]:
    """Values of a repeatable option, of which `a,b` gives two; the name of a file stays whole."""
    return [part for text in texts for part in ([text] if os.path.exists(text) else text.split(",")) if part]


def _is_there(context: typer.Context, folder: str) -> str:
    """Raises UsageError where a results folder was named and is not there; the default one need not exist."""
    source = context.get_parameter_source("results_dir")
    if source is not None and source.name != "DEFAULT" and not Path(folder).is_dir():
        hint = "name the folder that `biobench run --results-dir` wrote; without the option it is ./results"
        raise UsageError(f"there is no results folder '{folder}'", hint=hint)
    return folder


DataDir = Annotated[str | None, shown("data_dir")]
ResultsDir = Annotated[str, shown("results_dir")]
StoredResults = Annotated[str, shown("results_dir", callback=_is_there)]
Averaging = Annotated[
    Literal["paper", "macro", "micro", "weighted"],
    typer.Option("--average", help="paper: each task's published one."),
]
Tasks = Annotated[
    list[str],
    typer.Option("--task", callback=several, metavar="ID_OR_YAML", help="Only this task; repeatable."),
]
Output = Annotated[Path | None, typer.Option("--output", "--out", "-o", help="Write to this file, not to stdout.")]
Json = Annotated[bool, typer.Option("--json", help="Machine-readable output on stdout, nothing else there.")]
Overrides = Annotated[list[str], shown("overrides")]


def _set_threads(threads: int | None) -> int | None:
    """The option's value, applied as soon as it is read: the command loads torch after that."""
    if threads is not None:
        prepare_threads(threads)
    return threads


Threads = Annotated[int | None, shown("threads", help="CPU threads (default: as usable).", callback=_set_threads)]


def check_known(values: Iterable[str], allowed: Collection[str], option: str) -> None:
    """Raises UsageError for the first value that is not among `allowed`."""
    for value in values:
        if value not in allowed:
            from biobench.report.escape import plain

            hint = suggest(value, [plain(name) for name in allowed])
            raise UsageError(f"{option} '{plain(value)}' is not known", hint=hint)


def terminal_width() -> int | None:
    """Columns of the terminal, or those that `COLUMNS` asks for; None where stdout is a file or pipe without them."""
    if not sys.stdout.isatty() and not os.environ.get("COLUMNS", "").isdecimal():
        return None
    return max(shutil.get_terminal_size().columns, 40)


def print_json(value: Any) -> None:
    """One JSON document on stdout."""
    sys.stdout.write(json.dumps(value, ensure_ascii=False, indent=2) + "\n")


def answer(as_json: bool, data: Any, lines: Iterable[str]) -> None:
    """What a command says on stdout: its data as one JSON document, or lines for people."""
    if as_json:
        print_json(data)
    else:
        for line in lines:
            typer.echo(line)


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Columns as the report prints them: the first set left, numbers right."""
    from biobench.report.printers import grid

    return grid(head, rows)


def with_interval(value: float | None, ends: Any, sign: str = "", scale: float = 100) -> str:
    """A fraction in points with its interval, or a dash. ends: has `low` and `high`, which may be None; or is None.

    sign: ``+`` prints it always.
    """
    if value is None:
        return "–"
    low, high = (getattr(ends, end, None) for end in ("low", "high"))
    text = f"{scale * value:{sign}.2f}"
    return text if low is None or high is None else f"{text} [{scale * low:{sign}.2f}, {scale * high:{sign}.2f}]"


def write_output(path: Path, text: str) -> None:
    """The file that `--output` names becomes the text, or stays what it was. Raises UsageError.

    A pipe or device takes the text as it is.
    """
    content = text.encode("utf-8", "replace")
    try:
        target = path.resolve()
        if target.exists() and not target.is_file():
            target.write_bytes(content)
            return
        target.parent.stat()  # a folder that is missing is a mistake in the name, and not made
        with temporary_file(target) as stream:
            stream.write(content)
        os.replace(stream.name, target)
    except OSError as error:
        what = f"{path} cannot be written: {error.strerror or error}"
        raise UsageError(what, hint="choose another --output") from error
