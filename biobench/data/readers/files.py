"""Reading what files hold: text, lines, delimited rows, tables with a header, JSON, XML and
parquet.

Each takes the `FileLine` of a file's beginning and raises DataFormatError with the line for what it
is not.
"""

from __future__ import annotations

import csv
import gzip
import json
import math
import xml.etree.ElementTree as ET
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, repeat
from pathlib import Path
from typing import Any, Literal

from biobench.core.text import first_line
from biobench.data.readers.base import FileLine, Request, numbering
from biobench.data.readers.magic import NO_TEXT
from biobench.errors import DataFormatError
from biobench.schema.kind import KINDS

Separator = Literal["tab", "comma", "semicolon"]
DELIMITERS = {"tab": "\t", "comma": ",", "semicolon": ";"}
CHECK_SEPARATOR = "; check `reader.separator` too"
"""Said after another hint."""


def decoded(
    path: Path, raw: bytes, errors: str = "strict", line: int = 1, encoding: str = "utf-8"
) -> str:
    """The text of bytes that begin on this line of the file; a byte order mark is dropped.

    Raises DataFormatError for UTF-16 and UTF-32, for files that hold no text, and naming the line
    of the first NUL, and of the first byte that is not of the encoding (unless errors="replace").
    """
    codec = encoding
    if line == 1:
        codec = "utf-8-sig" if encoding == "utf-8" else encoding
        _refuse_other_files(path, raw)
    nul = raw.find(b"\0")
    if nul >= 0:
        raise DataFormatError(
            "a NUL byte",
            hint="no text has one: remove it, or save the file as UTF-8 where it is UTF-16",
            file=path,
            line=line + raw.count(b"\n", 0, nul),
        )
    try:
        return raw.decode(codec, errors=errors)
    except UnicodeDecodeError as error:
        raise DataFormatError(
            f"byte 0x{raw[error.start]:02x} is not {encoding.upper()}",
            hint=OTHER_ENCODING,
            file=path,
            line=line + raw.count(b"\n", 0, error.start),
        ) from None


def _refuse_other_files(path: Path, raw: bytes) -> None:
    for magic, (message, hint) in NO_TEXT.items():
        if raw.startswith(magic):
            raise DataFormatError(message, hint=hint, file=path, line=1)


OTHER_ENCODING = (
    "save the file as UTF-8, or say what it is: `reader.encoding: cp1252` (`tasks new --encoding "
    "cp1252`) for most files of Windows"
)


def unreadable(path: Path, error: OSError) -> DataFormatError:
    """The error for a file that the system does not give."""
    return DataFormatError(
        f"cannot be read: {error.strerror or error}",
        hint="check the file and its permissions",
        file=path,
    )


def read_text(location: FileLine, errors: str = "strict") -> str:
    """Text of the file without any newline translation; see `decoded`."""
    path = location.path
    try:
        return decoded(path, path.read_bytes(), errors, encoding=location.encoding)
    except OSError as error:
        raise unreadable(path, error) from None


def read_lines(location: FileLine, errors: str = "strict") -> Iterator[tuple[int, str]]:
    """(1-based number, line without its end) of the file; LF and CRLF end a line and nothing else
    does.
    """
    *lines, after_the_last = read_text(location, errors).split("\n")
    if after_the_last:
        lines.append(after_the_last)
    for number, line in enumerate(lines, start=1):
        yield number, line.removesuffix("\r")


def delimited(
    location: FileLine, separator: Separator, *, quoting: str = "minimal", strict: bool = True
) -> Iterator[tuple[FileLine, list[str]]]:
    """(where the row begins, fields) of a delimited file (also .gz), read as a stream; blank lines
    are skipped.

    strict: a broken quoted field is refused, and CRLF inside one is a line feed; else such a field
    is read as Python reads it, and its line ends stay.
    """
    csv.field_size_limit(1 << 27)  # clinical notes exceed the module's default of 128 KiB
    quotes: Literal[0, 3] = csv.QUOTE_MINIMAL
    if quoting == "none":
        quotes = csv.QUOTE_NONE
    lines = _stream_lines(location, strict=strict)
    rows = csv.reader(lines, delimiter=DELIMITERS[separator], quoting=quotes, strict=strict)
    at = location
    try:
        for row in rows:
            if row:
                yield at, row
            at = location.at(rows.line_num + 1)
    except csv.Error as error:
        raise at.bad(
            f"not a delimited row: {error}", "repair the quotes, or set `reader.quoting: none`"
        ) from None
    except (EOFError, OSError, zlib.error) as error:
        raise at.bad(f"cannot be read: {first_line(error)}", "check the file") from None


