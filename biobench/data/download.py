"""Downloading one file: resumed where it broke off, checked, and there only when it is whole."""

from __future__ import annotations

import errno
import io
import re
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from email.message import Message
from http.client import HTTPException
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

from biobench import __version__
from biobench.core.files import file_hash
from biobench.errors import DataUnavailableError

T = TypeVar("T")
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

    Raises DataUnavailableError for an address that cannot be reached, a file that ends early, a wrong
    SHA-256 and a full disk. `target` exists only when all is well; after a wrong hash or a full disk no part
    is left either.
    """
    if target.is_file() and (sha256 is None or file_hash(target) == sha256):
        return target
    part = target.with_name(target.name + ".part")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        _tried(url, lambda: _receive(url, part, progress))
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


def _tried(url: str, ask: Callable[[], T]) -> T:
    """What `ask` gives, asked anew where the connection breaks, the server is busy or the answer is not all.

    A server that is busy is given the time that it asks for. Raises DataUnavailableError for what stays, and at once
    for what another try cannot change.
    """
    for attempt in range(_TRIES):
        wait = 0.2 * attempt
        try:
            return ask()
        except _Unfinished as error:
            what = str(error)
        except urllib.error.HTTPError as error:
            error.close()
            what = f"the server answers {error.code} {error.reason}"
            asked = re.fullmatch(r"\s*(\d{1,9})\s*", error.headers.get("Retry-After") or "", re.ASCII)
            wait = wait if asked is None else float(asked[1])
            if wait > _LONGEST_WAIT:
                raise _failed(url, f"{what} and takes requests again in {wait:.0f} s") from None
            if error.code not in _BUSY:
                raise _failed(url, what) from None
        except (urllib.error.URLError, HTTPException, TimeoutError, ConnectionError) as error:
            what = f"cannot be reached ({getattr(error, 'reason', None) or error})"
        if attempt + 1 < _TRIES:
            time.sleep(wait)
    raise _failed(url, what)


def _failed(url: str, what: str) -> DataUnavailableError:
    return DataUnavailableError(f"{url}: {what}", hint="check the network and fetch again; what is there is continued")


def _opened(url: str, **headers: str) -> Any:
    """The server's answer. Raises DataUnavailableError for a body that is packed on its way, which nobody asked for.

    Web servers also say so of files that are archives and are to stay what they are.
    """
    request = urllib.request.Request(url, headers={"User-Agent": f"biobench/{__version__}", **headers})
    response = urllib.request.urlopen(request, timeout=_TIMEOUT)
    encoding = (response.headers.get("Content-Encoding") or "identity").strip().lower()
    if encoding != "identity" and not urlsplit(url).path.lower().endswith((".gz", ".tgz", ".bz2", ".xz")):
        response.close()
        raise _failed(url, f"the server packs the file as '{encoding}', which was not asked for")
    return response


def _version_of(part: Path) -> Path:
    """The file that names the version of the file that a part is of: its strong entity tag, else its date."""
    return part.with_name(part.name + ".version")


def _receive(url: str, part: Path, progress: Progress | None) -> None:
    """Append what is lacking of `url` to `part`, until it is whole.

    A part is continued where the file is still the one that it was begun from: the server then sends the rest, else
    the whole (If-Range, RFC 9110, section 13.1.5). A server that names no version of its files is taken at its word.
    Raises _Unfinished and what urllib raises.
    """
    have = part.stat().st_size if part.is_file() else 0
    version = _version_of(part)
    known = version.read_text(encoding="latin-1") if have and version.is_file() else None
    headers = {"Range": f"bytes={have}-"} if have else {}
    try:
        response = _opened(url, **headers, **({"If-Range": known} if known is not None else {}))
    except urllib.error.HTTPError as error:
        if error.code != 416 or not have:
            raise
        part.unlink()
        raise _Unfinished("the server has another version of the file, which is shorter") from None
    with response:
        resumed, tag = response.status == 206, response.headers.get("ETag") or ""
        if resumed:
            changed = tag.startswith('"') and known is not None and known.startswith('"') and tag != known
            if changed or _begins_at(response.headers) != have:
                part.unlink(missing_ok=True)
                raise _Unfinished("the server sends another part of the file than was asked for")
        else:
            have = 0
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


def _begins_at(headers: Message) -> int | None:
    """The place of the first byte of an answer with a part of a file."""
    match = re.match(r"bytes (\d+)-", headers.get("Content-Range") or "", re.ASCII)
    return None if match is None else int(match[1])


class NoRangesError(DataUnavailableError):
    """The server serves no parts of files; the whole can be had."""


class RangeFile(io.RawIOBase):
    """A remote file read by ranges, so that a few members of a large zip need not cost all of it.

    Raises NoRangesError where the server does not serve them, and DataUnavailableError where the file changes while it
    is read.
    """

    def __init__(self, url: str) -> None:
        self.url, self.position, self.received, self.size = url, 0, 0, 0
        self.tag: str | None = None
        self._part(0)

    def _part(self, last: int) -> bytes:
        """The bytes from the current position to `last`; the first answer gives the file's size and tag."""

        def ask() -> bytes:
            with _opened(self.url, Range=f"bytes={self.position}-{last}") as response:
                size, tag = response.headers.get("Content-Range", "").rpartition("/")[2], response.headers.get("ETag")
                if not self.size and (response.status != 206 or not size.isdecimal()):
                    raise NoRangesError(f"{self.url}: the server serves no ranges", hint="download the whole file")
                if not self.size:
                    self.size, self.tag = int(size), tag
                if response.status == 206 and (size, tag) != (str(self.size), self.tag):
                    raise _failed(self.url, "the file changed while it was read")
                if response.status != 206 or _begins_at(response.headers) != self.position:
                    raise _Unfinished("the server sends another part of the file than was asked for")
                data: bytes = response.read()
            if len(data) != last - self.position + 1:
                raise _Unfinished(f"the download is cut off: {len(data)} of {last - self.position + 1} bytes")
            return data

        return _tried(self.url, ask)

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
        data = self._part(last)
        view[: len(data)] = data
        self.position += len(data)
        self.received += len(data)
        return len(data)
