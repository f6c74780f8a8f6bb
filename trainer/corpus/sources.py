"""Documents of a corpus source, one after the other, whatever the source is; and hashes of its
files.
"""

from __future__ import annotations

import contextlib
import csv
import io
import json
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, Any

from pydantic import TypeAdapter

from biobench.core.files import canonical, file_hash, sha256_of
from biobench.core.text import first_line
from biobench.errors import DataFormatError, DataUnavailableError, StoreError
from trainer.corpus import embedded, hub
from trainer.disk import write_json
from trainer.recipe.corpus import CorpusSource, CorpusSpec

_ENDINGS = {f".{kind}": kind for kind in ("jsonl", "csv", "tsv", "parquet", "arrow")}
_ENDINGS |= {".txt": "text", ".text": "text", ".ndjson": "jsonl"}
_PACKED = {".gz": "gzip", ".zst": "zstd"}
_MEMORY = TypeAdapter(dict[str, tuple[int, int, str]])
"""File to its size, time of change (ns) and sha256."""


def digests(files: Sequence[Path], memory: Path) -> list[str]:
    """sha256 of each file; `memory` (JSON) keeps those of files whose size and time of change stay
    the same.

    Raises OSError for a file that cannot be read. A memory that cannot be read or written costs
    time alone.
    """
    remembered: dict[str, tuple[int, int, str]] = {}
    with contextlib.suppress(OSError, ValueError):
        remembered = _MEMORY.validate_json(memory.read_bytes())
    hashes = {}
    for file in files:
        name = str(file.absolute())
        status = file.stat()
        size = status.st_size
        changed = status.st_mtime_ns
        known_size, known_change, digest = remembered.get(name, (0, 0, ""))
        if (known_size, known_change) != (size, changed):
            digest = file_hash(file)
        hashes[name] = (size, changed, digest)
    if not hashes.items() <= remembered.items():
        with contextlib.suppress(StoreError):
            write_json(memory, remembered | hashes)
    return [digest for _, _, digest in hashes.values()]


def _endings(file: Path) -> tuple[str, str | None]:
    """A file's ending without that of its compression, and the latter; None where it has none."""
    if file.suffix in _PACKED:
        return Path(file.stem).suffix, file.suffix
    return file.suffix, None


def _kind(file: Path, source: CorpusSource) -> str:
    if source.format != "auto":
        return source.format
    ending, _ = _endings(file)
    return _ENDINGS.get(ending, "text")


def _is_text(file: Path, source: CorpusSource) -> bool:
    """Whether a file of a folder is one of the source's."""
    if file.name.startswith((".", "_")):
        return False
    ending, _ = _endings(file)
    return source.format != "auto" or ending in _ENDINGS


def files_of(source: CorpusSource, root: Path) -> list[Path]:
    """The files of a path source, sorted; in folders, what begins with . or _ is no text
    (``_SUCCESS``).

    Raises DataUnavailableError when there are none.
    """
    assert source.path is not None
    path = root / source.path
    if path.is_file():
        return [path]
    candidates: Iterable[Path]
    if path.is_dir():
        candidates = filter(partial(_is_text, source=source), path.rglob("*"))
    else:
        candidates = root.glob(source.path)
    files = sorted(filter(Path.is_file, candidates))
    if not files:
        raise DataUnavailableError(
            f"corpus source '{source.id}' has no files at {path}",
            hint="give a file, a folder or a glob below corpus.root (--set corpus.root=DIR)",
        )
    return files


def identity(source: CorpusSource, root: Path, memory: Path) -> str:
    """A hash that changes when what the source's spec says or its texts' files hold does; not with
    where they lie.

    memory: see `digests`.
    """
    described: list[Any] = [source.model_dump(mode="json", exclude={"path"})]
    files: list[Path] = []
    if source.embedded is not None:
        described.append(embedded.VERSION)
    elif source.path is not None:
        files = files_of(source, root)
    else:  # none where it is an id of the hub and not a folder
        files = sorted(filter(Path.is_file, Path(str(source.hub)).rglob("*")))
    contents = []
    for file, digest in zip(files, digests(files, memory), strict=True):
        _, packing = _endings(file)
        contents.append([_kind(file, source), packing, digest])
    return sha256_of(canonical([*described, contents]).encode())


def pinned(spec: CorpusSpec) -> CorpusSpec:
    """`spec` with the commit of every dataset on the hub in place of its branch or tag.

    Raises DataUnavailableError where the hub does not tell and the recipe names none.
    """
    return spec.model_copy(update={"sources": list(map(_pinned_source, spec.sources))})


def _pinned_source(source: CorpusSource) -> CorpusSource:
    if source.hub is None:
        return source
    commit = hub.commit(source.hub, source.revision)
    return source.model_copy(update={"revision": commit})


@dataclass
class ReadMeter:
    """How much of a source has been read, by bytes of its files; nan where that is unknown."""

    fraction: float = math.nan


def texts(source: CorpusSource, root: Path, meter: ReadMeter | None = None) -> Iterator[str]:
    """The documents of a source in a fixed order, without empty ones. meter: kept up to date while
    they are read.

    Raises DataUnavailableError when it is missing and DataFormatError (file, line) when it is
    damaged.
    """
    if source.embedded is not None:
        notes = source.embedded
        documents = embedded.documents(notes.documents, seed=notes.seed, languages=notes.languages)
    elif source.hub is not None:
        documents = hub.stream(source)
    else:
        documents = _files(source, root, meter or ReadMeter())
    return filter(str.strip, documents)


