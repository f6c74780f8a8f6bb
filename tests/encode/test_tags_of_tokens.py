"""From tag probabilities to spans: the order of the outputs, decoding modes, scores, words that no
window shows.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from biobench.encode.tokens import Encoded
from biobench.kinds import get_kind
from biobench.kinds.token_ner import tag_set
from biobench.schema.document import Document, Span

KIND: Any = get_kind("token_ner")
TAGS = ["O", "B-X", "I-X", "B-Y", "I-Y"]
WORDS = ((0, 2), (3, 5), (6, 8), (9, 11), (12, 14), (15, 17))


def _window(*words: int) -> Encoded:
    shown = np.asarray(words, dtype=np.int64)
    return Encoded(ids=np.zeros(0, np.int64), first=shown, words=shown, truncated=True)


def _document(tags: str) -> Document:
    return Document("d", "g", "aa bb cc dd ee ff", "test", tokens=WORDS, tags=tuple(tags.split()))


def test_the_outputs_are_o_then_begin_and_inside_of_each_label_in_turn() -> None:
    assert tag_set(["X", "Y"]) == TAGS
    document = _document("O B-Y I-Y O B-X I-X")
    task = SimpleNamespace(index={tag: i for i, tag in enumerate(TAGS)})
    assert KIND.target(task, document, _window(1, 2, 4, 5)).tolist() == [3, 4, 1, 2]


@pytest.mark.parametrize(
    ("decode", "spans", "scores"),
    [
        ("strict", [Span(6, 11, "Y")], [(0.8 + 0.5) / 2]),
        (
            "lenient",
            [Span(0, 5, "X"), Span(6, 11, "Y"), Span(15, 17, "X")],
            [(0.9 + 0.4) / 2, (0.8 + 0.5) / 2, 0.7],
        ),
    ],
)
def test_a_span_s_score_is_the_mean_chance_of_its_words_tags(
    decode: Any, spans: Any, scores: list[float]
) -> None:
    """Word 4 is in no window: it is O, and what follows it does not go on with what came before."""
    best = {0: ("I-X", 0.9), 1: ("I-X", 0.4), 2: ("B-Y", 0.8), 3: ("I-Y", 0.5), 5: ("I-X", 0.7)}
    rows = np.zeros((5, 5), dtype=np.float32)
    for row, (tag, chance) in enumerate(best.values()):
        rows[row] = (1 - chance) / 4
        rows[row, TAGS.index(tag)] = chance
    task = SimpleNamespace(outputs=TAGS, decode=decode)
    said = KIND.predict(task, _document("O " * 6), [_window(*best)], [rows], 0.5)
    assert list(said.spans) == spans
    assert said.span_scores == pytest.approx(scores, abs=1e-6)
    assert said.tags == ("I-X", "I-X", "B-Y", "I-Y", "O", "I-X")


def test_the_oracle_reads_gold_tags_as_the_task_does() -> None:
    document = _document("I-X I-X O B-Y I-Y I-Y")
    strict, lenient = (SimpleNamespace(decode=mode) for mode in ("strict", "lenient"))
    shown = [_window(0, 1, 3), _window(1, 3, 4)]
    assert KIND.oracle(strict, document, shown).spans == (Span(9, 14, "Y"),)
    assert KIND.oracle(lenient, document, shown).spans == (Span(0, 5, "X"), Span(9, 14, "Y"))
    assert KIND.oracle(lenient, document, shown).tags == ("I-X", "I-X", "O", "B-Y", "I-Y", "O")
    assert KIND.oracle(lenient, document, [_window()]).spans == ()
