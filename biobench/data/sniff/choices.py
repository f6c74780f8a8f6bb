"""Questions with options, of which one or several are right."""

from __future__ import annotations

from typing import Any

from biobench.data.sniff.base import Proposal, Wanted
from biobench.data.sniff.table import Table


def questions(table: Table, wanted: Wanted) -> list[Proposal]:
    """A field of options by name, a field with the names of the right ones, and a question."""
    if table.reader.get("layout") not in ("list", "lines"):
        return []
    for options, values in table.filled.items():
        names = _option_names(values)
        right = None if names is None else _right(table, options, names)
        question = _question(table)
        if right is not None and question is not None:
            reader: dict[str, Any] = {
                "format": "choices",
                "layout": table.reader["layout"],
                "question": question,
                "options": options,
                "right": right,
            }
            reader |= {"id": "id"} if "id" in table.filled else {}
            return [
                Proposal(
                    "multiple_choice",
                    reader,
                    columns=table.columns,
                    read=[name for name in reader.values() if name in table.columns],
                )
            ]
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
    for column, values in table.filled.items():
        lists = [value if isinstance(value, list) else [value] for value in values]
        items = {item for items in lists for item in items if isinstance(item, str)}
        others = any(not isinstance(item, str) for items in lists for item in items)
        spelled = {item.casefold() for item in items}
        known = {name.casefold() for name in names}
        if column != options and spelled and not others and spelled <= known:
            return column
    return None


def _question(table: Table) -> str | None:
    """The column of this name, else the longest text."""
    for name in table.texts:
        if name.casefold() == "question":
            return name
    return table.longest_text
