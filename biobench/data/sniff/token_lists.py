"""Rows that hold a list of words and one of as many tags."""

from __future__ import annotations

from collections import Counter
from itertools import chain, permutations
from typing import Any

from biobench.data.readers.files import DataRow
from biobench.data.sniff.base import Options, Proposal, Wanted, without_none
from biobench.data.sniff.table import Table
from biobench.data.sniff.tags import scheme_options, spelling_of

_MOST = 0.9
"""Share of the rows whose lists must be of one length; the reader names the others."""


def token_lists(table: Table, wanted: Wanted) -> list[Proposal]:
    """Two columns of lists, words and tags, under each scheme that the tags may have.

    Raises DataFormatError for tags that are numbers without names.
    """
    pairs = [pair for pair in permutations(table.lists, 2) if _aligned(table, *pair)]
    # Of several columns of tags (parts of speech, chunks) those of entities are meant.
    for words, tags in sorted(pairs, key=lambda pair: "ner" not in pair[1].casefold()):
        sequences = [_written(table, row, tags) for row in table.rows]
        every = list(chain.from_iterable(sequences))
        types = set(map(type, every))
        if types == {int}:
            hint = "name their meanings in `reader.names`, as in [O, B-Disease, I-Disease]"
            message = f"the tags are numbers without names (column '{tags}')"
            raise table.row_with(tags, table.lists[tags][0]).bad(message, hint)
        spelling = spelling_of(Counter(every)) if types == {str} else None
        if spelling is None:
            continue
        schemes, seen = scheme_options(spelling, sequences)
        about = [f"tags: {seen}", *table.named_differently(tags)]
        proposals: list[Proposal] = []
        for scheme in schemes:
            proposal = Proposal("token_ner", _reader(table, words, tags, scheme), seen=about)
            proposal.columns, proposal.read = table.columns, [words, tags]
            proposals.append(proposal)
        return proposals
    return []


def _aligned(table: Table, words: str, tags: str) -> bool:
    """Whether the words are texts, and nearly all as many as the tags."""
    rows = list(zip(table.lists[words], table.lists[tags], strict=False))
    fitting = sum(len(row_words) == len(row_tags) for row_words, row_tags in rows)
    same_rows = len(table.lists[words]) == len(table.lists[tags])
    are_texts = set(map(type, table.items(words))) == {str}
    return same_rows and are_texts and fitting >= _MOST * len(rows)


def _written(table: Table, row: DataRow, tags: str) -> list[Any]:
    """The row's tags, as texts where its file names their integers."""
    names = dict(enumerate(table.names.get(row.location.path, {}).get(tags, [])))
    written: list[Any] = []
    for tag in row.values.get(tags) or []:
        is_number = type(tag) is int
        written.append(names.get(tag, tag) if is_number else tag)
    return written


def _reader(table: Table, words: str, tags: str, scheme: Options) -> Options:
    """The columns and the scheme as the format's reader calls its options."""
    columns = {"tokens": words, "tags": tags}
    about_tags = without_none({"names": table.named_in(tags)}) | scheme
    if table.reader["format"] == "json":
        layout = table.reader["layout"]
        return {"format": "json_tokens", "layout": layout, **columns, **about_tags}
    reader = {"format": "parquet", "columns": columns, **about_tags}
    if "types" in scheme:
        reader["label_map"] = reader.pop("types")
    return reader
