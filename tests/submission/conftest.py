"""An honest submission that the tests then change."""

import shutil
from pathlib import Path

import pytest

from biobench.submission.pack import submit
from tests.helpers.submission_make import honest_run


@pytest.fixture(scope="session")
def packed_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Results of a model on two seeds, and one that is no full run; with the submission packed from
    them.
    """
    folder = tmp_path_factory.mktemp("packed")
    for seed in (42, 43):
        honest_run(folder / "results", seed)
    honest_run(folder / "results", 44, limit=10)
    submit("org/tiny", folder / "results", folder / "submission", notes="hello")
    return folder


@pytest.fixture
def packed(packed_once: Path, tmp_path: Path) -> Path:
    """A submission of one's own, beside the results that it was packed from."""
    shutil.copytree(packed_once, tmp_path, dirs_exist_ok=True)
    return tmp_path / "submission"
