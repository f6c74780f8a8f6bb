"""Downloading one file: resumed where it broke off, checked, and there only when it is whole."""

from __future__ import annotations

import errno
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from http.client import HTTPException
from pathlib import Path
from typing import Literal

from biobench.core.files import file_hash
from biobench.errors import DataUnavailableError
from biobench.version import __version__

Progress = Callable[[str, int, int | None], None]
"""Called with (address, bytes so far, bytes in all or None)."""

_CHUNK = 1 << 18
_TIMEOUT = 60
_TRIES = 3
_AGAIN = (416, 429, 500, 502, 503, 504)
"""Answers after which another try may succeed: the range is beyond the file, or the server is busy.
"""


def download(
    url: str, target: Path, sha256: str | None = None, progress: Progress | None = None
) -> Path:
    """The file at `url` as `target`, in at most three tries.

    With a SHA-256 the part that an earlier try left is continued: another version of the file would
    not match. Without one each try begins anew. Raises DataUnavailableError for an address that
    cannot be reached, a file that ends early, a wrong SHA-256 and a full disk. `target` exists only
    when all is well.
    """
    if target.is_file() and (sha256 is None or file_hash(target) == sha256):
        return target
    part = target.with_name(target.name + ".part")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        _receive_in_tries(url, part, progress, anew=sha256 is None)
        if sha256 is not None:
            _check_hash(url, part, sha256)
        return part.replace(target)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise not_written(error, part.parent) from None


def _receive_in_tries(url: str, part: Path, progress: Progress | None, *, anew: bool) -> None:
    """Bring the whole file. anew: each try begins at the first byte."""
    for attempt in range(1, _TRIES + 1):
        if anew:
            part.unlink(missing_ok=True)
        problem = _problem(url, part, progress)
        if problem is None:
            return
        message, final = problem
        if final or attempt == _TRIES:
            hint = "check the address and the network, and fetch again"
            raise DataUnavailableError(f"{url}: {message}", hint=hint)
        time.sleep(attempt)


def _check_hash(url: str, part: Path, sha256: str) -> None:
    """Remove the file where its SHA-256 is another, and say so."""
    digest = file_hash(part)
    if digest != sha256:
        part.unlink()
        message = f"{url}: the SHA-256 is {digest}, the spec says {sha256}"
        hint = (
            "the file has changed or was damaged on its way; fetch again, and do not use it if "
            "this stays"
        )
        raise DataUnavailableError(message, hint=hint)


def _problem(url: str, part: Path, progress: Progress | None) -> tuple[str, bool] | None:
    """(what went wrong in receiving a file, whether another try would be in vain); None where it is
    whole.
    """
    try:
        _receive(url, part, progress)
    except urllib.error.HTTPError as error:
        error.close()
        if error.code == 416:
            part.unlink(missing_ok=True)
        return f"the server answers {error.code} {error.reason}", error.code not in _AGAIN
    except (urllib.error.URLError, HTTPException, TimeoutError, ConnectionError) as error:
        return f"cannot be downloaded ({getattr(error, 'reason', None) or error})", False
    return None


def not_written(error: OSError, folder: Path) -> DataUnavailableError:
    """What to say where the data folder takes no file."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return DataUnavailableError(
            f"the disk of {folder} is full", hint="free some space, or use another --data-dir"
        )
    message = f"{error.filename or folder}: {error.strerror or error}"
    return DataUnavailableError(message, hint="check the folder's permissions")


def _receive(url: str, part: Path, progress: Progress | None) -> None:
    """Append what is lacking of `url` to `part`, until it is whole. Raises what urllib raises, and
    ConnectionError.
    """
    have = 0
    request = urllib.request.Request(url, headers={"User-Agent": f"biobench/{__version__}"})
    if part.is_file():
        have = part.stat().st_size
    if have:
        request.add_header("Range", f"bytes={have}-")
    with urllib.request.urlopen(request, timeout=_TIMEOUT) as response:
        mode: Literal["ab", "wb"] = "ab"
        content_range = response.headers.get("Content-Range", "")
        if response.status != 206:  # the server sends the whole file
            mode, have = "wb", 0
        elif not content_range.startswith(f"bytes {have}-"):
            part.unlink()
            raise ConnectionError("the server sends another part of the file")
        length = response.headers.get("Content-Length")
        expected = None if length is None else have + int(length)
        with part.open(mode) as sink:
            while chunk := response.read(_CHUNK):
                have += sink.write(chunk)
                if progress is not None:
                    progress(url, have, expected)
    if expected is not None and have < expected:
        raise ConnectionError(f"cut off: {have} of {expected} bytes")
