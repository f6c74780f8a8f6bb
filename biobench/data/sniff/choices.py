"""Questions with options, of which one or several are right."""

from __future__ import annotations

from typing import Any

from biobench.data.sniff.base import Options, Proposal, Wanted
from biobench.data.sniff.table import Table

_MOST_OPTIONS = 26
_LONGEST_NAME = 2


def questions(table: Table, wanted: Wanted) -> list[Proposal]:
    """A field of options by name, a field with the names of the right ones, and a question."""
    if table.reader.get("layout") not in ("list", "lines"):
        return []
    for options, values in table.filled.items():
        names = _option_names(values)
        right = _right(table, options, names)
        question = _question(table)
        if right is not None and question is not None:
            reader: Options = {
                "format": "choices",
                "layout": table.reader["layout"],
                "question": question,
                "options": options,
                "right": right,
            }
            read = [question, options, right]
            if "id" in table.filled:
                reader["id"] = "id"
                read.append("id")
            return [Proposal("multiple_choice", reader, columns=table.columns, read=read)]
    return []


def _option_names(values: list[Any]) -> set[str]:
    """The names of options, where all values are objects of texts with the same few short names."""
    names: set[str] = set()
    for value in values:
        if not isinstance(value, dict) or set(map(type, value.values())) != {str}:
            return set()
        names.update(value)
    too_long = max(map(len, names), default=0) > _LONGEST_NAME
    return set() if too_long or len(names) > _MOST_OPTIONS else names


def _right(table: Table, options: str, names: set[str]) -> str | None:
    """The column whose values are all names of options."""
    folded = set(map(str.casefold, names))
    for column in table.filled:
        if column != options and _are_among(table.items(column), folded):
            return column
    return None


def _are_among(items: list[Any], folded: set[str]) -> bool:
    """Whether there are items, and all of them are these names."""
    for item in items:
        if not isinstance(item, str) or item.casefold() not in folded:
            return False
    return bool(items)


def _question(table: Table) -> str | None:
    """The column of this name, else the longest text."""
    for name in table.texts:
        if name.casefold() == "question":
            return name
    return table.longest_text
