"""A recipe that trains in about a second, on corpora that are built once."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.helpers.trainer_make import SMALL, train


@pytest.fixture(scope="session")
def corpora(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built corpora, shared by all tests of a session."""
    return tmp_path_factory.mktemp("corpora")


@pytest.fixture(scope="session")
def small(corpora: Path) -> list[str]:
    """Overrides that shrink toy_detour, with a cache for all tests."""
    return [*SMALL, f"corpus.cache={corpora}"]


@pytest.fixture(scope="session")
def reference(tmp_path_factory: pytest.TempPathFactory, small: list[str]) -> Path:
    """A finished run of that recipe, which no test changes."""
    out = tmp_path_factory.mktemp("runs") / "reference"
    assert train(out, small).status == "done"
    return out
