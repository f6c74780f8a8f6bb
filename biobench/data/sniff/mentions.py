"""Objects that hold a text and a list of its mentions by offsets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from biobench.data.sniff.base import Proposal, Wanted
from biobench.data.sniff.table import Table

_START = ("start", "start_offset", "begin", "from", "start_char", "startOffset", "offset_start")
_END = ("end", "end_offset", "stop", "to", "end_char", "endOffset", "offset_end")
_LABEL = ("label", "labels", "type", "tag", "entity", "entity_type", "category", "class")
_TEXT = (str, list)
_MOST = 0.9
"""Share of the mentions that must have one shape; the reader names the others."""


def mention_lists(table: Table, wanted: Wanted) -> list[Proposal]:
    """A field of mentions beside the longest text."""
    text = wanted.text or table.longest_text or ""
    for name, lists in table.lists.items():
        fields = _fields([mention for mentions in lists for mention in mentions])
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
    if mentions and sum(map(_is_triple, mentions)) >= _MOST * len(mentions):
        return {}
    objects = [mention for mention in mentions if isinstance(mention, dict)]
    if not objects or len(objects) < _MOST * len(mentions):
        return None
    fields: dict[str, str] = {}
    for role, names, kind in (("start", _START, int), ("end", _END, int), ("label", _LABEL, _TEXT)):
        name = _named(objects, names, kind)
        if name is None:
            return None
        if name != role:
            fields[role] = name
    return fields


def _is_triple(mention: Any) -> bool:
    return isinstance(mention, list) and [type(item) for item in mention] == [int, int, str]


def _named(objects: Sequence[dict[str, Any]], names: Sequence[str], kind: Any) -> str | None:
    """The first of these fields that nearly all objects have with a value of this kind."""
    for name in names:
        number = sum(isinstance(item.get(name), kind) for item in objects)
        if number >= _MOST * len(objects):
            return name
    return None