def _files(source: CorpusSource, root: Path, meter: ReadMeter) -> Iterator[str]:
    files = files_of(source, root)
    sizes = [file.stat().st_size for file in files]
    total = max(sum(sizes), 1)
    bytes_before = 0
    for file, size in zip(files, sizes, strict=True):
        with file.open("rb") as raw:
            for text in _OpenFile(file, raw, source).documents():
                done = size if raw.closed else raw.tell()
                meter.fraction = (bytes_before + done) / total
                yield text
        bytes_before += size


class _OpenFile:
    """A file of a source while its documents are read.

    line: number of the last line read; 0 in kinds of files that are not read by the line.
    """

    def __init__(self, file: Path, raw: IO[bytes], source: CorpusSource) -> None:
        self.file = file
        self.raw = raw
        self.kind = _kind(file, source)
        self.field = source.field
        self.line = 0

    def documents(self) -> Iterator[str]:
        """Its documents, empty ones too. Raises DataFormatError where the file is damaged."""
        import pyarrow as pa

        try:
            yield from _READERS[self.kind](self)
        except (
            pa.ArrowException,
            csv.Error,
            ValueError,
            OSError,
            EOFError,
            MemoryError,  # damaged lengths ask for too much
            RecursionError,
        ) as error:
            # decoding and decompression read ahead, so the last line is not where they fail
            reads_ahead = isinstance(error, UnicodeDecodeError | OSError)
            raise DataFormatError(
                f"not a readable {self.kind} file: {first_line(error)}",
                hint="mend it, or write it again",
                file=self.file,
                line=None if reads_ahead else self.line or None,
            ) from error

    def parquet(self) -> Iterator[str]:
        """The texts of a parquet file."""
        import pyarrow.parquet as pq

        table = pq.ParquetFile(self.raw)
        self._check_field(table.schema_arrow.names)
        yield from self._column(table.iter_batches(columns=[self.field]))

    def arrow(self) -> Iterator[str]:
        """The texts of a stream of arrow tables."""
        import pyarrow as pa

        stream = pa.ipc.open_stream(self.raw)
        self._check_field(stream.schema.names)
        yield from self._column(stream)

    def _column(self, batches: Iterable[Any]) -> Iterator[str]:
        """The texts of a columnar file."""
        for batch in batches:
            column = batch.column(self.field)
            column.validate(full=True)  # the library takes damaged offsets for lengths
            yield from map(str, column.drop_null().to_pylist())

    def whole(self) -> Iterator[str]:
        """The file's text."""
        yield self._unpacked().read().decode("utf-8")

    def lines(self) -> Iterator[str]:
        """The texts of a file with one a line."""
        for text in self._lines():
            yield text.rstrip("\n")

    def table(self) -> Iterator[str]:
        """The texts of a table with a header."""
        csv.field_size_limit(1 << 30)
        lines = self._lines("utf-8-sig", newline="")
        rows = csv.DictReader(lines, delimiter=_DELIMITERS[self.kind], strict=True)
        header = rows.fieldnames or []
        self._check_field(header)
        for row in rows:
            if None in row or None in row.values():
                raise ValueError(f"a row with other cells than the table's {len(header)} columns")
            yield row[self.field]

    def objects(self) -> Iterator[str]:
        """The texts of JSON objects, one a line."""
        for line in filter(str.strip, self._lines()):
            value = json.loads(line)
            if not isinstance(value, dict):
                raise self._no_text(["no object"])
            text = value.get(self.field)
            if not isinstance(text, str):
                raise self._no_text(sorted(value))
            # half of a surrogate pair is no character; in other fields it is nobody's concern
            text.encode()
            yield text

    def _unpacked(self) -> IO[bytes]:
        import pyarrow as pa

        packing = _PACKED.get(self.file.suffix)
        if packing is None:
            return self.raw
        return io.BufferedReader(pa.CompressedInputStream(self.raw, packing))

    def _lines(self, encoding: str = "utf-8", newline: str | None = None) -> Iterator[str]:
        for text in io.TextIOWrapper(self._unpacked(), encoding=encoding, newline=newline):
            self.line += 1
            yield text

    def _check_field(self, names: Sequence[str]) -> None:
        if self.field not in names:
            raise self._no_text(names)

    def _no_text(self, names: Sequence[str]) -> DataFormatError:
        return DataFormatError(
            f"no text under '{self.field}' (it has: {ascii(', '.join(names))[1:-1]})",
            hint=f"call it '{self.field}', or set the source's `field` in a recipe",
            file=self.file,
            line=self.line or None,
        )


_DELIMITERS = {"csv": ",", "tsv": "\t"}
_READERS: dict[str, Callable[[_OpenFile], Iterator[str]]] = {
    "parquet": _OpenFile.parquet,
    "arrow": _OpenFile.arrow,
    "text": _OpenFile.whole,
    "lines": _OpenFile.lines,
    "csv": _OpenFile.table,
    "tsv": _OpenFile.table,
    "jsonl": _OpenFile.objects,
}
"""Kind of file to what gives its texts."""
