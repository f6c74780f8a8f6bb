"""Documents to token ids inside a window, with the corpus's own words kept in sight.

Text is tokenised whole, so that leading-space pieces (SentencePiece, byte-level BPE) come out as in
pretraining; a word's first sub-token is the first token whose characters overlap the word. Tokenizers that
give no character offsets are fed word by word instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from biobench.schema.document import Document

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Encoded:
    """One document as the encoder sees it.

    ids: (tokens,) with special tokens, cut to the window. first: (visible words,) position in `ids` of each
    visible word's first sub-token; words: (visible words,) that word's index in the document. truncated:
    True when the window cut the document.
    """

    ids: Ints
    first: Ints
    words: Ints
    truncated: bool

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
    documents: Sequence[Document], tokenizer: PreTrainedTokenizerBase, max_length: int, *, words: bool
) -> list[Encoded]:
    """Encode each document into a window of `max_length` tokens, special tokens included.

    words: keep the positions of the corpus's own tokens (token tasks).
    """
    before, after = special_tokens(tokenizer)
    room = max_length - len(before) - len(after)
    if tokenizer.is_fast:
        bodies = _fast_bodies(documents, tokenizer, words)
    else:
        bodies = [_slow_body(document, tokenizer, words) for document in documents]
    return [_fit(ids, starts, before, after, room) for ids, starts in bodies]


def _fit(ids: list[int], starts: Sequence[tuple[int, int]], before: list[int], after: list[int], room: int) -> Encoded:
    visible = [(word, at) for word, at in starts if at < room]
    return Encoded(
        ids=np.asarray(before + ids[:room] + after, dtype=np.int64),
        first=np.asarray([at + len(before) for _, at in visible], dtype=np.int64),
        words=np.asarray([word for word, _ in visible], dtype=np.int64),
        truncated=len(ids) > room,
    )


_CHUNK = 1000


def _fast_bodies(
    documents: Sequence[Document], tokenizer: Any, words: bool
) -> list[tuple[list[int], list[tuple[int, int]]]]:
    bodies: list[tuple[list[int], list[tuple[int, int]]]] = []
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


def _word_starts(words: Sequence[tuple[int, int]], offsets: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """(word index, token position) of each word's first overlapping token; both sequences run left to right.

    A word that no token overlaps (all its characters dropped by the tokenizer) has no entry.
    """
    found: list[tuple[int, int]] = []
    token = 0
    for word, (start, end) in enumerate(words):
        while token < len(offsets) and offsets[token][1] <= start:
            token += 1
        at = token
        while at < len(offsets) and offsets[at][0] < end:
            low, high = offsets[at]
            if low < high and high > start:
                found.append((word, at))
                break
            at += 1
    return found


def _slow_body(
    document: Document, tokenizer: PreTrainedTokenizerBase, words: bool
) -> tuple[list[int], list[tuple[int, int]]]:
    if not words:
        return list(tokenizer(document.text, add_special_tokens=False, verbose=False)["input_ids"]), []
    ids: list[int] = []
    starts: list[tuple[int, int]] = []
    for word, (start, end) in enumerate(document.tokens):
        glued = start > 0 and not document.text[start - 1].isspace()
        piece = document.text[start:end] if glued or start == 0 else " " + document.text[start:end]
        pieces = tokenizer(piece, add_special_tokens=False, verbose=False)["input_ids"]
        if pieces:
            starts.append((word, len(ids)))
            ids += pieces
    return ids, starts
