"""Writing that is either done or not: temporary file, fsync, rename; and the errors in one line."""

from __future__ import annotations

import errno
import glob
import hashlib
import json
import os
import re
import secrets
import shutil
import stat
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

from biobench.core.processes import NAME, has_ended, this_process
from biobench.errors import BioBenchError, StoreError

STALE_SECONDS = 2 * 86400.0
"""A temporary file this far from the present belongs to a process that died, where that process
cannot be asked for: one of another machine, say. Writing takes a minute at most, and a clock that
is wrong by a day kills nothing.
"""
_SUFFIX = ".tmp"
_WRITER = re.compile(rf"\.({NAME.pattern})\.[0-9a-f]+{re.escape(_SUFFIX)}")
_SYSTEM_ERROR = re.compile(r"\(os error (\d+)\)")
"""How libraries in Rust, such as safetensors, name an error of the operating system."""
RESULTS = "--results-dir"


def cannot_write(path: Path, error: OSError, place: str = RESULTS) -> StoreError:
    """The operating system's refusal as one line with its remedy. place: the option or argument
    that names the path.
    """
    message = f"cannot be written: {error.strerror or error}"
    remedy = "check the path"
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        message = "the disk is full"
        remedy = "free space"
    elif error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        remedy = "check the folder's permissions"
    return StoreError(message, hint=f"{remedy}, or choose another {place}", file=path)


@contextmanager
def writing(path: Path, place: str = RESULTS) -> Iterator[None]:
    """Turn a failed write below `path` into a StoreError: an OSError, or what a library says of one
    in words.
    """
    try:
        yield
    except OSError as error:
        raise cannot_write(path, error, place) from error
    except Exception as error:
        match = _SYSTEM_ERROR.search(str(error))
        if match is None:
            raise
        number = int(match[1])
        raise cannot_write(path, OSError(number, os.strerror(number)), place) from error


def temporary_name(path: Path) -> Path:
    """A new name in the folder of `path` for the file that replaces it; names this process, for
    `remove_stale`.
    """
    parts = (path.name, this_process(), secrets.token_hex(6))
    return path.with_name(f".{'.'.join(filter(None, parts))}{_SUFFIX}")


def folder_time(folder: Path) -> float:
    """Seconds since the epoch by the file system's clock; by the machine's where the folder cannot
    be written.
    """
    probe = folder / f".clock.{secrets.token_hex(6)}"
    try:
        probe.touch(exist_ok=False)
        return probe.stat().st_mtime
    except OSError:
        return time.time()
    finally:
        with suppress(OSError):
            probe.unlink(missing_ok=True)


@contextmanager
def temporary_file(path: Path) -> Iterator[BinaryIO]:
    """A new file in the folder of `path` to write to, flushed to disk at the end; nothing is left
    of it on failure.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = temporary_name(path)
    try:
        with open(temporary, "xb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def write_temporary(path: Path, content: bytes, place: str = RESULTS) -> Path:
    """`content` in a new file in the folder of `path`, for `commit`. Raises StoreError."""
    with writing(path, place), temporary_file(path) as stream:
        stream.write(content)
    return Path(stream.name)


@contextmanager
def temporary_folder(folder: Path, place: str = RESULTS) -> Iterator[Path]:
    """A new folder in the parent of `folder` that becomes it at the end, whole; nothing is left of
    it on failure.

    Raises StoreError, also where `folder` is there by then and not empty.
    """
    aside = temporary_name(folder)
    try:
        with writing(folder, place):
            remove_stale(folder.parent, folder.name)
            aside.mkdir(parents=True)
        yield aside
        with writing(folder, place):
            os.replace(aside, folder)
            sync_folder(folder.parent)
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def make_folder(path: Path, place: str = RESULTS) -> Path:
    """Make a folder with its parents, and try to write there. Raises StoreError where one of the
    two fails.
    """
    with writing(path, place):
        path.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=path):
            return path


def commit(temporary: Path, path: Path, place: str = RESULTS) -> None:
    """Give the temporary file its name, atomically and durably."""
    try:
        with writing(path, place):
            os.replace(temporary, path)
            sync_folder(path.parent)
    finally:
        temporary.unlink(missing_ok=True)


def write_atomic(path: Path, content: bytes, place: str = RESULTS) -> None:
    """`content` becomes the file, or the file stays what it was. What dead processes left of it is
    removed.

    Raises StoreError.
    """
    remove_stale(path.parent, path.name)
    commit(write_temporary(path, content, place), path, place)


def sync_folder(folder: Path) -> None:
    """Make renames in the folder survive a power cut."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def remove_stale(folder: Path, name: str | None = None) -> None:
    """Delete what dead processes left of temporary files and folders in `folder`, of all names or
    of that one.

    Raises StoreError.
    """
    names = "*"
    if name is not None:
        names = f"{glob.escape(name)}.*"
    for path in folder.glob(f".{names}{_SUFFIX}"):
        try:
            if _is_stale(path):
                _remove(path)
        except FileNotFoundError:
            continue  # another process cleaned it first
        except OSError as error:
            raise cannot_write(path, error) from error


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink()


