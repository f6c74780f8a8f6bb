"""An empty results folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from biobench.store import Store


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """In the test's own folder."""
    return Store(tmp_path)
