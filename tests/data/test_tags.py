"""Tag decoding, parity with seqeval, and mentions that tokens cannot hold: what becomes tags, and
what is counted.
"""

from typing import cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from seqeval.metrics.sequence_labeling import get_entities

from biobench.data.counts import unexpressed_in_words
from biobench.data.readers.base import FileLine
from biobench.data.readers.standoff import (
    Discontinuous,
    Mention,
    flat,
    mentions_to_tags,
    merge_fragments,
    with_tags,
)
from biobench.schema.document import Document, Span
from biobench.schema.tags import Mode, Tagging, decode_tags, spans_to_tags, tags_to_spans

TAGS = st.lists(st.sampled_from(["O", "B-X", "I-X", "B-Y", "I-Y", "B-a-b", "I-a-b"]), max_size=14)


@pytest.mark.parametrize(
    ("tags", "strict", "lenient"),
    [
        ("", [], []),
        ("O I-X I-X", [], [(1, 3, "X")]),  # the worked example of the contract
        ("B-X", [(0, 1, "X")], [(0, 1, "X")]),
        ("B-X I-X", [(0, 2, "X")], [(0, 2, "X")]),
        ("B-X B-X", [(0, 1, "X"), (1, 2, "X")], [(0, 1, "X"), (1, 2, "X")]),
        ("B-X I-Y I-X", [(0, 1, "X")], [(0, 1, "X"), (1, 2, "Y"), (2, 3, "X")]),
        ("B-X I-Y I-Y", [(0, 1, "X")], [(0, 1, "X"), (1, 3, "Y")]),
        ("B-X O I-X", [(0, 1, "X")], [(0, 1, "X"), (2, 3, "X")]),
        ("I-X B-X I-X", [(1, 3, "X")], [(0, 1, "X"), (1, 3, "X")]),
    ],
)
def test_hand_written_cases(tags, strict, lenient):
    assert decode_tags(tags.split(), "strict") == strict
    assert decode_tags(tags.split(), "lenient") == lenient


@pytest.mark.parametrize("tag", ["X", "B-", "B", "E-X", "o", "", "BX", "-X"])
def test_other_shapes_are_refused(tag):
    with pytest.raises(ValueError, match="is not O"):
        decode_tags(["O", tag], "lenient")


@given(TAGS)
@settings(max_examples=500)
def test_lenient_is_seqeval_default(tags):
    expected = [(begin, end + 1, label) for label, begin, end in get_entities(tags)]
    assert decode_tags(tags, "lenient") == expected


@given(TAGS)
def test_strict_is_a_subset_in_starts_and_modes_agree_on_valid_iob2(tags):
    strict = decode_tags(tags, "strict")
    assert {s[0] for s in strict} == {i for i, t in enumerate(tags) if t.startswith("B-")}
    valid = list(Tagging("IOB1").read(tags).tags)
    assert (
        decode_tags(valid, "strict")
        == decode_tags(valid, "lenient")
        == decode_tags(tags, "lenient")
    )


def test_iob1():
    read = Tagging("IOB1").read(["I-X", "I-X", "B-X", "O", "I-Y", "I-X"])
    assert read == (("B-X", "I-X", "B-X", "O", "B-Y", "B-X"), ())


@given(TAGS)
def test_what_strict_drops_is_what_lenient_has_beside_it(tags):
    strict, lenient = Tagging().read(tags), Tagging(decode="lenient").read(tags)
    dropped = len(decode_tags(tags, "lenient")) - len(decode_tags(tags, "strict"))
    assert (len(strict.dropped), lenient.dropped) == (dropped, ())
    assert strict.tags == lenient.tags == tuple(tags)


@pytest.mark.parametrize(
    ("tags", "strict", "dropped"),
    [
        ("B-X E-X I-X", [(0, 2, "X")], ["X"]),
        ("B-X E-X I-X E-X S-X", [(0, 2, "X"), (4, 5, "X")], ["X"]),
        ("S-X S-X I-X", [(0, 1, "X"), (1, 2, "X")], ["X"]),
        ("S-X E-Y O", [(0, 1, "X")], ["Y"]),
        ("B-X I-X B-X", [(0, 2, "X"), (2, 3, "X")], []),
    ],
)
def test_an_end_ends_a_mention_of_iobes_too_where_the_sequence_is_malformed(tags, strict, dropped):
    read = Tagging("IOBES").read(tags.split())
    assert decode_tags(read.tags, "strict") == strict
    assert list(read.dropped) == dropped