def _is_stale(path: Path) -> bool:
    """Whether the process that wrote a temporary file has ended; of one that cannot be asked for,
    the age decides, by the file system's clock.
    """
    writer = _WRITER.search(path.name)
    if writer is not None:
        ended = has_ended(writer[1])
        if ended is not None:
            return ended
    return abs(folder_time(path.parent) - path.stat().st_mtime) > STALE_SECONDS


def read_regular(
    path: Path, most: int | None = None, failure: type[BioBenchError] = StoreError
) -> bytes:
    """The content of a plain file, or of one that a link leads to, at most `most` bytes.

    A pipe, socket or device is refused instead of waited for. Raises `failure`, which takes what,
    hint and file.
    """
    try:
        kind = kind_of(path.stat().st_mode)
        if kind != "file":
            raise failure(f"is a {kind}, not a file", hint="remove it", file=path)
        with path.open("rb") as stream:
            content = stream.read(-1 if most is None else most + 1)
    except OSError as error:
        message = f"cannot be read: {error.strerror or error}"
        raise failure(message, hint="check the path and its permissions", file=path) from error
    if most is not None and len(content) > most:
        message = f"has more than the {most:,} bytes that are read of such a file"
        raise failure(message, hint="check that it is the right file", file=path)
    return content


def inside(folder: Path, name: str, failure: type[BioBenchError]) -> Path:
    """The path of `name` below the folder. Raises `failure` where a link in it leads elsewhere."""
    path = folder / name
    if not path.resolve().is_relative_to(folder.resolve()):
        hint = "copy the file itself into the folder"
        raise failure("is a link that leaves its folder", hint=hint, file=path)
    return path


def kind_of(mode: int) -> str:
    """What a file's mode says it is: file, folder, link, pipe, socket or device."""
    kinds = {
        stat.S_IFREG: "file",
        stat.S_IFDIR: "folder",
        stat.S_IFLNK: "link",
        stat.S_IFIFO: "pipe",
        stat.S_IFSOCK: "socket",
    }
    return kinds.get(stat.S_IFMT(mode), "device")


def canonical(value: Any) -> str:
    """JSON text with sorted keys and no blanks: one text per value. Raises ValueError for what is
    not JSON.
    """
    return json.dumps(
        value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
    )


def sha256_of(content: bytes) -> str:
    """Hex digest."""
    return hashlib.sha256(content).hexdigest()


def file_hash(path: Path) -> str:
    """sha256 (hex) of a file's bytes."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def broken_file(folder: Path, pattern: str, open_: Callable[[Path], object]) -> Path | None:
    """The first of the folder's files of this pattern that `open_` cannot open; None where all
    open.
    """
    for path in sorted(folder.glob(pattern)):
        try:
            open_(path)
        except Exception:  # whatever it is, this file is the one to name
            return path
    return None
