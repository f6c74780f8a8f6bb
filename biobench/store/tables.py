"""Predictions as parquet: one row a document, gold and prediction; never any text.

Of agreement-bound data under aliases: meaningless without the data, equal for everyone who has it.
"""

from __future__ import annotations

import hashlib
import hmac
import io
import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import pairwise
from operator import attrgetter, itemgetter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from biobench.core.text import first_line
from biobench.errors import StoreError
from biobench.schema.document import Document, Prediction, Span

FORMAT = "biobench.predictions.1"

_SPAN = pa.struct([("start", pa.int32()), ("end", pa.int32()), ("label", pa.string())])
_OFFSETS = pa.list_(pa.int32())
_TEXTS = pa.list_(pa.string())
SCHEMA = pa.schema(
    [
        ("document", pa.string()),
        ("group", pa.string()),
        ("split", pa.string()),
        ("gold_spans", pa.list_(_SPAN)),
        ("gold_labels", _TEXTS),
        ("gold_tags", _TEXTS),
        ("token_starts", _OFFSETS),
        ("token_ends", _OFFSETS),
        ("predicted", pa.bool_()),
        ("spans", pa.list_(_SPAN)),
        ("span_scores", pa.list_(pa.float64())),
        ("tags", _TEXTS),
        ("labels", _TEXTS),
        ("label_scores", pa.list_(pa.float64())),
    ],
    metadata={"format": FORMAT},
)
"""`predicted` is false where the model said nothing of the document; gold columns are empty when
redacted. The columns after it are the fields of a `Prediction`, in their order.
"""
_latest: tuple[pa.Table | None, list[Document]] = None, []
"""The gold columns read last and their documents."""


def to_parquet(gold: Sequence[Document], predictions: Sequence[Prediction]) -> bytes:
    """The file's bytes; equal input gives equal bytes. Rows in the order of `gold`.

    Raises ValueError where a prediction is of no document in `gold`, or two are of one.
    """
    by_document = {p.document: p for p in predictions}
    if len(by_document) < len(predictions) or not by_document.keys() <= {d.id for d in gold}:
        raise ValueError("predictions must be of distinct documents among the gold ones")
    rows = [_row(d, by_document.get(d.id)) for d in gold]
    sink = io.BytesIO()
    pq.write_table(
        pa.Table.from_pylist(rows, schema=SCHEMA), sink, compression="zstd", store_schema=True
    )
    return sink.getvalue()


def read_bytes(content: bytes) -> pa.Table:
    """A parquet file's bytes as a table. Raises pyarrow's errors and OSError.

    On the calling thread alone. Arrow's pool may hold Python's buffer until the interpreter ends,
    and then aborts the process after its work is done (github.com/apache/arrow/issues/34314).
    """
    return pq.ParquetFile(pa.BufferReader(content), pre_buffer=False).read(use_threads=False)


def from_parquet(content: bytes, path: Path) -> tuple[list[Document], list[Prediction]]:
    """Documents (without text) and predictions of a file's bytes. Raises StoreError."""
    try:
        table = read_bytes(content)
    except (pa.ArrowException, OSError, UnicodeError) as error:
        raise StoreError(
            f"is not a parquet file: {first_line(error)}",
            hint="delete it and repeat the run",
            file=path,
        ) from error
    if not table.schema.equals(SCHEMA, check_metadata=False):
        raise StoreError(
            "does not have the columns of stored predictions",
            hint="it was not written by this version of BioBench; delete it and repeat the run",
            file=path,
        )
    try:
        documents = _documents(table.select(SCHEMA.names[:8]))
        rows = zip(documents, *_columns(table.select(SCHEMA.names[8:])), strict=True)
        predictions = []
        for document, predicted, *answer in rows:
            if predicted:
                predictions.append(Prediction(document.id, *answer))
        return documents, predictions
    except (ValueError, pa.ArrowException) as error:
        raise StoreError(
            "holds empty cells, lists of unequal length or text that is not UTF-8",
            hint="delete it and repeat the run",
            file=path,
        ) from error


