"""Objects that hold a text and a list of its mentions by offsets."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from biobench.data.sniff.base import Proposal, Wanted
from biobench.data.sniff.table import Table

_NAMES: dict[str, tuple[Any, tuple[str, ...]]] = {
    "start": (
        int,
        ("start", "start_offset", "begin", "from", "start_char", "startOffset", "offset_start"),
    ),
    "end": (int, ("end", "end_offset", "stop", "to", "end_char", "endOffset", "offset_end")),
    "label": (
        (str, list),
        ("label", "labels", "type", "tag", "entity", "entity_type", "category", "class"),
    ),
}
"""What the reader asks of a mention, to the types of its values and what corpora call it."""
_MOST = 0.9
"""Share of the mentions that must have one shape; the reader names the others."""


def mention_lists(table: Table, wanted: Wanted) -> list[Proposal]:
    """A field of mentions beside the longest text."""
    text = wanted.text or table.longest_text or ""
    for name in table.lists:
        fields = _fields(table.items(name))
        if text in table.texts and fields is not None:
            layout = table.reader.get("layout", "table")
            reader = {"format": "json_spans", "layout": layout, "text": text, "spans": name}
            proposal = Proposal("span_ner", reader | fields, unit="document")
            proposal.columns, proposal.read = table.columns, [text, name]
            return [proposal]
    return []


def _fields(mentions: Sequence[Any]) -> dict[str, str] | None:
    """What the mentions call start, end and label, where the reader has another default; None where
    they are no mentions.
    """
    if not mentions:
        return None
    enough = _MOST * len(mentions)
    if sum(map(_is_triple, mentions)) >= enough:
        return {}
    objects = [mention for mention in mentions if isinstance(mention, dict)]
    if len(objects) < enough:
        return None
    names = {role: _named(objects, *asked) for role, asked in _NAMES.items()}
    if "" in names.values():
        return None
    return {role: name for role, name in names.items() if name != role}


def _is_triple(mention: Any) -> bool:
    if not isinstance(mention, list):
        return False
    return list(map(type, mention)) == [int, int, str]


def _named(objects: Sequence[dict[str, Any]], types: Any, names: Sequence[str]) -> str:
    """The first of these fields that nearly all objects have with a value of these types; empty
    where there is none.
    """
    return next(filter(partial(_is_field, objects, types), names), "")


def _is_field(objects: Sequence[dict[str, Any]], types: Any, name: str) -> bool:
    number = sum(isinstance(item.get(name), types) for item in objects)
    return number >= _MOST * len(objects)
