"""Fixtures shared by all tests: where the real corpora and the small fixture files are."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.helpers.cli_make import Run, call

os.environ.pop(
    "COLUMNS", None
)  # parallel workers are given 80; what is printed to a pipe has no width

settings.register_profile(
    "any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow]
)  # what an example takes is the machine's business
settings.load_profile("any machine")

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """Folder of the real corpora: ``$BIOBENCH_DATA_DIR``, else `shared/data` beside the checkout;
    else skip.
    """
    named = os.environ.get("BIOBENCH_DATA_DIR")
    folder = Path(named) if named else ROOT.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip(
            f"the real corpora are not at hand: {folder} does not exist (set BIOBENCH_DATA_DIR)"
        )
    return folder


@pytest.fixture(scope="session")
def fixtures() -> Path:
    """The small fixture files of the tests."""
    return ROOT / "tests" / "fixtures"


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny random encoder that no test changes."""
    from tests.helpers.tiny import make_tiny_encoder

    return make_tiny_encoder(tmp_path_factory.mktemp("models") / "tiny")


@pytest.fixture
def biobench(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> Run:
    """`biobench(ARGUMENTS)` in this process, in an empty folder, without the environment's data
    folder.
    """
    monkeypatch.delenv("BIOBENCH_DATA_DIR", raising=False)
    monkeypatch.delenv("BIOBENCH_RESULTS_DIR", raising=False)
    monkeypatch.chdir(tmp_path)
    return lambda *arguments: call(monkeypatch, capfd, *arguments)


@pytest.fixture(autouse=True)
def threads_as_before() -> Iterator[None]:
    """A test that sets the number of threads leaves it to no other: sums of several threads are
    rounded otherwise.
    """
    torch = sys.modules.get("torch")
    before = None if torch is None else torch.get_num_threads()
    yield
    if before is not None and sys.modules["torch"].get_num_threads() != before:
        sys.modules["torch"].set_num_threads(before)
