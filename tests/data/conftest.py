"""Helpers for reading a small file with given reader options."""

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
        files: str = IOB_FILES, folder: str = "data", more: str = "", **fields: str
    ) -> LoadedTask:
        fields = {"source": local(folder, files), "splits": "official", **fields}
        return load_task(write_spec(tmp_path / "made.yaml", more, **fields))

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

    def make(url: str, files: str = IOB_FILES, reader: str = "{format: iob}") -> LoadedTask:
        return make_task(f"{files}\n  url: {url}", folder="corpus", reader=reader)

    return make
