"""Rows with a text, or two, and a label, or several: which column is which.

Columns that are named are taken; of the others a name decides (`label`, `patient_id`, `premise`),
then the simplest rule: the longest texts are the text, and the fewest different values are the
label.
"""

from __future__ import annotations

import ast
import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from biobench.data.readers.files import missing
from biobench.data.sniff.base import Proposal, Wanted
from biobench.data.sniff.table import Table
from biobench.data.sniff.tags import spelling_of
from biobench.errors import DataFormatError
from biobench.schema.strict import suggest

LABEL = re.compile(
    r"\s*(gold_?)?(labels?|class(es)?|categor(y|ies)|targets?|codes?)(_id|_name)?\s*", re.IGNORECASE
)
"""What columns of labels are called."""
_GROUP = re.compile(
    r"\s*(patient|subject|group|pmid|article|document|doc|report|note|hadm|case)(_?id|_?name)?\s*",
    re.IGNORECASE,
)
_PAIRS = (
    ("sentence1", "sentence2"),
    ("text1", "text2"),
    ("text_a", "text_b"),
    ("premise", "hypothesis"),
    ("question1", "question2"),
    ("question", "context"),
    ("question", "contexts"),
    ("question", "answer"),
    ("query", "passage"),
)
"""Names of columns that hold two texts to be read together, the first before the second."""
_MOST_LABELS = 200


@dataclass(frozen=True, slots=True)
class _Label:
    """A column that may hold the labels. separator: what parts several of a cell."""

    column: str
    separator: str | None
    values: frozenset[str]


def labelled_rows(table: Table, wanted: Wanted) -> list[Proposal]:
    """The rows as texts with labels. Raises DataFormatError where no column is one, or several may
    be.
    """
    _check_named(table, wanted)
    first, text = _texts(table, wanted)
    labels = _label_columns(table, wanted, (first, text))
    if text is None or not labels:
        raise _nothing(table)
    label = _chosen(table, labels, wanted)
    _check_documents(table, text, label)
    group = wanted.group or _group(table, (first, text, label.column))
    fields = {"text": text, "label": label.column, "group": group, "first": first}
    used = {role: column for role, column in fields.items() if column is not None}
    several = label.separator is not None or _several(table.filled[label.column])
    proposal = Proposal(
        "multi_label" if several else "single_label",
        _reader(table, used, label),
        columns=table.columns,
        read=list(used.values()),
        seen=[*table.seen, *table.named_differently(label.column)],
    )
    empty = sum(_lacks(row.values, text, label.column) for row in table.rows)
    if not empty or table.reader["format"] != "json":
        return [proposal]
    seen = f"rows: {empty} of {len(table.rows)} have no text or no label and are left out"
    rest = {**proposal.reader, "drop_missing": True}
    return [proposal, replace(proposal, reader=rest, seen=[*proposal.seen, seen])]


def _lacks(values: Mapping[str, Any], text: str, label: str) -> bool:
    """Whether a row has no text or no label."""
    blank = isinstance(values.get(text), str) and not values[text].strip()
    return blank or missing(values.get(text)) or missing(values.get(label))


def _check_named(table: Table, wanted: Wanted) -> None:
    for name in (wanted.text, wanted.label, wanted.group):
        if name is not None and name not in table.filled:
            path = table.rows[0].location.path if table.rows else None
            hint = suggest(name, list(table.filled))
            raise DataFormatError(f"has no column '{name}'", hint=hint, file=path, line=1)


def _nothing(table: Table) -> DataFormatError:
    hint = (
        f"name them with --text and --label; its columns: {', '.join(table.filled)}; a label is a "
        f"class, no number"
    )
    path = table.rows[0].location.path if table.rows else None
    return DataFormatError("has no text field with a label field", hint=hint, file=path, line=1)


def _texts(table: Table, wanted: Wanted) -> tuple[str | None, str | None]:
    """(first text of a pair, text); None where there is none."""
    readable = list(table.texts)
    if table.reader["format"] == "json":
        # The reader joins a list of texts.
        readable += [name for name, lists in table.lists.items() if _are_texts(lists)]
    spelled = {name.casefold(): name for name in readable}
    for a, b in _PAIRS:
        if a in spelled and b in spelled and wanted.text in (None, spelled[b]):
            return spelled[a], spelled[b]
    if wanted.text is not None:
        return None, wanted.text
    lengths = {name: sum(map(len, table.filled[name])) for name in table.texts}
    return None, max(lengths, key=lambda name: lengths[name], default=None)


def _are_texts(lists: list[list[Any]]) -> bool:
    return all(isinstance(part, str) for parts in lists for part in parts)


