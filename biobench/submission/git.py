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
_REMEDIES = (
    ("could not read|Authentication failed|prompts disabled",
     "nobody is asked for a password here: store a token with git's credential helper, or give the ssh address"),
    ("publickey|Host key", "`ssh -T` to that host must work without a question: add your key and its host key first"),
    (r"\((fetch first|non-fast-forward|stale info)\)",
     "somebody else sent to this branch meanwhile: give the command again"),
    ("tell me who you are|auto-detect email|empty ident|no email was given",
     "git config --global user.name NAME, and user.email ADDRESS"),
    ("", "check address and rights; where you may not push, fork, give the fork's address, and open the request there"),
)  # fmt: skip
"""What git says, and what to do."""


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
    except FileNotFoundError:
        raise StoreError("git is not installed", hint="install git, or use hub:owner/name") from None
    except subprocess.TimeoutExpired:
        raise StoreError(f"git {words[0]} took more than {SECONDS} s", hint="try again later") from None
    if done.returncode:
        answer = done.stderr.decode("utf-8", "replace")
        lines = [line.strip() for line in answer.splitlines() if line.strip()] or [f"status {done.returncode}"]
        # the line that says why: what follows is advice
        signs = ("! [", "remote: error", "ssh: ", "fatal: ", "error: ")
        reason = next((line for sign in signs for line in lines if line.startswith(sign)), lines[-1])
        reason = re.sub(r"(\w+://)[^@/\s]*@", r"\1", reason)  # no password is shown
        hint = next(remedy for sign, remedy in _REMEDIES if re.search(sign, answer))
        raise StoreError(f"git {words[0]}: {plain(reason)}", hint=hint)
    return done.stdout.decode("utf-8", "surrogateescape")
