"""Two texts as one sequence, in the form that the tokenizer gives a pair."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from biobench.encode.tokens import Encoded
from biobench.errors import ModelError
from biobench.schema.document import Document

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

Ids = list[int]
Shorten = Literal["shorten_longer", "shorten_text"]
"""What is cut of a pair that is longer than the window."""


class PairForm(NamedTuple):
    """What a tokenizer puts before, between and after a pair of texts, and the token types of the
    five parts.

    types: of before, first text, between, second text, after; None where the tokenizer gives none.
    """

    before: Ids
    between: Ids
    after: Ids
    types: tuple[Ids, int, Ids, int, Ids] | None

    @property
    def added(self) -> int:
        """Tokens besides the texts."""
        return len(self.before) + len(self.between) + len(self.after)

    def ids(self, first: Ids, second: Ids) -> Ids:
        """The whole sequence."""
        return [*self.before, *first, *self.between, *second, *self.after]

    def types_of(self, first: Ids, second: Ids) -> Ids:
        """The token type of each id of the sequence; empty where there are none."""
        if self.types is None:
            return []
        before, one, between, two, after = self.types
        return [*before, *[one] * len(first), *between, *[two] * len(second), *after]


def pair_form(tokenizer: PreTrainedTokenizerBase) -> PairForm:
    """How the tokenizer makes a pair of two texts. Raises ModelError where it makes none."""
    first, second = (ids_of(tokenizer, text) for text in ("a", "b"))
    encoding = tokenizer("a", "b")
    whole = list(encoding["input_ids"])
    types = list(encoding["token_type_ids"]) if "token_type_ids" in encoding else None
    for begin in range(len(whole) - len(first) + 1):
        if whole[begin : begin + len(first)] == first:
            end = begin + len(first)
            for at in range(end, len(whole) - len(second) + 1):
                stop = at + len(second)
                if whole[at:stop] == second:
                    parts = (
                        None
                        if types is None
                        else (types[:begin], types[begin], types[end:at], types[at], types[stop:])
                    )
                    return PairForm(whole[:begin], whole[end:at], whole[stop:], parts)
    raise ModelError(
        "the tokenizer makes no pair of two texts",
        hint="the task gives it two texts, one before the other",
    )


def encode_pairs(
    documents: Sequence[Document],
    tokenizer: PreTrainedTokenizerBase,
    window: int,
    shorten: Shorten = "shorten_longer",
) -> list[Encoded]:
    """Each document's `query` and `text` as a pair of at most `window` tokens, special tokens
    included.

    The text's `pieces`, where there are any, stand apart as the two texts do. Where the pair is
    longer, shorten_longer cuts the longer of the two at its end, down to the other's length, then
    both alike; shorten_text cuts the text alone. Raises ModelError where the tokenizer makes no
    pair, or no room is left next to a query that stays whole.
    """
    form = pair_form(tokenizer)
    room = window - form.added
    encoded: list[Encoded] = []
    for document in documents:
        first, second = ids_of(tokenizer, document.query), _second(document, tokenizer, form)
        cut = len(first) + len(second) > room
        if shorten == "shorten_longer":
            first = first[: max(room - len(second), room - room // 2)]
        elif len(first) > room:
            tokens = len(first)
            raise ModelError(
                f"the first text of document {{}} has {tokens} tokens, the window leaves {room}",
                value=document.id,
                hint="it is not to be cut (protocol.pairs shorten_text): raise "
                "protocol.max_length, or leave that out",
            )
        second = second[: room - len(first)]
        ids, types = (
            np.asarray(make(first, second), dtype=np.int64) for make in (form.ids, form.types_of)
        )
        empty = np.zeros(0, dtype=np.int64)
        encoded.append(Encoded(ids, empty, empty, truncated=cut, types=types))
    return encoded


def _second(document: Document, tokenizer: PreTrainedTokenizerBase, form: PairForm) -> Ids:
    """The text's ids, its pieces parted by what parts the two texts."""
    if not document.pieces:
        return ids_of(tokenizer, document.text)
    ids: Ids = []
    for number, (start, end) in enumerate(document.pieces):
        ids += [*(form.between if number else []), *ids_of(tokenizer, document.text[start:end])]
    return ids


def ids_of(tokenizer: Any, text: str) -> Ids:
    """A text's token ids without special tokens."""
    return list(tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"])