def _label_columns(
    table: Table, wanted: Wanted, texts: tuple[str | None, str | None]
) -> list[_Label]:
    """Columns whose values may be labels. Raises DataFormatError where one that is called so holds
    what is no label.
    """
    labels: list[_Label] = []
    refused: list[DataFormatError] = []
    parts = _part_sizes(table, texts[1])
    for column, cells in table.filled.items():
        if column in texts or (parts is not None and _sizes(cells) == parts):
            continue
        fault = _fault(table, column, cells)
        if fault is not None:
            refused += [fault] if column == wanted.label or LABEL.fullmatch(column) else []
            continue
        label = _label(table, wanted, column, cells)
        most = max(2, min(_MOST_LABELS, len(table.rows) // 2))
        if column == wanted.label or 2 <= len(label.values) <= most:
            labels.append(label)
    named = [label for label in labels if LABEL.fullmatch(label.column)]
    if refused and (wanted.label is not None or not named):
        raise refused[0]
    return labels


def _part_sizes(table: Table, text: str | None) -> list[int] | None:
    """How many parts the text of each row has; what has as many says something of the parts."""
    return None if text is None else _sizes(table.filled[text])


def _sizes(cells: list[Any]) -> list[int] | None:
    if not all(isinstance(cell, list) for cell in cells):
        return None
    return [len(cell) for cell in cells]


def _fault(table: Table, column: str, cells: list[Any]) -> DataFormatError | None:
    """Why the column's values are no labels, with the line of the first that is none."""
    for cell in cells:
        items = cell if isinstance(cell, list) else [cell]
        numbers = [item for item in items if isinstance(item, (int, float))]
        message, hint = None, "labels are texts, whole numbers, or lists of them"
        if len(set(numbers)) < len(numbers):
            message = "a label is a vector of numbers (multi-hot): {}"
            hint = "write the names of the labels that are 1, as a list of texts"
        elif any(isinstance(item, dict) for item in items):
            message = "a label is an object: {}"
        elif any(isinstance(item, list) for item in items):
            message = "a label is a list inside a list: {}"
        elif any(isinstance(item, float) and not missing(item) for item in items):
            message = "a label is the number {}"
        elif isinstance(cell, str) and _is_written_list(cell):
            message = "a label is a list or an object written as text: {}"
            hint = "write the labels of a cell with a sign between them, and name it by --separator"
        if message is not None:
            value = str(cell)
            return table.row_with(column, cell).bad(f"{message} (column '{column}')", hint, value)
    return None


def _is_written_list(cell: str) -> bool:
    """Whether the cell is a list or an object as Python or JSON write it."""
    text = cell.strip()
    if text[:1] + text[-1:] not in ("[]", "{}"):
        return False
    if re.fullmatch(r"\[[\d\s.]*\]", text):  # as numpy writes a vector
        return True
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        try:
            ast.literal_eval(text)
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            return False
    return True


def _label(table: Table, wanted: Wanted, column: str, cells: list[Any]) -> _Label:
    values = [
        str(item).strip()
        for cell in cells
        for item in (cell if isinstance(cell, list) else [cell])
        if not missing(item)
    ]
    separator = wanted.separator if wanted.label in (None, column) else None
    if separator is None and wanted.separator is None and column in table.texts:
        separator = _separator(values)
    if separator is None:
        return _Label(column, None, frozenset(values) - {""})
    parts = {part.strip() for value in values for part in value.split(separator)}
    return _Label(column, separator, frozenset(parts) - {""})


def _separator(values: Sequence[str]) -> str | None:
    """What parts several labels of a cell: a sign whose parts are labels of other cells too, and no
    more than the different cells.
    """
    whole = set(values)
    for sign in ("|", ";"):
        parts = {part.strip() for value in whole for part in value.split(sign)}
        if any(sign in value for value in whole) and len(parts) <= len(whole) and parts & whole:
            return sign
    return None


def _chosen(table: Table, labels: list[_Label], wanted: Wanted) -> _Label:
    """The label column. Raises DataFormatError where several are as likely, with the same values.

    Of columns that no name tells apart, those with the same values are the answers of several
    people, or to several questions.
    """
    if wanted.label is not None:
        return next(label for label in labels if label.column == wanted.label)
    best = min(labels, key=lambda label: (not LABEL.fullmatch(label.column), len(label.values)))
    if LABEL.fullmatch(best.column):
        return best
    alike = [label.column for label in labels if label.values == best.values]
    if len(alike) > 1:
        message = f"columns {', '.join(alike)} hold the same {len(best.values)} values"
        hint = f"name the label with --label {alike[0]}; numbers to predict are `type: regression`"
        raise table.rows[0].location.bad(message, hint)
    return best


def _check_documents(table: Table, text: str, label: _Label) -> None:
    """Raise DataFormatError where the rows are words with their tags, whatever parts them."""
    cells = table.filled[label.column]
    if not all(isinstance(cell, str) for cell in cells) or "O" not in label.values:
        return
    words = [cell for cell in table.filled[text] if len(str(cell).split()) == 1]
    if spelling_of(Counter(cells)) is not None and len(words) > 0.9 * len(table.filled[text]):
        tags = ", ".join(sorted(label.values)[:6])
        hint = "write a word and its tag a line, a blank line between sentences: `format: iob`"
        raise table.rows[0].location.bad(f"the rows are words with tags ({tags})", hint)


def _group(table: Table, taken: tuple[str | None, ...]) -> str | None:
    """The first column that is called so and in which some values, not all, repeat."""
    for name, values in table.filled.items():
        distinct = len({str(value) for value in values})
        if name not in taken and _GROUP.fullmatch(name) and 1 < distinct < len(values):
            return name
    return None


def _several(cells: Sequence[Any]) -> bool:
    return any(isinstance(cell, list) and len(cell) != 1 for cell in cells)


def _reader(table: Table, fields: dict[str, str], label: _Label) -> dict[str, Any]:
    """The reader with the columns in its own terms."""
    reader = dict(table.reader)
    if reader["format"] == "json":
        reader |= fields
    elif reader["format"] == "parquet":
        reader["columns"] = {
            "labels" if role == "label" else role: name for role, name in fields.items()
        }
    else:
        reader["columns"] = {
            role: int(name) if table.numbered else name for role, name in fields.items()
        }
    names = table.named_in(label.column)
    if names is not None:
        reader["names"] = names
    if label.separator is not None:
        reader["label_separator"] = label.separator
    return reader
