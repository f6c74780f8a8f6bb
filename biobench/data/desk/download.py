"""Downloading one file: resumed where it broke off, checked, and there only when it is whole."""

from __future__ import annotations

import errno
import gzip
import io
import re
import shutil
import ssl
import time
import urllib.error
import urllib.request
import zlib
from collections.abc import Callable
from email.message import Message
from email.utils import parsedate_to_datetime
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
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_name(target.name + ".part")
    try:
        encoding = _tried(url, lambda: _receive(url, part, progress))
        whole = _decoded(part, encoding, url) if encoding else part
    except OSError as error:
        raise _disk(error, part, url) from None
    wrong = sha256 is not None and (digest := file_hash(whole)) != sha256
    if not wrong:
        whole.replace(target)
    for path in (whole, part, _version_of(part)):
        path.unlink(missing_ok=True)
    if wrong:
        raise DataUnavailableError(
            f"{url}: the SHA-256 is {digest}, the spec says {sha256}",
            hint="the file has changed or was damaged on its way; fetch again, and do not use it if this stays",
        )
    return target


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
            if error.code not in _BUSY:
                raise _failed(url, what) from None
            asked = _asked_to_wait(error.headers)
            if asked is not None and asked > _LONGEST_WAIT:
                raise _failed(url, f"{what} and takes requests again in {asked:.0f} s") from None
            wait = wait if asked is None else asked
        except (urllib.error.URLError, HTTPException, TimeoutError, ConnectionError, ssl.SSLError) as error:
            what = f"cannot be reached ({getattr(error, 'reason', None) or error})"
        if attempt + 1 < _TRIES:
            time.sleep(wait)
    raise _failed(url, what)


def _asked_to_wait(headers: Message) -> float | None:
    """Seconds that `Retry-After` names, as a number or as a date (RFC 9110, section 10.2.3); else None."""
    text = (headers.get("Retry-After") or "").strip()
    if re.fullmatch(r"\d{1,9}", text, re.ASCII):
        return float(text)
    try:
        return max(0.0, parsedate_to_datetime(text).timestamp() - time.time())
    except (ValueError, OverflowError):
        return None


def _failed(url: str, what: str) -> DataUnavailableError:
    return DataUnavailableError(f"{url}: {what}", hint="check the network and fetch again; what is there is continued")


def _disk(error: OSError, part: Path, url: str) -> DataUnavailableError:
    for path in (part, _aside_of(part)):
        path.unlink(missing_ok=True)
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return DataUnavailableError(
            f"{url}: the disk of {part.parent} is full", hint="free some space, or use another --data-dir"
        )
    return DataUnavailableError(f"{part.parent}: {error.strerror or error}", hint="check the folder's permissions")


def _request(url: str, **headers: str) -> urllib.request.Request:
    return urllib.request.Request(url, headers={"User-Agent": f"biobench/{__version__}", **headers})


def _version_of(part: Path) -> Path:
    """The file that names the version of the file that a part is of."""
    return part.with_name(part.name + ".version")


def _aside_of(part: Path) -> Path:
    """Where what a part was packed as is unpacked."""
    return part.with_name(f"{part.name.removesuffix('.part')}.decoded.part")


def _receive(url: str, part: Path, progress: Progress | None) -> str | None:
    """Append what is lacking of `url` to `part`, until it is whole; gives its encoding where it is not the file itself.

    A part is continued where the file is still the one that it was begun from: the server then sends the rest, else
    the whole (If-Range, RFC 9110, section 13.1.5). A server that names no version of its files is taken at its word.
    Raises _Unfinished and what urllib raises.
    """
    have = part.stat().st_size if part.is_file() else 0
    version = _version_of(part)
    known = version.read_text(encoding="latin-1") if have and version.is_file() else None
    headers = {"Range": f"bytes={have}-"} if have else {}
    if known is not None:
        headers["If-Range"] = known
    try:
        response = urllib.request.urlopen(_request(url, **headers), timeout=_TIMEOUT)
    except urllib.error.HTTPError as error:
        if error.code != 416 or not have:
            raise
        part.unlink()
        raise _Unfinished("the server has another version of the file, which is shorter") from None
    with response:
        resumed = response.status == 206
        if resumed and not _continues(response.headers, have, known):
            part.unlink(missing_ok=True)
            raise _Unfinished("the server sends another part of the file than was asked for")
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
        encoding = _encoding(response.headers, url)
    if expected is not None and done < expected:
        raise _Unfinished(f"the download is cut off: {done} of {expected} bytes")
    return encoding


