"""An honest submission that the tests then change."""

from __future__ import annotations

import pytest

from biobench.submission.pack import submit
from tests.helpers.submission_make import honest_run


@pytest.fixture
def packed(tmp_path):
    for seed in (42, 43):
        honest_run(tmp_path / "results", seed)
    honest_run(tmp_path / "results", 44, limit=10)
    return submit("org/tiny", tmp_path / "results", tmp_path / "submission", notes="hello")
