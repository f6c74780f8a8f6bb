"""The documents of a task's files as its reader yields them, before any check or split."""

from __future__ import annotations

from pathlib import Path

from biobench.data.catalog import LoadedTask
from biobench.data.locate import locate
from biobench.data.readers import Request, get_reader
from biobench.schema.document import Document


def documents_of(task: LoadedTask, folder: Path) -> list[Document]:
    """Of the task's only source below `folder`."""
    options, place = task.options[task.spec.all_sources[0].id], locate(task.spec.all_sources[0], folder)
    return list(get_reader(options.format).read(Request(options, place.files, task.spec, original=place.original)))
