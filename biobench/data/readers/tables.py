"""Tables of the hub: parquet files, and the Arrow files that `datasets` writes to disk.

What a column holds (names of classes, lists, structures) is said by the features in a file's
metadata, which `datasets` reads.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from biobench.core.text import first_line
from biobench.data.readers.base import Request, numbering
from biobench.data.readers.files import DataRow
from biobench.errors import DataFormatError

PARQUET = b"PAR1"
ARROW = b"\xff\xff\xff\xff"
"""What a stream of Arrow messages begins with."""


def is_table(path: Path) -> bool:
    """Whether the file is one of parquet or of Arrow, by its first bytes."""
    return _first_bytes(path) in (PARQUET, ARROW)


def _first_bytes(path: Path) -> bytes:
    with path.open("rb") as stream:
        return stream.read(len(ARROW))


def class_names(path: Path) -> dict[str, list[str]]:
    """Column to what its integers, or those of its lists, stand for.

    Raises DataFormatError where the file is no whole table.
    """
    with _whole_table(path):
        schema, _ = _opened(path, ())
    names: dict[str, list[str]] = {}
    for column, feature in _features(schema).items():
        names_of_column = getattr(_of_items(feature), "names", None)
        if names_of_column is not None:
            names[column] = list(map(str, names_of_column))
    return names


def table_rows(request: Request[Any], columns: Sequence[str] = ()) -> Iterator[DataRow]:
    """The rows of all tables with these columns (all, where none is named); places are row numbers
    from 1.

    Structures have the names of their classes in place of integers, and a structure of lists
    becomes a list of structures. Raises DataFormatError for a file that is no whole table.
    """
    numbers = numbering()
    for location in request.places():
        with _whole_table(location.path):
            schema, batches = _opened(location.path, columns)
            for column in columns:
                location.at(None).need(column, schema.names, "has no column")
            for line, values in enumerate(_named_rows(schema, batches), start=1):
                number = next(numbers[location.split])
                yield DataRow(
                    location.at(line),
                    values,
                    number=f"{location.prefix}-{number}",
                    noun="row",
                )


def _named_rows(schema: Any, batches: Iterator[Any]) -> Iterator[dict[str, Any]]:
    """The rows of the batches, structures with the names of their classes."""
    features = _features(schema)
    structures = [name for name in features if isinstance(_of_items(features[name]), dict)]
    for batch in batches:
        # Arrow believes the offsets in a file, and would read whatever memory they name.
        batch.validate(full=True)
        for values in batch.to_pylist():
            for column in values.keys() & structures:
                values[column] = _with_names(features[column], values[column])
            yield values


@contextmanager
def _whole_table(path: Path) -> Iterator[None]:
    """Raise DataFormatError for what is wrong inside with a file that is to be a table."""
    import pyarrow as pa

    try:
        yield
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise DataFormatError(
            f"is not a whole parquet or Arrow file ({first_line(error)})",
            hint="download it again",
            file=path,
        ) from None


def _opened(path: Path, columns: Sequence[str]) -> tuple[Any, Iterator[Any]]:
    """(schema, batches of rows with these columns, or all), read as they are asked for."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    if _first_bytes(path) != ARROW:
        file = pq.ParquetFile(path)
        return file.schema_arrow, file.iter_batches(columns=list(columns) or None)
    memory = pa.memory_map(str(path))
    stream = pa.ipc.open_stream(memory)
    wanted = list(columns) or stream.schema.names
    return stream.schema, (batch.select(wanted) for batch in stream)


def _features(schema: Any) -> dict[str, Any]:
    """Column to its feature; none where the file does not say them."""
    if b"huggingface" not in (schema.metadata or {}):
        return {}
    from datasets import Features

    try:
        return dict(Features.from_arrow_schema(schema))
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError):
        return {}  # metadata of another program, or damaged: the columns are read as they are


def _of_items(feature: Any) -> Any:
    """The feature of a list's items; one that is no list's is its own."""
    return getattr(feature, "feature", feature)


def _with_names(feature: Any, value: Any) -> Any:
    """The value with the names of classes."""
    if hasattr(feature, "names"):
        return _class_name(feature.names, value)
    if isinstance(feature, dict) and isinstance(value, dict):
        named = {name: _with_names(feature[name], item) for name, item in value.items()}
        return _transposed(named)
    if isinstance(value, list):
        item_feature = _of_items(feature)
        return [_with_names(item_feature, item) for item in value]
    return value


def _class_name(names: Sequence[Any], value: Any) -> str | None:
    """The class that an integer stands for; null for one that is none (-1: unknown)."""
    if isinstance(value, int) and 0 <= value < len(names):
        return str(names[value])
    return None


def _transposed(structure: dict[str, Any]) -> Any:
    """A list of structures of what earlier versions of `datasets` store as a structure of lists."""
    lists = list(structure.values())
    if set(map(type, lists)) != {list}:
        return structure
    lengths = set(map(len, lists))
    if len(lengths) > 1:
        return structure
    rows = zip(*lists, strict=True)
    return [dict(zip(structure, values, strict=True)) for values in rows]
