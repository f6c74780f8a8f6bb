"""Documents of a corpus source, one after the other, whatever the source is; and hashes of its files."""

from __future__ import annotations

import contextlib
import csv
import hashlib
import io
import json
import math
import os
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
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
file system's clock, and is hashed anew the next time."""


class Digests:
    """sha256 of files, remembered in `memory` (JSON). A memory that cannot be read or written costs time alone."""

    def __init__(self, memory: Path) -> None:
        self.memory = memory
        try:
            known = json.loads(memory.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            known = {}
        self._known: dict[str, list[Any]] = known if isinstance(known, dict) else {}

    def of(self, files: Sequence[Path]) -> list[str]:
        """The hash of each file. Raises OSError for one that cannot be read."""
        states = {str(file.absolute()): [file.stat().st_size, file.stat().st_mtime_ns] for file in files}
        fresh = [name for name, state in states.items() if self._known.get(name, [])[:2] != state]
        with ThreadPoolExecutor(min(_THREADS, os.cpu_count() or 1)) as pool:
            computed = dict(zip(fresh, pool.map(file_hash, map(Path, fresh)), strict=True))
        digests = [computed.get(name) or str(self._known[name][2]) for name in states]
        settled = time.time_ns() - _SETTLED * 1e9
        self._known |= {n: [*states[n], digest] for n, digest in computed.items() if states[n][1] < settled}
        if computed:
            with contextlib.suppress(StoreError):
                write_json(self.memory, self._known)
        return digests


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
_PACKED = {".gz": "gzip", ".zst": "zstd"}
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
    listed: list[Any] = []
    parts = [source.model_dump(mode="json", exclude={"path"}), *([embedded.VERSION] if source.embedded else []), listed]
    files = [] if source.path is None else files_of(source, root)
    if source.hub is not None and Path(source.hub).is_dir():
        files = sorted(f for f in Path(source.hub).rglob("*") if f.is_file())
    for file, digest in zip(files, digests.of(files), strict=True):
        listed.append([_kind(file, source), file.suffix if file.suffix in _PACKED else None, digest])
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
    total, before = max(sum(file.stat().st_size for file in files), 1), 0
    for file in files:
        with file.open("rb") as raw:
            size = file.stat().st_size
            for text, share in _documents(file, raw, source):
                read = size if raw.closed else raw.tell() if share is None else round(share * size)
                meter.fraction = (before + read) / total
                yield text
        before += file.stat().st_size


def _kind(file: Path, source: CorpusSource) -> str:
    return source.format if source.format != "auto" else _ENDINGS.get(_ending(file), "text")


def _documents(file: Path, raw: IO[bytes], source: CorpusSource) -> Iterator[tuple[str, float | None]]:
    """The documents of an open file, empty ones too; what is wrong with it as DataFormatError.

    Beside each is how much of the file has been read by then, None where its position tells.
    """
    import pyarrow as pa

    kind, count = _kind(file, source), 0
    try:
        if kind in ("parquet", "arrow"):
            for text, share in _column(file, raw, kind, source.field):
                count += 1
                yield text, share
            return
        packing = _PACKED.get(file.suffix)
        content = raw if packing is None else io.BufferedReader(pa.CompressedInputStream(raw, packing))
        if kind == "text":
            yield content.read().decode("utf-8"), 1.0
            return
        lines = io.TextIOWrapper(content, encoding="utf-8", newline="" if kind in ("csv", "tsv") else None)
        if kind in ("csv", "tsv"):
            for text in _table(lines, source.field, file, delimiter="," if kind == "csv" else "\t"):
                yield text, None
            return
        for number, line in enumerate(lines, 1):
            if kind == "lines":
                yield line.rstrip("\n"), None
            elif line.strip():
                yield _json_text(line, source.field, file, number), None
    except UnicodeDecodeError as error:
        what = f"byte 0x{error.object[error.start]:02x} is not UTF-8"
        raise DataFormatError(what, hint="save the file as UTF-8", file=file) from error
    except (pa.ArrowException, OSError, EOFError, MemoryError) as error:  # damaged lengths ask for too much memory
        what = f"not a readable {kind} file" if kind in ("parquet", "arrow") else "the file cannot be read to its end"
        place = f" after document {count}" if count else ""
        raise DataFormatError(
            f"{what}{place}: {first_line(error)}", hint="download or write it again", file=file
        ) from error


def _column(file: Path, raw: IO[bytes], kind: str, field: str) -> Iterator[tuple[str, float | None]]:
    """The texts of a Parquet file, an Arrow stream (as datasets are saved to disk) or an Arrow file (Feather)."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    batches: Iterable[pa.RecordBatch]
    rows, total = 0, None
    if kind == "parquet":
        table = pq.ParquetFile(raw)
        names, total = table.schema_arrow.names, max(table.metadata.num_rows, 1)
        batches = table.iter_batches(columns=[field])
    elif raw.read(6) == b"ARROW1":
        whole = pa.ipc.open_file(raw)
        names, batches = whole.schema.names, map(whole.get_batch, range(whole.num_record_batches))
    else:
        raw.seek(0)
        stream = pa.ipc.open_stream(raw)
        names, batches = stream.schema.names, stream
    if field not in names:
        what = f"no column '{field}' (columns: {', '.join(names)})"
        raise DataFormatError(what, hint="set the source's `field`", file=file)
    for batch in batches:
        column = batch.column(field)
        column.validate(full=True)  # the library takes damaged offsets for lengths
        rows += len(column)
        share = None if total is None else rows / total
        yield from ((str(text), share) for text in column.to_pylist() if text is not None)


def _table(lines: io.TextIOWrapper, field: str, file: Path, *, delimiter: str) -> Iterator[str]:
    csv.field_size_limit(1 << 30)
    rows = csv.reader(lines, delimiter=delimiter, strict=True)
    try:
        header = next(rows, [])
        header[:1] = [name.removeprefix("\ufeff") for name in header[:1]]
        if field not in header:
            what = f"no column '{field}' (columns: {', '.join(header)})"
            raise DataFormatError(what, hint="set the source's `field`", file=file, line=1)
        column = header.index(field)
        for row in rows:
            if row and len(row) != len(header):
                what = f"{len(row)} cells in a table of {len(header)} columns"
                hint = "quote cells that hold the delimiter, a quote or a line break"
                raise DataFormatError(what, hint=hint, file=file, line=rows.line_num)
            if row:
                yield row[column]
    except csv.Error as error:
        hint = "quote cells as RFC 4180 says"
        raise DataFormatError(f"not a table: {error}", hint=hint, file=file, line=rows.line_num) from error


def _json_text(line: str, field: str, file: Path, number: int) -> str:
    try:
        value = json.loads(line)
        text = value.get(field) if isinstance(value, dict) else None
        if isinstance(text, str):
            text.encode()
            return text
    except UnicodeEncodeError as error:
        what = "the text holds half of a surrogate pair, which is no character"
        hint = "write the whole pair (\\ud83d\\ude00, say), or leave the escape out"
        raise DataFormatError(what, hint=hint, file=file, line=number) from error
    except (ValueError, RecursionError) as error:  # the second: nested too deeply
        hint = "each line must be one JSON object"
        raise DataFormatError(f"not JSON: {first_line(error)}", hint=hint, file=file, line=number) from error
    keys = ascii(", ".join(sorted(value)))[1:-1] if isinstance(value, dict) else "no object"
    raise DataFormatError(
        f"no text under '{field}' (keys: {keys})", hint="set the source's `field`", file=file, line=number
    )
