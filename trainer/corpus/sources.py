"""Documents of a corpus source, one after the other, whatever the source is; and hashes of its files."""

from __future__ import annotations

import contextlib
import csv
import gzip
import hashlib
import io
import json
import math
import os
import time
import zlib
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from biobench.core.files import canonical, file_hash
from biobench.core.text import first_line
from biobench.errors import DataFormatError, DataUnavailableError, StoreError
from trainer.corpus import embedded, hub
from trainer.disk import write_json
from trainer.recipe.corpus import CorpusSource, CorpusSpec

_THREADS = 8
"""Hashing lets other threads run, and several files keep a disk busier than one."""
_SETTLED = 2.0
"""Seconds: a file that was changed this short a time before it was hashed may change again within one tick of its
file system's clock, and is hashed anew the next time. One with a time in the future, by a clock that was ahead, is not
changing now either."""


class Digests:
    """sha256 of files, remembered in `memory` (JSON). A memory that cannot be read or written costs time alone."""

    def __init__(self, memory: Path) -> None:
        self.memory = memory
        try:
            known = json.loads(memory.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            known = {}
        self._known: dict[str, list[object]] = known if isinstance(known, dict) else {}

    def of(self, files: Sequence[Path]) -> list[str]:
        """The hash of each file. Raises OSError for one that cannot be read."""
        states = [self._state(file) for file in files]
        names = [str(file.absolute()) for file in files]
        old = [n for n, (name, state) in enumerate(zip(names, states, strict=True)) if not self._has(name, state)]
        with ThreadPoolExecutor(min(_THREADS, os.cpu_count() or 1)) as pool:
            computed = dict(zip(old, pool.map(file_hash, [files[n] for n in old]), strict=True))
        digests = [computed[n] if n in computed else str(self._known[name][2]) for n, name in enumerate(names)]
        now = time.time_ns()
        for n, digest in computed.items():
            if abs(now - states[n][1]) > _SETTLED * 1e9 and self._state(files[n]) == states[n]:
                self._known[names[n]] = [*states[n], digest]
        if computed:
            with contextlib.suppress(StoreError):
                write_json(self.memory, self._known)
        return digests

    def _has(self, name: str, state: tuple[int, int]) -> bool:
        entry = self._known.get(name)
        return isinstance(entry, list) and len(entry) == 3 and entry[:2] == list(state)

    @staticmethod
    def _state(file: Path) -> tuple[int, int]:
        state = file.stat()
        return state.st_size, state.st_mtime_ns


_ENDINGS = {
    ".txt": "text",
    ".text": "text",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".csv": "csv",
    ".tsv": "tsv",
    ".parquet": "parquet",
    ".arrow": "arrow",
}
_PACKED = (".gz", ".zst")
_HINT = "give a file, a folder or a glob below corpus.root (--set corpus.root=DIR)"


def _ending(file: Path) -> str:
    """A file's ending, without that of its compression."""
    return Path(file.stem).suffix if file.suffix in _PACKED else file.suffix


def files_of(source: CorpusSource, root: Path) -> list[Path]:
    """The files of a path source, sorted; in folders, what begins with . or _ is no text (``_SUCCESS``).

    Raises DataUnavailableError when there are none.
    """
    assert source.path is not None
    path = root / source.path
    if path.is_file():
        return [path]
    if path.is_dir():
        inside = [f for f in path.rglob("*") if f.is_file() and not f.name.startswith((".", "_"))]
        files = [f for f in inside if source.format != "auto" or _ending(f) in _ENDINGS]
    else:
        files = [f for f in root.glob(source.path) if f.is_file()] if not Path(source.path).is_absolute() else []
    if not files:
        raise DataUnavailableError(f"corpus source '{source.id}' has no files at {path}", hint=_HINT)
    return sorted(files)


def identity(source: CorpusSource, root: Path, digests: Digests) -> str:
    """A hash that changes when what the source's spec says or its texts' files hold does; not with where they lie."""
    parts: list[Any] = [source.model_dump(mode="json", exclude={"path"})]
    if source.embedded is not None:
        parts.append(embedded.VERSION)
    files = [] if source.path is None else files_of(source, root)
    if source.hub is not None and Path(source.hub).is_dir():
        files = sorted(f for f in Path(source.hub).rglob("*") if f.is_file())
    parts.append([[_kind(file, source), packed(file), h] for file, h in zip(files, digests.of(files), strict=True)])
    return hashlib.sha256(canonical(parts).encode()).hexdigest()


def pinned(spec: CorpusSpec) -> CorpusSpec:
    """`spec` with the commit of every dataset on the hub in place of its branch or tag.

    Raises DataUnavailableError where the hub does not tell and the recipe names none.
    """
    sources = [
        s if s.hub is None else s.model_copy(update={"revision": hub.commit(s.hub, s.revision)}) for s in spec.sources
    ]
    return spec.model_copy(update={"sources": sources})


@dataclass
class ReadMeter:
    """How much of a source has been read, by bytes of its files; nan where that is unknown."""

    fraction: float = math.nan


def texts(source: CorpusSource, root: Path, meter: ReadMeter | None = None) -> Iterator[str]:
    """The documents of a source in a fixed order, without empty ones. meter: kept up to date while they are read.

    Raises DataUnavailableError when it is not at hand and DataFormatError (file, line) when it is damaged.
    """
    if source.embedded is not None:
        e = source.embedded
        stream = embedded.documents(e.documents, seed=e.seed, languages=e.languages)
    elif source.hub is not None:
        stream = hub.stream(source)
    else:
        stream = _files(source, root, meter or ReadMeter())
    return (text for text in stream if text.strip())


def _files(source: CorpusSource, root: Path, meter: ReadMeter) -> Iterator[str]:
    files = files_of(source, root)
    sizes = [file.stat().st_size for file in files]
    before, total = 0, max(sum(sizes), 1)
    for file, size in zip(files, sizes, strict=True):
        for text, share in _file(file, source):
            meter.fraction = (before + share * size) / total
            yield text
        before += size


def _kind(file: Path, source: CorpusSource) -> str:
    return source.format if source.format != "auto" else _ENDINGS.get(_ending(file), "text")


def packed(file: Path) -> str | None:
    """How a file is compressed: its ending, or None."""
    return file.suffix if file.suffix in _PACKED else None


@contextmanager
def _opened(file: Path, raw: IO[bytes]) -> Iterator[IO[bytes]]:
    """The content of an open file, unpacked where it is compressed; DataFormatError where that cannot be."""
    import pyarrow as pa

    try:
        if file.suffix == ".gz":
            with gzip.GzipFile(fileobj=raw) as unpacked:
                yield io.BufferedReader(unpacked)
        elif file.suffix == ".zst":
            with pa.CompressedInputStream(pa.PythonFile(raw, mode="r"), "zstd") as unpacked:
                yield io.BufferedReader(unpacked)
        else:
            yield raw
    except (EOFError, zlib.error, pa.ArrowException, OSError) as error:
        if not packed(file):
            raise
        raise DataFormatError(
            f"the compressed file cannot be unpacked to its end: {first_line(error)}",
            hint="download or pack it again",
            file=file,
        ) from error


def _file(file: Path, source: CorpusSource) -> Iterator[tuple[str, float]]:
    """The documents of a file, each with the share of the file that has been read by then."""
    kind = _kind(file, source)
    if kind in ("parquet", "arrow"):
        if packed(file):
            raise DataFormatError(f"{kind} is compressed inside already", hint="unpack the file", file=file)
        yield from (_parquet if kind == "parquet" else _arrow)(file, source.field)
        return
    try:
        with file.open("rb") as raw, _opened(file, raw) as content:
            if kind == "text":
                yield content.read().decode("utf-8"), 1.0
                return
            newline = "" if kind in ("csv", "tsv") else None
            with io.TextIOWrapper(content, encoding="utf-8", newline=newline) as lines:
                size = max(file.stat().st_size, 1)
                for text in _documents(kind, lines, source.field, file):
                    yield text, min(raw.tell() / size, 1.0)
    except UnicodeDecodeError as error:
        raise DataFormatError(
            f"byte 0x{error.object[error.start]:02x} is not UTF-8", hint="save the file as UTF-8", file=file
        ) from error


def _documents(kind: str, lines: io.TextIOWrapper, field: str, file: Path) -> Iterator[str]:
    if kind in ("csv", "tsv"):
        yield from _table(lines, field, file, delimiter="," if kind == "csv" else "\t")
        return
    for number, line in enumerate(lines, 1):
        if kind == "lines":
            yield line.rstrip("\n")
        elif line.strip():
            yield _json_text(line, field, file, number)


def _table(lines: io.TextIOWrapper, field: str, file: Path, *, delimiter: str) -> Iterator[str]:
    csv.field_size_limit(1 << 30)
    rows = csv.reader(lines, delimiter=delimiter, strict=True)
    try:
        header = next(rows, [])
        header[:1] = [name.removeprefix("\ufeff") for name in header[:1]]
        if field not in header:
            raise DataFormatError(
                f"no column '{field}' (columns: {', '.join(header)})",
                hint="set the source's `field`",
                file=file,
                line=1,
            )
        column = header.index(field)
        for row in rows:
            if row and len(row) != len(header):
                raise DataFormatError(
                    f"{len(row)} cells in a table of {len(header)} columns",
                    hint="quote cells that hold the delimiter, a quote or a line break",
                    file=file,
                    line=rows.line_num,
                )
            if row:
                yield row[column]
    except csv.Error as error:
        raise DataFormatError(
            f"not a table: {error}", hint="quote cells as RFC 4180 says", file=file, line=rows.line_num
        ) from error


def _json_text(line: str, field: str, file: Path, number: int) -> str:
    value = _json(line, file, number)
    text = value.get(field) if isinstance(value, dict) else None
    if not isinstance(text, str):
        keys = ", ".join(sorted(value)) if isinstance(value, dict) else "no object"
        raise DataFormatError(
            f"no text under '{field}' (keys: {_printable(keys)})",
            hint="set the source's `field`",
            file=file,
            line=number,
        )
    if _printable(text) != text:
        raise DataFormatError(
            "the text holds half of a surrogate pair, which is no character",
            hint="write the whole pair (\\ud83d\\ude00, say), or leave the escape out",
            file=file,
            line=number,
        )
    return text


def _json(line: str, file: Path, number: int) -> Any:
    hint = "each line must be one JSON object"
    try:
        return json.loads(line)
    except json.JSONDecodeError as error:
        raise DataFormatError(f"not JSON: {error.msg}", hint=hint, file=file, line=number) from error
    except RecursionError as error:
        raise DataFormatError("JSON nested too deeply to be read", hint=hint, file=file, line=number) from error
    except ValueError as error:  # Python refuses to read numbers of thousands of digits
        raise DataFormatError(
            "a number has too many digits to be read",
            hint="shorten it, or write it as text in quotes",
            file=file,
            line=number,
        ) from error


def _printable(text: str) -> str:
    """`text` with halves of surrogate pairs, which no encoding takes, spelled out."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def _parquet(file: Path, field: str) -> Iterator[tuple[str, float]]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = 0
    try:
        table = pq.ParquetFile(file)
        _check_column(table.schema_arrow.names, field, file)
        for batch in table.iter_batches(columns=[field]):
            share = min((rows + batch.num_rows) / max(table.metadata.num_rows, 1), 1.0)
            yield from ((str(text), share) for text in batch.column(0).to_pylist() if text is not None)
            rows += batch.num_rows
    except (pa.ArrowException, OSError, UnicodeDecodeError, MemoryError) as error:
        raise _unreadable("parquet", file, rows, error) from error


def _arrow(file: Path, field: str) -> Iterator[tuple[str, float]]:
    """An Arrow stream, as datasets are saved to disk, or an Arrow file (Feather)."""
    import pyarrow as pa

    rows = 0
    try:
        with file.open("rb") as raw:
            size = max(file.stat().st_size, 1)
            whole = raw.read(6) == b"ARROW1"
            raw.seek(0)
            opened = (pa.ipc.open_file if whole else pa.ipc.open_stream)(pa.PythonFile(raw, mode="r"))
            _check_column(opened.schema.names, field, file)
            batches = map(opened.get_batch, range(opened.num_record_batches)) if whole else opened
            for batch in batches:
                share = min(raw.tell() / size, 1.0)
                column = batch.column(field)
                column.validate(full=True)  # the library takes damaged offsets for lengths
                yield from ((str(text), share) for text in column.to_pylist() if text is not None)
                rows += batch.num_rows
    except (pa.ArrowException, OSError, UnicodeDecodeError, MemoryError) as error:
        raise _unreadable("arrow", file, rows, error) from error


def _check_column(names: list[str], field: str, file: Path) -> None:
    if field not in names:
        raise DataFormatError(
            f"no column '{field}' (columns: {', '.join(names)})", hint="set the source's `field`", file=file
        )


def _unreadable(kind: str, file: Path, rows: int, error: BaseException) -> DataFormatError:
    """A damaged length makes the library ask for more memory than there is."""
    why = first_line(error) or ("it asks for more memory than there is" if isinstance(error, MemoryError) else "")
    return DataFormatError(
        f"not a readable {kind} file{f' after row {rows}' if rows else ''}: {why}",
        hint="download or write it again",
        file=file,
    )
