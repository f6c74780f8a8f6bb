"""JSON and parquet: objects and rows, which may hold labels, mentions, lists of tags or options."""

from __future__ import annotations

import json
from typing import Any

from biobench.data.readers.base import FileLine
from biobench.data.readers.files import Layout, json_rows, read_text
from biobench.data.readers.tables import class_names, is_table, table_rows
from biobench.data.sniff.base import DataFiles, Detector, Proposal, Wanted, first_fitting
from biobench.data.sniff.choices import questions
from biobench.data.sniff.labelled import labelled_rows
from biobench.data.sniff.mentions import mention_lists
from biobench.data.sniff.table import Table
from biobench.data.sniff.token_lists import token_lists

_ENDINGS = (".json", ".jsonl", ".ndjson")
_SHAPES: tuple[Detector[Table], ...] = (mention_lists, token_lists, questions, labelled_rows)
"""What rows may hold."""


def parquet_tables(corpus: DataFiles, wanted: Wanted) -> list[Proposal]:
    """Tables of the hub. Raises DataFormatError where some files are none."""
    starts = corpus.places()
    are_tables = [is_table(location.path) for location in starts]
    if not any(are_tables):
        return []
    if not all(are_tables):
        no_table = starts[are_tables.index(False)]
        table_name = starts[are_tables.index(True)].path.name
        hint = "bring all splits into one format, or give one data file"
        raise no_table.bad(f"is no parquet or Arrow file, as {table_name} is", hint)
    names = {location.path: class_names(location.path) for location in starts}
    table = Table(starts[0], {"format": "parquet"}, list(table_rows(corpus.request())), names)
    return first_fitting(_SHAPES, table, wanted)


def json_objects(corpus: DataFiles, wanted: Wanted) -> list[Proposal]:
    """JSON Lines, a list of objects, or an object of objects by their ids."""
    start = corpus.places()[0]
    layout = _layout(start)
    if layout is None:
        return []
    rows = list(json_rows(corpus.request(), layout))
    table = Table(start, {"format": "json", "layout": layout}, rows)
    return first_fitting(_SHAPES, table, wanted)


def _layout(location: FileLine) -> Layout | None:
    """How the objects stand; None where the file is no JSON. Raises DataFormatError for JSON that
    holds no objects.
    """
    text = read_text(location).lstrip()
    if not text.startswith(("{", "[")):
        return None
    content = _parsed(text)
    if content is None and location.path.suffix not in _ENDINGS:
        line, _, _ = text.partition("\n")
        if not isinstance(_parsed(line), dict):
            return None
    if text.startswith("["):
        return "list"
    if content is None:
        return "lines"
    _check_keyed(location, content)
    return "keyed"


def _check_keyed(location: FileLine, content: dict[str, Any]) -> None:
    """Refuse an object that holds no objects by their ids, but columns or something else."""
    if not content or not all(map(_is_object, content.values())):
        hint = "write one object a line, as `to_json(orient='records', lines=True)` does"
        raise location.bad("is one JSON object that holds no objects by their ids", hint)


def _is_object(value: Any) -> bool:
    """Whether it is one, and its keys are not the numbers of rows, as pandas writes a column."""
    return isinstance(value, dict) and list(value) != list(map(str, range(len(value))))


def _parsed(text: str) -> Any:
    """The JSON value; None for what is none."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
