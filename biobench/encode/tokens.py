"""Documents to token ids inside a window, with the corpus's own words kept in sight.

Text is tokenised whole, so that leading-space pieces (SentencePiece, byte-level BPE) come out as in
pretraining; a word's first sub-token is the first token whose characters overlap the word.
Tokenizers that give no character offsets are fed word by word instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from biobench.errors import ModelError
from biobench.schema.document import Document

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

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


def special_tokens(tokenizer: PreTrainedTokenizerBase) -> tuple[list[int], list[int]]:
    """Ids that the tokenizer puts before and after a single text."""
    bare = list(tokenizer("a", add_special_tokens=False)["input_ids"])
    full = list(tokenizer("a")["input_ids"])
    for start in range(len(full) - len(bare) + 1):
        if full[start : start + len(bare)] == bare:
            return full[:start], full[start + len(bare) :]
    return full, []


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
    before, after = special_tokens(tokenizer)
    room = max_length - len(before) - len(after)
    return [
        _fit(ids, words_, before, after, 0, room)
        for ids, words_ in _bodies(documents, tokenizer, words)
    ]


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
    before, after = special_tokens(tokenizer)
    room = max_length - len(before) - len(after)
    if overlap >= room:
        raise ModelError(
            f"protocol.stride {overlap} leaves nothing of a window of {room} tokens",
            hint="lower --set protocol.stride, or raise protocol.max_length",
        )
    windows: list[Encoded] = []
    owner: list[int] = []
    for index, (ids, words_) in enumerate(_bodies(documents, tokenizer, words)):
        for begin in range(0, max(1, len(ids) - overlap), room - overlap):
            windows.append(_fit(ids, words_, before, after, begin, room))
            owner.append(index)
    return windows, owner


Body = tuple[list[int], Sequence[tuple[int, int, int]]]
"""Token ids of a whole document, and (word index, first token, token after the last) of its words.
"""


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
    return [(ids or [filler], starts) for ids, starts in bodies]


def _fit(
    ids: list[int],
    words: Sequence[tuple[int, int, int]],
    before: list[int],
    after: list[int],
    begin: int,
    room: int,
) -> Encoded:
    end = min(begin + room, len(ids))
    visible = [(word, at, stop) for word, at, stop in words if begin <= at < end]
    shift = len(before) - begin
    return Encoded(
        ids=np.asarray(before + ids[begin:end] + after, dtype=np.int64),
        first=np.asarray([at + shift for _, at, _ in visible], dtype=np.int64),
        words=np.asarray([word for word, _, _ in visible], dtype=np.int64),
        truncated=len(ids) > room,
        stop=np.asarray([min(stop, end) + shift for _, _, stop in visible], dtype=np.int64),
        cut_left=begin > 0,
        cut_right=end < len(ids),
    )


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
            starts = _word_starts(document.tokens, encoding["offset_mapping"][i]) if words else []
            bodies.append((list(encoding["input_ids"][i]), starts))
    return bodies


def _word_starts(
    words: Sequence[tuple[int, int]], offsets: Sequence[tuple[int, int]]
) -> list[tuple[int, int, int]]:
    """(word index, first overlapping token, token after the last one) of each word, from left to
    right.

    A word that no token overlaps (all its characters dropped by the tokenizer) has no entry.
    """
    runs: list[tuple[int, int, int]] = []
    token = 0
    for word, (start, end) in enumerate(words):
        while token < len(offsets) and offsets[token][1] <= start:
            token += 1
        at, first, last = token, -1, -1
        while at < len(offsets) and offsets[at][0] < end:
            low, high = offsets[at]
            if low < high and high > start:
                first, last = (at if first < 0 else first), at
            at += 1
        if first >= 0:
            runs.append((word, first, last + 1))
    return runs


def _slow_body(document: Document, tokenizer: PreTrainedTokenizerBase, words: bool) -> Body:
    if not words:
        return list(
            tokenizer(document.text, add_special_tokens=False, verbose=False)["input_ids"]
        ), []
    ids: list[int] = []
    starts: list[tuple[int, int, int]] = []
    for word, (start, end) in enumerate(document.tokens):
        glued = start > 0 and not document.text[start - 1].isspace()
        piece = document.text[start:end] if glued or start == 0 else " " + document.text[start:end]
        pieces = tokenizer(piece, add_special_tokens=False, verbose=False)["input_ids"]
        if pieces:
            starts.append((word, len(ids), len(ids) + len(pieces)))
            ids += pieces
    return ids, starts
