"""Rows that hold a list of words and one of as many tags."""

from __future__ import annotations

from collections import Counter
from itertools import permutations
from typing import Any

from biobench.data.readers.files import DataRow
from biobench.data.sniff.base import Options, Proposal, Wanted
from biobench.data.sniff.table import Table
from biobench.data.sniff.tags import scheme_options, spelling_of

_MOST = 0.9
"""Share of the rows whose lists must be of one length; the reader names the others."""


def token_lists(table: Table, wanted: Wanted) -> list[Proposal]:
    """Two columns of lists, words and tags, under each scheme that the tags may have.

    Raises DataFormatError for tags that are numbers without names.
    """
    lists = table.lists
    pairs = [pair for pair in permutations(lists, 2) if _aligned(lists[pair[0]], lists[pair[1]])]
    # Of several columns of tags (parts of speech, chunks) those of entities are meant.
    for words, tags in sorted(pairs, key=lambda pair: "ner" not in pair[1].casefold()):
        sequences = [_written(table, row, tags) for row in table.rows]
        every = [tag for sequence in sequences for tag in sequence]
        if every and all(type(tag) is int for tag in every):
            hint = "name their meanings in `reader.names`, as in [O, B-Disease, I-Disease]"
            message = f"the tags are numbers without names (column '{tags}')"
            raise table.row_with(tags, lists[tags][0]).bad(message, hint)
        spelling = spelling_of(Counter(every)) if all(isinstance(x, str) for x in every) else None
        if spelling is not None:
            options, seen = scheme_options(spelling, sequences)
            return [_proposal(table, words, tags, scheme, seen) for scheme in options]
    return []


def _proposal(table: Table, words: str, tags: str, scheme: Options, seen: str) -> Proposal:
    return Proposal(
        "token_ner",
        _reader(table, words, tags, scheme),
        columns=table.columns,
        read=[words, tags],
        seen=[f"tags: {seen}", *table.named_differently(tags)],
    )


def _aligned(words: list[list[Any]], tags: list[list[Any]]) -> bool:
    """Whether they are texts, and nearly all as many as the tags."""
    if len(words) != len(tags):
        return False
    fits = [len(a) == len(b) for a, b in zip(words, tags, strict=True)]
    are_texts = all(isinstance(word, str) for row in words for word in row)
    return are_texts and any(words) and sum(fits) >= _MOST * len(fits)


def _written(table: Table, row: DataRow, tags: str) -> list[Any]:
    """The row's tags, as texts where its file names their integers."""
    names = table.names.get(row.location.path, {}).get(tags, [])
    inside = range(len(names))
    values = row.values.get(tags) or []
    return [names[tag] if type(tag) is int and tag in inside else tag for tag in values]


def _reader(table: Table, words: str, tags: str, scheme: Options) -> Options:
    """The columns and the scheme as the format's reader calls its options."""
    is_parquet = table.reader["format"] == "parquet"
    reader: Options = {"format": "json_tokens", "layout": table.reader.get("layout")}
    reader |= {"tokens": words, "tags": tags}
    if is_parquet:
        reader = {"format": "parquet", "columns": {"tokens": words, "tags": tags}}
    names = table.named_in(tags)
    if names is not None:
        reader["names"] = names
    reader |= scheme
    if is_parquet and "types" in reader:
        reader["label_map"] = reader.pop("types")
    return reader
