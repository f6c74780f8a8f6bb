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

from biobench.core.arrays import Floats, Ints, ints, no_ints
from biobench.encode.tokens import Encoded

PlacedSpans = NDArray[np.float64]
"""(spans, 4): first unit, last unit, type, score (0-1); units are counted in the document."""

_FAR = 1 << 40
"""Words to a side on which nothing is cut."""


def _margins(window: Encoded, begins: Ints, ends: Ints) -> Ints:
    """(spans,) words between a span [begin, end] and the nearer cut; -1 where the window does not
    show it whole.
    """
    if len(window.words) == 0:
        return np.full(len(begins), -1)
    margins = np.full(len(begins), _FAR)
    left = begins - window.words[0]
    right = window.words[-1] - ends
    if window.cut_left:
        margins = np.minimum(margins, left)
    if window.cut_right:
        margins = np.minimum(margins, right)
    is_whole = (left >= 0) & (right >= 0)
    return np.where(is_whole, margins, -1)


def deciding(windows: Sequence[Encoded], begins: Ints, ends: Ints) -> Ints:
    """(spans,) index of the window that decides on each span of words [begin, end]; -1 where none
    shows it.
    """
    margins = np.stack([_margins(window, begins, ends) for window in windows])
    best = margins.argmax(axis=0)
    is_shown = margins.max(axis=0) >= 0
    return np.where(is_shown, best, -1)


def merge_words(windows: Sequence[Encoded], rows: Sequence[Floats]) -> tuple[Encoded, Floats]:
    """One window over all visible words, and each word's row from the window that decides on it.

    rows: per window, (visible words, outputs).
    """
    if len(windows) == 1:
        return windows[0], rows[0]
    words = np.unique(np.concatenate([window.words for window in windows]))
    chosen = deciding(windows, words, words)
    outputs = rows[0].shape[1]
    merged = np.zeros((len(words), outputs), dtype=np.float32)
    for index, (window, values) in enumerate(zip(windows, rows, strict=True)):
        positions = np.searchsorted(words, window.words)
        decided = chosen[positions] == index
        merged[positions[decided]] = values[decided]
    return Encoded(no_ints(), first=words, words=words, truncated=True), merged


def merge_spans(windows: Sequence[Encoded], window_spans: Sequence[PlacedSpans]) -> PlacedSpans:
    """The spans that their deciding windows found. Spans are in units of the document."""
    if len(windows) == 1:
        return window_spans[0]
    decided = []
    for index, spans in enumerate(window_spans):
        begins, ends = ints(spans[:, :2].T)
        chosen = deciding(windows, begins, ends)
        decided.append(spans[chosen == index])
    return np.concatenate(decided)


def merge_labels(rows: Sequence[Floats], rule: Literal["max", "mean"]) -> Floats:
    """(labels,) scores of a document from those of its windows."""
    windows = np.stack(rows)
    if rule == "max":
        return np.asarray(windows.max(axis=0))
    return np.asarray(windows.mean(axis=0))
