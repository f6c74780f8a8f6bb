"""Fixtures shared by all tests: where the real corpora and the small fixture files are."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """Folder of the real corpora: ``$BIOBENCH_DATA_DIR``, else `shared/data` beside the checkout; else skip."""
    named = os.environ.get("BIOBENCH_DATA_DIR")
    folder = Path(named) if named else ROOT.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip(f"the real corpora are not at hand: {folder} does not exist (set BIOBENCH_DATA_DIR)")
    return folder


@pytest.fixture(scope="session")
def fixtures() -> Path:
    """The small fixture files of the tests."""
    return ROOT / "tests" / "fixtures"
