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
from typing import Any, NamedTuple

from biobench.data.readers.files import items_of, missing
from biobench.data.sniff.base import Options, Proposal, Wanted
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


class _Texts(NamedTuple):
    """Columns: of a text, and of what goes in before it. None where there is none."""

    first: str | None
    text: str | None


def labelled_rows(table: Table, wanted: Wanted) -> list[Proposal]:
    """The rows as texts with labels. Raises DataFormatError where no column is one, or several may
    be.
    """
    _check_named(table, wanted)
    texts = _texts(table, wanted)
    text = texts.text
    labels = _label_columns(table, wanted, texts)
    if text is None or not labels:
        raise _nothing(table)
    label = _chosen(table, labels, wanted)
    _check_documents(table, text, label)
    group = wanted.group or _group(table, (*texts, label.column))
    fields = {"text": text, "label": label.column, "group": group, "first": texts.first}
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
    dropping = {**proposal.reader, "drop_missing": True}
    return [proposal, replace(proposal, reader=dropping, seen=[*proposal.seen, seen])]


def _lacks(values: Mapping[str, Any], text: str, label: str) -> bool:
    """Whether a row has no text or no label."""
    blank = isinstance(values.get(text), str) and not values[text].strip()
    return blank or missing(values.get(text)) or missing(values.get(label))


def _check_named(table: Table, wanted: Wanted) -> None:
    for name in (wanted.text, wanted.label, wanted.group):
        if name is not None and name not in table.filled:
            raise _refused(table, f"has no column '{name}'", suggest(name, list(table.filled)))


def _nothing(table: Table) -> DataFormatError:
    hint = (
        f"name them with --text and --label; its columns: {', '.join(table.filled)}; a label is a "
        f"class, no number"
    )
    return _refused(table, "has no text field with a label field", hint)


def _refused(table: Table, message: str, hint: str) -> DataFormatError:
    path = table.rows[0].location.path if table.rows else None
    return DataFormatError(message, hint=hint, file=path, line=1)


def _texts(table: Table, wanted: Wanted) -> _Texts:
    """The pair that names tell, else the text that is wanted, else the longest."""
    readable = list(table.texts)
    if table.reader["format"] == "json":
        # The reader joins a list of texts.
        readable += [name for name, lists in table.lists.items() if _are_texts(lists)]
    spelled = {name.casefold(): name for name in readable}
    for a, b in _PAIRS:
        if a in spelled and b in spelled and wanted.text in (None, spelled[b]):
            return _Texts(spelled[a], spelled[b])
    return _Texts(None, table.longest_text if wanted.text is None else wanted.text)


def _are_texts(lists: list[list[Any]]) -> bool:
    return all(isinstance(item, str) for items in lists for item in items)


def _label_columns(table: Table, wanted: Wanted, texts: _Texts) -> list[_Label]:
    """Columns whose values may be labels. Raises DataFormatError where one that is called so holds
    what is no label.
    """
    labels: list[_Label] = []
    refused: list[DataFormatError] = []
    most_labels = max(2, min(_MOST_LABELS, len(table.rows) // 2))
    for column, cells in _label_candidates(table, texts):
        fault = _fault(table, column, cells)
        if fault is None:
            label = _label(table, wanted, column, cells)
            if column == wanted.label or 2 <= len(label.values) <= most_labels:
                labels.append(label)
        elif column == wanted.label or LABEL.fullmatch(column):
            refused.append(fault)
    named = any(LABEL.fullmatch(label.column) for label in labels)
    if refused and (wanted.label is not None or not named):
        raise refused[0]
    return labels


def _label_candidates(table: Table, texts: _Texts) -> list[tuple[str, list[Any]]]:
    """Columns with their values, without the texts and what says something of their parts."""
    sizes = None if texts.text is None else _sizes(table.filled[texts.text])
    candidates: list[tuple[str, list[Any]]] = []
    for column, cells in table.filled.items():
        of_parts = sizes is not None and _sizes(cells) == sizes
        if column not in texts and not of_parts:
            candidates.append((column, cells))
    return candidates


def _sizes(cells: list[Any]) -> list[int] | None:
    """How many parts each has, where all are lists."""
    if not all(isinstance(cell, list) for cell in cells):
        return None
    return [len(cell) for cell in cells]


def _fault(table: Table, column: str, cells: list[Any]) -> DataFormatError | None:
    """Why the column's values are no labels, with the line of the first that is none."""
    for cell in cells:
        problem = _no_label(cell)
        if problem is not None:
            message, hint = problem
            row = table.row_with(column, cell)
            return row.bad(f"a label is {message} (column '{column}')", hint, str(cell))
    return None


def _no_label(cell: Any) -> tuple[str, str] | None:
    """(what a cell is that holds no label, the hint); None where it holds labels."""
    items = items_of(cell)
    numbers = [item for item in items if isinstance(item, (int, float))]
    if len(set(numbers)) < len(numbers):
        hint = "write the names of the labels that are 1, as a list of texts"
        return "a vector of numbers (multi-hot): {}", hint
    hint = "labels are texts, whole numbers, or lists of them"
    if any(isinstance(item, dict) for item in items):
        return "an object: {}", hint
    if any(isinstance(item, list) for item in items):
        return "a list inside a list: {}", hint
    if any(isinstance(number, float) and not missing(number) for number in numbers):
        return "the number {}", hint
    if isinstance(cell, str) and _is_written_list(cell):
        hint = "write the labels of a cell with a sign between them, and name it by --separator"
        return "a list or an object written as text: {}", hint
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
    items = [item for cell in cells for item in items_of(cell)]
    values = [str(item).strip() for item in items if not missing(item)]
    separator = wanted.separator if wanted.label in (None, column) else None
    if separator is None and wanted.separator is None and column in table.texts:
        separator = _separator(values)
    if separator is None:
        return _Label(column, None, frozenset(values) - {""})
    labels = {label.strip() for value in values for label in value.split(separator)}
    return _Label(column, separator, frozenset(labels) - {""})


def _separator(values: Sequence[str]) -> str | None:
    """What parts several labels of a cell: a sign whose parts are labels of other cells too, and no
    more than the different cells.
    """
    cells = set(values)
    for sign in ("|", ";"):
        labels = {label.strip() for value in cells for label in value.split(sign)}
        if any(sign in value for value in cells) and len(labels) <= len(cells) and labels & cells:
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
    columns = [label.column for label in labels if label.values == best.values]
    if len(columns) > 1:
        message = f"columns {', '.join(columns)} hold the same {len(best.values)} values"
        hint = (
            f"name the label with --label {columns[0]}; numbers to predict are `type: regression`"
        )
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


def _reader(table: Table, fields: dict[str, str], label: _Label) -> Options:
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
