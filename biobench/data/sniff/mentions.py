"""Objects that hold a text and a list of its mentions by offsets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from biobench.data.sniff.base import Proposal, Wanted
from biobench.data.sniff.table import Table

_START = ("start", "start_offset", "begin", "from", "start_char", "startOffset", "offset_start")
_END = ("end", "end_offset", "stop", "to", "end_char", "endOffset", "offset_end")
_LABEL = ("label", "labels", "type", "tag", "entity", "entity_type", "category", "class")
_MOST = 0.9
"""Share of the mentions that must have one shape; the reader names the others."""


def mention_lists(table: Table, wanted: Wanted) -> list[Proposal]:
    """A field of mentions beside the longest text."""
    longest = table.longest_text
    if table.reader["format"] not in ("json", "parquet") or longest is None:
        return []
    text = wanted.text or longest
    for name, lists in table.lists.items():
        mentions = [mention for mentions in lists for mention in mentions]
        fields = _fields(mentions)
        if fields is not None:
            layout = {"layout": table.reader.get("layout", "table")}
            reader = {"format": "json_spans", **layout, "text": text, "spans": name, **fields}
            return [
                Proposal(
                    "span_ner",
                    reader,
                    unit="document",
                    columns=table.columns,
                    read=[text, name],
                )
            ]
    return []


def _fields(mentions: Sequence[Any]) -> dict[str, str] | None:
    """What the mentions call start, end and label, where the reader has another default; None where
    they are no mentions.
    """
    triples = [mention for mention in mentions if _is_triple(mention)]
    if mentions and len(triples) >= _MOST * len(mentions):
        return {}
    objects = [mention for mention in mentions if isinstance(mention, dict)]
    if not objects or len(objects) < _MOST * len(mentions):
        return None
    start = _named(objects, _START, int)
    end = _named(objects, _END, int)
    label = _named(objects, _LABEL, (str, list))
    if start is None or end is None or label is None:
        return None
    names = {"start": start, "end": end, "label": label}
    return {role: name for role, name in names.items() if role != name}


def _is_triple(mention: Any) -> bool:
    return isinstance(mention, list) and [type(item) for item in mention] == [int, int, str]


def _named(objects: Sequence[dict[str, Any]], names: Sequence[str], kind: Any) -> str | None:
    """The first of these fields that nearly all objects have with a value of this kind."""
    for name in names:
        number = sum(isinstance(item.get(name), kind) for item in objects)
        if number >= _MOST * len(objects):
            return name
    return None
