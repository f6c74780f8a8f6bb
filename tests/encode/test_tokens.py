"""Words are found again whatever the tokenizer does to them; which labels a window hides."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers.processors import TemplateProcessing
from transformers import CanineTokenizer

from biobench.encode.evidence import shown_labels
from biobench.encode.tokens import _placed_words, encode_documents, encode_windows, special_tokens
from biobench.schema.document import Document, Span
from tests.helpers.checkpoints import TOKENIZERS, fast_tokenizer

KINDS = sorted(TOKENIZERS)
_tokenizer = cache(fast_tokenizer)
_word = st.text(alphabet="abcdefgzéèœßµβ0123456789-/.,()%'’ﬁ½", min_size=1, max_size=12).filter(
    lambda w: not w.isspace()
)


def _document(words: list[str], spans: list[tuple[int, int]] = []) -> Document:  # noqa: B006
    tokens, at = [], 0
    for word in words:
        tokens.append((at, at + len(word)))
        at += len(word) + 1
    found = tuple(Span(tokens[i][0], tokens[j - 1][1], "X") for i, j in spans)
    text = " ".join(words)
    tags = ["O"] * len(words)
    for i, j in spans:
        tags[i:j] = ["B-X"] + ["I-X"] * (j - i - 1)
    return Document("d", "d", text, "test", spans=found, tokens=tuple(tokens), tags=tuple(tags))


@settings(max_examples=60)
@given(words=st.lists(_word, min_size=1, max_size=15), kind=st.sampled_from(KINDS))
def test_first_subword_overlaps_its_word(words: list[str], kind: str) -> None:
    document = _document(words)
    tokenizer = _tokenizer(kind)
    (encoded,) = encode_documents([document], tokenizer, 512, words=True)
    offsets = tokenizer(document.text, return_offsets_mapping=True)["offset_mapping"]
    assert list(encoded.words) == sorted(set(encoded.words))
    for word, position in zip(encoded.words, encoded.first, strict=True):
        start, end = document.tokens[word]
        low, high = offsets[position]
        assert low < end
        assert high > start
        earlier = [o for o in offsets[:position] if o[0] < o[1] and o[1] > start]
        assert not earlier, "an earlier token overlaps the word"


@settings(max_examples=60)
@given(count=st.integers(1, 40), window=st.integers(5, 20), data=st.data())
def test_windows_are_full_share_the_overlap_and_end_with_the_document(
    count: int, window: int, data: Any
) -> None:
    """Against the definition: each window but the last is full, and none begins after the text has
    been shown.
    """
    tokenizer, room = _tokenizer("wordpiece"), window - 2
    overlap = data.draw(st.integers(1, room - 1))
    document = _document(["fever", "cough", "paracetamol"] * count)
    (whole,) = encode_documents([document], tokenizer, 10_000, words=True)
    ids = whole.ids[1:-1].tolist()
    windows, owner = encode_windows([document, document], tokenizer, window, overlap, words=True)
    begins = [0]
    while begins[-1] + room < len(ids):
        begins.append(begins[-1] + room - overlap)
    assert owner == [0] * len(begins) + [1] * len(begins)
    for w, begin in zip(windows, begins * 2, strict=True):
        end = min(begin + room, len(ids))
        assert w.ids.tolist() == [0, *ids[begin:end], 2]
        cuts = (begin > 0, end < len(ids), len(begins) > 1)
        assert (w.cut_left, w.cut_right, w.truncated) == cuts
        # A word belongs to the windows that hold its first token (1 + its place: one token stands
        # before the text).
        held = np.flatnonzero((begin < whole.first) & (whole.first <= end))
        assert w.words.tolist() == held.tolist()
        assert (w.first + begin).tolist() == whole.first[held].tolist()
        assert (w.stop + begin).tolist() == np.minimum(whole.stop[held], end + 1).tolist()


def test_tokens_of_a_word_are_found_at_its_very_edges() -> None:
    """Words that touch, blanks and an empty token between them; by hand."""
    words = [(0, 2), (2, 5), (6, 7), (7, 9)]
    offsets = [(0, 1), (1, 2), (2, 2), (2, 4), (4, 6), (7, 9)]
    # The third word has no token; the fifth token holds the second word's end and the blank after
    # it.
    assert _placed_words(words, offsets) == [(0, 0, 2), (1, 3, 5), (3, 5, 6)]


def test_a_tokenizer_without_offsets_goes_word_by_word() -> None:
    tokenizer = CanineTokenizer()
    assert not tokenizer.is_fast
    document = _document(["ab", "c", "def"])
    (encoded,) = encode_documents([document], tokenizer, 64, words=True)
    before, _ = special_tokens(tokenizer)
    # One id a character, and one for each blank that a word brings along.
    assert list(encoded.words) == [0, 1, 2]
    assert list(encoded.first) == [len(before), len(before) + 2, len(before) + 4]
    (whole,) = encode_documents([document], tokenizer, 64, words=False)
    assert list(whole.ids) == list(encoded.ids)


@pytest.mark.parametrize("framed", [True, False])
def test_a_text_of_which_nothing_is_kept_still_has_a_state(framed: bool) -> None:
    tokenizer = fast_tokenizer("wordpiece")
    if not framed:
        tokenizer.backend_tokenizer.post_processor = TemplateProcessing(
            single="$A", pair="$A $B", special_tokens=[]
        )
    documents = [Document("d", "d", "\u200b", "test"), _document(["patient"])]
    for encode in (
        encode_documents,
        lambda *given, words: encode_windows(*given, 4, words=words)[0],
    ):
        nothing, something = encode(documents, tokenizer, 16, words=False)  # type: ignore[operator]
        assert list(nothing.ids) == ([0, 2] if framed else [tokenizer.unk_token_id])
        assert len(something) > 2 * framed


TEXT = (
    "le patient prend de l'ibuprofène ; tumeur du foie, œdème et naïveté 9.1 g/dL (ﬁbrose) depuis "
    "hier " * 3
)


@settings(max_examples=80)
@given(
    ends=st.lists(st.integers(1, len(TEXT)), min_size=1, max_size=8),
    window=st.integers(4, 120),
    kind=st.sampled_from(KINDS),
)
def test_a_label_is_shown_when_its_mention_ends_inside_the_window(
    ends: list[int], window: int, kind: str
) -> None:
    tokenizer = _tokenizer(kind)
    evidence = tuple((f"L{i}", end) for i, end in enumerate(ends))
    document = Document(
        "d", "d", TEXT, "test", labels=tuple(label for label, _ in evidence), evidence=evidence
    )
    (shown,) = shown_labels([document], tokenizer, window)
    offsets = tokenizer(TEXT, add_special_tokens=False, return_offsets_mapping=True)[
        "offset_mapping"
    ]
    before, after = special_tokens(tokenizer)
    reached = max(b for _, b in offsets[: window - len(before) - len(after)])
    for label, end in evidence:
        # A character that no token holds (a blank, most often) is read with the token before or
        # after it.
        if any(a < end <= b for a, b in offsets):
            assert (label in shown) == (end <= reached)


def test_a_label_without_a_mention_leaves_it_unknown() -> None:
    told = Document("a", "a", TEXT, "test", labels=("X",), evidence=(("X", 10), ("Y", 20)))
    silent = Document("b", "b", TEXT, "test", labels=("X", "Z"), evidence=(("X", 10),))
    assert shown_labels([told, silent], _tokenizer("wordpiece"), 512) == [("X",), None]
    assert shown_labels([told], CanineTokenizer(), 64) == [None], "a tokenizer without offsets"
