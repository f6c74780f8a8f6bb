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


def run_git(words: Sequence[str], folder: Path | None = None) -> str:
    """Stdout of `run_git_bytes` as text."""
    return run_git_bytes(words, folder).decode("utf-8", "surrogateescape")


def run_git_bytes(words: Sequence[str], folder: Path | None = None) -> bytes:
    """Stdout of a git command that asks nothing, follows no link and runs no hook of a repository.

    Raises StoreError with git's own reason.
    """
    safe = ["-c", "core.hooksPath=/dev/null", "-c", "core.symlinks=false", "-c", "protocol.ext.allow=never"]
    environment = {**os.environ, "GIT_TERMINAL_PROMPT": "0", "GIT_LFS_SKIP_SMUDGE": "1", "LC_ALL": "C"}
    environment.setdefault("GIT_SSH_COMMAND", "ssh -oBatchMode=yes")
    try:
        done = subprocess.run(
            ["git", *safe, *words],
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            timeout=SECONDS,
        )
    except FileNotFoundError:
        raise StoreError("git is not installed", hint="install git, or use hub:owner/name") from None
    except subprocess.TimeoutExpired:
        raise StoreError(f"git {words[0]} took more than {SECONDS} s", hint="try again later") from None
    if done.returncode:
        answer = done.stderr.decode("utf-8", "replace")
        reason = _reason(answer) or f"status {done.returncode}"
        raise StoreError(f"git {words[0]}: {plain(without_addresses(reason))}", hint=_remedy(words[0], answer))
    return done.stdout


def _reason(answer: str) -> str:
    """The line of git's answer that says why: what follows is advice."""
    lines = [line.strip() for line in answer.splitlines() if line.strip()]
    for sign in ("! [", "remote: error", "ssh: ", "fatal: ", "error: "):
        for line in lines:
            if line.startswith(sign):
                return line
    return lines[-1] if lines else ""


_REMEDIES = (
    (("could not read Username", "could not read Password", "Authentication failed", "terminal prompts disabled"),
     "nobody is asked for a password here: store a token with git's credential helper, or give the ssh address"),
    (("Permission denied (publickey", "Host key verification failed"),
     "`ssh -T` to that host must work without a question: add your key and its host key first"),
    (("(fetch first)", "(non-fast-forward)", "(stale info)"),
     "somebody else sent to this branch meanwhile: give the command again"),
    (("tell me who you are", "auto-detect email", "empty ident name"),
     "git config --global user.name NAME, and user.email ADDRESS"),
)  # fmt: skip
"""What git says, and what to do."""


def _remedy(command: str, answer: str) -> str:
    for signs, remedy in _REMEDIES:
        if any(sign in answer for sign in signs):
            return remedy
    if command == "push":
        return "fork the repository, give the fork's address, and open the request from there"
    return "check address and rights" if command in ("clone", "fetch", "ls-remote") else "see what git says"


def without_addresses(line: str) -> str:
    """A message of git in which no password stands."""
    return re.sub(r"(\w+://)[^@/\s]*@", r"\1", line)
