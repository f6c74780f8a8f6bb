"""Mentions that tokens cannot hold: what becomes tags, what is left of overlapping mentions, and what is said."""

from __future__ import annotations

from typing import cast

from biobench.data.counts import unexpressed_in_words
from biobench.data.readers.base import FileLine
from biobench.data.readers.standoff import Discontinuous, flat, mentions_to_tags, merge_fragments, with_tags
from biobench.schema.document import Document, Span
from biobench.schema.tags import Mode


def test_fragments() -> None:
    text = "ab cd ef"
    assert merge_fragments([(3, 5), (0, 2)], text) == ((0, 5),)
    assert merge_fragments([(0, 2), (6, 8)], text) == ((0, 2), (6, 8))
    wanted: dict[Discontinuous, list[tuple[int, int]]] = {"hull": [(0, 8)], "drop": [], "each": [(0, 2), (6, 8)]}
    for policy, pieces in wanted.items():
        spans = flat(cast(FileLine, None), [(0, 2), (6, 8)], text, policy, "X", "m")
        assert [span[:2] for span in spans] == pieces
    whole = Span(0, 5, "Y")
    assert mentions_to_tags([Span(1, 2, "X"), whole], [(0, 2), (3, 5)], "last") == (["B-Y", "I-Y"], [whole, whole])


def test_what_overlapping_mentions_leave_of_each_other() -> None:
    """The same place and label twice is one mention; one that another takes whole is gone; one taken in part is not."""
    text = "a b c d"

    def tagged(*spans: Span, decode: Mode) -> Document:
        return with_tags(Document("d", "d", text, "", spans=spans), "whitespace", "last", decode)

    assert tagged(Span(0, 3, "X"), Span(0, 3, "X"), decode="strict").unexpressed == ()
    assert tagged(Span(0, 3, "X"), Span(0, 3, "Y"), decode="strict").unexpressed == ("X",)
    # Y takes the beginning of X: the rest is an entity only where a stray I- begins one.
    assert tagged(Span(0, 5, "X"), Span(0, 3, "Y"), decode="lenient").unexpressed == ()
    assert tagged(Span(0, 5, "X"), Span(0, 3, "Y"), decode="strict").unexpressed == ("X",)


def test_mentions_that_vanish_in_words() -> None:
    counted = {"train": {"Val": 5, "Cos": 1}, "test": {"Val": 1}}
    assert unexpressed_in_words(counted) == (
        "7 mentions that units and tokens cannot express, in no score: train 6 (Val 5, Cos 1); test 1 (Val 1)"
    )
    assert unexpressed_in_words({}) == ""
