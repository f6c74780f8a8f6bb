"""Questions with options, of which one or several are right."""

from __future__ import annotations

import re
from functools import partial
from typing import Any

from biobench.data.sniff.base import Options, Proposal, Wanted, types_of
from biobench.data.sniff.table import Table

_MOST_OPTIONS = 26
_LONGEST_NAME = 2
_QUESTION = re.compile("question", re.IGNORECASE)


def questions(table: Table, wanted: Wanted) -> list[Proposal]:
    """A field of options by name, a field with the names of the right ones, and a question."""
    layout = table.reader.get("layout")
    question = next(filter(_QUESTION.fullmatch, table.texts), table.longest_text)
    if layout not in ("list", "lines") or question is None:
        return []
    for options, values in table.filled.items():
        right = _right(table, _option_names(values))
        if right is not None:
            roles = {"question": question, "options": options, "right": right}
            if "id" in table.filled:
                roles["id"] = "id"
            reader: Options = {"format": "choices", "layout": layout, **roles}
            read = list(roles.values())
            return [Proposal("multiple_choice", reader, columns=table.columns, read=read)]
    return []


def _option_names(values: list[Any]) -> set[str]:
    """The names of options, where all values are objects of texts with the same few short names."""
    if not all(map(_is_choice, values)):
        return set()
    names: set[str] = set().union(*values)
    is_short = len(names) <= _MOST_OPTIONS and max(map(len, names)) <= _LONGEST_NAME
    return names if is_short else set()


def _is_choice(value: Any) -> bool:
    """Whether it is an object of texts."""
    return isinstance(value, dict) and types_of(value.values()) == {str}


def _right(table: Table, names: set[str]) -> str | None:
    """The column whose values are all names of options."""
    folded = set(map(str.casefold, names))
    return next(filter(partial(_holds, table, folded), table.filled), None)


def _holds(table: Table, folded: set[str], column: str) -> bool:
    """Whether the column holds these names, and nothing else."""
    items = table.items(column)
    return types_of(items) == {str} and folded.issuperset(map(str.casefold, items))
