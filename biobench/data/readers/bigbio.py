"""Parquet views of document corpora in the two layouts of the BigBIO catalogue: `source` and `kb`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

from biobench.data.formats.standoff import Discontinuous, flatten, merge_fragments
from biobench.data.readers.base import ReaderOptions, Request, at, fill, missing, reader
from biobench.data.readers.parquet import table_rows
from biobench.schema.document import Document, Span


class BigbioOptions(ReaderOptions):
    """Options of format `bigbio`."""

    format: Literal["bigbio"]
    view: Literal["source", "kb"]
    """source: columns document_id, text, entities; kb: document_id, passages, entities."""
    types: dict[str, str | None] = {}
    """Entity type to label of the task, many to one; null drops the type."""
    discontinuous: Discontinuous = "error"


@reader(BigbioOptions)
def read_bigbio(request: Request) -> Iterator[Document]:
    """Documents with mentions by document-wide character offsets; positions in messages are row numbers.

    Order: that of the rows.
    """
    options = request.options
    assert isinstance(options, BigbioOptions)
    body = "text" if options.view == "source" else "passages"
    for split, path in request.only_splits("train", "validation", "test", "all"):
        for number, row in table_rows(request, path, ["document_id", body, "entities"]):
            for column in ("document_id", body, "entities"):
                if missing(row[column]):
                    hint = f"column '{column}' is null there: fill it in or remove the row"
                    raise request.bad(f"the row has no {column}", hint, path, number)
            document_id = str(row["document_id"])
            text = row["text"] if options.view == "source" else _joined(request, row["passages"], path, number)
            spans = {s for entity in row["entities"] for s in _spans(request, options, entity, text, path, number)}
            yield Document(
                id=document_id,
                group=document_id,
                text=text,
                split=split,
                spans=tuple(sorted(spans)),
                origin=at(path, number),
            )


def _joined(request: Request, passages: list[dict[str, Any]], path: Path, number: int) -> str:
    """The passages at their offsets, gaps filled with blanks."""
    text = ""
    for passage in passages:
        for piece, (start, end) in zip(passage["text"], passage["offsets"], strict=True):
            if start < len(text) or end - start != len(piece):
                raise request.bad("passages overlap or do not have their length", "use another view", path, number)
            text = fill(request, text, start, path, number) + piece
    return text


def _spans(
    request: Request, options: BigbioOptions, entity: dict[str, Any], text: str, path: Path, number: int
) -> Iterator[Span]:
    label = options.types.get(entity["type"], entity["type"])
    if label is None:
        return
    label = request.check_label(label, path, number)
    fragments = [(int(a), int(b)) for a, b in entity["offsets"]]
    covered = "".join("".join(text[a:b].split()) for a, b in fragments)
    if not fragments or covered != "".join("".join(piece.split()) for piece in entity["text"]):
        raise request.bad("mention {} is not at its offsets", "use another view", path, number, str(entity["text"]))
    try:
        place = flatten(merge_fragments(fragments, text), options.discontinuous)
    except ValueError as error:
        raise request.bad(f"{error}", "set `discontinuous`", path, number) from None
    if place is not None:
        yield Span(*place, label)
