"""Every situation in which BioBench stops and speaks to the user.

One small class per situation. Each error says in one line what is wrong (with file, line and value
where there is one) and carries a hint that says what to do. The command line prints both and exits
with 2.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any


def visible(text: str) -> str:
    """One line that no terminal takes for a command: signs without a picture are written as
    escapes, \\x1b say.
    """
    return escaped(" ".join(text.split()))


def shown_json(text: str) -> str:
    """JSON text as it may be printed: what has no picture or turns the direction of writing is a
    `\\u` escape, which a parser gives back.
    """
    if text.replace("\n", "").isprintable():
        return text
    return "".join(
        sign if sign == "\n" or sign.isprintable() else json.dumps(sign)[1:-1] for sign in text
    )


def escaped(text: str) -> str:
    """The text with its signs without a picture as escapes; blanks stay as many as they are."""
    if text.isprintable():
        return text
    return "".join(
        c if c.isprintable() else c.encode("unicode_escape", "surrogatepass").decode() for c in text
    )


WITHHELD = "(value withheld)"
"""Stands for a piece of data under an agreement."""


def _short(text: str) -> str:
    return text if len(text) <= 60 else text[:57] + "..."


class BioBenchError(Exception):
    """Base of all errors that are the input's fault rather than the program's.

    what: one line, no trailing full stop needed. hint: what the reader should do.
    file, line: where (line is 1-based); shown as ``file:line: what``.
    value: a piece of a corpus (an id, a group, a label, text), for which `{}` stands in `what`. It
    stands nowhere else, so that `withholding` can take it out.
    """

    def __init__(
        self,
        what: str,
        *,
        hint: str,
        file: str | Path | None = None,
        line: int | None = None,
        value: str | None = None,
    ) -> None:
        self._without_value = None if value is None else what.replace("{}", WITHHELD)
        if value is not None:
            what = what.replace("{}", _short(repr(value)))
        self.what, self.hint = visible(what), visible(hint)
        self.file = None if file is None else str(file)
        self.line = line
        super().__init__(self.what)
        self.add_note(f"hint: {self.hint}")  # Python prints it below the error

    def withhold(self) -> None:
        """Take the piece of a corpus out of the message, and out of what led to the error."""
        self.__cause__, self.__suppress_context__ = None, True
        if self._without_value is not None:
            self.what = visible(self._without_value)
            self.args = (self.what,)

    @property
    def where(self) -> str:
        """``file:line: ``, ``file: `` or nothing."""
        if self.file is None:
            return ""
        file = visible(self.file)
        return f"{file}: " if self.line is None else f"{file}:{self.line}: "

    def __str__(self) -> str:
        return f"{self.where}{self.what}"

    def __reduce__(self) -> tuple[Any, ...]:
        """From one process to another: every field, whatever the class takes to make one."""
        return _again, (type(self), self.args, vars(self))


@contextmanager
def withholding(redact: bool) -> Iterator[None]:
    """The one redaction: errors raised inside show no piece of a corpus. redact: whether the data
    is under an agreement.
    """
    try:
        yield
    except BioBenchError as error:
        if redact:
            error.withhold()
        raise


def _again(
    kind: type[BioBenchError], args: tuple[Any, ...], fields: dict[str, Any]
) -> BioBenchError:
    error = kind.__new__(kind, *args)
    error.__dict__.update(fields)
    return error


class SpecError(BioBenchError):
    """A YAML spec (task, recipe) or an override of one of its fields is not valid."""


class UsageError(BioBenchError):
    """The command's arguments do not fit together or name something that does not exist."""


class DataFormatError(BioBenchError):
    """A data file is at hand but its content is not in the format that the spec declares."""


class DataUnavailableError(BioBenchError):
    """The data of a task is not available: missing, or under an agreement. The hint is the
    remedy."""

    def __init__(self, what: str, *, hint: str, access: str = "open") -> None:
        super().__init__(what, hint=hint)
        self.access = access


class ModelError(BioBenchError):
    """A checkpoint cannot be found, loaded or used for the task."""


class TrainingError(BioBenchError):
    """A run could not be trained: the loss stays non-finite, or memory does not suffice for one
    example.
    """


class ClusterError(BioBenchError):
    """A cluster cannot be joined, has lost its nodes, or has nodes that would make other runs."""


class StoreError(BioBenchError):
    """The results folder holds something damaged, or cannot be written."""
