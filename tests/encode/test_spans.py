"""Spans that may nest: from characters to units and back, through windows that overlap."""

from __future__ import annotations

import time
from functools import cache
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from biobench.encode.merge import merge_spans
from biobench.encode.tokens import Encoded, encode_documents, encode_windows
from biobench.errors import ModelError
from biobench.kinds import span_ner
from biobench.schema.document import Document, Span
from tests.helpers.checkpoints import TOKENIZERS, fast_tokenizer
from tests.helpers.processor import budget

KINDS = sorted(TOKENIZERS)
LABELS = {"X": 0, "Y": 1}
_tokenizer = cache(fast_tokenizer)


def _units(text: str) -> tuple[tuple[int, int], ...]:
    return span_ner.with_words([_document(text, [])])[0].tokens


def _document(text: str, spans: list[Span]) -> Document:
    return Document("d", "d", text, "test", spans=tuple(sorted(set(spans))))


def _encoded(text: str, *spans: Span) -> tuple[Document, Encoded]:
    """A document with words as units, and the window that shows all of it."""
    (worded,) = span_ner.with_words([_document(text, [*spans])])
    (encoded,) = encode_documents([worded], _tokenizer(KINDS[0]), 64, words=True)
    return worded, encoded


def test_words_are_runs_of_letters_runs_of_digits_and_single_signs() -> None:
    text = "L'IL-2 à 0,5 µg/ml (n=3)"
    assert " ".join(text[s:e] for s, e in _units(text)) == "L ' IL - 2 à 0 , 5 µg / ml ( n = 3 )"


def test_a_span_inside_a_word_is_widened_and_is_lost_to_the_oracle() -> None:
    units, encoded = _encoded("un antibiotique oral", Span(7, 15, "X"), Span(3, 20, "Y"))
    assert span_ner.span_targets(units, encoded, LABELS).tolist() == [[1, 1, 0], [1, 2, 1]]
    found = span_ner.gold_answers(units, encoded, LABELS, 40, tagger=True)
    said = span_ner.predict_spans(units, found, ("X", "Y"))
    assert said.spans == (Span(3, 15, "X"), Span(3, 20, "Y"))


def test_a_span_of_white_space_touches_nothing() -> None:
    (units,) = span_ner.with_words([_document("a  b", [Span(1, 3, "X"), Span(0, 1, "X")])])
    assert span_ner.touched(units).tolist() == [[0, 0, 1 - units.spans.index(Span(1, 3, "X"))]]


def test_two_types_on_one_span_stay_two() -> None:
    spans = (Span(0, 4, "X"), Span(0, 4, "Y"), Span(0, 10, "X"))
    units, encoded = _encoded("toux sèche", *spans)
    found = span_ner.gold_answers(units, encoded, LABELS, 40, tagger=True)
    filtered = span_ner.same_type_filter(found)
    for answers, wanted in ((found, spans), (filtered, spans[1:])):
        said = span_ner.predict_spans(units, answers, ("X", "Y"))
        assert set(said.spans) == set(wanted)


def test_only_a_tagger_carries_spans_beyond_the_band_and_only_outermost_ones() -> None:
    window = _encoded("a b c d e f", Span(0, 11, "X"), Span(0, 9, "X"), Span(0, 1, "X"))
    for tagger, wanted in ((True, [[0, 0], [0, 5]]), (False, [[0, 0]])):
        found = span_ner.gold_answers(*window, LABELS, 3, tagger=tagger)
        assert found[:, :2].tolist() == wanted


_rows = st.lists(st.tuples(st.integers(0, 12), st.integers(0, 5), st.integers(0, 1)), max_size=12)


@given(_rows)
def test_outermost_spans_fit_one_row_of_tags_each_type(rows: list[tuple[int, int, int]]) -> None:
    spans = np.array(sorted({(a, a + n, k) for a, n, k in rows}), dtype=np.int64).reshape(-1, 3)
    kept = [tuple(r) for r in span_ner.outermost(spans).tolist()]
    for a, b, k in kept:
        assert all((c, d) == (a, b) or d < a or c > b for c, d, kind in kept if kind == k)
    for a, b, k in (tuple(r) for r in spans.tolist()):
        # What is left out overlaps something kept that is at least as long.
        assert any(kind == k and c <= b and a <= d and d - c >= b - a for c, d, kind in kept)


