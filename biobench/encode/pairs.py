"""Two texts as one sequence, in the form that the tokenizer gives a pair."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple

from biobench.core.arrays import ints
from biobench.encode.tokens import Encoded, Ids, find_ids, ids_of
from biobench.errors import ModelError
from biobench.schema.document import Document

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

Shorten = Literal["shorten_longer", "shorten_text"]
"""What is cut of a pair that is longer than the window."""


class PairForm(NamedTuple):
    """What a tokenizer puts before, between and after a pair of texts.

    types: token type of each part: prefix, first text, between, second text, suffix; None where the
    tokenizer gives none.
    """

    prefix: Ids
    between: Ids
    suffix: Ids
    types: tuple[Ids, int, Ids, int, Ids] | None

    @property
    def added(self) -> int:
        """Tokens besides the texts."""
        return len(self.prefix) + len(self.between) + len(self.suffix)

    def encoded(self, query: Ids, text: Ids, *, truncated: bool) -> Encoded:
        """The whole sequence, in which no words are looked for."""
        ids = self.prefix + query + self.between + text + self.suffix
        types: Ids = []
        if self.types is not None:
            prefix, query_type, between, text_type, suffix = self.types
            of_query = [query_type] * len(query)
            of_text = [text_type] * len(text)
            types = prefix + of_query + between + of_text + suffix
        return Encoded(ints(ids), truncated=truncated, types=ints(types))


def pair_form(tokenizer: PreTrainedTokenizerBase) -> PairForm:
    """How the tokenizer makes a pair of two texts. Raises ModelError where it makes none."""
    encoding = tokenizer("a", "b")
    ids = list(encoding["input_ids"])
    query = find_ids(ids, ids_of(tokenizer, "a"), 0)
    text = None
    if query is not None:
        text = find_ids(ids, ids_of(tokenizer, "b"), query.stop)
    if query is None or text is None:
        raise ModelError(
            "the tokenizer makes no pair of two texts",
            hint="the task gives it two texts, one before the other",
        )

    types = None
    if "token_type_ids" in encoding:
        of_tokens = list(encoding["token_type_ids"])
        prefix, between, suffix = _around(of_tokens, query, text)
        types = (prefix, of_tokens[query.start], between, of_tokens[text.start], suffix)
    return PairForm(*_around(ids, query, text), types)


def _around(sequence: Ids, query: slice, text: slice) -> tuple[Ids, Ids, Ids]:
    """What stands before, between and after the two texts."""
    return sequence[: query.start], sequence[query.stop : text.start], sequence[text.stop :]


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
        query = ids_of(tokenizer, document.query)
        text = _text_ids(document, tokenizer, form)
        cut = len(query) + len(text) > room
        if shorten == "shorten_longer":
            query = query[: max(room - len(text), room - room // 2)]
        elif len(query) > room:
            raise ModelError(
                f"the first text of document {{}} has {len(query)} tokens, the window leaves "
                f"{room}",
                value=document.id,
                hint="it is not to be cut (protocol.pairs shorten_text): raise "
                "protocol.max_length, or leave that out",
            )
        text = text[: room - len(query)]
        encoded.append(form.encoded(query, text, truncated=cut))
    return encoded


def _text_ids(document: Document, tokenizer: PreTrainedTokenizerBase, form: PairForm) -> Ids:
    """The text's ids, its pieces parted by what parts the two texts."""
    if not document.pieces:
        return ids_of(tokenizer, document.text)
    ids: Ids = []
    for number, (start, end) in enumerate(document.pieces):
        if number:
            ids += form.between
        ids += ids_of(tokenizer, document.text[start:end])
    return ids
