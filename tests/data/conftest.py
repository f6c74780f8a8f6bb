"""Helpers for reading a small file with given reader options."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from biobench.data.catalog import LoadedTask, load_task
from biobench.data.load import load_data
from biobench.schema.document import TaskData
from tests.helpers.fetch_make import Server
from tests.helpers.reading import Parsed, parser
from tests.helpers.spec_make import local, write_spec

IOB_FILES = "{train: train.tsv, validation: devel.tsv, test: test.tsv}"


@pytest.fixture
def make_task(tmp_path: Path) -> Callable[..., LoadedTask]:
    """Write a spec with the given lines and load it."""

    def make(
        *,
        type: str,
        labels: str,
        reader: str,
        files: str,
        folder: str = "data",
        splits: str = "official",
        access: str = "open",
        unit: str = "sentence",
        more: str = "",
        id: str = "made",
    ) -> LoadedTask:
        source = local(folder, files)
        fields = {"type": type, "source": source, "reader": reader, "labels": labels, "splits": splits}
        return load_task(write_spec(tmp_path / f"{id}.yaml", more, access=access, unit=unit, **fields))

    return make


@pytest.fixture
def parsed(make_task: Callable[..., LoadedTask], tmp_path: Path) -> Parsed:
    """Documents of small files, as their reader yields them."""
    return parser(make_task, tmp_path)


@pytest.fixture
def read(make_task: Callable[..., LoadedTask]) -> Callable[..., TaskData]:
    """Load the data of a spec made from the given lines."""

    def read_it(data_dir: Path, **spec: Any) -> TaskData:
        return load_data(make_task(**spec), data_dir)

    return read_it


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    made = Server()
    yield made
    made.http.shutdown()
    made.http.server_close()


@pytest.fixture
def task_at(make_task: Callable[..., LoadedTask]) -> Callable[..., LoadedTask]:
    """A token task whose source has the given `url:` value."""

    def make(
        url: str, folder: str = "corpus", files: str = IOB_FILES, reader: str = "{format: iob}", **more: str
    ) -> LoadedTask:
        return make_task(
            type="token_ner",
            folder=folder,
            labels="[Disease]",
            files=f"{files}\n  url: {url}",
            reader=reader,
            **more,
        )

    return make
