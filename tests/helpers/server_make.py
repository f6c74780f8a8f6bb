"""A server of the app for browsers."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from leaderboard.launch import RESULTS_VARIABLE, command

CHROMIUM = (
    shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
)


def free_port() -> int:
    """Of this machine."""
    with socket.socket() as free:
        free.bind(("", 0))
        return int(free.getsockname()[1])


@contextmanager
def served(folder: Path, **environment: str) -> Iterator[str]:
    """The address of a server over this results folder."""
    port, environment = free_port(), os.environ | {RESULTS_VARIABLE: str(folder)} | environment
    server = subprocess.Popen(
        command(port), env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    try:
        assert any(str(port).encode() in line for line in server.stdout), "the server ended"
        yield f"http://127.0.0.1:{port}"
    finally:
        server.terminate()
        server.communicate(timeout=10)


def settle(page: Any) -> None:
    """Wait until the app has finished its run."""
    page.locator("[data-testid=stApp][data-test-script-state=notRunning]").wait_for()


def drawn(page: Any) -> None:
    """Wait until tables and charts, which are loaded after the app's run, stand in their places."""
    page.locator("[data-testid=stSkeleton]").first.wait_for(state="detached")
    page.wait_for_function(
        "() => ![...document.querySelectorAll('[data-testid=stSkeleton]')].length"
    )
    page.wait_for_timeout(1_000)