def _documents(table: pa.Table) -> list[Document]:
    """The documents of the gold columns; made once for runs on the same ones that are read after
    each other.
    """
    global _latest
    latest, documents = _latest
    if latest is None or not table.equals(latest):
        documents = []
        for name, group, split, spans, labels, tags, *ends in zip(*_columns(table), strict=True):
            tokens = tuple(zip(*ends, strict=True))
            document = Document(name, group, "", split, spans, labels, tokens, tags)
            documents.append(document)
        _latest = table, documents
    return list(documents)


def _columns(table: pa.Table) -> list[list[Any]]:
    return [_values(column.combine_chunks()) for column in table.columns]


def _values(array: Any) -> list[Any]:
    """What an arrow array holds: lists as tuples, structs as spans. A column at once, not a cell
    after the other.

    Raises ValueError where a value is missing at any depth, or a text is not UTF-8.
    """
    if array.null_count:
        raise ValueError("an empty cell")
    if pa.types.is_struct(array.type):
        return list(map(Span, *map(_values, array.flatten())))
    if pa.types.is_list(array.type):
        values = _values(array.flatten())
        return [
            tuple(values[start:end]) for start, end in pairwise(array.offsets.to_numpy().tolist())
        ]
    return list(array.to_numpy(zero_copy_only=False).tolist())


def _row(document: Document, prediction: Prediction | None) -> dict[str, Any]:
    answer = prediction or Prediction(document=document.id)
    return {
        "document": document.id,
        "group": document.group,
        "split": document.split,
        "gold_spans": list(map(Span._asdict, document.spans)),
        "gold_labels": document.labels,
        "gold_tags": document.tags,
        "token_starts": list(map(itemgetter(0), document.tokens)),
        "token_ends": list(map(itemgetter(1), document.tokens)),
        "predicted": prediction is not None,
        "spans": list(map(Span._asdict, answer.spans)),
    } | {name: getattr(answer, name) for name in ("span_scores", "tags", "labels", "label_scores")}


def aliases(documents: Iterable[Document]) -> tuple[dict[str, str], dict[str, str]]:
    """(id -> alias, group -> alias) of a test split, 32 hex digits each.

    An HMAC whose key is a hash of all texts of the split: ids and single sentences cannot be found
    by trying, and two people with the same data get the same aliases, so their runs still pair.
    """
    documents = list(documents)
    digest = hashlib.sha256(b"biobench test split")
    for row in sorted([d.id, d.text] for d in documents):
        digest.update(json.dumps(row).encode())
    secret = digest.digest()

    def alias(kind: str, name: str) -> str:
        message = f"{kind}\0{name}".encode("utf-8", "surrogatepass")
        return hmac.new(secret, message, hashlib.sha256).hexdigest()[:32]

    of_documents = {d.id: alias("document", d.id) for d in documents}
    of_groups = {d.group: alias("group", d.group) for d in documents}
    return of_documents, of_groups


def redacted(
    gold: Sequence[Document], predictions: Sequence[Prediction]
) -> tuple[list[Document], list[Prediction]]:
    """The same runs under aliases, without text, gold or tokens, in an order that reveals
    nothing."""
    by_id, by_group = aliases(gold)
    bare = []
    for document in gold:
        alias = by_id[document.id]
        group = by_group[document.group]
        bare.append(Document(id=alias, group=group, text="", split=document.split))
    renamed = [replace(p, document=by_id[p.document]) for p in predictions]
    bare.sort(key=attrgetter("id"))
    renamed.sort(key=attrgetter("document"))
    return bare, renamed


def under_aliases(gold: Sequence[Document]) -> list[Document]:
    """The documents with their gold, named by their aliases: what redacted predictions are scored
    against.
    """
    by_id, by_group = aliases(gold)
    return [replace(d, id=by_id[d.id], group=by_group[d.group]) for d in gold]
