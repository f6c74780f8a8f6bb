"""Numbers that were predicted elsewhere: read on the task's scale, refused beyond it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from biobench.errors import DataFormatError
from biobench.schema.document import Document
from biobench.schema.tags import Tagging
from biobench.score.external import Expected, read_predictions


def expected(kind: str = "regression") -> Expected:
    """Two pairs of texts, whose numbers lie on the scale 0 to 4."""
    documents = [
        Document(name, name, "b", "test", labels=("1.5",), query="a") for name in ("p", "q")
    ]
    return Expected(kind, (), documents, Tagging(), redact=False, scale=(0.0, 4.0))


def test_a_number_is_read_as_a_run_stores_it(tmp_path: Path) -> None:
    file = tmp_path / "p.jsonl"
    file.write_text(
        "".join(json.dumps({"document": d, "value": v}) + "\n" for d, v in (("q", 4), ("p", 2.5)))
    )
    stored = [(p.document, p.labels, p.label_scores) for p in read_predictions(file, expected())]
    assert stored == [("p", (), (2.5,)), ("q", (), (4.0,))]


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (4.1, "outside the scale"),
        ("2", "valid number, got '2'"),
        (True, "got True"),
        (None, "got None"),
    ],
)
def test_what_is_no_number_on_the_scale_is_refused(
    tmp_path: Path, value: object, words: str
) -> None:
    file = tmp_path / "p.jsonl"
    file.write_text(json.dumps({"document": "p", "value": value}))
    with pytest.raises(DataFormatError, match=words):
        read_predictions(file, expected())


@pytest.mark.parametrize("answer", [{}, {"spans": [], "tags": []}])
def test_mentions_are_spans_or_tags_and_not_both(tmp_path: Path, answer: dict[str, object]) -> None:
    (tmp_path / "p.jsonl").write_text(json.dumps({"document": "p", **answer}))
    with pytest.raises(
        DataFormatError, match="needs a list 'spans' or a list 'tags', one of the two"
    ):
        read_predictions(tmp_path / "p.jsonl", expected("token_ner"))
