"""Rows that hold a list of words and one of as many tags."""

from __future__ import annotations

from collections import Counter
from itertools import permutations
from typing import Any

from biobench.data.sniff.base import Proposal, Wanted
from biobench.data.sniff.table import Table
from biobench.data.sniff.tags import scheme_options, spelling_of

_MOST = 0.9
"""Share of the rows whose lists must be of one length; the reader names the others."""


def token_lists(table: Table, wanted: Wanted) -> list[Proposal]:
    """Two columns of lists, words and tags, under each scheme that the tags may have."""
    lists = table.lists
    for words, tags in permutations(lists, 2):
        if not _aligned(lists[words], lists[tags]):
            continue
        names = table.names.get(tags)
        sequences = [_written(row, names) for row in lists[tags]]
        if any(not isinstance(tag, str) for tags in sequences for tag in tags):
            continue
        spelling = spelling_of(Counter(tag for tags in sequences for tag in tags))
        if spelling is None:
            continue
        options, seen = scheme_options(spelling, sequences)
        reader = _reader(table, words, tags)
        return [
            Proposal(
                "token_ner",
                reader | _for_format(table, scheme),
                columns=table.columns,
                read=[words, tags],
                seen=[f"tags: {seen}", *table.seen],
            )
            for scheme in options
        ]
    return []


def _aligned(words: list[list[Any]], tags: list[list[Any]]) -> bool:
    """Whether they are texts, and nearly all as many as the tags."""
    if len(words) != len(tags):
        return False
    fits = [len(a) == len(b) for a, b in zip(words, tags, strict=True)]
    are_texts = all(isinstance(word, str) for row in words for word in row)
    return are_texts and any(words) and sum(fits) >= _MOST * len(fits)


def _written(tags: list[Any], names: Any) -> list[Any]:
    """The tags as texts where their integers have names."""
    if not isinstance(names, list):
        return tags
    inside = range(len(names))
    return [names[tag] if type(tag) is int and tag in inside else tag for tag in tags]


def _reader(table: Table, words: str, tags: str) -> dict[str, Any]:
    named = {"names": table.names[tags]} if tags in table.names else {}
    if table.reader["format"] == "parquet":
        return {"format": "parquet", "columns": {"tokens": words, "tags": tags}, **named}
    layout = {"layout": table.reader["layout"]}
    return {"format": "json_tokens", **layout, "tokens": words, "tags": tags, **named}


def _for_format(table: Table, scheme: dict[str, Any]) -> dict[str, Any]:
    """The scheme as the reader calls its options."""
    if table.reader["format"] == "parquet" and "types" in scheme:
        scheme = {**scheme, "label_map": scheme["types"]}
        del scheme["types"]
    return scheme
