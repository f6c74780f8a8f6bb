"""Documents of a corpus source, one after the other, whatever the source is."""

from __future__ import annotations

import hashlib
import io
import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from biobench.core.files import canonical
from biobench.core.text import first_line
from biobench.errors import DataFormatError, DataUnavailableError
from trainer.corpus import embedded
from trainer.recipe.spec import CorpusSource

_ENDINGS = {".txt": "text", ".text": "text", ".jsonl": "jsonl", ".ndjson": "jsonl", ".parquet": "parquet"}
_HINT = "give a file, a folder or a glob below corpus.root (--set corpus.root=DIR)"


def files_of(source: CorpusSource, root: Path) -> list[Path]:
    """The files of a path source, sorted. Raises DataUnavailableError when there are none."""
    assert source.path is not None
    path = root / source.path
    if path.is_file():
        return [path]
    if path.is_dir():
        kinds = set(_ENDINGS) if source.format == "auto" else None
        found = [f for f in path.rglob("*") if f.is_file() and (kinds is None or f.suffix in kinds)]
    else:
        found = [f for f in root.glob(source.path) if f.is_file()] if not Path(source.path).is_absolute() else []
    if not found:
        raise DataUnavailableError(f"corpus source '{source.id}' has no files at {path}", hint=_HINT)
    return sorted(found)


def identity(source: CorpusSource, root: Path) -> str:
    """A hash that changes when the source's spec or files (name, size, time) do; keys the cache."""
    parts: list[Any] = [source.model_dump(mode="json")]
    if source.embedded is not None:
        parts.append(embedded.VERSION)
    if source.path is not None:
        for file in files_of(source, root):
            state = file.stat()
            parts.append([str(file), state.st_size, state.st_mtime_ns])
    return hashlib.sha256(canonical(parts).encode()).hexdigest()


@dataclass
class Meter:
    """How much of a source has been read, by bytes of its files; nan where that is unknown."""

    fraction: float = math.nan


def texts(source: CorpusSource, root: Path, meter: Meter | None = None) -> Iterator[str]:
    """The documents of a source in a fixed order, without empty ones. meter: kept up to date while they are read.

    Raises DataUnavailableError when it is not at hand and DataFormatError (file, line) when it is damaged.
    """
    if source.embedded is not None:
        e = source.embedded
        found = embedded.documents(e.documents, seed=e.seed, languages=e.languages)
    elif source.hub is not None:
        found = _hub(source)
    else:
        found = _files(source, root, meter or Meter())
    return (text for text in found if text.strip())


def _files(source: CorpusSource, root: Path, meter: Meter) -> Iterator[str]:
    files = files_of(source, root)
    sizes = [file.stat().st_size for file in files]
    before, total = 0, max(sum(sizes), 1)
    for file, size in zip(files, sizes, strict=True):
        for text, share in _file(file, source):
            meter.fraction = (before + share * size) / total
            yield text
        before += size


def _file(file: Path, source: CorpusSource) -> Iterator[tuple[str, float]]:
    """The documents of a file, each with the share of the file that has been read by then."""
    kind = source.format if source.format != "auto" else _ENDINGS.get(file.suffix, "text")
    if kind == "parquet":
        yield from _parquet(file, source.field)
        return
    try:
        if kind == "text":
            yield file.read_text(encoding="utf-8"), 1.0
            return
        with file.open("rb") as raw, io.TextIOWrapper(raw, encoding="utf-8") as lines:
            size = max(file.stat().st_size, 1)
            for number, line in enumerate(lines, 1):
                share = min(raw.tell() / size, 1.0)
                if kind == "lines":
                    yield line.rstrip("\n"), share
                elif line.strip():
                    yield _json_text(line, source.field, file, number), share
    except UnicodeDecodeError as error:
        raise DataFormatError(
            f"byte 0x{error.object[error.start]:02x} is not UTF-8", hint="save the file as UTF-8", file=file
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
        if field not in table.schema_arrow.names:
            raise DataFormatError(
                f"no column '{field}' (columns: {', '.join(table.schema_arrow.names)})",
                hint="set the source's `field`",
                file=file,
            )
        for batch in table.iter_batches(columns=[field]):
            share = min((rows + batch.num_rows) / max(table.metadata.num_rows, 1), 1.0)
            yield from ((str(text), share) for text in batch.column(0).to_pylist() if text is not None)
            rows += batch.num_rows
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        said = [*str(error).splitlines(), type(error).__name__][0]
        raise DataFormatError(
            f"not a readable parquet file{f' after row {rows}' if rows else ''}: {said}",
            hint="download or write it again",
            file=file,
        ) from error


def _hub(source: CorpusSource) -> Iterator[str]:
    from datasets import load_dataset

    try:
        rows = load_dataset(source.hub, revision=source.revision, split=source.split, streaming=True)
    except (OSError, ValueError) as error:
        raise DataUnavailableError(
            f"dataset '{source.hub}' is not at hand: {first_line(error)}",
            hint="check the id, the network and, for gated data, your login to the hub",
        ) from error
    for row in rows:
        if not isinstance(row.get(source.field), str):
            raise DataFormatError(
                f"dataset '{source.hub}' has no text under '{source.field}' (fields: {', '.join(row)})",
                hint="set the source's `field`",
            )
        yield row[source.field]
