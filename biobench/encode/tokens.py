"""Documents to token ids inside a window, with the corpus's own words kept in sight.

Text is tokenised whole, so that leading-space pieces (SentencePiece, byte-level BPE) come out as in
pretraining; a word's first sub-token is the first token whose characters overlap the word.
Tokenizers that give no character offsets are fed word by word instead.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from biobench.core.arrays import Ints, ints, no_ints
from biobench.errors import ModelError
from biobench.schema.document import Document

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase as Tokenizer

Ids = list[int]
Offsets = Sequence[tuple[int, int]]
"""Characters [start, end) of each token, or of each word."""

_CHUNK = 1000
"""Texts that are tokenised at once."""


@dataclass(frozen=True, slots=True)
class Encoded:
    """One document as the encoder sees it.

    ids: (tokens,) with special tokens, cut to the window. first: (visible words,) position in `ids`
    of each visible word's first sub-token; words: (visible words,) that word's index in the
    document. truncated: True when the window cut the document. stop: (visible words,) position
    after each word's last sub-token inside the window. cut_left, cut_right: the document goes on
    beyond the window on that side. types: (tokens,) token types of a pair of texts, empty where the
    tokenizer gives none.
    """

    ids: Ints
    first: Ints = field(default_factory=no_ints)
    words: Ints = field(default_factory=no_ints)
    truncated: bool = False
    stop: Ints = field(default_factory=no_ints)
    cut_left: bool = False
    cut_right: bool = False
    types: Ints = field(default_factory=no_ints)

    def __len__(self) -> int:
        return len(self.ids)


class Body(NamedTuple):
    """A whole document: its token ids, and (words, 3) each word with its tokens [start, stop)."""

    ids: Ids
    words: Ints


class Frame(NamedTuple):
    """What a tokenizer puts before and after a text, and the tokens of a window that this leaves to
    the text.
    """

    prefix: Ids
    suffix: Ids
    room: int

    def window(self, body: Body, begin: int) -> Encoded:
        """The part of a document that begins with this token."""
        end = min(begin + self.room, len(body.ids))
        starts = body.words[:, 1]
        words, firsts, stops = body.words[(begin <= starts) & (starts < end)].T
        shift = len(self.prefix) - begin
        return Encoded(
            ids=ints(self.prefix + body.ids[begin:end] + self.suffix),
            first=firsts + shift,
            words=words,
            truncated=len(body.ids) > self.room,
            stop=np.minimum(stops, end) + shift,
            cut_left=begin > 0,
            cut_right=end < len(body.ids),
        )


def _frame(tokenizer: Tokenizer, max_length: int) -> Frame:
    prefix, suffix = special_tokens(tokenizer)
    return Frame(prefix, suffix, max_length - len(prefix) - len(suffix))


def ids_of(tokenizer: Any, text: str) -> Ids:
    """A text's token ids without special tokens."""
    return list(tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"])


def tokenised(
    texts: Sequence[str], tokenizer: Any, *, offsets: bool
) -> Iterator[tuple[Ids, Offsets]]:
    """Each text's ids without special tokens, and their characters.

    offsets: whether characters are asked for, which a fast tokenizer alone can tell; else there are
    none.
    """
    for begin in range(0, len(texts), _CHUNK):
        encoding = tokenizer(
            list(texts[begin : begin + _CHUNK]),
            add_special_tokens=False,
            return_offsets_mapping=offsets,
            return_attention_mask=False,
            return_token_type_ids=False,
            verbose=False,
        )
        rows = encoding["input_ids"]
        yield from zip(rows, encoding.get("offset_mapping", [()] * len(rows)), strict=True)


def find_ids(ids: Ids, wanted: Ids, start: int) -> slice | None:
    """Where `wanted` first stands in the ids from `start` on; None where it does not."""
    for begin in range(start, len(ids) - len(wanted) + 1):
        if ids[begin : begin + len(wanted)] == wanted:
            return slice(begin, begin + len(wanted))
    return None


def special_tokens(tokenizer: Tokenizer) -> tuple[Ids, Ids]:
    """Ids that the tokenizer puts before and after a single text."""
    full = list(tokenizer("a")["input_ids"])
    text = find_ids(full, ids_of(tokenizer, "a"), 0)
    if text is None:
        return full, []
    return full[: text.start], full[text.stop :]


def encode_documents(
    documents: Sequence[Document], tokenizer: Tokenizer, max_length: int, *, words: bool
) -> list[Encoded]:
    """Encode each document into a window of `max_length` tokens, special tokens included.

    words: keep the positions of the corpus's own tokens (token tasks).
    """
    frame = _frame(tokenizer, max_length)
    return [frame.window(body, 0) for body in _bodies(documents, tokenizer, words)]


def encode_windows(
    documents: Sequence[Document],
    tokenizer: Tokenizer,
    max_length: int,
    overlap: int,
    *,
    words: bool,
) -> tuple[list[Encoded], list[int]]:
    """Encode each document into windows of at most `max_length` tokens that share `overlap` tokens.

    Result: all windows, document after document and from left to right, and each window's document
    index. The last window ends with the document. Raises ModelError where the overlap leaves no way
    forward.
    """
    frame = _frame(tokenizer, max_length)
    room = frame.room
    if overlap >= room:
        raise ModelError(
            f"protocol.stride {overlap} leaves nothing of a window of {room} tokens",
            hint="lower --set protocol.stride, or raise protocol.max_length",
        )
    windows: list[Encoded] = []
    owner: list[int] = []
    for index, body in enumerate(_bodies(documents, tokenizer, words)):
        for begin in range(0, max(1, len(body.ids) - overlap), room - overlap):
            windows.append(frame.window(body, begin))
            owner.append(index)
    return windows, owner


def _bodies(documents: Sequence[Document], tokenizer: Tokenizer, words: bool) -> Iterator[Body]:
    """Each document, with its words where they are asked for."""
    filler = _filler(tokenizer)
    if tokenizer.is_fast or not words:
        texts = [document.text for document in documents]
        rows = tokenised(texts, tokenizer, offsets=words)
        for document, (ids, offsets) in zip(documents, rows, strict=True):
            yield _body(list(ids) or filler, _placed_words(document.tokens, offsets))
    else:
        for document in documents:
            ids, placed = _word_by_word(document, tokenizer)
            yield _body(ids or filler, placed)


def _body(ids: Ids, placed: list[tuple[int, int, int]]) -> Body:
    return Body(ids, ints(placed).reshape(-1, 3))


def _filler(tokenizer: Tokenizer) -> Ids:
    """What stands for a text of which the tokenizer keeps nothing: where nothing frames it either,
    one token, for without any it would have no state at all.
    """
    if any(special_tokens(tokenizer)):
        return []
    for token in (tokenizer.unk_token_id, tokenizer.pad_token_id):
        if token is not None:
            return [int(token)]
    return [0]


def _placed_words(words: Offsets, offsets: Offsets) -> list[tuple[int, int, int]]:
    """Each word with its tokens [start, stop), from left to right.

    A word that no token overlaps (all its characters dropped by the tokenizer) has no entry.
    """
    placed: list[tuple[int, int, int]] = []
    token = 0
    for word, (start, end) in enumerate(words):
        while token < len(offsets) and offsets[token][1] <= start:
            token += 1
        overlapping: list[int] = []
        for at in range(token, len(offsets)):
            low, high = offsets[at]
            if low >= end:
                break
            if low < high and high > start:
                overlapping.append(at)
        if overlapping:
            placed.append((word, overlapping[0], overlapping[-1] + 1))
    return placed


def _word_by_word(
    document: Document, tokenizer: Tokenizer
) -> tuple[Ids, list[tuple[int, int, int]]]:
    """Ids of a document, and its words with their tokens, of a tokenizer without offsets."""
    ids: Ids = []
    placed: list[tuple[int, int, int]] = []
    for word, (start, end) in enumerate(document.tokens):
        piece = document.text[start:end]
        if document.text[max(0, start - 1) : start].isspace():
            piece = " " + piece
        pieces = ids_of(tokenizer, piece)
        if pieces:
            placed.append((word, len(ids), len(ids) + len(pieces)))
            ids += pieces
    return ids, placed
