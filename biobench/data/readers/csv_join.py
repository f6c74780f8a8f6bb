"""Flags per note in one table, the notes' texts in another, joined by a key (MIMIC-III phenotypes)."""

from __future__ import annotations

import csv
import gzip
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Literal

from biobench.data.readers.base import ReaderOptions, Request, at, decoded, reader
from biobench.data.readers.tsv import rows
from biobench.errors import DataFormatError
from biobench.schema.document import Document


class CsvJoinOptions(ReaderOptions):
    """Options of format `csv_join`: `files.labels` has one 0/1 column per label, `files.texts` the texts (also .gz)."""

    format: Literal["csv_join"]
    key: str
    """Column that both tables have."""
    text: str
    group: str
    """Column of the labels table: what belongs together (a note, a patient)."""
    none: str | None = None
    """0/1 column that says 'no label applies'; rows where it is 1 beside a label are contradictory and left out."""


@reader(CsvJoinOptions)
def read_csv_join(request: Request) -> Iterator[Document]:
    """One document per row of the labels table, in its order; rows whose key has no text are left out.

    A note that several people annotated gives several documents, `<key>-1`, `<key>-2`, ... The texts table is
    streamed, only the texts that are needed are held; its order does not matter.
    """
    options = request.options
    assert isinstance(options, CsvJoinOptions)
    if set(request.files) != {"texts", "labels"}:
        raise DataFormatError("format 'csv_join' needs files.texts and files.labels", hint="name both")
    flags = [row for path in request.files["labels"] for row in _flags(request, options, path)]
    wanted = {key for key, *_ in flags}
    texts: dict[str, str] = {}
    for path in request.files["texts"]:
        _texts(request, options, path, wanted, texts)
    if not any(key in texts for key in wanted):
        raise request.bad(
            f"no '{options.key}' of the labels table is in the texts", "check the pair", request.files["texts"][0]
        )
    seen: dict[str, int] = {}
    for key, group, labels, origin in flags:
        if key in texts:
            seen[key] = seen.get(key, 0) + 1
            yield Document(
                id=f"{key}-{seen[key]}", group=group, text=texts[key], split="", labels=labels, origin=origin
            )


def _flags(request: Request, options: CsvJoinOptions, path: Path) -> Iterator[tuple[str, str, tuple[str, ...], str]]:
    labels = request.spec.labels
    if not isinstance(labels, list):
        raise DataFormatError("format 'csv_join' needs a list of labels", hint="list the columns under `labels`")
    header: list[str] | None = None
    for line, row in rows(request, path, "comma", "minimal"):
        if header is None:
            header = [name.strip() for name in row]
            for column in (options.key, options.group, *labels, *([options.none] if options.none else [])):
                if column not in header:
                    raise request.bad(
                        f"the header has no column '{column}'", request.nearest(column, header), path, line
                    )
            continue
        if len(row) != len(header):
            raise request.bad(f"the row has {len(row)} fields, the header {len(header)}", "repair it", path, line)
        values = dict(zip(header, (cell.strip() for cell in row), strict=True))
        flagged = tuple(label for label in labels if _flag(request, values[label], label, path, line))
        if options.none is not None and _flag(request, values[options.none], options.none, path, line) and flagged:
            continue
        yield _key(values[options.key]), values[options.group], flagged, at(path, line)


def _flag(request: Request, value: str, column: str, path: Path, line: int) -> bool:
    if value not in ("0", "1"):
        raise request.bad(f"column '{column}' holds {{}}", "flags are 0 or 1", path, line, value)
    return value == "1"


def _key(value: str) -> str:
    """Keys are numbers; tables that went through other programs write them as 123.0."""
    return value.strip().removesuffix(".0")


def _texts(request: Request, options: CsvJoinOptions, path: Path, wanted: set[str], texts: dict[str, str]) -> None:
    csv.field_size_limit(1 << 27)
    with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as stream:
        table = csv.reader(_lines(path, stream))
        try:
            header = [name.strip() for name in next(table, [])]
            for column in (options.key, options.text):
                if column not in header:
                    raise request.bad(f"the header has no column '{column}'", request.nearest(column, header), path, 1)
            key_at, text_at = header.index(options.key), header.index(options.text)
            for row in table:
                if len(row) != len(header):
                    raise request.bad(
                        f"the row has {len(row)} fields, the header {len(header)}", "repair it", path, table.line_num
                    )
                key = _key(row[key_at])
                if key in wanted and row[text_at].strip():
                    texts[key] = row[text_at].strip()
        except (csv.Error, EOFError, OSError, zlib.error) as error:
            raise request.bad(f"cannot be read: {error}", "the file is damaged", path, table.line_num + 1) from None


def _lines(path: Path, stream: Iterable[bytes]) -> Iterator[str]:
    """The lines, ends included. Raises DataFormatError for other encodings and for NUL."""
    for number, line in enumerate(stream, start=1):
        yield decoded(path, line, "strict", number)
