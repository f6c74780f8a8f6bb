"""Commands of git that ask nothing, follow no link and run no hook of a repository."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from biobench.errors import StoreError, UsageError
from biobench.reporting.escape import plain

MOST_LISTED = 64 * 2**20
"""Bytes of the list of files of a repository: some 400,000 files."""
GIT_SECONDS = 900
"""For one command."""
_REMEDY = (
    "check the address and your rights; store a token or an ssh key, because no password is asked "
    "for; if you may not push, give the address of your fork and open the request there"
)
_SAFE = (
    *("-c", "core.hooksPath=/dev/null"),
    *("-c", "core.symlinks=false"),
    *("-c", "protocol.ext.allow=never"),
)
"""Settings under which a command follows no link and runs no hook of a repository."""


def run_git(words: Sequence[str], folder: Path | None = None, typed: str | None = None) -> str:
    """Stdout of a git command that asks nothing, follows no link and runs no hook of a repository.

    typed: its stdin. Raises StoreError with git's own reason.
    """
    environment = {
        **os.environ,
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_LFS_SKIP_SMUDGE": "1",
        "LC_ALL": "C",
    }
    environment.setdefault("GIT_SSH_COMMAND", "ssh -oBatchMode=yes")
    try:
        done = subprocess.run(
            ["git", *_SAFE, *words],
            cwd=folder,
            env=environment,
            input=b"" if typed is None else os.fsencode(typed),
            capture_output=True,
            timeout=GIT_SECONDS,
            check=False,
        )
    except (FileNotFoundError, subprocess.TimeoutExpired) as error:
        raise StoreError(
            f"git cannot be run: {error}", hint="install git, or use hub:owner/name"
        ) from None
    if done.returncode:
        lines = done.stderr.decode("utf-8", "replace").splitlines() or [f"status {done.returncode}"]
        # the line that says why: what follows is advice
        signs = re.compile(r"\s*(! \[|remote: error|ssh: |error: |fatal: )")
        reason = next(filter(signs.match, lines), lines[-1])
        raise StoreError(f"git {words[0]}: {plain(without_password(reason.strip()))}", hint=_REMEDY)
    return done.stdout.decode("utf-8", "surrogateescape")


def without_password(text: str) -> str:
    """An address, or a text with addresses, as it may be shown."""
    return re.sub(r"(\w+://)[^/\s]*@", r"\1", text)


def clone(address: str, folder: Path, *options: str) -> str:
    """The newest commit of a clone, in which links are files with the address in them. options: of
    `git clone`. Raises StoreError.
    """
    if not address or address.startswith("-") or "::" in address:
        hint = "give its https or ssh address, or hub:owner/name"
        raise UsageError(f"'{plain(address)}' is no repository", hint=hint)
    source = address
    if Path(address).is_dir():
        source = str(Path(address).resolve())
    words = ["clone", "--quiet", "--depth", "1", "--no-tags", *options]
    run_git([*words, "--", source, str(folder)])
    commit = run_git(["rev-list", "--max-count=1", "--all"], folder).strip()
    if not commit:
        raise StoreError(
            f"{plain(without_password(address))} has no commit yet",
            hint="make its first one, of a README for example: requests are merged into its branch",
        )
    return commit


class ListedFile(NamedTuple):
    """A file of a commit: its path in the repository, and its bytes."""

    path: str
    size: int


def listed_files(root: Path, *folders: str) -> list[ListedFile]:
    """The files of the newest commit below these folders. Raises StoreError."""
    words = ["ls-tree", "-r", "-l", "-z", "HEAD", "--", *(f"{folder}/" for folder in folders)]
    command = ["git", *_SAFE, *words]
    with subprocess.Popen(
        command, cwd=root, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as listing:
        assert listing.stdout is not None
        content = listing.stdout.read(MOST_LISTED + 1)
        listing.kill()
    if len(content) > MOST_LISTED:
        message = f"lists more than {MOST_LISTED} bytes of files below {' and '.join(folders)}"
        raise StoreError(f"the repository {message}", hint="pull from one that somebody keeps")
    files = []
    for line in content.decode("utf-8", "surrogateescape").split("\0"):
        about, _, path = line.partition("\t")
        match about.split():
            case [_, "blob", _, size] if path:  # not a submodule
                files.append(ListedFile(path, int(size)))
    return files
