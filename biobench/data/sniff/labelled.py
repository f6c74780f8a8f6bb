"""Rows with a text, or two, and a label, or several: which column is which.

Columns that are named are taken; of the others a name decides (`label`, `patient_id`, `premise`),
then the simplest rule: the longest texts are the text, and the fewest different values are the
label.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import filterfalse
from typing import Any, NamedTuple

from biobench.data.readers.files import DataRow, items_of, missing
from biobench.data.sniff.base import FILL_IN, Options, Proposal, Wanted, types_of, without_none
from biobench.data.sniff.table import Table
from biobench.data.sniff.tags import spelling_of
from biobench.errors import DataFormatError
from biobench.schema.strict import suggest

LABEL = re.compile(
    r"\s*(gold_?)?(labels?|class(es)?|categor(y|ies)|targets?|codes?)(_id|_name)?\s*"
    r"|\s*(classes?|cat[eé]gories?|[eé]tiquettes?|libell[eé]s?)\s*",
    re.IGNORECASE,
)
"""What columns of labels are called, in English and French."""
_ID = re.compile(r"\s*((row|text|texte|doc|document|note)_?)?(id|uid|uuid|index)\s*", re.IGNORECASE)
"""What columns are called that number the rows."""
_GROUP = re.compile(
    r"\s*(patient|subject|group|pmid|article|document|doc|report|note|hadm|case)(_?id|_?name)?\s*"
    r"|(.*_)?(patient|ipp|nip|mrn|dossier)(_.*)?",
    re.IGNORECASE,
)
"""What columns of texts that belong together are called."""
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
_WRITTEN_LIST = re.compile(r"""\s*[\[{]([\d\s.,+-]*|.*["',:].*)[\]}]\s*""", re.DOTALL)
"""A list or an object as Python, JSON or numpy write it; `[POS]` is a word."""
_LABEL_ROLES = {"parquet": "labels"}
"""What a format's reader calls the column of labels, if not `label`."""
_LABELS_ARE = (
    "a label is a text, a whole number, or a list of them; name the labels that are 1 in a vector, "
    "and part those of a text by a sign (--separator)"
)


@dataclass(frozen=True, slots=True)
class _Label:
    """A column that may hold the labels. separator: what parts several of a cell."""

    column: str
    separator: str | None
    values: frozenset[str]

    @property
    def is_called_so(self) -> bool:
        """Whether its name says that it is one."""
        return LABEL.fullmatch(self.column) is not None


class _Texts(NamedTuple):
    """Columns: of a text, and of what goes in before it. None where there is none."""

    first: str | None
    text: str | None


def labelled_rows(table: Table, wanted: Wanted) -> list[Proposal]:
    """The rows as texts with labels. Raises DataFormatError where no column is one, or several may
    be.
    """
    _check_columns(table, wanted)
    texts = _texts(table, wanted)
    labels = _label_columns(table, wanted, texts)
    if texts.text is None or not labels:
        raise _no_labelled_text(table, wanted, texts)
    label = _likeliest(table, labels)
    _check_documents(table, texts.text, label)
    label_role = _LABEL_ROLES.get(table.reader["format"], "label")
    group = wanted.group or _group(table, (*texts, label.column))
    roles = without_none(
        {
            "text": texts.text,
            label_role: label.column,
            "group": group,
            "first": texts.first,
        }
    )
    proposal = Proposal(
        _type(table, label),
        _reader(table, roles, label),
        columns=table.columns,
        read=list(roles.values()),
        seen=[*table.seen, *table.named_differently(label.column)],
    )
    return [proposal, *_dropping(table, proposal, texts.text, label)]


def _no_labelled_text(table: Table, wanted: Wanted, texts: _Texts) -> DataFormatError:
    """Why the rows are no texts with labels: a column that would be the label has one value, or
    none is like one.
    """
    message = "has no text field with a label field"
    columns = ", ".join(table.filled)
    naming = f"name them with --text and --label; its columns: {columns}"
    for column in _label_candidates(table, wanted, texts):
        has_fault = _fault(table, column) is not None
        if texts.text is None or has_fault or len(_label(table, wanted, column).values) > 1:
            continue
        _check_filled(table, column)
        value = str(table.filled[column][0])
        hint = f"a task needs two labels or more: add rows with another, or {naming}"
        return table.start.bad(f"{message}: every '{column}' is {{}}", hint, value)
    return table.start.bad(message, f"{naming}; a label is a class, no number")


def _check_columns(table: Table, wanted: Wanted) -> None:
    """Raise DataFormatError for a column that the user names and the rows do not fill."""
    for name in (wanted.text, wanted.label, wanted.group):
        if name not in (None, *table.filled):
            hint = suggest(str(name), list(table.filled))
            raise table.start.bad(f"has no column '{name}'", hint)


def _type(table: Table, label: _Label) -> str:
    cells = table.filled[label.column]
    sizes = set(map(len, map(items_of, cells)))
    is_single = sizes == {1} and label.separator is None
    return "single_label" if is_single else "multi_label"


def _dropping(table: Table, proposal: Proposal, text: str, label: _Label) -> list[Proposal]:
    """The same without the rows that lack a text or a label, where JSON has such."""
    if table.reader["format"] != "json":
        return []
    lacking: list[DataRow] = []
    for row in table.rows:
        if _is_blank(row, text) or missing(row.values.get(label.column)):
            lacking.append(row)
    if not lacking:
        return []
    numbers = f"{len(lacking)} of {len(table.rows)}"
    seen = f"rows: {numbers} have no text or no label and are left out"
    reader = {**proposal.reader, "drop_missing": True}
    return [replace(proposal, reader=reader, seen=[*proposal.seen, seen])]


def _is_blank(row: DataRow, column: str) -> bool:
    """Whether a row has no text there."""
    value = row.values.get(column)
    return missing(value) or not str(value).strip()


def _texts(table: Table, wanted: Wanted) -> _Texts:
    """The pair that names tell, else the text that is wanted, else the longest."""
    spelled = {name.casefold(): name for name in _readable(table)}
    for query, text in _PAIRS:
        is_pair = {query, text} <= spelled.keys()
        if is_pair and wanted.text in (None, spelled[text]):
            return _Texts(spelled[query], spelled[text])
    return _Texts(None, wanted.text or table.longest_text)


def _readable(table: Table) -> list[str]:
    """Columns of texts, and those of lists of texts where the reader joins these."""
    columns = list(table.texts)
    if table.reader["format"] == "json":
        columns += [name for name in table.lists if types_of(table.items(name)) <= {str}]
    return columns


def _label_columns(table: Table, wanted: Wanted, texts: _Texts) -> list[_Label]:
    """Columns whose values may be labels: that which is wanted, else those with a few values.

    Raises DataFormatError where one that is wanted, or called so, holds what is no label.
    """
    labels: dict[str, _Label] = {}
    refused: list[DataFormatError] = []
    candidates = _label_candidates(table, wanted, texts)
    meant = {wanted.label, *filter(LABEL.fullmatch, candidates)}
    most = min(_MOST_LABELS, len(table.rows) // 2)
    sizes = range(2, max(2, most) + 1)
    for column in candidates:
        fault = _fault(table, column)
        if fault is None:
            label = _label(table, wanted, column)
            if column == wanted.label or len(label.values) in sizes:
                labels[column] = label
        elif column in meant:
            refused.append(fault)
    if refused and meant.isdisjoint(labels):
        raise refused[0]
    return list(labels.values())


def _label_candidates(table: Table, wanted: Wanted, texts: _Texts) -> list[str]:
    """Columns without the texts, and without what says something of the parts of a text."""
    columns = list(table.filled)
    if wanted.label is not None:
        columns = [wanted.label]
    parts_of_text = table.sizes.get(str(texts.text), [])
    of_parts = [name for name, sizes in table.sizes.items() if sizes == parts_of_text]
    left_out = {*texts, *of_parts}
    if wanted.label is None:
        left_out |= {column for column in columns if _ID.fullmatch(column)}
    return [column for column in columns if column not in left_out]


def _fault(table: Table, column: str) -> DataFormatError | None:
    """Why the column's values are no labels, with the line of the first that is none."""
    wrong = next(filterfalse(_is_label, table.filled[column]), None)
    if wrong is None:
        return None
    message = f"is no label (column '{column}'): {{}}"
    return table.row_with(column, wrong).bad(message, _LABELS_ARE, str(wrong))


def _is_label(cell: Any) -> bool:
    """Whether a cell holds a label, or several."""
    if isinstance(cell, str):
        return not _WRITTEN_LIST.fullmatch(cell)
    items = list(filterfalse(missing, items_of(cell)))
    if types_of(items) & {dict, list, float}:
        return False
    numbers = [item for item in items if isinstance(item, int)]
    is_vector = len(set(numbers)) < len(numbers)
    return not is_vector


def _label(table: Table, wanted: Wanted, column: str) -> _Label:
    items = filterfalse(missing, table.items(column))
    values = set(map(str.strip, map(str, items)))
    separator = wanted.separator
    if separator is None and column in table.texts:
        separator = _separator(values)
    if separator is not None:
        values = _cut(values, separator)
    return _Label(column, separator, frozenset(values) - {""})


def _separator(cells: set[str]) -> str | None:
    """What parts several labels of a cell: a sign whose parts are labels of other cells too, and no
    more than the different cells.
    """
    for sign in ("|", ";"):
        labels = _cut(cells, sign)
        if sign in "".join(cells) and len(labels) <= len(cells) and labels & cells:
            return sign
    return None


def _cut(cells: Iterable[str], sign: str) -> set[str]:
    """The labels that a sign parts."""
    return set(map(str.strip, sign.join(cells).split(sign)))


def _likeliest(table: Table, labels: list[_Label]) -> _Label:
    """The label column. Raises DataFormatError where several are as likely, with the same values.

    Of columns that no name tells apart, those with the same values are the answers of several
    people, or to several questions.
    """
    best = min(labels, key=lambda label: (not label.is_called_so, len(label.values)))
    columns = [label.column for label in labels if label.values == best.values]
    if not best.is_called_so and len(columns) > 1:
        message = f"columns {', '.join(columns)} hold the same {len(best.values)} values"
        hint = (
            f"name the label with --label {columns[0]}; numbers to predict are `type: regression`"
        )
        raise table.rows[0].location.bad(message, hint)
    return best


def _check_filled(table: Table, column: str) -> None:
    """Raise DataFormatError where a row has nothing there."""
    blank = [row for row in table.rows if _is_blank(row, column)]
    if blank:
        message = f"'{column}' is empty, as in {len(blank)} of {len(table.rows)} rows"
        raise blank[0].location.bad(message, FILL_IN)


def _check_documents(table: Table, text: str, label: _Label) -> None:
    """Raise DataFormatError where the rows are words with their tags, whatever parts them."""
    tags = Counter(table.texts.get(label.column, []))
    if "O" not in label.values or spelling_of(tags) is None:
        return
    cells = map(str, table.filled[text])
    sizes = list(map(len, map(str.split, cells)))
    if sizes.count(1) > 0.9 * len(sizes):
        shown = ", ".join(sorted(label.values)[:6])
        hint = "write a word and its tag a line, a blank line between sentences: `format: iob`"
        raise table.rows[0].location.bad(f"the rows are words with tags ({shown})", hint)


def _group(table: Table, taken: tuple[str | None, ...]) -> str | None:
    """The first column that is called so and in which some values, not all, repeat."""
    for name, values in table.filled.items():
        distinct = len(set(map(str, values)))
        if name not in taken and _GROUP.fullmatch(name) and 1 < distinct < len(values):
            return name
    return None


def _reader(table: Table, roles: dict[str, str], label: _Label) -> Options:
    """The reader with the columns in its own terms. roles: what a column is to its name."""
    columns: Options = {"columns": roles}
    if table.reader["format"] == "json":
        columns = roles
    if table.numbered:
        columns = {"columns": {role: int(name) for role, name in roles.items()}}
    about_labels = {"names": table.named_in(label.column), "label_separator": label.separator}
    return table.reader | columns | without_none(about_labels)
