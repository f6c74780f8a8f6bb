"""The label rules, each on a few documents whose answer is worked out by hand."""

from __future__ import annotations

import pytest

from biobench.data.labels import apply_rule
from biobench.errors import DataFormatError
from biobench.schema.document import Document
from biobench.schema.source import CollectedLabels, TopLabels


def docs(**labels: str) -> list[Document]:
    """Documents named by the arguments, in their order, each with the letters of its text as labels."""
    return [Document(name, name, "t", "", labels=tuple(codes)) for name, codes in labels.items()]


def test_ties_go_to_the_first_in_order_of_ids_and_labels_are_sorted() -> None:
    # In order of ids: a M, b A B, c A Z, d Q. A is in two documents; of the others M and B come first.
    labels, kept = apply_rule(TopLabels(top_k=3), docs(c="ZA", a="M", d="Q", b="BA"))
    assert labels == ("A", "B", "M")
    assert {d.id: d.labels for d in kept} == {"c": ("A",), "a": ("M",), "b": ("A", "B")}
    assert [d.id for d in kept] == ["c", "a", "b"], "the order of reading is kept, and d has no label left"


def test_within_a_document_ties_go_to_the_code() -> None:
    assert apply_rule(TopLabels(top_k=1), docs(a="YX"))[0] == ("X",)


def test_a_document_counts_once() -> None:
    labels, kept = apply_rule(TopLabels(top_k=1), docs(a="KK", b="L", c="L"))
    assert labels == ("L",)
    assert [d.id for d in kept] == ["b", "c"]


def test_as_many_codes_as_there_are_and_not_one_more() -> None:
    documents = docs(a="BA")
    assert apply_rule(TopLabels(top_k=2), documents)[0] == ("A", "B")
    with pytest.raises(DataFormatError, match="holds 2 codes"):
        apply_rule(TopLabels(top_k=3), documents)


def test_collected_labels_are_all_there_are_and_no_document_goes() -> None:
    documents = docs(b="YXY", a="", c="Z")
    labels, kept = apply_rule(CollectedLabels(collected=3), documents)
    assert labels == ("X", "Y", "Z")
    assert [(d.id, d.labels) for d in kept] == [("b", ("X", "Y")), ("a", ()), ("c", ("Z",))]
    for other in (2, 4):
        with pytest.raises(DataFormatError, match=f"holds 3 labels, the spec says labels.collected: {other}"):
            apply_rule(CollectedLabels(collected=other), documents)


def test_a_list_changes_nothing() -> None:
    documents = docs(a="BA", b="")
    assert apply_rule(["B", "A", "C"], documents) == (("B", "A", "C"), documents)
