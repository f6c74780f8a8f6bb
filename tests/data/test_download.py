"""Downloads from web servers that are busy, forgetful or wrong: what comes is the file, or one line says why not."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from biobench.data import download as module
from biobench.data.catalog import LoadedTask
from biobench.data.download import RangeFile, download
from biobench.data.fetch import fetch
from biobench.errors import DataUnavailableError
from tests.helpers.fetch_make import GOOD, left_behind, zipped
from tests.helpers.hub_server import HubServer, hub_server

CONTENT = os.urandom(5000)
TEXT = b"a text that gzip makes shorter\n" * 400


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


def test_a_new_version_behind_a_server_that_ignores_if_range_is_not_joined(
    web: HubServer, waits: list[float], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_opened", without_condition(module._opened))
    url = web.file("big.bin", CONTENT)
    web.fault("GET /files", "cut", 1000)
    changed = os.urandom(5000)
    web.after("GET /files", lambda: web.file("big.bin", changed))
    assert download(url, tmp_path / "big.bin").read_bytes() == changed


def without_condition(request: Callable[..., object]) -> Callable[..., object]:
    """Requests as a server sees them that does not read If-Range."""
    return lambda url, **headers: request(url, **{k: v for k, v in headers.items() if k != "If-Range"})


def test_a_body_that_was_packed_on_its_way_is_refused(web: HubServer, waits: list[float], tmp_path: Path) -> None:
    # a server that so names the kind of an archive means the archive
    archive = web.file("a.tsv.gz", TEXT)
    web.fault("GET /files/a.tsv.gz", "packed", body=b"x-gzip")
    assert download(archive, tmp_path / "a.tsv.gz").read_bytes()[:2] == b"\x1f\x8b"
    other = web.file("b.tsv", TEXT)
    web.fault("GET /files/b.tsv", "packed", body=b"br")
    assert refused(other, tmp_path / "b.tsv").endswith("the server packs the file as 'br', which was not asked for")


def test_ranges_of_an_archive_are_asked_for_again(
    web: HubServer, waits: list[float], task_at: Callable[..., LoadedTask], tmp_path: Path
) -> None:
    archive = zipped({"figures.bin": os.urandom(400_000)} | {f"{n}.tsv": GOOD.encode() for n in NAMES})
    url = web.file("c.zip", archive)
    web.fault("GET /files", "status", 429, body=b"2")
    for kind, value in (("cut", 10), ("shifted", 5)):
        web.fault("GET /files", kind, value)  # type: ignore[arg-type]
    task = task_at(f'{{url: "{url}", unpack: zip, members: [{", ".join(f"{n}.tsv" for n in NAMES)}]}}')
    result = fetch(task, tmp_path / "store")
    assert "read by ranges" in result.notes[0]
    assert left_behind(tmp_path / "store") == [f"corpus/{n}.tsv" for n in sorted(NAMES)]
    assert waits[0] == 2


NAMES = ("train", "devel", "test")


def test_an_archive_that_changes_between_two_ranges_is_refused(web: HubServer, waits: list[float]) -> None:
    url = web.file("c.zip", CONTENT)
    remote = RangeFile(url)
    assert remote.read(10) == CONTENT[:10]
    web.file("c.zip", CONTENT[::-1])
    with pytest.raises(DataUnavailableError, match="the file changed while it was read"):
        remote.read(10)
