"""Downloading one file: resumed where it broke off, checked, and there only when it is whole."""

from __future__ import annotations

import errno
import io
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from email.message import Message
from http.client import HTTPException
from pathlib import Path
from typing import Any

from biobench import __version__
from biobench.core.files import file_hash
from biobench.errors import DataUnavailableError

Progress = Callable[[str, int, int | None], None]
"""Called with (address, bytes so far, bytes in all or None)."""

_CHUNK = 1 << 18
_TIMEOUT = 60
_TRIES = 3


def download(url: str, target: Path, sha256: str | None = None, progress: Progress | None = None) -> Path:
    """The file at `url` as `target`; a part that an earlier try left is continued.

    Raises DataUnavailableError for an address that cannot be reached, a file that ends early, a wrong
    SHA-256 and a full disk. `target` exists only when all is well; after a wrong hash or a full disk no part
    is left either.
    """
    if target.is_file() and (sha256 is None or file_hash(target) == sha256):
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_name(target.name + ".part")
    version = part.with_name(part.name + ".version")
    for attempt in range(_TRIES):
        try:
            expected = _receive(url, part, progress)
        except urllib.error.HTTPError as error:
            if error.code == 416:  # the part is longer than the file: another version
                part.unlink(missing_ok=True)
                continue
            if error.code < 500 or attempt + 1 == _TRIES:
                raise _failed(url, f"the server answers {error.code} {error.reason}") from None
        except (urllib.error.URLError, HTTPException, TimeoutError, ConnectionError) as error:
            reason = getattr(error, "reason", None) or error
            if attempt + 1 == _TRIES:
                raise _failed(url, f"cannot be reached ({reason})") from None
        except OSError as error:
            raise _disk(error, part, url) from None
        else:
            size = part.stat().st_size
            if expected is None or size >= expected:
                break
            if attempt + 1 == _TRIES:
                raise _failed(url, f"the download is cut off: {size} of {expected} bytes")
        time.sleep(0.2 * attempt)
    if sha256 is not None and (digest := file_hash(part)) != sha256:
        part.unlink()
        version.unlink(missing_ok=True)
        raise DataUnavailableError(
            f"{url}: the SHA-256 is {digest}, the spec says {sha256}",
            hint="the file has changed or was damaged on its way; fetch again, and do not use it if this stays",
        )
    part.replace(target)
    version.unlink(missing_ok=True)
    return target


def _failed(url: str, what: str) -> DataUnavailableError:
    return DataUnavailableError(f"{url}: {what}", hint="check the network and fetch again; what is there is continued")


def _disk(error: OSError, part: Path, url: str) -> DataUnavailableError:
    part.unlink(missing_ok=True)
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return DataUnavailableError(
            f"{url}: the disk of {part.parent} is full", hint="free some space, or use another --data-dir"
        )
    return DataUnavailableError(f"{part.parent}: {error.strerror or error}", hint="check the folder's permissions")


def _request(url: str, **headers: str) -> urllib.request.Request:
    return urllib.request.Request(url, headers={"User-Agent": f"biobench/{__version__}", **headers})


def _receive(url: str, part: Path, progress: Progress | None) -> int | None:
    """Append what is lacking of `url` to `part`; gives the size of the whole file where the server tells it.

    A part is continued where the file is still the one that it was begun from: the server then sends the rest, else
    the whole (If-Range, RFC 9110, section 13.1.5). A server that names no version of its files is taken at its word.
    """
    have = part.stat().st_size if part.is_file() else 0
    version = part.with_name(part.name + ".version")
    headers = {"Range": f"bytes={have}-"} if have else {}
    if have and version.is_file():
        headers["If-Range"] = version.read_text(encoding="latin-1")
    with urllib.request.urlopen(_request(url, **headers), timeout=_TIMEOUT) as response:
        resumed = response.status == 206
        length = response.headers.get("Content-Length")
        expected = None if length is None else int(length) + (have if resumed else 0)
        done = have if resumed else 0
        if not resumed:
            _keep_version(version, response.headers)
        with part.open("ab" if resumed else "wb") as sink:
            while chunk := response.read(_CHUNK):
                sink.write(chunk)
                done += len(chunk)
                if progress is not None:
                    progress(url, done, expected)
    return expected


def _keep_version(file: Path, headers: Message) -> None:
    """The entity tag, else the date of the file that is being downloaded; a weak tag names no bytes."""
    tag = headers.get("ETag") or ""
    name = tag if tag.startswith('"') else headers.get("Last-Modified")
    if name is None:
        file.unlink(missing_ok=True)
    else:
        file.write_text(name, encoding="latin-1")


class RangeFile(io.RawIOBase):
    """A remote file read by ranges, so that a few members of a large zip need not cost all of it.

    Raises DataUnavailableError where the server does not serve ranges; callers then download the whole.
    """

    def __init__(self, url: str) -> None:
        self.url = url
        self.position = 0
        self.received = 0
        try:
            with urllib.request.urlopen(_request(url, Range="bytes=0-0"), timeout=_TIMEOUT) as response:
                size = response.headers.get("Content-Range", "").rpartition("/")[2]
                if response.status != 206 or not size.isdecimal():
                    raise DataUnavailableError(f"{url}: the server serves no ranges", hint="download the whole file")
        except (urllib.error.URLError, HTTPException, TimeoutError, ConnectionError) as error:
            raise _failed(url, f"cannot be reached ({getattr(error, 'reason', None) or error})") from None
        self.size = int(size)

    def seekable(self) -> bool:
        """Always."""
        return True

    def readable(self) -> bool:
        """Always."""
        return True

    def tell(self) -> int:
        """Bytes from the start."""
        return self.position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Move as files do."""
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self.position, io.SEEK_END: self.size}[whence]
        self.position = max(0, base + offset)
        return self.position

    def readinto(self, buffer: Any) -> int:
        """Fill `buffer` from the current position."""
        view = memoryview(buffer)
        last = min(self.size, self.position + len(view)) - 1
        if last < self.position:
            return 0
        try:
            with urllib.request.urlopen(
                _request(self.url, Range=f"bytes={self.position}-{last}"), timeout=_TIMEOUT
            ) as response:
                data = response.read()
        except (urllib.error.URLError, HTTPException, TimeoutError, ConnectionError) as error:
            raise _failed(self.url, f"broke off ({getattr(error, 'reason', None) or error})") from None
        if len(data) != last - self.position + 1:
            raise _failed(self.url, f"the download is cut off: {len(data)} of {last - self.position + 1} bytes")
        view[: len(data)] = data
        self.position += len(data)
        self.received += len(data)
        return len(data)