IOBES = st.lists(
    st.sampled_from(["O", *(f"{letter}-{name}" for letter in "BIES" for name in "XY")]), max_size=12
)


@given(IOBES)
@settings(max_examples=500)
def test_lenient_iobes_is_seqeval_default(tags):
    expected = [(begin, end + 1, label) for label, begin, end in get_entities(tags)]
    read = Tagging("IOBES", "lenient").read(tags)
    assert decode_tags(read.tags, "lenient") == expected
    strict = Tagging("IOBES").read(tags)
    kept = decode_tags(strict.tags, "strict")
    assert len(kept) + len(strict.dropped) == len(expected)


def test_bare_tags_and_other_spellings_are_read_where_the_reader_names_them():
    bare = Tagging(types={"": "Disease"})
    assert bare.read(["B", "I", "O"]).tags == ("B-Disease", "I-Disease", "O")
    spelled = Tagging(spelled={"0": "O", "b_gout": "B-gout"}, types={"gout": "Disease"})
    assert spelled.read(["b_gout", "0"]).tags == ("B-Disease", "O")
    with pytest.raises(ValueError, match="'B' is not O, B-<type> or I-<type>"):
        Tagging().parse("B")
    with pytest.raises(ValueError, match="'E' is not O, B, I, B-<type> or I-<type>"):
        bare.parse("E")


@given(TAGS)
def test_tags_to_spans_and_back(tags):
    tokens = [(3 * i, 3 * i + 2) for i in range(len(tags))]
    valid = list(Tagging("IOB1").read(tags).tags)
    spans = tags_to_spans(valid, tokens, "strict")
    assert spans_to_tags(spans, tokens) == valid


def test_misaligned_and_overlapping_spans_are_refused():
    tokens = [(0, 4), (5, 9)]
    with pytest.raises(ValueError, match="does not begin and end"):
        spans_to_tags([Span(1, 4, "X")], tokens)
    with pytest.raises(ValueError, match="does not begin and end"):
        spans_to_tags([Span(4, 5, "X")], tokens)
    with pytest.raises(ValueError, match="meets another"):
        spans_to_tags([Span(0, 4, "X"), Span(0, 9, "Y")], tokens)
    with pytest.raises(ValueError, match="do not fit"):
        tags_to_spans(["O"], tokens, "strict")


def test_fragments():
    text = "ab cd ef"
    assert merge_fragments([(3, 5), (0, 2)], text) == ((0, 5),)
    assert merge_fragments([(0, 2), (6, 8)], text) == ((0, 2), (6, 8))
    wanted: dict[Discontinuous, list[tuple[int, int]]] = {
        "hull": [(0, 8)],
        "drop": [],
        "each": [(0, 2), (6, 8)],
    }
    mention = Mention("T1", "x", ((0, 2), (6, 8)), cast(FileLine, None), "ab ef")
    for policy, pieces in wanted.items():
        spans = flat(mention, text, policy, "X")
        assert [span[:2] for span in spans] == pieces
    whole = Span(0, 5, "Y")
    assert mentions_to_tags([Span(1, 2, "X"), whole], [(0, 2), (3, 5)], "last") == (
        ["B-Y", "I-Y"],
        [whole, whole],
    )


def test_what_overlapping_mentions_leave_of_each_other():
    """The same place and label twice is one mention; one that another takes whole is gone; one
    taken in part is not.
    """
    text = "a b c d"

    def tagged(*spans: Span, decode: Mode) -> Document:
        return with_tags(Document("d", "d", text, "", spans=spans), "whitespace", "last", decode)

    assert tagged(Span(0, 3, "X"), Span(0, 3, "X"), decode="strict").unexpressed == ()
    assert tagged(Span(0, 3, "X"), Span(0, 3, "Y"), decode="strict").unexpressed == ("X",)
    # Y takes the beginning of X: the rest is an entity only where a stray I- begins one.
    assert tagged(Span(0, 5, "X"), Span(0, 3, "Y"), decode="lenient").unexpressed == ()
    assert tagged(Span(0, 5, "X"), Span(0, 3, "Y"), decode="strict").unexpressed == ("X",)


def test_mentions_that_vanish_in_words():
    counted = {"train": {"Val": 5, "Cos": 1}, "test": {"Val": 1}}
    assert unexpressed_in_words(counted) == (
        "7 mentions that units, tokens or decoding cannot express, in no score: "
        "train 6 (Val 5, Cos 1); test 1 (Val 1)"
    )
    assert unexpressed_in_words({}) == ""
