"""Downloads from web servers that are busy, forgetful or wrong: what comes is the file, or one line says why not."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from biobench.data import download as module
from biobench.data.download import download
from biobench.errors import DataUnavailableError
from tests.helpers.hub_server import HubServer, hub_server

CONTENT = os.urandom(5000)


@pytest.fixture
def web() -> Iterator[HubServer]:
    with hub_server() as server:
        yield server


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Seconds that downloads waited, without waiting."""
    seen: list[float] = []
    monkeypatch.setattr(module.time, "sleep", seen.append)
    return seen


def refused(url: str, target: Path) -> str:
    """What a download that fails says."""
    with pytest.raises(DataUnavailableError) as caught:
        download(url, target)
    assert "\n" not in caught.value.what + caught.value.hint
    assert not target.exists()
    return caught.value.what


@pytest.mark.parametrize("status", [429, 503])
def test_a_busy_server_is_given_the_time_that_it_asks_for(
    web: HubServer, waits: list[float], tmp_path: Path, status: int
) -> None:
    url = web.file("big.bin", CONTENT)
    web.fault("GET /files", "status", status, body=b"7")
    assert download(url, tmp_path / "big.bin").read_bytes() == CONTENT
    assert waits == [7]


def test_a_server_that_asks_for_too_much_or_stays_busy_is_named(
    web: HubServer, waits: list[float], tmp_path: Path
) -> None:
    url = web.file("big.bin", CONTENT)
    web.fault("GET /files", "status", 429, body=b"3600")
    assert refused(url, tmp_path / "big.bin").endswith("429 Too Many Requests and takes requests again in 3600 s")
    assert waits == []
    web.fault("GET /files", "status", 503, times=3)
    assert refused(url, tmp_path / "big.bin").endswith("the server answers 503 Service Unavailable")
    web.forget()
    web.fault("GET /files", "status", 403)
    assert refused(url, tmp_path / "big.bin").endswith("403 Forbidden")
    assert len(web.seen) == 1, "asking again changes nothing"
    assert download(url, tmp_path / "big.bin").read_bytes() == CONTENT


@pytest.mark.parametrize("what", ["whole", "shifted"])
def test_a_range_that_is_not_the_one_asked_for_is_not_joined(
    web: HubServer, waits: list[float], tmp_path: Path, what: str
) -> None:
    url = web.file("big.bin", CONTENT)
    web.fault("GET /files", "cut", 1000)
    web.fault("GET /files", "whole" if what == "whole" else "shifted", 64)
    target = download(url, tmp_path / "big.bin", hashlib.sha256(CONTENT).hexdigest())
    assert target.read_bytes() == CONTENT
    assert [s.range for s in web.seen][:2] == [None, "bytes=1000-"]
    assert [p.name for p in tmp_path.iterdir()] == ["big.bin"]
