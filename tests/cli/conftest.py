"""The tiny random encoder that all command-line tests fine-tune."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.helpers.cli_make import Run, call
from tests.helpers.launching import Launcher


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of the demo's encoder."""
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


@pytest.fixture(scope="session")
def launcher(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Launcher]:
    """One warm process that starts others."""
    launcher = Launcher(tmp_path_factory.mktemp("launcher"))
    yield launcher
    launcher.close()
