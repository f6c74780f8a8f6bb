"""A small BERT, made once."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.helpers.checkpoints import make_checkpoint


@pytest.fixture(scope="session")
def _bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_checkpoint("bert", tmp_path_factory.mktemp("bert") / "some-encoder")


@pytest.fixture
def folder(_bert: Path, tmp_path: Path) -> Path:
    """A checkpoint of one's own to change."""
    return Path(shutil.copytree(_bert, tmp_path / "some-encoder"))
