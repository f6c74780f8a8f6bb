"""Spans that may nest, between characters and units.

A unit is a word (a run of letters, a run of digits, or one other sign that is not white space), or a
sub-token where the head pools nothing. A gold span whose ends are not unit ends is trained on as the units
that it touches; it cannot be predicted, and the oracle says so.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from biobench.encode.tokens import Encoded, Ints
from biobench.errors import ModelError
from biobench.schema.document import Document, Prediction, Span

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

Found = NDArray[np.float64]
"""(spans, 4): first unit, last unit, type, score (0-1); units are counted in the document."""

_WORD = re.compile(r"[^\W\d_]+|\d+|[^\w\s]|_")


def word_units(text: str) -> tuple[tuple[int, int], ...]:
    """Character ranges of the words of `text`."""
    return tuple(m.span() for m in _WORD.finditer(text))


def with_words(documents: Sequence[Document]) -> list[Document]:
    """The documents with words as their tokens."""
    return [replace(d, tokens=word_units(d.text), tags=()) for d in documents]


def with_subtokens(documents: Sequence[Document], tokenizer: PreTrainedTokenizerBase) -> list[Document]:
    """The documents with the tokenizer's own pieces as tokens, white space stripped.

    Pieces of the same characters (bytes of one sign) are one unit. Raises ModelError for a tokenizer without
    character offsets.
    """
    if not tokenizer.is_fast:
        raise ModelError("this tokenizer gives no character offsets", hint="use --set head.pooling=first")
    encoding: Any = tokenizer(
        [d.text for d in documents], add_special_tokens=False, return_offsets_mapping=True, verbose=False
    )
    return [
        replace(d, tokens=_stripped(d.text, offsets), tags=())
        for d, offsets in zip(documents, encoding["offset_mapping"], strict=True)
    ]


def _stripped(text: str, offsets: Iterable[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    units: list[tuple[int, int]] = []
    for start, end in offsets:
        piece = text[start:end]
        bare = piece.strip()
        if not bare:
            continue
        start += len(piece) - len(piece.lstrip())
        # Two pieces of one multi-byte sign may also overlap in part; units must run left to right.
        if not units or start >= units[-1][1]:
            units.append((start, start + len(bare)))
    return tuple(units)


def touched(document: Document) -> Ints:
    """(spans, 3): first unit, last unit of every gold span, and the span's place in `document.spans`.

    A span that touches no unit (white space alone) has no row.
    """
    starts = [s for s, _ in document.tokens]
    ends = [e for _, e in document.tokens]
    rows = []
    for at, span in enumerate(document.spans):
        first = int(np.searchsorted(ends, span.start, side="right"))
        last = int(np.searchsorted(starts, span.end, side="left")) - 1
        if first <= last:
            rows.append((first, last, at))
    return np.asarray(rows, dtype=np.int64).reshape(-1, 3)


def visible(encoded: Encoded, spans: Ints) -> Ints:
    """The rows of `spans` (first, last, ...) whose units the window shows all, in places of the window's units."""
    if len(encoded.words) == 0 or len(spans) == 0:
        return spans[:0]
    first = np.searchsorted(encoded.words, spans[:, 0])
    last = np.searchsorted(encoded.words, spans[:, 1])
    size = len(encoded.words)
    shown = (first < size) & (last < size)
    shown[shown] &= (encoded.words[first[shown]] == spans[shown, 0]) & (encoded.words[last[shown]] == spans[shown, 1])
    kept = spans[shown].copy()
    kept[:, 0], kept[:, 1] = first[shown], last[shown]
    return kept


def span_targets(document: Document, encoded: Encoded, index: dict[str, int]) -> Ints:
    """(visible spans, 3): first unit, last unit (places in the window), type; each once, in order."""
    rows = touched(document)
    rows[:, 2] = [index[document.spans[at].label] for at in rows[:, 2]]
    return np.unique(visible(encoded, rows), axis=0)


def outermost(spans: Ints) -> Ints:
    """The spans (first, last, type) that a tagger per type can carry: none inside or across another of its type.

    Longer spans go first; of crossing ones the earlier of equal length stays.
    """
    kept: list[tuple[int, int, int]] = []
    for first, last, kind in sorted(map(tuple, spans.tolist()), key=lambda s: (s[0] - s[1], s[0], s[2])):
        if all(k != kind or last < a or first > b for a, b, k in kept):
            kept.append((first, last, kind))
    return np.asarray(sorted(kept), dtype=np.int64).reshape(-1, 3)


def same_type_filter(found: Found) -> Found:
    """Of overlapping spans of one type the most confident stays (ties: the earlier, then the longer)."""
    order = sorted(range(len(found)), key=lambda i: (-found[i, 3], found[i, 0], -found[i, 1]))
    kept: list[int] = []
    for i in order:
        a, b, kind = found[i, 0], found[i, 1], found[i, 2]
        if all(found[j, 2] != kind or b < found[j, 0] or a > found[j, 1] for j in kept):
            kept.append(i)
    return found[sorted(kept)]


def predict_spans(document: Document, found: Found, outputs: Sequence[str], *, filtered: bool) -> Prediction:
    """Prediction from spans over the document's units."""
    if filtered:
        found = same_type_filter(found)
    scores: dict[Span, float] = {}
    for first, last, kind, score in found.tolist():
        span = Span(document.tokens[int(first)][0], document.tokens[int(last)][1], outputs[int(kind)])
        scores[span] = max(scores.get(span, 0.0), score)
    spans = sorted(scores)
    return Prediction(document=document.id, spans=tuple(spans), span_scores=tuple(round(scores[s], 6) for s in spans))


def gold_found(document: Document, encoded: Encoded, index: dict[str, int], longest: int, *, tagger: bool) -> Found:
    """What a perfect head says of this window: visible gold spans, in units of the document.

    longest: units of the longest span that the scorer sees; a tagger carries longer ones if they are outermost.
    """
    rows = span_targets(document, encoded, index)
    carried = set(map(tuple, outermost(rows).tolist())) if tagger else set()
    kept = [row[1] - row[0] < longest or tuple(row) in carried for row in rows.tolist()]
    rows = rows[np.asarray(kept, dtype=bool)]
    units = encoded.words
    found = np.ones((len(rows), 4), dtype=np.float64)
    found[:, 0], found[:, 1], found[:, 2] = units[rows[:, 0]], units[rows[:, 1]], rows[:, 2]
    return found