def _stream_lines(location: FileLine, *, strict: bool) -> Iterator[str]:
    """The lines of a file (also .gz) with their ends; strict: every end is a line feed."""
    path = location.path
    with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as stream:
        for number, raw in enumerate(stream, start=1):
            line = decoded(path, raw, line=number, encoding=location.encoding)
            if strict:
                line = line.removesuffix("\n").removesuffix("\r") + "\n"
            yield line


def table(
    locations: Iterable[FileLine],
    separator: Separator,
    columns: Sequence[str],
    *,
    strict: bool = True,
) -> Iterator[tuple[FileLine, dict[str, str]]]:
    """(place, column to cell) of the rows of all files, each below a header that has `columns`,
    blanks around its names cut.
    """
    for location in locations:
        rows = delimited(location, separator, strict=strict)
        header: list[str] = []
        for at, row in islice(rows, 1):
            header = [name.strip() for name in row]
            for column in columns:
                at.need(column, header, "the header has no column", CHECK_SEPARATOR)
        for at, row in rows:
            at.check_width(row, len(header))
            yield at, dict(zip(header, row, strict=True))


def parse_json(
    location: FileLine,
    text: str,
    hint: str,
    fields: Callable[[list[tuple[str, Any]]], Any] | None = None,
) -> Any:
    """The JSON value of a text that begins at this place. fields: what an object's become.

    Raises DataFormatError for what is no JSON, for nesting beyond the decoder's depth and for
    numbers of thousands of digits.
    """
    try:
        return json.loads(text, object_pairs_hook=fields)
    except json.JSONDecodeError as error:
        at = location.at((location.line or 1) + error.lineno - 1)
        raise at.bad(f"not valid JSON: {error.msg}", hint) from None
    except (RecursionError, ValueError) as error:
        raise location.bad(f"not valid JSON: {first_line(error)}", hint) from None


def parse_xml(location: FileLine) -> ET.Element:
    """The root element of an XML file in the encoding that it declares, else UTF-8."""
    try:
        # At once: a text that is one attribute would be begun anew with every piece of the file.
        return ET.fromstring(location.path.read_bytes())
    except ET.ParseError as error:
        at = location.at(error.position[0])
        raise at.bad(f"not valid XML: {error}", "repair the file") from None
    except (LookupError, ValueError):
        raise location.bad(
            "not valid XML: the encoding that it declares is not known", "save the file as UTF-8"
        ) from None
    except OSError as error:
        raise unreadable(location.path, error) from None


def xml_files(request: Request[Any]) -> Iterator[tuple[FileLine, ET.Element]]:
    """(place without a line, root element) of each file."""
    for start in request.places():
        yield start.at(None), parse_xml(start)


def missing(value: Any) -> bool:
    """Null, or the NaN that data tools write where a cell was empty."""
    return value is None or (isinstance(value, float) and math.isnan(value))


def items_of(value: Any) -> list[Any]:
    """The items of a list; what is no list is the only one."""
    return value if isinstance(value, list) else [value]


