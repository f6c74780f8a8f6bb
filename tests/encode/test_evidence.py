"""Which labels a window hides, told from where they are mentioned."""

from __future__ import annotations

from functools import cache

from hypothesis import given, settings
from hypothesis import strategies as st

from biobench.encode.evidence import shown_labels
from biobench.encode.tokens import special_tokens
from biobench.schema.document import Document
from tests.helpers.checkpoints import TOKENIZERS, fast_tokenizer

_tokenizer = cache(fast_tokenizer)
TEXT = "le patient prend de l'ibuprofène ; tumeur du foie, œdème et naïveté 9.1 g/dL (ﬁbrose) depuis hier " * 3


@settings(max_examples=80, deadline=None)
@given(
    ends=st.lists(st.integers(1, len(TEXT)), min_size=1, max_size=8),
    window=st.integers(4, 120),
    kind=st.sampled_from(sorted(TOKENIZERS)),
)
def test_a_label_is_shown_when_its_mention_ends_inside_the_window(ends: list[int], window: int, kind: str) -> None:
    tokenizer = _tokenizer(kind)
    evidence = tuple((f"L{i}", end) for i, end in enumerate(ends))
    document = Document("d", "d", TEXT, "test", labels=tuple(label for label, _ in evidence), evidence=evidence)
    (shown,) = shown_labels([document], tokenizer, window)
    assert shown is not None
    offsets = tokenizer(TEXT, add_special_tokens=False, return_offsets_mapping=True)["offset_mapping"]
    before, after = special_tokens(tokenizer)
    reached = max(b for _, b in offsets[: window - len(before) - len(after)])
    for label, end in evidence:
        # A character that no token holds (a blank, most often) is read with the token before or after it.
        if any(a < end <= b for a, b in offsets):
            assert (label in shown) == (end <= reached)


def test_a_label_without_a_mention_leaves_it_unknown() -> None:
    told = Document("a", "a", TEXT, "test", labels=("X",), evidence=(("X", 10), ("Y", 20)))
    silent = Document("b", "b", TEXT, "test", labels=("X", "Z"), evidence=(("X", 10),))
    assert shown_labels([told, silent], _tokenizer("wordpiece"), 512) == [("X",), None]


def test_a_tokenizer_without_offsets_leaves_it_unknown() -> None:
    from transformers import CanineTokenizer

    told = Document("a", "a", "abc", "test", labels=("X",), evidence=(("X", 2),))
    assert shown_labels([told], CanineTokenizer(), 64) == [None]
