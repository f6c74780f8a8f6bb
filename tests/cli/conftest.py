"""The tiny random encoder that all command-line tests fine-tune."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.helpers.cli_make import Run, call


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of the demo's encoder."""
    from tests.helpers.tiny import make_tiny_encoder

    return make_tiny_encoder(tmp_path_factory.mktemp("models") / "tiny")


@pytest.fixture
def biobench(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], tmp_path: Path) -> Run:
    """`biobench(ARGUMENTS)` in this process, in an empty folder, without the environment's data folder."""
    monkeypatch.delenv("BIOBENCH_DATA_DIR", raising=False)
    monkeypatch.delenv("BIOBENCH_RESULTS_DIR", raising=False)
    monkeypatch.chdir(tmp_path)
    return lambda *arguments: call(monkeypatch, capfd, *arguments)
