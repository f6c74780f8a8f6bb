"""A file server of our own and archives made by hand, for tests of fetching."""

from __future__ import annotations

import http.server
import io
import re
import tarfile
import threading
import zipfile
from pathlib import Path
from typing import Any

import pytest

from biobench.data.catalog import LoadedTask
from biobench.data.fetch import fetch
from biobench.errors import BioBenchError

GOOD = "Mild\tO\nasthma\tB-Disease\n\n"
"""A token file with one sentence."""


class Server:
    """Serves byte strings; can be busy, cut a reply short, shift a range and refuse ranges."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.cut: dict[str, list[int]] = {}
        self.busy: list[int] = []
        self.shift = 0
        self.ranges = True
        self.asked: list[tuple[str, str | None]] = []
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                wanted = self.headers.get("Range")
                outer.asked.append((self.path, wanted))
                content = outer.files.get(self.path)
                if content is None or outer.busy:
                    self.send_error(404 if content is None else outer.busy.pop(0))
                    return
                match = re.fullmatch(r"bytes=(\d+)-(\d*)", wanted or "") if outer.ranges else None
                first, last = 0, len(content) - 1
                if match:
                    first = int(match[1])
                    last = int(match[2]) if match[2] else last
                    if first >= len(content):
                        self.send_error(416)
                        return
                    self.send_response(206)
                    self.send_header("Content-Range", f"bytes {first + outer.shift}-{last}/{len(content)}")
                else:
                    self.send_response(200)
                body = content[first : last + 1]
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                cuts = outer.cut.get(self.path)
                self.wfile.write(body[: cuts.pop(0)] if cuts else body)
                self.close_connection = True

            def log_message(self, *args: Any) -> None:
                return

        self.http = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.thread = threading.Thread(target=self.http.serve_forever, args=(0.01,), daemon=True)
        self.thread.start()

    def put(self, name: str, content: bytes) -> str:
        self.files[f"/{name}"] = content
        return f"http://127.0.0.1:{self.http.server_port}/{name}"


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
