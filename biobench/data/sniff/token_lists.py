"""Rows that hold a list of words and one of as many tags."""

from __future__ import annotations

from collections import Counter
from itertools import chain, permutations
from operator import eq
from typing import Any

from biobench.data.readers.files import DataRow
from biobench.data.sniff.base import Options, Proposal, Wanted, types_of, without_none
from biobench.data.sniff.table import Table
from biobench.data.sniff.tags import Spelling, scheme_options, spelling_of

_MOST = 0.9
"""Share of the rows whose lists must be of one length; the reader names the others."""


def token_lists(table: Table, wanted: Wanted) -> list[Proposal]:
    """Two columns of lists, words and tags, under each scheme that the tags may have.

    Raises DataFormatError for tags that are numbers without names.
    """
    pairs = [pair for pair in permutations(table.lists, 2) if _aligned(table, *pair)]
    # Of several columns of tags (parts of speech, chunks) those of entities are meant.
    pairs.sort(key=lambda pair: "ner" not in pair[1].casefold())
    for words, tags in pairs:
        sequences = [_written(table, row, tags) for row in table.rows]
        spelling = _spelling(table, tags, sequences)
        if spelling is not None:
            schemes, seen = scheme_options(spelling, sequences)
            return _proposals(table, words, tags, schemes, seen)
    return []


def _spelling(table: Table, tags: str, sequences: list[list[Any]]) -> Spelling | None:
    """How the tags are written; None where they are none. Raises DataFormatError for numbers."""
    every = list(chain.from_iterable(sequences))
    types = types_of(every)
    if types == {int}:
        hint = "name their meanings in `reader.names`, as in [O, B-Disease, I-Disease]"
        message = f"the tags are numbers without names (column '{tags}')"
        raise table.row_with(tags, table.lists[tags][0]).bad(message, hint)
    return spelling_of(Counter(every)) if types == {str} else None


def _proposals(
    table: Table, words: str, tags: str, schemes: list[Options], seen: str
) -> list[Proposal]:
    """One for each scheme. seen: what was seen of the tags."""
    about = [f"tags: {seen}", *table.named_differently(tags)]
    proposals: list[Proposal] = []
    for scheme in schemes:
        proposal = Proposal("token_ner", _reader(table, words, tags, scheme), seen=about)
        proposal.columns, proposal.read = table.columns, [words, tags]
        proposals.append(proposal)
    return proposals


def _aligned(table: Table, words: str, tags: str) -> bool:
    """Whether the words are texts, and nearly all as many as the tags."""
    sizes = list(map(len, table.lists[words]))
    tag_sizes = list(map(len, table.lists[tags]))
    fitting = sum(map(eq, sizes, tag_sizes))
    same_rows = len(sizes) == len(tag_sizes)
    are_texts = types_of(table.items(words)) == {str}
    return same_rows and are_texts and fitting >= _MOST * len(sizes)


def _written(table: Table, row: DataRow, tags: str) -> list[Any]:
    """The row's tags, as texts where its file names their integers."""
    names_of_file = table.names.get(row.location.path, {})
    names = dict(enumerate(names_of_file.get(tags, [])))
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
