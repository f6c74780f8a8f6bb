"""Needle examples in a model's own tokens: exact length, the needle whole and in its place, nothing
cut.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tokenizers import processors

from biobench.encode.pairs import encode_pairs, pair_form
from biobench.encode.tokens import find_ids
from biobench.errors import ModelError
from biobench.kinds.needle import encode_needles
from biobench.schema.document import Document
from biobench.schema.needle import NeedlePlan
from tests.helpers.checkpoints import fast_tokenizer

NEEDLE = "Blood pressure was taken at 120/75 mmHg."
WORDS = [f"The patient number {i} was seen again." for i in range(120)]


def example(name: str, length: int, place: float, fit: str = "tokens") -> Document:
    plan = NeedlePlan(
        length, place, NEEDLE, tuple(WORDS[:60]), tuple(WORDS[60:]), ("h",), (), "1-x", fit
    )
    text = f"{WORDS[0]} {NEEDLE} {WORDS[1]}"
    return Document(
        id=name, group=name, text=text, split="test", labels=("present",), query=NEEDLE, plan=plan
    )


def tokenizer(kind: str) -> Any:
    own = fast_tokenizer(kind)
    own.model_input_names = ["input_ids", "attention_mask"]
    if kind == "byte_level":
        own.backend_tokenizer.post_processor = processors.TemplateProcessing(
            single="<s> $A </s>",
            pair="<s> $A </s> </s> $B </s>",
            special_tokens=[("<s>", 0), ("</s>", 2)],
        )
    return own


def plain(own: Any, text: str) -> list[int]:
    """Ids without special tokens."""
    return list(own(text, add_special_tokens=False)["input_ids"])


@pytest.mark.parametrize("kind", ["wordpiece", "byte_level"])
def test_examples_are_exactly_as_long_as_planned_with_the_needle_whole_and_in_place(
    kind: str,
) -> None:
    own = tokenizer(kind)
    before, between, after, _ = pair_form(own)
    assert len(between) == (1 if kind == "wordpiece" else 2)
    query = plain(own, NEEDLE)
    # A tokenizer that keeps the blank before a word apart leaves it to the haystack.
    facts = (query, query if kind == "wordpiece" else plain(own, " " + NEEDLE))
    documents = [example(str(p), 200, p) for p in (0.0, 0.05, 0.5, 0.93, 1.0)]
    kept, encoded = encode_needles(documents, own, 200)
    assert kept == documents
    head = before + query + between
    for document, window in zip(kept, encoded, strict=True):
        ids = window.ids.tolist()
        assert (len(ids), window.truncated) == (200, False)
        body = ids[len(head) : len(ids) - len(after)]
        assert ids == head + body + after
        places = [(round(document.plan.place * (len(body) - len(fact))), fact) for fact in facts]
        assert any(body[at : at + len(fact)] == fact for at, fact in places)
        # One piece of the whole text: what stands right before the needle, and what stands right
        # after it.
        whole = plain(own, " ".join([*document.plan.before, NEEDLE, *document.plan.after]))
        assert find_ids(whole, body, 0) is not None


def test_what_the_window_does_not_hold_is_left_out_and_never_cut() -> None:
    own = tokenizer("wordpiece")
    documents = [example("a", 128, 0.5), example("b", 256, 0.5), example("c", 128, 0.1)]
    kept, encoded = encode_needles(documents, own, 128)
    assert [d.id for d in kept] == ["a", "c"]
    assert [len(e) for e in encoded] == [128, 128]
    words = [example("w", 20, 0.5, fit="words")]
    whole = own(NEEDLE, words[0].text)["input_ids"]
    assert encode_needles(words, own, len(whole))[1][0].ids.tolist() == whole
    assert encode_needles(words, own, len(whole) - 1) == ([], [])


def test_too_little_text_is_said_and_not_filled_up() -> None:
    own = tokenizer("wordpiece")
    short = example("s", 120, 0.5)
    bare = replace(short, text="", plan=short.plan._replace(before=("One.",)))
    with pytest.raises(ModelError, match="cannot be fitted to 120 tokens"):
        encode_needles([bare], own, 128)


def test_token_types_are_those_that_the_tokenizer_gives_a_pair() -> None:
    own = tokenizer("wordpiece")
    untyped = encode_needles([example("a", 128, 0.5)], own, 128)[1][0]
    assert untyped.types.tolist() == [], "this tokenizer gives none"
    own.model_input_names = ["input_ids", "token_type_ids", "attention_mask"]
    own.backend_tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>",
        pair="<s> $A </s> $B:1 </s>:1",
        special_tokens=[("<s>", 0), ("</s>", 2)],
    )
    (document,), (one,) = encode_needles([example("a", 128, 0.5)], own, 128)
    query = plain(own, document.query)
    assert one.types.tolist() == [0] * (len(query) + 2) + [1] * (128 - len(query) - 2)
    words = example("w", 20, 0.5, fit="words")
    whole = own(NEEDLE, words.text)
    (fitted,) = encode_needles([words], own, 128)[1]
    assert (fitted.ids.tolist(), fitted.types.tolist()) == (
        whole["input_ids"],
        whole["token_type_ids"],
    )


@pytest.mark.parametrize("kind", ["wordpiece", "byte_level"])
@pytest.mark.parametrize(("first", "second"), [(40, 4), (4, 40), (40, 39), (0, 4)])
def test_a_pair_is_what_the_tokenizer_makes_of_it(kind: str, first: int, second: int) -> None:
    own = tokenizer(kind)
    document = Document("d", "d", "was seen " * second, "train", query="the patient " * first)
    whole = own(document.query, document.text)
    query, text = plain(own, document.query), plain(own, document.text)
    before, between, after, _ = pair_form(own)
    size = len(whole["input_ids"])
    for window in (16, 17, 64, 5000, size, size - 1):
        (made,) = encode_pairs([document], own, window)
        sizes = [len(query), len(text)]
        while sum(sizes) > window - len(before + between + after):
            # the longer one, and the second of two that are equal
            sizes[int(sizes[1] >= sizes[0])] -= 1
        wanted = before + query[: sizes[0]] + between + text[: sizes[1]] + after
        assert (made.ids.tolist(), made.truncated) == (wanted, size > window)
        if not made.truncated:
            assert wanted == whole["input_ids"]
            assert not len(made.types) or made.types.tolist() == whole["token_type_ids"]
