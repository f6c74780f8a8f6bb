"""How commands write their output: lines, tables, one JSON document, files."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import typer

from biobench.core.files import temporary_file
from biobench.errors import UsageError, escaped, shown_json
from biobench.runs.table import percent as percent


def terminal_width() -> int | None:
    """Columns of the terminal, or those that `COLUMNS` asks for; None where stdout is a file or
    pipe without them.
    """
    if not sys.stdout.isatty() and not os.environ.get("COLUMNS", "").isdecimal():
        return None
    return max(shutil.get_terminal_size().columns, 40)


def print_json(value: Any) -> None:
    """One JSON document on stdout; dataclasses are objects there."""
    text = json.dumps(value, ensure_ascii=False, indent=2, default=asdict)
    sys.stdout.write(shown_json(text) + "\n")


def answer(as_json: bool, data: Any, lines: Iterable[str]) -> None:
    """What a command says on stdout: its data as one JSON document, or lines for people."""
    if as_json:
        print_json(data)
    else:
        for line in lines:
            typer.echo("\n".join(map(escaped, line.split("\n"))))


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Columns as the report prints them: the first set left, numbers right."""
    from biobench.reporting.printers import grid

    return grid(head, rows)


def with_interval(value: float | None, ends: Any, sign: str = "", scale: float = 100) -> str:
    """A fraction in points with its interval, or a dash. ends: has `low` and `high`, which may be
    None; or is None.

    sign: ``+`` prints it always.
    """
    if value is None:
        return "–"
    low, high = (getattr(ends, end, None) for end in ("low", "high"))
    text = f"{scale * value:{sign}.2f}"
    if low is None or high is None:
        return text
    return f"{text} [{scale * low:{sign}.2f}, {scale * high:{sign}.2f}]"


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
        message = f"{path} cannot be written: {error.strerror or error}"
        raise UsageError(message, hint="choose another --output") from error


def write_text(text: str, output: Path | None) -> None:
    """To a file, or to stdout, where a terminal must take no part of a name for a command."""
    if output is not None:
        write_output(output, text)
        return
    if sys.stdout.isatty():
        text = re.sub(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]", "\ufffd", text)
    sys.stdout.write(text)
