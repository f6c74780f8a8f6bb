"""Git as it is run on a repository that nobody vouches for: it asks nothing, follows no link and runs no hook."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

from biobench.errors import StoreError
from biobench.report.escape import plain

SECONDS = 900
"""For one command."""
_REMEDY = (
    "check address and rights: nobody is asked for a password here, so store a token or an ssh key; where you may not "
    "push, give your fork's address and open the request there"
)


def run_git(words: Sequence[str], folder: Path | None = None) -> str:
    """Stdout of a git command that asks nothing, follows no link and runs no hook of a repository.

    Raises StoreError with git's own reason.
    """
    safe = ["-c", "core.hooksPath=/dev/null", "-c", "core.symlinks=false", "-c", "protocol.ext.allow=never"]
    environment = {**os.environ, "GIT_TERMINAL_PROMPT": "0", "GIT_LFS_SKIP_SMUDGE": "1", "LC_ALL": "C"}
    environment.setdefault("GIT_SSH_COMMAND", "ssh -oBatchMode=yes")
    command = ["git", *safe, *words]
    try:
        done = subprocess.run(
            command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, capture_output=True, timeout=SECONDS,
            check=False,
        )  # fmt: skip
    except (FileNotFoundError, subprocess.TimeoutExpired) as error:
        raise StoreError(f"git cannot be run: {error}", hint="install git, or use hub:owner/name") from None
    if done.returncode:
        lines = done.stderr.decode("utf-8", "replace").splitlines() or [f"status {done.returncode}"]
        # the line that says why: what follows is advice
        signs = ("! [", "remote: error", "ssh: ", "error: ", "fatal: ")
        reason = next((line for sign in signs for line in lines if line.strip().startswith(sign)), lines[-1])
        raise StoreError(f"git {words[0]}: {plain(without_password(reason.strip()))}", hint=_REMEDY)
    return done.stdout.decode("utf-8", "surrogateescape")


def without_password(text: str) -> str:
    """An address, or a text with addresses, as it may be stored and shown."""
    return re.sub(r"(\w+://)[^/\s]*@", r"\1", text)
