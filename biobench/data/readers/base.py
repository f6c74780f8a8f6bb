"""What every reader is made of: strict options, the request that it answers, and the shared file helpers.

A reader is one file: an options model with its `format`, and a function from a `Request` to documents,
joined by `@reader(Options)`. Whatever is wrong in a file is raised by `Request.bad`, which names file and
line and, for data under an agreement, leaves the value out.

Order is part of a reader's contract, since splits by seed depend on it: documents come in the order of the files
(`Request.only_splits`; several files of a pattern by name) and, inside a file, in the order of its lines, rows or
elements. A reader never sorts them. Each reader's docstring names the file whose order counts.
"""

from __future__ import annotations

import codecs
import json
import math
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from biobench.errors import DataFormatError
from biobench.schema.document import Document
from biobench.schema.kind import KINDS
from biobench.schema.strict import Strict, suggest
from biobench.schema.task import TaskSpec


class ReaderOptions(Strict):
    """Base of all reader options; each reader narrows `format` to its own name."""

    format: str


@dataclass(frozen=True, slots=True)
class Request:
    """What a reader gets: its options, the files by split (or `all`, `texts`, `labels`), and the spec."""

    options: ReaderOptions
    files: dict[str, list[Path]]
    spec: TaskSpec
    redact: bool = False
    """True for data under an agreement: no value from a file may stand in a message."""
    any_label: bool = False
    """True where the labels that are read are replaced afterwards."""
    original: dict[str, list[Path]] = field(default_factory=dict)
    """Files of the second release, for readers that project from it."""

    def bad(
        self, what: str, hint: str, file: Path, line: int | None = None, value: str | None = None
    ) -> DataFormatError:
        """The error for a malformed place. `{}` in `what` stands for the value."""
        shown = "(value withheld)" if self.redact else _short(value)
        return DataFormatError(what.replace("{}", shown), hint=hint, file=file, line=line)

    def only_splits(self, *allowed: str) -> Iterator[tuple[str, Path]]:
        """(split, file) in the order train, validation, test, then the others; files as the source names them,
        those of a pattern by name."""
        order = {"train": 0, "validation": 1, "test": 2}
        for split in sorted(self.files, key=lambda s: (order.get(s, 3), s)):
            if allowed and split not in allowed:
                raise DataFormatError(
                    f"files.{split} does not fit format '{self.options.format}'", hint="use " + ", ".join(allowed)
                )
            for path in self.files[split]:
                yield ("" if split == "all" else split), path

    def check_label(self, label: str, file: Path, line: int) -> str:
        """`label` itself when the task has it (or has a rule instead of a list); else raises DataFormatError."""
        if KINDS[self.spec.type].numeric:
            return label  # the kind checks numbers
        labels = self.spec.labels
        if not self.any_label and isinstance(labels, list) and label not in labels:
            hint = "add it to `labels`, or map it" if self.redact else suggest(label, labels)
            raise self.bad("{} is not a label of the task", self.alike(label) or hint, file, line, label)
        return label

    def nearest(self, name: str, known: Sequence[str]) -> str:
        """The hint for a column or field that the file lacks: the nearest that it has.

        Data under an agreement are not quoted: where a header is missing, its place is taken by the first row.
        """
        return "check the names in the spec and in the file" if self.redact else suggest(name, known)

    def alike(self, label: str) -> str | None:
        """The hint for a label that only looks like one of the task's; None for another."""
        labels = self.spec.labels
        if not isinstance(labels, list) or _composed(label) not in map(_composed, labels):
            return None
        return "one of `labels` looks the same and has other code points (composed letters, invisible signs)"

    def whole_number(self, text: str, file: Path, line: int | None = None) -> int:
        """The number that decimal digits write. Raises DataFormatError for more than 18, which count no characters."""
        if len(text.strip()) > _DIGITS:
            raise self.bad(f"a number of {len(text.strip())} digits", "repair the offset", file, line)
        return int(text)


_DIGITS = 18


def _composed(label: str) -> str:
    """The label in one form of composed letters, without the signs that show nothing."""
    return "".join(c for c in unicodedata.normalize("NFC", label) if unicodedata.category(c) != "Cf")


def _short(value: str | None) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


ReadFunction = Callable[[Request], Iterator[Document]]


@dataclass(frozen=True, slots=True)
class Reader:
    """A registered native format."""

    format: str
    options: type[ReaderOptions]
    read: ReadFunction
    about: str = field(default="")
    """First line of the reader's docstring; for documentation."""


REGISTRY: dict[str, Reader] = {}


