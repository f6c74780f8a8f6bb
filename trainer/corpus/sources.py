"""Documents of a corpus source, one after the other, whatever the source is; and hashes of its
files.
"""

from __future__ import annotations

import contextlib
import csv
import hashlib
import io
import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from biobench.core.files import canonical, file_hash
from biobench.core.text import first_line
from biobench.errors import DataFormatError, DataUnavailableError, StoreError
from trainer.corpus import embedded, hub
from trainer.disk import write_json
from trainer.recipe.corpus import CorpusSource, CorpusSpec

_ENDINGS = {f".{kind}": kind for kind in ("jsonl", "csv", "tsv", "parquet", "arrow")}
_ENDINGS |= {".txt": "text", ".text": "text", ".ndjson": "jsonl"}
_PACKED = {".gz": "gzip", ".zst": "zstd"}


def digests(files: Sequence[Path], memory: Path) -> list[str]:
    """sha256 of each file; `memory` (JSON) keeps those of files whose size and time of change stay
    the same.

    Raises OSError for a file that cannot be read. A memory that cannot be read or written costs
    time alone.
    """
    known: dict[str, list[Any]] = {}
    with contextlib.suppress(OSError, ValueError):
        known = json.loads(memory.read_text(encoding="utf-8"))
    states = {
        str(file.absolute()): [file.stat().st_size, file.stat().st_mtime_ns] for file in files
    }
    fresh = {
        n: [*state, file_hash(Path(n))]
        for n, state in states.items()
        if known.get(n, [])[:2] != state
    }
    known |= fresh
    if fresh:
        with contextlib.suppress(StoreError):
            write_json(memory, known)
    return [str(known[name][2]) for name in states]


def _ending(file: Path) -> str:
    """A file's ending, without that of its compression."""
    return Path(file.stem).suffix if file.suffix in _PACKED else file.suffix


def _kind(file: Path, source: CorpusSource) -> str:
    return source.format if source.format != "auto" else _ENDINGS.get(_ending(file), "text")


def files_of(source: CorpusSource, root: Path) -> list[Path]:
    """The files of a path source, sorted; in folders, what begins with . or _ is no text
    (``_SUCCESS``).

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
        files = (
            [f for f in root.glob(source.path) if f.is_file()]
            if not Path(source.path).is_absolute()
            else []
        )
    if not files:
        hint = "give a file, a folder or a glob below corpus.root (--set corpus.root=DIR)"
        raise DataUnavailableError(f"corpus source '{source.id}' has no files at {path}", hint=hint)
    return sorted(files)


def identity(source: CorpusSource, root: Path, memory: Path) -> str:
    """A hash that changes when what the source's spec says or its texts' files hold does; not with
    where they lie.

    memory: see `digests`.
    """
    listed: list[Any] = []
    parts = [
        source.model_dump(mode="json", exclude={"path"}),
        *([embedded.VERSION] if source.embedded else []),
        listed,
    ]
    files = [] if source.path is None else files_of(source, root)
    if source.hub is not None and Path(source.hub).is_dir():
        files = sorted(f for f in Path(source.hub).rglob("*") if f.is_file())
    for file, digest in zip(files, digests(files, memory), strict=True):
        listed.append(
            [_kind(file, source), file.suffix if file.suffix in _PACKED else None, digest]
        )
    return hashlib.sha256(canonical(parts).encode()).hexdigest()


def pinned(spec: CorpusSpec) -> CorpusSpec:
    """`spec` with the commit of every dataset on the hub in place of its branch or tag.

    Raises DataUnavailableError where the hub does not tell and the recipe names none.
    """
    sources = [
        s if s.hub is None else s.model_copy(update={"revision": hub.commit(s.hub, s.revision)})
        for s in spec.sources
    ]
    return spec.model_copy(update={"sources": sources})


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
    return (text for text in documents if text.strip())


def _files(source: CorpusSource, root: Path, meter: ReadMeter) -> Iterator[str]:
    files = files_of(source, root)
    total, before = max(sum(file.stat().st_size for file in files), 1), 0
    for file in files:
        size = file.stat().st_size
        with file.open("rb") as raw:
            for text in _documents(file, raw, source):
                meter.fraction = (before + (size if raw.closed else raw.tell())) / total
                yield text
        before += size


def _documents(file: Path, raw: IO[bytes], source: CorpusSource) -> Iterator[str]:
    """The documents of an open file, empty ones too; what is wrong with it as DataFormatError."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    kind, line, field = _kind(file, source), 0, source.field

    def lacking(names: Sequence[str]) -> DataFormatError:
        what = f"no text under '{field}' (it has: {ascii(', '.join(names))[1:-1]})"
        return DataFormatError(what, hint="set the source's `field`", file=file, line=line or None)

    def counted(lines: io.TextIOWrapper) -> Iterator[str]:
        nonlocal line
        for text in lines:
            line += 1
            yield text

    try:
        if kind in ("parquet", "arrow"):
            table = pq.ParquetFile(raw) if kind == "parquet" else pa.ipc.open_stream(raw)
            schema = table.schema_arrow if kind == "parquet" else table.schema
            if field not in schema.names:
                raise lacking(schema.names)
            for batch in table.iter_batches(columns=[field]) if kind == "parquet" else table:
                column = batch.column(field)
                column.validate(full=True)  # the library takes damaged offsets for lengths
                yield from (str(text) for text in column.to_pylist() if text is not None)
            return
        packing = _PACKED.get(file.suffix)
        content = (
            raw if packing is None else io.BufferedReader(pa.CompressedInputStream(raw, packing))
        )
        if kind == "text":
            yield content.read().decode("utf-8")
            return
        tabular = kind in ("csv", "tsv")
        lines = io.TextIOWrapper(
            content, encoding="utf-8-sig" if tabular else "utf-8", newline="" if tabular else None
        )
        if tabular:
            csv.field_size_limit(1 << 30)
            rows = csv.DictReader(
                counted(lines), delimiter="," if kind == "csv" else "\t", strict=True
            )
            header = rows.fieldnames or []
            if field not in header:
                raise lacking(header)
            for row in rows:
                if None in row or None in row.values():
                    raise ValueError(
                        f"a row with other cells than the table's {len(header)} columns"
                    )
                yield row[field]
            return
        for text in counted(lines):
            if kind == "lines":
                yield text.rstrip("\n")
            elif text.strip():
                value = json.loads(text)
                if not isinstance(value, dict) or not isinstance(value.get(field), str):
                    raise lacking(sorted(value) if isinstance(value, dict) else ["no object"])
                value[field].encode()  # half of a surrogate pair is no character
                yield value[field]
    except (
        pa.ArrowException,
        csv.Error,
        ValueError,
        OSError,
        EOFError,
        MemoryError,
        RecursionError,
    ) as error:
        # MemoryError: damaged lengths ask for too much
        what = f"not a readable {kind} file: {first_line(error)}"
        known = (
            line if line and not isinstance(error, UnicodeDecodeError | OSError) else None
        )  # both read ahead
        raise DataFormatError(
            what, hint="mend it, or write it again", file=file, line=known
        ) from error
