"""HTTP as the stand-ins for servers speak it: requests that are remembered, ranges, and everything
that goes wrong.
"""

from __future__ import annotations

import json
import re
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Literal
from urllib.parse import parse_qs, unquote, urlsplit

FaultKind = Literal["cut", "stall", "drop", "status", "body", "whole", "shift", "then"]


@dataclass
class Fault:
    """What goes wrong with the next `times` requests whose `METHOD path` matches the pattern; -1:
    with all of them.

    cut: the connection is closed after `value` bytes of the body. stall: nothing comes for `value`
    seconds.
    drop: the connection is closed before any answer. status: this status is answered, with `body`
    as Retry-After where there is one. body: `body` is sent in the file's place. whole: a range is
    ignored. shift: a range is announced
    `value` bytes later than it begins. then: after the answer `action` is called.
    """

    pattern: str
    kind: FaultKind
    value: int = 0
    body: bytes = b""
    times: int = 1
    action: Callable[[], object] = object


@dataclass
class Seen:
    """One request as it came, and the status of its answer (0: none)."""

    server: str
    method: str
    path: str
    range: str | None
    token: str | None
    status: int = 0


@dataclass
class Traffic:
    """What came and what is to go wrong, shared by the threads of both servers."""

    faults: list[Fault] = field(default_factory=list)
    seen: list[Seen] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def listen(self, handler: type[WireHandler]) -> ThreadingHTTPServer:
        """Start a server on a port of the loopback address."""
        server = ThreadingHTTPServer(
            ("127.0.0.1", 0), type("Handler", (handler,), {"traffic": self, "outer": self})
        )
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        return server

    def fault(
        self, pattern: str, kind: FaultKind, value: int = 0, *, body: bytes = b"", times: int = 1
    ) -> None:
        """Let something go wrong, see `Fault`."""
        self.faults.append(Fault(pattern, kind, value, body, times))

    def after(self, pattern: str, action: Callable[[], object]) -> None:
        """Call this after the answer to the first such request."""
        self.faults.append(Fault(pattern, "then", action=action))

    def take(self, line: str, kind: FaultKind) -> Fault | None:
        """The first fault of this kind that this request is to meet."""
        with self.lock:
            for fault in self.faults:
                if fault.kind == kind and fault.times and re.search(fault.pattern, line):
                    fault.times -= 1
                    return fault
        return None

    def requests(self, pattern: str) -> list[Seen]:
        """Requests so far whose `METHOD path` matches."""
        return [s for s in self.seen if re.search(pattern, f"{s.method} {s.path}")]

    def forget(self) -> None:
        """Before the next step of a test: no faults, no memory of requests."""
        self.faults.clear()
        self.seen.clear()


class RefusedRequest(Exception):  # noqa: N818
    """An answer with a status of 400 or more, and the hub's name for the reason."""

    def __init__(self, status: int, code: str, message: str, **headers: str) -> None:
        super().__init__(message)
        self.status = status
        named = {"X-Error-Code": code} if code else {}
        self.headers = {
            **named,
            "X-Error-Message": message,
            **{k.replace("_", "-"): v for k, v in headers.items()},
        }


class WireHandler(BaseHTTPRequestHandler):
    """One connection. Subclasses say in `route` what a path stands for."""

    protocol_version = "HTTP/1.1"
    traffic: Traffic
    role = ""

    def log_message(self, *args: Any) -> None:
        return

    def route(self, segments: list[str]) -> None:
        """Answer the request for this path; RefusedRequest where there is no such thing."""
        raise NotImplementedError

    def do_GET(self) -> None:
        self.token = (self.headers.get("Authorization") or "").removeprefix("Bearer ") or None
        self.record = Seen(
            self.role, self.command, self.path, self.headers.get("Range"), self.token
        )
        self.traffic.seen.append(self.record)
        self.body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.line = f"{self.command} {self.path}"
        parts = urlsplit(self.path)
        self.query = parse_qs(parts.query)
        try:
            if fault := self.traffic.take(self.line, "stall"):
                time.sleep(fault.value)
            if self.traffic.take(self.line, "drop"):
                self._hang_up()
                return
            if fault := self.traffic.take(self.line, "status"):
                wait = {"Retry_After": fault.body.decode()} if fault.body else {}
                raise RefusedRequest(fault.value, "", "as the test wants it", **wait)
            self.route([unquote(s) for s in parts.path.strip("/").split("/")])
            if fault := self.traffic.take(self.line, "then"):
                fault.action()
        except RefusedRequest as refused:
            about = {"Content-Type": "application/json", **refused.headers}
            self.send(json.dumps({"error": str(refused)}).encode(), refused.status, about)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    do_HEAD = do_POST = do_PUT = do_GET  # noqa: N815

    def _hang_up(self) -> None:
        self.close_connection = True
        self.connection.shutdown(socket.SHUT_RDWR)

    def send(self, body: bytes, status: int = 200, headers: dict[str, str] | None = None) -> None:
        """Headers and, but for HEAD, the body, cut where a fault says so."""
        self.record.status = status
        self.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command == "HEAD":
            return
        if fault := self.traffic.take(self.line, "cut"):
            self.wfile.write(body[: fault.value])
            self.wfile.flush()
            self._hang_up()
        else:
            self.wfile.write(body)

    def json(self, value: Any, status: int = 200, headers: dict[str, str] | None = None) -> None:
        """A JSON answer."""
        self.send(
            json.dumps(value).encode(),
            status,
            {"Content-Type": "application/json", **(headers or {})},
        )

    def content(self, content: bytes, headers: dict[str, str]) -> None:
        """A file, or the range that was asked for; If-Range holds while the entity tag is the
        same."""
        if fault := self.traffic.take(self.line, "body"):
            content = fault.body
        wanted = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range") or "")
        other = self.headers.get("If-Range") not in (None, headers.get("ETag"))
        if wanted is None or other or self.traffic.take(self.line, "whole"):
            self.send(content, 200, {"Accept-Ranges": "bytes", **headers})
            return
        first, last = int(wanted[1]), int(wanted[2] or len(content) - 1)
        if first >= len(content):
            raise RefusedRequest(416, "", "no such range", Content_Range=f"bytes */{len(content)}")
        part = content[first : last + 1]
        if fault := self.traffic.take(self.line, "shift"):
            first += fault.value
        place = f"bytes {first}-{first + len(part) - 1}/{len(content)}"
        self.send(part, 206, {"Accept-Ranges": "bytes", "Content-Range": place, **headers})
