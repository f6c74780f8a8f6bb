"""Downloading one file: resumed where it broke off, checked, and there only when it is whole."""

from __future__ import annotations

import errno
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from http.client import HTTPException
from pathlib import Path

from biobench import __version__
from biobench.core.files import file_hash
from biobench.errors import DataUnavailableError

Progress = Callable[[str, int, int | None], None]
"""Called with (address, bytes so far, bytes in all or None)."""

_CHUNK = 1 << 18
_TIMEOUT = 60
_TRIES = 3
_BUSY = (429, 500, 502, 503, 504)
_LONGEST_WAIT = 60.0
"""Seconds that a server may ask for between two tries."""


class _Unfinished(Exception):  # noqa: N818
    """An answer that is not what was asked for, or not all of it; another one may be."""


def download(url: str, target: Path, sha256: str | None = None, progress: Progress | None = None) -> Path:
    """The file at `url` as `target`; a part that an earlier try left is continued.

    Three tries, with the pause that a busy server asks for. Raises DataUnavailableError for an address that cannot be
    reached, a file that ends early, a wrong SHA-256 and a full disk. `target` exists only when all is well.
    """
    if target.is_file() and (sha256 is None or file_hash(target) == sha256):
        return target
    part = target.with_name(target.name + ".part")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        for attempt in range(1, _TRIES + 1):
            wait, final = 0.2 * attempt, attempt == _TRIES
            try:
                _receive(url, part, progress)
                break
            except _Unfinished as error:
                what = str(error)
            except urllib.error.HTTPError as error:
                error.close()
                what, asked = f"the server answers {error.code} {error.reason}", error.headers.get("Retry-After") or ""
                wait = float(asked) if asked.isdecimal() else wait
                what += f" and takes requests again in {wait:.0f} s" if wait > _LONGEST_WAIT else ""
                final = final or error.code not in _BUSY or wait > _LONGEST_WAIT
            except (urllib.error.URLError, HTTPException, TimeoutError, ConnectionError) as error:
                what = f"cannot be reached ({getattr(error, 'reason', None) or error})"
            if final:
                hint = "check the network and fetch again; what is there is continued"
                raise DataUnavailableError(f"{url}: {what}", hint=hint)
            time.sleep(wait)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise not_written(error, part.parent) from None
    wrong = sha256 is not None and (digest := file_hash(part)) != sha256
    if not wrong:
        part.replace(target)
    for path in (part, _version_of(part)):
        path.unlink(missing_ok=True)
    if wrong:
        raise DataUnavailableError(
            f"{url}: the SHA-256 is {digest}, the spec says {sha256}",
            hint="the file has changed or was damaged on its way; fetch again, and do not use it if this stays",
        )
    return target


def not_written(error: OSError, folder: Path) -> DataUnavailableError:
    """What to say where the data folder takes no file."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return DataUnavailableError(f"the disk of {folder} is full", hint="free some space, or use another --data-dir")
    what = f"{error.filename or folder}: {error.strerror or error}"
    return DataUnavailableError(what, hint="check the folder's permissions")


def _version_of(part: Path) -> Path:
    """The file that names the version of the file that a part is of: its strong entity tag, else its date."""
    return part.with_name(part.name + ".version")


def _receive(url: str, part: Path, progress: Progress | None) -> None:
    """Append what is lacking of `url` to `part`, until it is whole. Raises _Unfinished and what urllib raises.

    Where the file is no longer the one that the part was begun from, the server sends the whole (If-Range, RFC 9110,
    section 13.1.5). A server that names no version of its files is taken at its word.
    """
    have, version = part.stat().st_size if part.is_file() else 0, _version_of(part)
    headers = {"User-Agent": f"biobench/{__version__}"} | ({"Range": f"bytes={have}-"} if have else {})
    if have and version.is_file():
        headers["If-Range"] = version.read_text(encoding="latin-1")
    try:
        response = urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=_TIMEOUT)
    except urllib.error.HTTPError as error:
        if error.code != 416 or not have:
            raise
        part.unlink()
        raise _Unfinished("the server has another version of the file, which is shorter") from None
    with response:
        resumed = response.status == 206
        if resumed and not (response.headers.get("Content-Range") or "").startswith(f"bytes {have}-"):
            part.unlink(missing_ok=True)
            raise _Unfinished("the server sends another part of the file than was asked for")
        if not resumed:
            have, tag = 0, response.headers.get("ETag") or ""
            name = tag if tag.startswith('"') else response.headers.get("Last-Modified")  # a weak tag names no bytes
            version.write_text(name, encoding="latin-1") if name else version.unlink(missing_ok=True)
        length = response.headers.get("Content-Length")
        expected = None if length is None else int(length) + have
        with part.open("ab" if resumed else "wb") as sink:
            while chunk := response.read(_CHUNK):
                have += sink.write(chunk)
                if progress is not None:
                    progress(url, have, expected)
    if expected is not None and have < expected:
        raise _Unfinished(f"the download is cut off: {have} of {expected} bytes")