@dataclass(slots=True)
class DataRow:
    """A JSON object or a row of a parquet table, with what it is called in messages."""

    location: FileLine
    values: dict[str, Any]
    number: str
    """``<split>-<number in the split>``: its id where it has none."""
    noun: str = "object"

    def bad(self, message: str, hint: str, value: str | None = None) -> DataFormatError:
        """The error for this row."""
        return self.location.bad(message, hint, value)

    def need(self, *names: str | None) -> None:
        """Raise DataFormatError where one of these fields is not there; None names no field."""
        for name in names:
            # A column may have no name: pandas writes its index as "".
            if name is not None:
                self.location.need(name, self.values, f"the {self.noun} has no field")

    def value(self, name: str) -> Any:
        """The field's value. Raises DataFormatError where it is not there or null, which is no text
        and no label.
        """
        self.need(name)
        value = self.values[name]
        if missing(value):
            raise self._null(name)
        return value

    def text(self, name: str) -> str:
        """The field's value as text."""
        return str(self.value(name))

    def id_and_group(self, id_field: str | None, group_field: str | None) -> tuple[str, str]:
        """What these fields hold; without one the id is the row's number, and the group the id."""
        id = self.number
        if id_field is not None:
            id = self.text(id_field)
        if group_field is None:
            return id, id
        return id, self.text(group_field)

    def query(self, field: str | None) -> str:
        """The first text of a pair, without blanks around it; empty where no field is named."""
        if field is None:
            return ""
        return self.text(field).strip()

    def items(self, name: str) -> list[Any]:
        """The items of a list; what is no list is the only one."""
        items = items_of(self.value(name))
        if any(map(missing, items)):
            raise self._null(name)
        return items

    def _null(self, name: str) -> DataFormatError:
        return self.bad(
            f"the {self.noun} has a null in field '{name}'",
            f"fill it in, take it out of its list, or remove the {self.noun}",
        )

    def labels(self, name: str, declared: Collection[str], names: Sequence[str] = ()) -> list[str]:
        """The field's labels as texts. declared: such as the spec maps. names: what integers mean.

        Raises DataFormatError for what is no label: objects, lists, fractions, and vectors of 0 and
        1. Numbers are read where the spec's labels say so.
        """
        values = self.items(name)
        numbers = [value for value in values if isinstance(value, (int, float))]
        if len(set(numbers)) < len(numbers):
            raise self.bad(
                "a label is a vector of numbers (multi-hot): {}",
                "write the names of the labels that are 1, as a list of texts",
                str(values),
            )
        for value in values:
            if isinstance(value, (dict, list)):
                raise self.bad(
                    "a label is an object or a list: {}",
                    f"field '{name}' must hold a label, or a list of labels, as texts",
                    str(value),
                )
            if isinstance(value, float):
                self._check_number(str(value), declared)
        return [self.named(value, names) for value in values]

    def _check_number(self, number: str, declared: Collection[str]) -> None:
        """Refuse a number as a label, unless it is to be predicted or the spec has it as a text."""
        spec = self.location.request.spec
        if KINDS[spec.type].numeric or number in declared:
            return
        if not isinstance(spec.labels, list) or number not in spec.labels:
            raise self.bad(
                "a label is the number {}",
                "labels are texts or whole numbers; a number to predict is `regression`",
                number,
            )

    def named(self, value: Any, names: Sequence[str]) -> str:
        """What an integer stands for among `names`, else the value as text."""
        if not names or not isinstance(value, int) or isinstance(value, bool):
            return str(value)
        if not 0 <= value < len(names):
            raise self.bad(
                f"{{}} is not an index into the {len(names)} names",
                "check `reader.names`; -1 stands for a hidden label: leave that file out",
                str(value),
            )
        return names[value]


Layout = Literal["list", "lines", "keyed"]


def json_rows(request: Request[Any], layout: Layout) -> Iterator[DataRow]:
    """The objects of all files. list: one list of them. lines: one a line. keyed: one object of
    objects by their ids, which are their numbers.

    Places in a list are object numbers.
    """
    numbers = numbering()
    for location in request.places():
        prefix = location.prefix
        for at, key, item in _items(location, layout):
            if not isinstance(item, dict):
                raise at.bad(
                    "is not an object: {}",
                    "write an object a line, or a list of them, and check `reader.layout`",
                    str(item),
                )
            number = f"{prefix}-{next(numbers[prefix])}"
            yield DataRow(at, item, key or number)


def _items(location: FileLine, layout: Layout) -> Iterator[tuple[FileLine, str, Any]]:
    """(line, or number of the object in its file; its key; what should be an object)."""
    if layout == "lines":
        for line, text in read_lines(location):
            if text.strip():
                at = location.at(line)
                yield at, "", parse_json(at, text, "write one object a line")
        return
    container, fields = {"list": (list, None), "keyed": (dict, _once)}[layout]
    content = parse_json(location, read_text(location), "repair the file", fields)
    location.require(
        isinstance(content, container),
        f"is not JSON of layout '{layout}'",
        "`reader.layout` is list, lines or keyed (objects by their ids)",
    )
    by_key = content.items() if layout == "keyed" else zip(repeat(""), content)
    for number, (key, item) in enumerate(by_key, start=1):
        yield location.at(number), key, item


def _once(fields: list[tuple[str, Any]]) -> dict[str, Any]:
    """The object. Raises ValueError for a key that stands twice."""
    content = dict(fields)
    if len(content) < len(fields):
        raise ValueError("a key stands twice in one object")
    return content
