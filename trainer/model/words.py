"""Which tokens belong to one word, read from a tokenizer's vocabulary alone.

WordPiece marks what continues a word (``##``), byte-level BPE (``Ġ``) and SentencePiece (``▁``) what starts one. In
the latter two a token also starts a word where letters meet anything else, since punctuation carries no mark there.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from transformers import PreTrainedTokenizerBase

_CONTINUES = "##"
_STARTS = ("Ġ", "▁")
_BYTES = {"Ċ": "\n", "ĉ": "\t", "č": "\r"}


def word_marks(tokenizer: PreTrainedTokenizerBase, rows: int) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """(glued, closing), each (rows,): tokens that continue the word before them unless that one is closed, and
    tokens after which a word is closed whatever follows."""
    glued, closing = np.zeros(rows, dtype=bool), np.zeros(rows, dtype=bool)
    vocabulary = {token: number for token, number in tokenizer.get_vocab().items() if number < rows}
    pieces = sum(token.startswith(_CONTINUES) and len(token) > 2 for token in vocabulary)
    marked = sum(token.startswith(_STARTS) and len(token) > 1 for token in vocabulary)
    wordpiece, bytewise = pieces > marked, any(token.startswith("Ġ") for token in vocabulary)
    for token, number in vocabulary.items():
        if wordpiece:
            glued[number] = token.startswith(_CONTINUES) and len(token) > 2
            continue
        first, last = _BYTES.get(token[:1], token[:1]), _BYTES.get(token[-1:], token[-1:])
        glued[number] = not token.startswith(_STARTS) and _is_letter(first, bytewise)
        closing[number] = not _is_letter(last, bytewise) and not token.endswith(_STARTS)
    return glued, closing


def _is_letter(character: str, bytewise: bool) -> bool:
    """Whether a character stands inside a word; bytes of longer characters count as such."""
    return character.isalnum() or (bytewise and 0x80 <= ord(character or " ") < 0x200)


def word_numbers(windows: NDArray[np.int64], glued: NDArray[np.bool_], closing: NDArray[np.bool_]) -> NDArray[np.int64]:
    """(batch, tokens) the number of the word that each token of a window belongs to, from 0; a window cuts words."""
    starts = ~glued[windows]
    starts[:, 1:] |= closing[windows[:, :-1]]
    starts[:, 0] = True
    numbers: NDArray[np.int64] = np.cumsum(starts, axis=1) - 1
    return numbers
