"""The last check before a split: whatever a reader yields, only what can be scored as it stands passes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from biobench.data.catalog import LoadedTask, load_task
from biobench.data.load import _checked, load_data, subset
from biobench.data.readers import Request
from biobench.errors import DataFormatError
from biobench.schema.document import Document, Span

PLAIN = Document("a", "a", "abcdef", "test", tokens=((0, 6),), tags=("O",), origin="f:3")


def _passed(task: LoadedTask, documents: Sequence[Document]) -> list[Document]:
    return list(_checked(Request(task.options["generated"], {}, task.spec), documents))


@pytest.mark.parametrize(("start", "end"), [(2, 2), (3, 2), (-1, 2), (5, 7), (6, 7)])
def test_a_span_lies_in_its_text_and_has_a_character(start: int, end: int) -> None:
    label = load_task("demo_ner").spec.labels[0]  # type: ignore[index]
    with pytest.raises(DataFormatError, match=f"span {start}-{end} leaves the text"):
        _passed(load_task("demo_ner"), [replace(PLAIN, spans=(Span(start, end, label),))])
    (kept,) = _passed(load_task("demo_ner"), [replace(PLAIN, spans=(Span(0, 6, label),))])
    assert kept.spans == ((0, 6, label),)


def test_a_mention_counts_once_and_mentions_stand_in_order() -> None:
    label, other = load_task("demo_ner").spec.labels[:2]  # type: ignore[index]
    twice = (Span(3, 4, label), Span(0, 1, other), Span(3, 4, label), Span(3, 4, other), Span(0, 1, label))
    (kept,) = _passed(load_task("demo_ner"), [replace(PLAIN, spans=twice)])
    assert kept.spans == tuple(sorted({(3, 4, label), (3, 4, other), (0, 1, label), (0, 1, other)}))


@pytest.mark.parametrize("task", ["demo_ner", "demo_topic"])
def test_a_document_without_text_is_refused_whatever_its_format(task: str) -> None:
    blank = replace(PLAIN, text=" \n", tokens=(), tags=())
    with pytest.raises(DataFormatError, match="document 'a' has no text") as caught:
        _passed(load_task(task), [blank])
    assert (caught.value.hint, caught.value.line) == ("remove it", 3)
    if task == "demo_topic":
        labels = load_task(task).spec.labels[:1]  # type: ignore[index]
        assert _passed(load_task(task), [replace(blank, query="a question", labels=tuple(labels))])


def test_a_single_label_task_has_one_label_a_document() -> None:
    task = load_task("demo_topic")
    first, second = task.spec.labels[:2]  # type: ignore[index]
    assert _passed(task, [replace(PLAIN, labels=(first,))])[0].labels == (first,)
    for labels in ((), (first, second)):
        with pytest.raises(DataFormatError, match=f"{len(labels)} labels in a single-label task"):
            _passed(task, [replace(PLAIN, labels=labels)])
    with pytest.raises(DataFormatError, match="'nothing' is not a label"):
        _passed(task, [replace(PLAIN, labels=("nothing",))])
    with pytest.raises(DataFormatError, match="document id 'a' stands twice"):
        _passed(task, [replace(PLAIN, labels=(first,)), replace(PLAIN, labels=(second,), text="other")])


@pytest.mark.parametrize("limit", [None, 1])
def test_the_labels_that_have_gold_are_those_of_the_whole_test_split(
    make_task: Callable[..., LoadedTask], tmp_path: Path, limit: int | None
) -> None:
    """Training has a and b, test has b and d, one document of each: whatever is drawn, b and d count."""
    (tmp_path / "data").mkdir()
    for name, labels in (("train", "ab"), ("validation", "c"), ("test", "bd")):
        rows = "".join(f"text {i}\t{label}\n" for i, label in enumerate(labels))
        (tmp_path / "data" / f"{name}.tsv").write_text("text\tlabel\n" + rows)
    task = make_task(
        type="single_label",
        labels="[d, c, b, a]",
        files="{train: train.tsv, validation: validation.tsv, test: test.tsv}",
        reader="{format: tsv, columns: {text: text, label: label}}",
    )
    data = load_data(task, tmp_path, limit)
    assert (data.labels, data.gold_labels) == (("d", "c", "b", "a"), ("d", "b"))
    assert len(data.test) == (2 if limit is None else 1)


@pytest.mark.parametrize(("share", "size"), [(1.0, 10), (0.75, 8), (0.36, 4), (0.34, 3), (0.01, 1)])
def test_a_share_is_rounded_to_the_nearest(share: float, size: int) -> None:
    documents = [replace(PLAIN, id=str(i)) for i in range(10)]
    assert len(subset(documents, share)) == size
