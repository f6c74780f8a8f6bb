"""MedDialog-FR: one tab-separated table of labels, one of post-edited questions and answers."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from biobench.data.readers.base import ReaderOptions, Request, at, reader
from biobench.data.readers.tsv import rows
from biobench.errors import DataFormatError
from biobench.schema.document import Document

_SPLITS = {"train": "train", "dev": "validation", "validation": "validation", "val": "validation", "test": "test"}


class MeddialogOptions(ReaderOptions):
    """Options of format `meddialog`: `files.labels` has id, split, labels; `files.texts` has id and the text."""

    format: Literal["meddialog"]
    text: str = "post-edited"
    """Column of the texts table."""
    question_word: str = "Question:"
    answer_word: str = "Réponse:"
    """Written before the question and before the answer."""


@reader(MeddialogOptions)
def read_meddialog(request: Request) -> Iterator[Document]:
    """Question and answer in one text; the answer's id is the question's with ``_a`` in place of ``_q``.

    Rows without labels or without a question are left out; a label cell that is no list of texts is refused.
    Order: that of the table of labels.
    """
    options = request.options
    assert isinstance(options, MeddialogOptions)
    if set(request.files) != {"texts", "labels"}:
        raise DataFormatError("format 'meddialog' needs files.texts and files.labels", hint="name both")
    texts: dict[str, str] = {}
    for path in request.files["texts"]:
        for _, row in _table(request, path, ["id", options.text]):
            texts[row["id"]] = row[options.text].strip()
    for path in request.files["labels"]:
        for line, row in _table(request, path, ["id", "split", "labels"]):
            document_id = row["id"].strip()
            question = texts.get(document_id, "")
            labels = _labels(request, path, line, row["labels"])
            if not labels or not question:
                continue
            if row["split"] not in _SPLITS:
                raise request.bad("split {} is not known", "train, dev or test", path, line, row["split"])
            text = f"{options.question_word} {question}"
            answer = texts.get(document_id.removesuffix("_q") + "_a", "") if document_id.endswith("_q") else ""
            if answer:
                text += f"\n\n{options.answer_word} {answer}"
            yield Document(
                id=document_id,
                group=document_id,
                text=text,
                split=_SPLITS[row["split"]],
                labels=labels,
                origin=at(path, line),
            )


def _table(request: Request, path: Path, columns: list[str]) -> Iterator[tuple[int, dict[str, str]]]:
    header: list[str] | None = None
    for line, row in rows(request, path, "tab", "minimal"):
        if header is None:
            header = [name.strip() for name in row]
            for column in columns:
                if column not in header:
                    hint = f"{request.nearest(column, header)}; the file is tab-separated"
                    raise request.bad(f"the header has no column '{column}'", hint, path, line)
            continue
        if len(row) != len(header):
            raise request.bad(f"the row has {len(row)} fields, the header {len(header)}", "repair it", path, line)
        values = dict(zip(header, row, strict=True))
        yield line, {column: values[column] for column in columns}


def _labels(request: Request, path: Path, line: int, cell: str) -> tuple[str, ...]:
    """The texts of a list literal such as ``['C0001', 'C0002']``, read without evaluating anything."""
    if not cell.strip():
        return ()
    try:
        value = ast.literal_eval(cell.strip())
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        value = None
    if not isinstance(value, list) or not all(isinstance(v, str) for v in value):
        raise request.bad("labels {} are no list of texts", "write ['A', 'B']", path, line, cell)
    return tuple(dict.fromkeys(request.check_label(v.strip(), path, line) for v in value))
