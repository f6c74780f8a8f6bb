"""Tables of the hub: parquet files, and the Arrow files that `datasets` writes to disk.

What a column holds (names of classes, lists, structures) is said by the features in a file's
metadata, which `datasets` reads.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from biobench.core.text import first_line
from biobench.data.readers.base import Request
from biobench.data.readers.files import DataRow
from biobench.errors import DataFormatError

PARQUET = b"PAR1"
ARROW = b"\xff\xff\xff\xff"
"""What a stream of Arrow messages begins with."""


def is_table(path: Path) -> bool:
    """Whether the file is one of parquet or of Arrow, by its first bytes."""
    with path.open("rb") as stream:
        return stream.read(4) in (PARQUET, ARROW)


def class_names(path: Path) -> dict[str, list[str]]:
    """Column to what its integers, or those of its lists, stand for.

    Raises DataFormatError where the file is no whole table.
    """
    import pyarrow as pa

    try:
        schema, _ = _opened(path, ())
    except (pa.ArrowException, OSError) as error:
        raise _no_table(path, error) from None
    names: dict[str, list[str]] = {}
    for column, feature in _features(schema).items():
        names_of_column = getattr(getattr(feature, "feature", feature), "names", None)
        if names_of_column is not None:
            names[column] = list(map(str, names_of_column))
    return names


def table_rows(request: Request[Any], columns: Sequence[str] = ()) -> Iterator[DataRow]:
    """The rows of all tables with these columns (all, where none is named); places are row numbers
    from 1.

    Structures have the names of their classes in place of integers, and a structure of lists
    becomes a list of structures. Raises DataFormatError for a file that is no whole table.
    """
    import pyarrow as pa

    numbers: Counter[str] = Counter()
    for location in request.places():
        number = 0
        try:
            schema, batches = _opened(location.path, columns)
            for column in columns:
                location.at(None).need(column, schema.names, "has no column")
            structures: dict[str, Any] = {}
            for column, feature in _features(schema).items():
                if isinstance(getattr(feature, "feature", feature), dict):
                    structures[column] = feature
            for batch in batches:
                # Arrow believes the offsets in a file, and would read whatever memory they name.
                batch.validate(full=True)
                for values in batch.to_pylist():
                    number += 1
                    numbers[location.split] += 1
                    for column in structures.keys() & values.keys():
                        values[column] = _with_names(structures[column], values[column])
                    id = f"{location.prefix}-{numbers[location.split]}"
                    yield DataRow(location.at(number), values, id, "row")
        except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
            raise _no_table(location.path, error) from None


def _opened(path: Path, columns: Sequence[str]) -> tuple[Any, Iterator[Any]]:
    """(schema, batches of rows with these columns, or all), read as they are asked for."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    with path.open("rb") as stream:
        is_arrow = stream.read(len(ARROW)) == ARROW
    if not is_arrow:
        file = pq.ParquetFile(path)
        return file.schema_arrow, file.iter_batches(columns=list(columns) or None)
    stream = pa.ipc.open_stream(pa.memory_map(str(path)))
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


def _with_names(feature: Any, value: Any) -> Any:
    """The value with the names of classes. An integer that is none (-1: unknown) becomes null."""
    if value is None:
        return None
    if hasattr(feature, "names"):
        is_index = isinstance(value, int) and 0 <= value < len(feature.names)
        return str(feature.names[value]) if is_index else None
    if isinstance(feature, dict):
        named = {name: _with_names(feature[name], item) for name, item in value.items()}
        return _transposed(named)
    if isinstance(value, list) and hasattr(feature, "feature"):
        return [_with_names(feature.feature, item) for item in value]
    return value


def _transposed(structure: dict[str, Any]) -> Any:
    """A list of structures of what earlier versions of `datasets` store as a structure of lists."""
    lists = list(structure.values())
    are_lists = bool(lists) and all(isinstance(values, list) for values in lists)
    if not are_lists or len({len(values) for values in lists}) > 1:
        return structure
    return [dict(zip(structure, values, strict=True)) for values in zip(*lists, strict=True)]


def _no_table(path: Path, error: Exception) -> DataFormatError:
    message = f"is not a whole parquet or Arrow file ({first_line(error)})"
    return DataFormatError(message, hint="download it again", file=path)
