"""Questions with options, of which one or several are right."""

from __future__ import annotations

from typing import Any

from biobench.data.readers.files import items_of
from biobench.data.sniff.base import Options, Proposal, Wanted
from biobench.data.sniff.table import Table


def questions(table: Table, wanted: Wanted) -> list[Proposal]:
    """A field of options by name, a field with the names of the right ones, and a question."""
    if table.reader.get("layout") not in ("list", "lines"):
        return []
    for options, values in table.filled.items():
        names = _option_names(values)
        if names is None:
            continue
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


def _option_names(values: list[Any]) -> set[str] | None:
    """The names of options, where all values are objects of texts with the same few short names."""
    if not values or not all(isinstance(value, dict) and value for value in values):
        return None
    names = {name for value in values for name in value}
    texts = all(isinstance(text, str) for value in values for text in value.values())
    return names if texts and len(names) <= 26 and max(map(len, names)) <= 2 else None


def _right(table: Table, options: str, names: set[str]) -> str | None:
    """The column whose values are all names of options."""
    folded = {name.casefold() for name in names}
    for column, values in table.filled.items():
        items = [item for value in values for item in items_of(value)]
        are_names = all(isinstance(item, str) and item.casefold() in folded for item in items)
        if column != options and items and are_names:
            return column
    return None


def _question(table: Table) -> str | None:
    """The column of this name, else the longest text."""
    for name in table.texts:
        if name.casefold() == "question":
            return name
    return table.longest_text
