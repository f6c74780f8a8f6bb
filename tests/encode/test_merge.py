"""Which of several windows decides, against the rule said word by word."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from biobench.encode.merge import merge_labels, merge_spans, merge_words
from biobench.encode.tokens import Encoded


def _window(words: list[int], last: int) -> Encoded:
    """The window that shows these words of a document of words 0 to `last`."""
    none = np.zeros(0, dtype=np.int64)
    shown = np.asarray(words, dtype=np.int64)
    cut_left, cut_right = bool(words) and words[0] > 0, bool(words) and words[-1] < last
    return Encoded(none, shown, shown, truncated=True, cut_left=cut_left, cut_right=cut_right)


def _decider(windows: list[list[int]], last: int, first: int, end: int) -> int:
    """In words: of the windows that show the span whole, the one with most on its poorer side; the
    left of equals.
    """
    best, chosen = -1.0, -1
    for index, words in enumerate(windows):
        if not words or first < words[0] or end > words[-1]:
            continue
        left = math.inf if words[0] == 0 else first - words[0]
        right = math.inf if words[-1] == last else words[-1] - end
        if min(left, right) > best:
            best, chosen = min(left, right), index
    return chosen


@st.composite
def documents(draw: st.DrawFn) -> tuple[int, list[list[int]]]:
    """(last word, words of each window): overlapping windows up to the end of the document, and
    maybe an empty one.
    """
    count, size = draw(st.integers(1, 20)), draw(st.integers(2, 9))
    step = draw(st.integers(1, size))
    windows = [list(range(min(size, count)))]
    while windows[-1][-1] < count - 1:
        begin = windows[-1][0] + step
        windows.append(list(range(begin, min(begin + size, count))))
    if draw(st.booleans()):
        windows.insert(draw(st.integers(0, len(windows))), [])
    return count - 1, windows


@given(document=documents())
def test_each_word_and_each_span_comes_from_its_window(
    document: tuple[int, list[list[int]]],
) -> None:
    last, windows = document
    encoded = [_window(words, last) for words in windows]
    # What a window says of a word or a span: which window it is.
    rows = [np.full((len(words), 1), i, dtype=np.float32) for i, words in enumerate(windows)]
    merged, values = merge_words(encoded, rows)
    assert merged.words.tolist() == list(range(last + 1))
    assert values[:, 0].tolist() == [_decider(windows, last, w, w) for w in range(last + 1)]
    spans: list[Any] = []
    wanted: list[tuple[float, ...]] = []
    for i, words in enumerate(windows):
        shown = [(a, b, 0.0, float(i)) for a in words for b in words if a <= b]
        spans.append(np.asarray(shown, dtype=np.float64).reshape(-1, 4))
        alone = len(windows) == 1
        wanted += [s for s in shown if alone or _decider(windows, last, s[0], s[1]) == i]
    assert [tuple(row) for row in merge_spans(encoded, spans).tolist()] == wanted


@pytest.mark.parametrize(("how", "wanted"), [("max", [0.5, 0.75]), ("mean", [0.375, 0.5])])
def test_label_scores_of_windows(how: Any, wanted: list[float]) -> None:
    rows = [np.asarray([0.25, 0.75], dtype=np.float32), np.asarray([0.5, 0.25], dtype=np.float32)]
    assert merge_labels(rows, how).tolist() == wanted
    assert merge_labels(rows[:1], how).tolist() == [0.25, 0.75]
