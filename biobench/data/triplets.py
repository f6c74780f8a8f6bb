"""Rows that state relations between names, which are no documents with a label."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

_SIDES = (
    ("head", "tail"),
    ("subject", "object"),
    ("subj", "obj"),
    ("entity1", "entity2"),
    ("entity_1", "entity_2"),
    ("e1", "e2"),
    ("arg1", "arg2"),
    ("source", "target"),
)
_SHORT = 4
"""Words on average up to which a column holds names rather than texts."""


def triplets(columns: Mapping[str, Sequence[str]], text: str, label: str) -> str:
    """Why the rows look like (name, relation, name); empty where they do not.

    columns: name (empty: none) to values. text, label: the columns taken for these. Two columns that are called like
    the sides of a relation tell, or a text of a few words beside another column of as many different short values.
    """
    names = {name.strip().lower(): name for name in columns}
    sides = next((pair for pair in _SIDES if pair[0] in names and pair[1] in names), None)
    words = _words(columns[text])
    if sides is not None and words <= _SHORT:
        return (
            f"its rows look like relations: '{names[sides[0]]}' and '{names[sides[1]]}' hold {words:.1f} words, "
            "and no column holds a text"
        )
    others = [n for n in columns if n not in (text, label)]
    rows = len(columns[text])
    near = [n for n in others if _words(columns[n]) <= _SHORT and len({*columns[n]}) > len({*columns[label]})]
    if words <= _SHORT and near and rows >= 3 and not _numbers(columns[near[0]]):
        return (
            f"its rows look like relations: columns '{text}' and '{near[0]}' hold {words:.1f} words on average, "
            "and none holds a text"
        )
    return ""


def _words(values: Sequence[str]) -> float:
    return sum(len(value.split()) for value in values) / max(1, len(values))


def _numbers(values: Sequence[str]) -> bool:
    """Whether most values hold a digit, as ids and dates do."""
    return 2 * sum(any(c.isdigit() for c in value) for value in values) > len(values)
