"""A split as documents or plain rows, for people who train with a script of their own
(docs/examples).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

from biobench.data import catalog
from biobench.data.load import load_data
from biobench.data.locate import DataRoot
from biobench.errors import UsageError
from biobench.schema.document import Document
from biobench.schema.strict import suggest
from biobench.schema.task import SPLITS


class OpenTask(catalog.LoadedTask):
    """A task whose documents can be asked for."""

    def split(self, name: str, data_dir: DataRoot = None) -> list[Document]:
        """The documents of train, validation or test below `data_dir` (None: the default folder).

        Raises UsageError for another name, DataUnavailableError and DataFormatError as loading
        does.
        """
        if name not in SPLITS:
            raise UsageError(f"unknown split '{name}'", hint=suggest(name, SPLITS))
        return load_data(self, data_dir).documents[name]


def load_task(path_or_id: str | Path, overrides: Sequence[str] = ()) -> OpenTask:
    """The task with this id, or of this YAML file; its documents are read when they are asked for.

    >>> task = load_task("gad")
    >>> task.spec.labels, task.split("test", "corpora")[0].text

    overrides: fields of the spec that differ, ``KEY=VALUE``. Raises SpecError with file and line
    where the spec is wrong, and UsageError for an unknown id.
    """
    task = catalog.load_task(path_or_id, overrides)
    return OpenTask(**{field.name: getattr(task, field.name) for field in fields(task)})


def rows(documents: Iterable[Document], *, spans: bool) -> Iterator[dict[str, Any]]:
    """A JSON object a document: `document` (its id), `group`, `text`, `query` (the first of two
    texts), and its gold.

    Gold stands as `biobench score` reads predictions: `labels`, or (spans) `spans` with character
    offsets; beside them the corpus's own `tokens` (character offsets), their `words` and their
    `tags` where it has any.
    """
    for d in documents:
        row: dict[str, Any] = {"document": d.id, "group": d.group, "text": d.text}
        if d.query:
            row["query"] = d.query
        if d.tokens:
            words = [d.text[start:end] for start, end in d.tokens]
            row |= {"tokens": d.tokens, "words": words, "tags": d.tags}
        if d.pieces:
            row["pieces"] = d.pieces
        if spans:
            row["spans"] = [span._asdict() for span in d.spans]
        else:
            row["labels"] = d.labels
        yield row
