"""Tag decoding: the declared modes, the worked example of the metric contract, parity with seqeval."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from seqeval.metrics.sequence_labeling import get_entities

from biobench.schema.document import Span
from biobench.schema.tags import decode_tags, iob1_to_iob2, spans_to_tags, tags_to_spans

TAGS = st.lists(st.sampled_from(["O", "B-X", "I-X", "B-Y", "I-Y", "B-a-b", "I-a-b"]), max_size=14)


def test_the_worked_example_of_the_contract() -> None:
    assert decode_tags(["O", "I-X", "I-X"], "strict") == []
    assert decode_tags(["O", "I-X", "I-X"], "lenient") == [(1, 3, "X")]


@pytest.mark.parametrize(
    ("tags", "strict", "lenient"),
    [
        ("", [], []),
        ("B-X", [(0, 1, "X")], [(0, 1, "X")]),
        ("B-X I-X", [(0, 2, "X")], [(0, 2, "X")]),
        ("B-X B-X", [(0, 1, "X"), (1, 2, "X")], [(0, 1, "X"), (1, 2, "X")]),
        ("B-X I-Y I-X", [(0, 1, "X")], [(0, 1, "X"), (1, 2, "Y"), (2, 3, "X")]),
        ("B-X I-Y I-Y", [(0, 1, "X")], [(0, 1, "X"), (1, 3, "Y")]),
        ("B-X O I-X", [(0, 1, "X")], [(0, 1, "X"), (2, 3, "X")]),
        ("I-X B-X I-X", [(1, 3, "X")], [(0, 1, "X"), (1, 3, "X")]),
    ],
)
def test_hand_written_cases(tags: str, strict: list[object], lenient: list[object]) -> None:
    assert decode_tags(tags.split(), "strict") == strict
    assert decode_tags(tags.split(), "lenient") == lenient


@pytest.mark.parametrize("tag", ["X", "B-", "B", "E-X", "o", "", "BX", "-X"])
def test_other_shapes_are_refused(tag: str) -> None:
    with pytest.raises(ValueError, match="is not O"):
        decode_tags(["O", tag], "lenient")


@given(TAGS)
@settings(max_examples=500)
def test_lenient_is_seqeval_default(tags: list[str]) -> None:
    expected = [(begin, end + 1, label) for label, begin, end in get_entities(tags)]
    assert decode_tags(tags, "lenient") == expected


@given(TAGS)
def test_strict_is_a_subset_in_starts_and_modes_agree_on_valid_iob2(tags: list[str]) -> None:
    strict = decode_tags(tags, "strict")
    assert {s[0] for s in strict} == {i for i, t in enumerate(tags) if t.startswith("B-")}
    valid = iob1_to_iob2(tags)
    assert decode_tags(valid, "strict") == decode_tags(valid, "lenient") == decode_tags(tags, "lenient")


def test_iob1() -> None:
    assert iob1_to_iob2(["I-X", "I-X", "B-X", "O", "I-Y", "I-X"]) == ["B-X", "I-X", "B-X", "O", "B-Y", "B-X"]


@given(TAGS)
def test_tags_to_spans_and_back(tags: list[str]) -> None:
    tokens = [(3 * i, 3 * i + 2) for i in range(len(tags))]
    valid = iob1_to_iob2(tags)
    spans = tags_to_spans(valid, tokens, "strict")
    assert spans_to_tags(spans, tokens) == valid


def test_misaligned_and_overlapping_spans_are_refused() -> None:
    tokens = [(0, 4), (5, 9)]
    with pytest.raises(ValueError, match="does not begin and end"):
        spans_to_tags([Span(1, 4, "X")], tokens)
    with pytest.raises(ValueError, match="does not begin and end"):
        spans_to_tags([Span(4, 5, "X")], tokens)
    with pytest.raises(ValueError, match="meets another"):
        spans_to_tags([Span(0, 4, "X"), Span(0, 9, "Y")], tokens)
    with pytest.raises(ValueError, match="do not fit"):
        tags_to_spans(["O"], tokens, "strict")