def _begins_at(headers: Message) -> int | None:
    """The place of the first byte of an answer with a part of a file."""
    match = re.match(r"bytes (\d+)-", headers.get("Content-Range") or "", re.ASCII)
    return None if match is None else int(match[1])


def _continues(headers: Message, have: int, known: str | None) -> bool:
    """Whether an answer goes on where the part ends, as far as it tells of the file that the part is of."""
    tag = headers.get("ETag") or ""
    same = not (tag.startswith('"') and known is not None and known.startswith('"')) or tag == known
    return same and _begins_at(headers) == have


def _encoding(headers: Message, url: str) -> str | None:
    """How the body is packed on its way, which nobody asked for; None where it is the file itself.

    Web servers also say so of files that are archives and are to stay what they are.
    """
    encoding: str = (headers.get("Content-Encoding") or "identity").strip().lower()
    if encoding == "identity" or urlsplit(url).path.lower().endswith((".gz", ".tgz", ".bz2", ".xz")):
        return None
    return encoding


def _decoded(part: Path, encoding: str, url: str) -> Path:
    """The unpacked body beside the part. Raises DataUnavailableError for an encoding that is not gzip, or is broken."""
    if encoding not in ("gzip", "x-gzip"):
        part.unlink()
        raise _failed(url, f"the server packs the file as '{encoding}', which was not asked for")
    aside = _aside_of(part)
    try:
        with gzip.open(part) as packed, aside.open("wb") as out:
            shutil.copyfileobj(packed, out, _CHUNK)
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        for path in (aside, part):
            path.unlink(missing_ok=True)
        raise _failed(url, f"what came is not the gzip that the server says ({error})") from None
    return aside


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

    Raises DataUnavailableError where the server does not serve ranges; callers then download the whole. Also where the
    file changes while it is read.
    """

    def __init__(self, url: str) -> None:
        self.url = url
        self.position = 0
        self.received = 0
        self.size, self.tag = _tried(url, self._look)

    def _look(self) -> tuple[int, str | None]:
        """The file's size in bytes and its entity tag."""
        with urllib.request.urlopen(_request(self.url, Range="bytes=0-0"), timeout=_TIMEOUT) as response:
            size = response.headers.get("Content-Range", "").rpartition("/")[2]
            packed = response.headers.get("Content-Encoding", "identity") != "identity"
            if response.status != 206 or not size.isdecimal() or packed:
                raise DataUnavailableError(f"{self.url}: the server serves no ranges", hint="download the whole file")
            return int(size), response.headers.get("ETag")

    def _read(self, last: int) -> bytes:
        """The bytes from the current position to `last`."""
        wanted = _request(self.url, Range=f"bytes={self.position}-{last}")
        with urllib.request.urlopen(wanted, timeout=_TIMEOUT) as response:
            size = response.headers.get("Content-Range", "").rpartition("/")[2]
            if response.status == 206 and (size != str(self.size) or response.headers.get("ETag") != self.tag):
                raise _failed(self.url, "the file changed while it was read")
            if response.status != 206 or _begins_at(response.headers) != self.position:
                raise _Unfinished("the server sends another part of the file than was asked for")
            data: bytes = response.read()
        if len(data) != last - self.position + 1:
            raise _Unfinished(f"the download is cut off: {len(data)} of {last - self.position + 1} bytes")
        return data

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
        data = _tried(self.url, lambda: self._read(last))
        view[: len(data)] = data
        self.position += len(data)
        self.received += len(data)
        return len(data)
