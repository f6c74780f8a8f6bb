"""Small documents and predictions for the score tests, and random ones for the property tests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st

from biobench.schema.document import Document, Prediction, Span
from biobench.score import Scores, compute

LABELS = ("A", "B", "C", "D")


def scores(
    kind: str,
    labels: Sequence[str],
    gold_labels: Sequence[str],
    both: tuple[list[Any], list[Any]],
    **more: Any,
) -> Scores:
    """Of documents and predictions."""
    return compute(
        type=kind, labels=labels, gold_labels=gold_labels, gold=both[0], predictions=both[1], **more
    )


def classified(
    gold: list[str | list[str]], said: list[str | list[str]]
) -> tuple[list[Document], list[Prediction]]:
    """Documents d0, d1, ... with these labels; a string is one label a character."""
    documents = [
        Document(id=f"d{i}", group=f"g{i}", text="", split="test", labels=tuple(x))
        for i, x in enumerate(gold)
    ]
    return documents, [Prediction(document=f"d{i}", labels=tuple(x)) for i, x in enumerate(said)]


def one_document(
    gold: list[tuple[int, int, str]], said: list[tuple[int, int, str]]
) -> tuple[list[Document], list[Prediction]]:
    """A document with these gold spans and these predicted ones."""
    document = Document(
        id="d", group="g", text="x" * 100, split="test", spans=tuple(Span(*s) for s in gold)
    )
    return [document], [Prediction(document="d", spans=tuple(Span(*s) for s in said))]


def pairs_of_labels(
    label_sets: bool = False,
) -> st.SearchStrategy[tuple[list[list[str]], list[list[str]]]]:
    """(gold, predicted) label lists of equal length; single labels unless `label_sets`."""
    if label_sets:
        one = st.lists(st.sampled_from(LABELS), unique=True, max_size=4).map(sorted)
    else:
        one = st.sampled_from(LABELS).map(lambda x: [x])
    return st.lists(st.tuples(one, one), min_size=1, max_size=25).map(
        lambda rows: ([a for a, _ in rows], [b for _, b in rows])
    )


def tag_rows() -> st.SearchStrategy[list[tuple[list[str], list[str]]]]:
    """Sentences of (gold, predicted) tags, well formed or not."""
    tag = st.sampled_from(["O", *(f"{p}-{t}" for p in "BI" for t in ("X", "Y"))])
    sentence = st.lists(st.tuples(tag, tag), min_size=1, max_size=9)
    return st.lists(
        sentence.map(lambda s: ([a for a, _ in s], [b for _, b in s])), min_size=1, max_size=6
    )


def spans() -> st.SearchStrategy[list[Span]]:
    """Spans of two labels on a short text; nested, crossing and repeated ones included."""
    span = st.tuples(st.integers(0, 14), st.integers(1, 6), st.sampled_from("XY"))
    return st.lists(span.map(lambda s: Span(s[0], s[0] + s[1], s[2])), max_size=6)
