"""A file server of our own and archives made by hand, for tests of fetching."""

from __future__ import annotations

import io
import tarfile
import zipfile
from pathlib import Path

import pytest

from biobench.data.catalog import LoadedTask
from biobench.data.fetch import fetch
from biobench.errors import BioBenchError
from tests.helpers.hub_wire import RefusedRequest, Traffic, WireHandler

GOOD = "Mild\tO\nasthma\tB-Disease\n\n"
"""A token file with one sentence."""


class Server(Traffic):
    """Serves byte strings by name."""

    def __init__(self) -> None:
        super().__init__()
        self.files: dict[str, bytes] = {}
        self.http = self.listen(_Files)

    def put(self, name: str, content: bytes) -> str:
        self.files[name] = content
        return f"http://127.0.0.1:{self.http.server_port}/{name}"


class _Files(WireHandler):
    outer: Server

    def route(self, segments: list[str]) -> None:
        name = "/".join(segments)
        if name not in self.outer.files:
            raise RefusedRequest(404, "", "no such file")
        self.content(self.outer.files[name], {})


def zipped(files: dict[str, bytes], links: dict[str, str] | None = None) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
        for name, target in (links or {}).items():
            info = zipfile.ZipInfo(name)
            info.external_attr = 0o120777 << 16
            archive.writestr(info, target)
    return buffer.getvalue()


def tarred(entries: list[tuple[str, bytes | None, bytes]]) -> bytes:
    """(name, content or None, type) to a tar.gz."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for name, content, kind in entries:
            info = tarfile.TarInfo(name)
            info.type = kind
            info.size = len(content or b"")
            if content is None:
                info.linkname = "/etc/passwd"
            archive.addfile(info, io.BytesIO(content) if content is not None else None)
    return buffer.getvalue()


def left_behind(data: Path) -> list[str]:
    """What stands below the data folder apart from the cache of whole downloads and the lock."""
    return sorted(
        p.relative_to(data).as_posix()
        for p in data.rglob("*")
        if p.is_file() and p.name != "fetch.lock" and "downloads" not in p.parts
    )


def parts(data: Path) -> list[Path]:
    return list(data.rglob("*.part"))


def refused(task: LoadedTask, data: Path, words: str, kind: type[BioBenchError]) -> BioBenchError:
    with pytest.raises(kind, match=words) as caught:
        fetch(task, data)
    assert "\n" not in str(caught.value) + caught.value.hint
    assert left_behind(data) == []
    assert not parts(data)
    return caught.value
