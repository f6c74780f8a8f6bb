"""--offline opens no connection: neither for a local model nor in looking for one that is not
there.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from biobench.errors import ModelError
from biobench.runs.api import run
from tests.helpers.cli_make import QUICK


@pytest.fixture
def tried(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Addresses that anything tried to reach; each attempt fails."""
    attempts: list[Any] = []

    def refuse(*arguments: Any, **_: Any) -> None:
        attempts.append(arguments[-1] if arguments else None)
        raise OSError("no network in this test")

    for name in ("socket.connect", "socket.connect_ex", "create_connection", "getaddrinfo"):
        monkeypatch.setattr(f"socket.{name}", refuse)
    return attempts


def test_a_local_run_opens_nothing(tiny: Path, tmp_path: Path, tried: list[Any]) -> None:
    how = {**QUICK, "gate": True, "results_dir": tmp_path / "r", "data_dir": tmp_path / "empty"}
    (result,) = run(str(tiny), "demo_topic", seeds=1, offline=True, **how)
    assert result.status == "done"
    assert tried == []


def test_a_hub_model_that_is_not_at_hand(
    tmp_path: Path, tried: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    with pytest.raises(ModelError, match="neither a local folder nor in the cache"):
        run("nobody/nothing", "demo_topic", results_dir=tmp_path / "r", offline=True)
    assert tried == []


def test_without_a_network_the_remedy_is_named(tmp_path: Path, tried: list[Any]) -> None:
    with pytest.raises(ModelError) as caught:
        run("nobody/nothing", "demo_topic", results_dir=tmp_path / "r")
    assert "nobody/nothing" in caught.value.what
    assert caught.value.hint
    assert tried
