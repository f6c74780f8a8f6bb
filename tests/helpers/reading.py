"""The documents of a task's files as its reader yields them, before any check or split."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from biobench.data.catalog import LoadedTask
from biobench.data.locate import locate
from biobench.data.readers import Request, get_reader
from biobench.schema.document import Document


def documents_of(task: LoadedTask, folder: Path) -> list[Document]:
    """Of the task's only source below `folder`."""
    options, place = (
        task.options[task.spec.all_sources[0].id],
        locate(task.spec.all_sources[0], folder),
    )
    return list(
        get_reader(options.format).read(
            Request(options, place.files, task.spec, original=place.original)
        )
    )


Parsed = Callable[..., list[Document]]


def parser(make_task: Callable[..., LoadedTask], folder: Path) -> Parsed:
    """`parsed(READER, FILES, {NAME: CONTENT})`: the documents of files in `folder`/data."""

    def parse(
        reader: str, files: str, content: dict[str, str | bytes] | None = None, **spec: str
    ) -> list[Document]:
        (folder / "data").mkdir(exist_ok=True)
        for name, text in (content or {}).items():
            (folder / "data" / name).write_bytes(text.encode() if isinstance(text, str) else text)
        shared = {"type": "span_ner", "splits": "{validation_from_train_tail: 1}"}
        return documents_of(make_task(reader=reader, files=files, **(shared | spec)), folder)

    return parse


def parquet(rows: list[dict[str, object]]) -> bytes:
    """A parquet file of these rows."""
    out = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows), out)
    return out.getvalue()
