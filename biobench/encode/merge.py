"""What several windows say of one document, made one.

Where windows overlap, the one that shows most of both sides decides: for a word, or for a span as a
whole, the window in which its distance to the nearer cut is largest (ties: the left one). A
document's own beginning and end are no cuts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from biobench.encode.tokens import Encoded, Ints

PlacedSpans = NDArray[np.float64]
"""(spans, 4): first unit, last unit, type, score (0-1); units are counted in the document."""

_FAR = 1 << 40
"""Words to a side on which nothing is cut."""


def _margins(window: Encoded, first: Ints, last: Ints) -> Ints:
    """(spans,) words between a span [first, last] and the nearer cut; -1 where the window does not
    show it whole.
    """
    if len(window.words) == 0:
        return np.full(len(first), -1, dtype=np.int64)
    low, high = int(window.words[0]), int(window.words[-1])
    left = first - low if window.cut_left else np.full(len(first), _FAR)
    right = high - last if window.cut_right else np.full(len(first), _FAR)
    inside = (first >= low) & (last <= high)
    return np.where(inside, np.minimum(left, right), -1)


def deciding(windows: Sequence[Encoded], first: Ints, last: Ints) -> Ints:
    """(spans,) index of the window that decides on each span of words [first, last]; -1 where none
    shows it.
    """
    margins = np.stack([_margins(w, first, last) for w in windows])
    best = margins.argmax(axis=0)
    return np.where(margins.max(axis=0) >= 0, best, -1)


def merge_words(
    windows: Sequence[Encoded], rows: Sequence[NDArray[np.float32]]
) -> tuple[Encoded, NDArray[np.float32]]:
    """One window over all visible words, and each word's row from the window that decides on it.

    rows: per window, (visible words, outputs).
    """
    if len(windows) == 1:
        return windows[0], rows[0]
    words = np.unique(np.concatenate([w.words for w in windows]))
    chosen = deciding(windows, words, words)
    merged = np.zeros((len(words), rows[0].shape[1]), dtype=np.float32)
    for index, (window, values) in enumerate(zip(windows, rows, strict=True)):
        at = np.searchsorted(words, window.words)
        mine = chosen[at] == index
        merged[at[mine]] = values[mine]
    return Encoded(ids=np.zeros(0, np.int64), first=words, words=words, truncated=True), merged


def merge_spans(windows: Sequence[Encoded], window_spans: Sequence[PlacedSpans]) -> PlacedSpans:
    """The spans that their deciding windows found. Spans are in units of the document."""
    if len(windows) == 1:
        return window_spans[0]
    kept = []
    for index, spans in enumerate(window_spans):
        chosen = deciding(windows, spans[:, 0].astype(np.int64), spans[:, 1].astype(np.int64))
        kept.append(spans[chosen == index])
    return np.concatenate(kept)


def merge_labels(
    rows: Sequence[NDArray[np.float32]], how: Literal["max", "mean"]
) -> NDArray[np.float32]:
    """(labels,) scores of a document from those of its windows."""
    if len(rows) == 1:
        return rows[0]
    stacked = np.stack(rows)
    return np.asarray(
        stacked.max(axis=0) if how == "max" else stacked.mean(axis=0), dtype=np.float32
    )