def reader(options: type[ReaderOptions]) -> Callable[[ReadFunction], ReadFunction]:
    """Register the decorated function as the reader of the format that `options.format` names."""

    def decorate(function: ReadFunction) -> ReadFunction:
        name = str(options.model_fields["format"].annotation.__args__[0])  # type: ignore[union-attr]
        if name in REGISTRY:
            raise ValueError(f"two readers are called '{name}'")
        about = (function.__doc__ or "").strip().split("\n", 1)[0]
        REGISTRY[name] = Reader(name, options, function, about)
        return function

    return decorate


Ids = Literal["name", "split_and_name", "repeated"]
"""What a document's id and group are, where files name documents. name: the name, which stands once in the task.
split_and_name: the split before it, where each split numbers anew; equal names are not the same document.
repeated: a document may stand in several splits, and several times in one. Its ids are ``<split>/<name>``, then
``<split>/<name>#2``; its group stays the name, so that what is the same document is known to be."""


class DocumentNames:
    """Ids and groups of named documents by a declared policy, in the order in which they are read."""

    def __init__(self, policy: Ids) -> None:
        self._policy = policy
        self._times: Counter[str] = Counter()

    def of(self, split: str, name: str) -> tuple[str, str]:
        """(id, group) of the next document of this name in `split`."""
        if self._policy == "name":
            return name, name
        document_id = f"{split}/{name}"
        if self._policy == "split_and_name":
            return document_id, document_id
        self._times[document_id] += 1
        return (document_id if self._times[document_id] == 1 else f"{document_id}#{self._times[document_id]}"), name


def read_text(request: Request, path: Path, errors: str = "strict") -> str:
    """Text of a UTF-8 file without any newline translation; a byte order mark is dropped.

    Raises DataFormatError for UTF-16 and UTF-32, and naming the line of the first NUL, and of the first byte that is
    not UTF-8 (unless errors="replace").
    """
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise DataFormatError(
            f"cannot be read: {error.strerror or error}", hint="check the file and its permissions", file=path
        ) from None
    return decoded(path, raw, errors)


def decoded(path: Path, raw: bytes, errors: str = "strict", line: int = 1) -> str:
    """The text of bytes that begin on this line of the file; see `read_text`."""
    if line == 1 and raw.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE, codecs.BOM_UTF32_BE)):
        raise DataFormatError("is UTF-16 or UTF-32", hint="save the file as UTF-8", file=path, line=1)
    nul = raw.find(b"\0")
    if nul >= 0:
        hint = "no text has one: remove it, or save the file as UTF-8 where it is UTF-16"
        raise DataFormatError("a NUL byte", hint=hint, file=path, line=line + raw.count(b"\n", 0, nul))
    try:
        return raw.decode("utf-8-sig" if line == 1 else "utf-8", errors=errors)
    except UnicodeDecodeError as error:
        what = f"byte 0x{raw[error.start]:02x} is not UTF-8"
        place = line + raw.count(b"\n", 0, error.start)
        raise DataFormatError(what, hint="save the file as UTF-8", file=path, line=place) from None


def read_lines(request: Request, path: Path, errors: str = "strict") -> Iterator[tuple[int, str]]:
    """(1-based number, line without its end) of a UTF-8 file; LF and CRLF end a line and nothing else does."""
    text = read_text(request, path, errors)
    lines = text.split("\n")
    if lines and lines[-1] == "":
        lines.pop()
    for number, line in enumerate(lines, start=1):
        yield number, line.removesuffix("\r")


def parse_json(
    request: Request,
    path: Path,
    text: str,
    hint: str,
    line: int | None = None,
    pairs: Callable[[list[tuple[str, Any]]], Any] | None = None,
) -> Any:
    """The JSON value of a file's text, or of its line number `line`. pairs: what an object's fields become.

    Raises DataFormatError for what is no JSON, for nesting beyond the decoder's depth and for numbers of thousands of
    digits.
    """
    try:
        return json.loads(text, object_pairs_hook=pairs)
    except json.JSONDecodeError as error:
        raise request.bad(f"not valid JSON: {error.msg}", hint, path, line or error.lineno) from None
    except RecursionError:
        raise request.bad("JSON that is nested too deeply", hint, path, line or 1) from None
    except ValueError:
        raise request.bad("a number of thousands of digits", hint, path, line or 1) from None


_GAP = 1_000_000


def fill(request: Request, text: str, offset: int, path: Path, line: int) -> str:
    """The text with blanks up to character `offset`, where the next passage begins.

    Raises DataFormatError for more than a million blanks: a damaged number would fill the memory.
    """
    if offset - len(text) > _GAP:
        raise request.bad(
            f"a passage begins {offset - len(text)} characters after the last", "check the offset", path, line
        )
    return text.ljust(offset)


def at(path: Path, line: int) -> str:
    """``file:line`` for `Document.origin`."""
    return f"{path}:{line}"


def missing(value: Any) -> bool:
    """Null, or the NaN that data tools write where a cell was empty."""
    return value is None or (isinstance(value, float) and math.isnan(value))
