"""Where commands are killed, and where their disk is full."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest

from tests.kills.__main__ import Field


@pytest.fixture(scope="module")
def field(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Field]:
    """One warm process for a file of tests."""
    with closing(Field(tmp_path_factory.mktemp("kills"))) as field:
        yield field
