"""Documents to token ids inside a window, with the corpus's own words kept in sight.

Text is tokenised whole, so that leading-space pieces (SentencePiece, byte-level BPE) come out as in
pretraining; a word's first sub-token is the first token whose characters overlap the word.
Tokenizers that give no character offsets are fed word by word instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from biobench.errors import ModelError
from biobench.schema.document import Document

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

Ids = list[int]
Ints = NDArray[np.int64]


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
    first: Ints
    words: Ints
    truncated: bool
    stop: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    cut_left: bool = False
    cut_right: bool = False
    types: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))

    def __len__(self) -> int:
        return len(self.ids)


class PlacedWord(NamedTuple):
    """A word of a document and its tokens [start, stop)."""

    word: int
    start: int
    stop: int


class Body(NamedTuple):
    """Token ids of a whole document, and its words from left to right."""

    ids: Ids
    words: Sequence[PlacedWord]


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
        visible = [word for word in body.words if begin <= word.start < end]
        shift = len(self.prefix) - begin
        return Encoded(
            ids=np.asarray(self.prefix + body.ids[begin:end] + self.suffix, dtype=np.int64),
            first=np.asarray([word.start + shift for word in visible], dtype=np.int64),
            words=np.asarray([word.word for word in visible], dtype=np.int64),
            truncated=len(body.ids) > self.room,
            stop=np.asarray([min(word.stop, end) + shift for word in visible], dtype=np.int64),
            cut_left=begin > 0,
            cut_right=end < len(body.ids),
        )


def _frame(tokenizer: PreTrainedTokenizerBase, max_length: int) -> Frame:
    prefix, suffix = special_tokens(tokenizer)
    return Frame(prefix, suffix, max_length - len(prefix) - len(suffix))


def ids_of(tokenizer: Any, text: str) -> Ids:
    """A text's token ids without special tokens."""
    return list(tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"])


def find_ids(ids: Ids, wanted: Ids, start: int) -> slice | None:
    """Where `wanted` first stands in the ids from `start` on; None where it does not."""
    for begin in range(start, len(ids) - len(wanted) + 1):
        if ids[begin : begin + len(wanted)] == wanted:
            return slice(begin, begin + len(wanted))
    return None


def special_tokens(tokenizer: PreTrainedTokenizerBase) -> tuple[Ids, Ids]:
    """Ids that the tokenizer puts before and after a single text."""
    full = list(tokenizer("a")["input_ids"])
    text = find_ids(full, ids_of(tokenizer, "a"), 0)
    return (full, []) if text is None else (full[: text.start], full[text.stop :])


def encode_documents(
    documents: Sequence[Document],
    tokenizer: PreTrainedTokenizerBase,
    max_length: int,
    *,
    words: bool,
) -> list[Encoded]:
    """Encode each document into a window of `max_length` tokens, special tokens included.

    words: keep the positions of the corpus's own tokens (token tasks).
    """
    frame = _frame(tokenizer, max_length)
    return [frame.window(body, 0) for body in _bodies(documents, tokenizer, words)]


def encode_windows(
    documents: Sequence[Document],
    tokenizer: PreTrainedTokenizerBase,
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


def _bodies(
    documents: Sequence[Document], tokenizer: PreTrainedTokenizerBase, words: bool
) -> list[Body]:
    if tokenizer.is_fast:
        bodies = _fast_bodies(documents, tokenizer, words)
    else:
        bodies = [_slow_body(document, tokenizer, words) for document in documents]
    if any(special_tokens(tokenizer)):
        return bodies
    # Where nothing frames a text, one of which the tokenizer keeps nothing would have no state at
    # all.
    filler = next((i for i in (tokenizer.unk_token_id, tokenizer.pad_token_id) if i is not None), 0)
    return [body if body.ids else body._replace(ids=[filler]) for body in bodies]


_CHUNK = 1000


def _fast_bodies(documents: Sequence[Document], tokenizer: Any, words: bool) -> list[Body]:
    bodies: list[Body] = []
    for begin in range(0, len(documents), _CHUNK):
        chunk = documents[begin : begin + _CHUNK]
        encoding = tokenizer(
            [d.text for d in chunk],
            add_special_tokens=False,
            return_offsets_mapping=words,
            return_attention_mask=False,
            return_token_type_ids=False,
            verbose=False,
        )
        for i, document in enumerate(chunk):
            placed = []
            if words:
                placed = _placed_words(document.tokens, encoding["offset_mapping"][i])
            bodies.append(Body(list(encoding["input_ids"][i]), placed))
    return bodies


def _placed_words(
    words: Sequence[tuple[int, int]], offsets: Sequence[tuple[int, int]]
) -> list[PlacedWord]:
    """Each word with its first and last overlapping token, from left to right.

    A word that no token overlaps (all its characters dropped by the tokenizer) has no entry.
    """
    placed: list[PlacedWord] = []
    token = 0
    for word, (start, end) in enumerate(words):
        while token < len(offsets) and offsets[token][1] <= start:
            token += 1
        at = token
        overlapping = []
        while at < len(offsets) and offsets[at][0] < end:
            low, high = offsets[at]
            if low < high and high > start:
                overlapping.append(at)
            at += 1
        if overlapping:
            placed.append(PlacedWord(word, overlapping[0], overlapping[-1] + 1))
    return placed


def _slow_body(document: Document, tokenizer: PreTrainedTokenizerBase, words: bool) -> Body:
    if not words:
        return Body(ids_of(tokenizer, document.text), [])
    ids: Ids = []
    placed: list[PlacedWord] = []
    for word, (start, end) in enumerate(document.tokens):
        piece = document.text[start:end]
        if start > 0 and document.text[start - 1].isspace():
            piece = " " + piece
        pieces = ids_of(tokenizer, piece)
        if pieces:
            placed.append(PlacedWord(word, len(ids), len(ids) + len(pieces)))
            ids += pieces
    return Body(ids, placed)