_found = st.lists(
    st.tuples(
        st.integers(0, 12), st.integers(0, 5), st.integers(0, 1), st.sampled_from([0.6, 0.7, 0.8])
    ),
    max_size=12,
)


@given(_found)
def test_the_filter_is_greedy_by_confidence(rows: list[tuple[int, int, int, float]]) -> None:
    spans = np.array([(a, a + n, k, score) for a, n, k, score in rows]).reshape(-1, 4)
    kept: list[int] = []
    for at in sorted(range(len(rows)), key=lambda i: (-spans[i, 3], spans[i, 0], -spans[i, 1])):
        a, b, kind, _ = spans[at]
        if all(spans[j, 2] != kind or b < spans[j, 0] or a > spans[j, 1] for j in kept):
            kept.append(at)
    assert span_ner.same_type_filter(spans).tolist() == spans[sorted(kept)].tolist()


def test_twenty_thousand_spans_of_a_document_are_filtered_within_a_second() -> None:
    """Comparing each with all takes most of a minute."""
    begins = np.random.default_rng(0).permutation(20_000) * 3
    spans = np.stack([begins, begins + 1, np.zeros_like(begins), np.ones_like(begins)], axis=1)
    began = time.process_time()
    assert len(span_ner.same_type_filter(spans.astype(np.float64))) == 20_000
    assert len(span_ner.outermost(spans[:, :3])) == 20_000
    assert time.process_time() - began < budget(1.0)


@pytest.mark.parametrize("kind", KINDS)
def test_subtoken_units_are_pieces_without_white_space(kind: str) -> None:
    text = "L'hémoglobine  de\tβ-bloquants ½ ."
    (units,) = span_ner.with_subtokens([_document(text, [])], _tokenizer(kind))
    assert units.tokens
    assert all(text[s:e] == text[s:e].strip() != "" for s, e in units.tokens)
    assert all(a[1] <= b[0] for a, b in pairwise(units.tokens))
    (encoded,) = encode_documents([units], _tokenizer(kind), 128, words=True)
    assert list(encoded.words) == list(range(len(units.tokens)))


@settings(max_examples=20)
@given(
    kind=st.sampled_from(KINDS),
    count=st.integers(1, 120),
    length=st.integers(24, 60),
    data=st.data(),
)
def test_windows_show_every_token_and_no_offset_moves(
    kind: str, count: int, length: int, data: st.DataObject
) -> None:
    """Spans of one to four words at every word, so that some straddle every boundary, all come back
    exactly.
    """
    names = [
        "patient",
        "œdème",
        "IL-2",
        "l'hémoglobine",
        "5",
        "mg/kg",
        "(matin)",
        "d’insuline",
        ".",
    ]
    text = " ".join(names[i % len(names)] for i in range(count))
    units = _units(text)
    size = data.draw(st.integers(1, 4))
    ends = [(i, n, min(i + n, len(units)) - 1) for i in range(len(units)) for n in (size, 1)]
    document = _document(
        text, [Span(units[i][0], units[end][1], "XY"[(i + n) % 2]) for i, n, end in ends]
    )
    (worded,) = span_ner.with_words([document])
    tokenizer = _tokenizer(kind)
    (whole,) = encode_documents([worded], tokenizer, 100_000, words=True)
    # The overlap must hold the longest span: then some window shows it whole.
    longest = max(
        int(whole.stop[min(i + size, len(units)) - 1] - whole.first[i]) for i in range(len(units))
    )
    room = length - 2
    overlap = data.draw(st.integers(min(longest, room - 1), room - 1))
    windows, _ = encode_windows([worded], tokenizer, length, overlap, words=True)
    shown = np.unique(np.concatenate([window.words for window in windows]))
    assert shown.tolist() == list(range(len(units)))
    if longest <= overlap:
        found = [span_ner.gold_answers(worded, w, LABELS, 40, tagger=False) for w in windows]
        merged = merge_spans(windows, found)
        assert len(merged) == len(np.unique(merged, axis=0)), "a span is decided by one window"
        said = span_ner.predict_spans(worded, merged, ("X", "Y"))
        assert set(said.spans) == set(document.spans)


def test_an_overlap_as_wide_as_the_window_is_refused() -> None:
    with pytest.raises(ModelError, match=r"stride 20 leaves nothing of a window of 20 tokens"):
        encode_windows([_document("a b", [])], _tokenizer(KINDS[0]), 22, 20, words=False)
