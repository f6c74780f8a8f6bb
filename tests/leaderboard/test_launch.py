"""Starting the app: what is refused, and a server that answers."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import urllib.request

import pytest

from biobench.errors import UsageError
from biobench.submission.unpack import UPLOAD_BYTES
from leaderboard.launch import launch
from tests.helpers.server_make import free_port


def websocket_status(port: int, host: str) -> int:
    """The status that a page's connection gets which asks for this host."""
    lines = [
        "GET /_stcore/stream HTTP/1.1",
        f"Host: {host}",
        "Upgrade: websocket",
        "Connection: Upgrade",
        "Sec-WebSocket-Version: 13",
        "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==",
        f"Origin: http://{host}",
    ]
    with socket.create_connection(("127.0.0.1", port), timeout=20) as connection:
        connection.sendall("\r\n".join([*lines, "", ""]).encode())
        return int(connection.recv(200).split()[1])


def test_a_file_and_a_taken_port_are_named(tmp_path):
    (tmp_path / "f").write_text("")
    with pytest.raises(UsageError, match="is not a folder"):
        launch(tmp_path / "f", 8501)
    with socket.socket() as held:
        held.bind(("", 0))
        held.listen()
        with pytest.raises(UsageError, match="cannot be used"):
            launch(tmp_path, held.getsockname()[1])


@pytest.mark.parametrize("host", ["no.such.host.invalid", "203.0.113.7", "x" * 300])
def test_an_address_of_another_machine_is_named(tmp_path, host):
    with pytest.raises(UsageError, match=f"of {host} cannot be used") as caught:
        launch(tmp_path, 8501, host=host)
    assert "--host" in caught.value.hint


def test_only_this_machine_is_served_unless_told_otherwise(tmp_path, monkeypatch):
    """A page elsewhere whose name is made to mean this machine read the texts of corpora."""
    called = []

    def become(program, words, environment):
        called.append(words)
        raise SystemExit(0)

    monkeypatch.setattr("leaderboard.launch.os.execve", become)
    for options in ({}, {"host": "0.0.0.0"}):
        with pytest.raises(SystemExit):
            launch(tmp_path, 18_501, **options)
    here, public = called
    assert values(here, "--server.address") == ["127.0.0.1"]
    assert values(here, "--server.allowedHosts") == ["127.0.0.1", "localhost", "::1"]
    assert values(public, "--server.address") == ["0.0.0.0"]
    assert values(public, "--server.allowedHosts") == []
    # no larger upload than a pack, and none of a page that was closed
    assert values(here, "--server.maxUploadSize") == [str(UPLOAD_BYTES // 2**20)]
    assert int(*values(here, "--server.disconnectedSessionTTL")) <= 30


def values(words: list[str], option: str) -> list[str]:
    """What stands behind an option, each time."""
    return [words[place + 1] for place, word in enumerate(words) if word == option]


@pytest.mark.skipif(os.name != "posix", reason="elsewhere the server is a process of its own")
def test_the_server_answers_and_ends_with_its_command(tmp_path):
    """Killed without a chance to end anything else, the command takes the board with it."""
    port = free_port()
    words = [
        sys.executable,
        "-m",
        "biobench",
        "leaderboard",
        "--results-dir",
        str(tmp_path),
        "--port",
        str(port),
    ]
    server = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    try:
        assert any(str(port).encode() in line for line in server.stdout), "the server ended"
        with urllib.request.urlopen(
            f"http://127.0.0.1:{port}/_stcore/health", timeout=20
        ) as answer:
            assert answer.status == 200
        for name, status in (("localhost", 101), ("evil.example", 403)):
            assert websocket_status(port, f"{name}:{port}") == status
    finally:
        server.kill()
        server.communicate(timeout=10)
    with pytest.raises(OSError, match="refused"):
        urllib.request.urlopen(f"http://127.0.0.1:{port}/_stcore/health", timeout=20)
