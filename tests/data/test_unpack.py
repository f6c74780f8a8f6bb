"""Archives that must be refused, whole, and leave nothing behind."""

from __future__ import annotations

import os
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from biobench.data.catalog import LoadedTask
from biobench.data.unpack import unpack
from biobench.errors import DataFormatError
from tests.helpers.fetch_make import GOOD, Server, refused, tarred, zipped


@pytest.mark.parametrize("name", ["../evil.tsv", "/etc/evil.tsv", "a/../../evil.tsv", "C:/evil.tsv", "..\\evil.tsv"])
@pytest.mark.parametrize("kind", ["zip", "tar"])
def test_escaping_members_are_refused(
    name: str, kind: str, server: Server, task_at: Callable[..., LoadedTask], tmp_path: Path
) -> None:
    good = {f"{n}.tsv": GOOD.encode() for n in ("train", "devel", "test")}
    if kind == "zip":
        archive = zipped(good | {name: b"evil"})
    else:
        archive = tarred([(n, c, tarfile.REGTYPE) for n, c in (good | {name: b"evil"}).items()])
    url = server.put(f"c.{kind}", archive)
    task = task_at(f'{{url: "{url}", unpack: {kind}}}')
    refused(task, tmp_path / "a" / "store", "outside the folder", DataFormatError)
    assert not list(tmp_path.rglob("evil*"))


def test_links_devices_and_encrypted_members_are_refused(
    server: Server, task_at: Callable[..., LoadedTask], tmp_path: Path
) -> None:
    cases = {
        "zip": zipped({"train.tsv": b"x"}, {"devel.tsv": "/etc/passwd"}),
        "tar": tarred([("train.tsv", b"x", tarfile.REGTYPE), ("devel.tsv", None, tarfile.SYMTYPE)]),
        "tar.gz": tarred([("pipe", None, tarfile.FIFOTYPE)]),
    }
    for name, archive in cases.items():
        url = server.put(f"c.{name}", archive)
        task = task_at(f'{{url: "{url}", unpack: {name[:3]}}}')
        refused(task, tmp_path / "store", "is a link", DataFormatError)
    locked = bytearray(zipped({"train.tsv": b"x"}))
    for marker, at in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        locked[locked.index(marker) + at] |= 1
    url = server.put("locked.zip", bytes(locked))
    refused(task_at(f'{{url: "{url}", unpack: zip}}'), tmp_path / "store", "encrypted", DataFormatError)


def test_bombs_are_refused(tmp_path: Path) -> None:
    for name, limits in (("bytes", {"most_bytes": 2_999_999}), ("files", {"most_files": 19})):
        archive = tmp_path / f"{name}.zip"
        archive.write_bytes(zipped({f"{i}.txt": b"0" * 150_000 for i in range(20)}))
        with pytest.raises(DataFormatError, match="holds more than"):
            unpack(archive, "zip", tmp_path / "out", **limits)
        assert not (tmp_path / "out").exists()
    assert len(unpack(archive, "zip", tmp_path / "out", most_bytes=3_000_000, most_files=20)) == 20


def test_damaged_archives(server: Server, task_at: Callable[..., LoadedTask], tmp_path: Path) -> None:
    good = zipped({f"{n}.tsv": os.urandom(3000) for n in ("train", "devel", "test")})
    flipped = bytearray(good)
    flipped[2000] ^= 0xFF
    whole_tar = tarred([("train.tsv", os.urandom(50_000), tarfile.REGTYPE)])
    for name, archive in (
        ("half.zip", good[: len(good) // 2]),
        ("flipped.zip", bytes(flipped)),
        ("text.zip", b"<html>not found</html>"),
        ("half.tar", whole_tar[: len(whole_tar) // 2]),
    ):
        url = server.put(name, archive)
        refused(task_at(f'{{url: "{url}", unpack: {name[-3:]}}}'), tmp_path / "store", "damaged", DataFormatError)
