"""Unpacking archives that nobody here has looked at: no escapes, no links, no bombs, nothing half-written."""

from __future__ import annotations

import errno
import lzma
import shutil
import stat
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, TypeVar

from biobench.errors import BioBenchError, DataFormatError

_CHUNK = 1 << 20
_T = TypeVar("_T")
DAMAGED = (
    zipfile.BadZipFile,
    zipfile.LargeZipFile,
    tarfile.TarError,
    lzma.LZMAError,
    zlib.error,
    struct.error,
    EOFError,
    OSError,  # of bz2 and gzip streams, and of seeking to where an archive cannot have anything
    IndexError,  # a name without a letter
    ValueError,  # names that are not UTF-8, negative places
    OverflowError,
    RuntimeError,  # encrypted, or a compression method that Python does not know
    MemoryError,
)
"""What the standard library raises while it reads an archive whose parts contradict each other."""
_NAMES = (errno.EEXIST, errno.EISDIR, errno.ENOTDIR, errno.ENAMETOOLONG, errno.EINVAL, errno.EILSEQ)
"""What the system answers to a name that it cannot give to a file, as against a full or read-only disk."""


class DamagedArchiveError(DataFormatError):
    """An archive cannot be read to its end: what was downloaded is not the archive."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What an archive may become: bytes in all, files, and bytes per compressed byte of a large file."""

    bytes: int = 20 << 30
    files: int = 200_000
    ratio: int = 300
    ratio_from: int = 50 << 20
    """Bytes below which the ratio does not matter: short repetitive texts compress well."""


@dataclass(frozen=True, slots=True)
class _Member:
    name: str
    packed: int
    open: Callable[[], IO[bytes]]


def unpack(
    archive: Path | IO[bytes],
    kind: str,
    target: Path,
    *,
    subfolder: str = "",
    members: list[str] | None = None,
    limits: Limits | None = None,
    name: str | None = None,
) -> list[Path]:
    """Write the archive's files below `target` (which must be new) and give their paths.

    kind: zip or tar (any compression). subfolder: only what lies below it, without it. members: of that only
    these. macOS resource files are skipped. Raises DataFormatError for a damaged archive, a member that
    escapes or is no plain file, an archive beyond `limits`, and for asked members that are not there; then
    nothing is left of `target`.
    """
    label = name or str(archive)
    limits = limits or Limits()
    target.mkdir(parents=True)
    try:
        written = _write(archive, kind, target, subfolder, members, limits, label)
    except BaseException:
        shutil.rmtree(target, ignore_errors=True)
        raise
    return written


def _write(
    archive: Path | IO[bytes],
    kind: str,
    target: Path,
    subfolder: str,
    members: list[str] | None,
    limits: Limits,
    label: str,
) -> list[Path]:
    wanted = None if not members else set(members)
    written: list[Path] = []
    total = 0
    for member in _read(_zip(archive, label) if kind == "zip" else _tar(archive, label), label):
        relative = _relative(member.name, subfolder, label)
        if relative is None or (wanted is not None and relative not in wanted):
            continue
        if len(written) >= limits.files:
            raise DataFormatError(f"the archive holds more than {limits.files} files", hint="refused", file=label)
        path = target / relative
        with _new_file(path, member.name, label) as sink:
            size = 0
            for chunk in _read(_chunks(member), label):
                size += len(chunk)
                total += len(chunk)
                # Sizes are counted as they come; what the archive says of itself is not believed.
                bomb = size > limits.ratio_from and member.packed and size > limits.ratio * member.packed
                if total > limits.bytes or bomb:
                    raise DataFormatError(
                        f"'{member.name}' unpacks to more than is allowed ({size} bytes from {member.packed})",
                        hint="refused as a decompression bomb",
                        file=label,
                    )
                sink.write(chunk)
        written.append(path)
    missing = sorted((wanted or set()) - {p.relative_to(target).as_posix() for p in written})
    if missing or not written:
        what = f"'{missing[0]}' is not" if missing else f"nothing below '{subfolder}' is"
        raise DataFormatError(f"{what} in the archive", hint="check `subfolder` and `members`", file=label)
    return written


def _read(parts: Iterator[_T], label: str) -> Iterator[_T]:
    """The parts; what goes wrong while the archive is read for one is the archive's fault, and said so."""
    while True:
        try:
            part = next(parts)
        except StopIteration:
            return
        except BioBenchError:
            raise
        except DAMAGED as error:
            what = str(error) or type(error).__name__
            raise DamagedArchiveError(f"the archive is damaged: {what}", hint="fetch it again", file=label) from None
        yield part


def _chunks(member: _Member) -> Iterator[bytes]:
    with member.open() as source:
        while chunk := source.read(_CHUNK):
            yield chunk


def _new_file(path: Path, name: str, label: str) -> IO[bytes]:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        return path.open("xb")
    except OSError as error:
        if error.errno not in _NAMES:
            raise
        what = f"member '{name[:80]}' cannot become a file ({error.strerror})"
        raise DataFormatError(what, hint="refused; two members may have one name", file=label) from None


def _relative(name: str, subfolder: str, label: str) -> str | None:
    """The member's path below `subfolder`; None for what is not wanted. Raises for a path that escapes."""
    posix = PurePosixPath(name.replace("\\", "/"))
    if posix.is_absolute() or ".." in posix.parts or (posix.parts and ":" in posix.parts[0]) or "\0" in name:
        raise DataFormatError(f"member '{name}' would be written outside the folder", hint="refused", file=label)
    if "__MACOSX" in posix.parts or posix.name.startswith("._"):
        return None
    if subfolder:
        if not posix.is_relative_to(subfolder):
            return None
        posix = posix.relative_to(subfolder)
    return posix.as_posix()


def _zip(archive: Path | IO[bytes], label: str) -> Iterator[_Member]:
    with zipfile.ZipFile(archive) as opened:
        for info in opened.infolist():
            if info.is_dir():
                continue
            mode = info.external_attr >> 16
            if mode and stat.S_IFMT(mode) not in (0, stat.S_IFREG):
                raise DataFormatError(f"member '{info.filename}' is a link", hint="refused", file=label)
            if info.flag_bits & 1:
                raise DataFormatError(f"member '{info.filename}' is encrypted", hint="unpack it by hand", file=label)
            yield _Member(info.filename, max(1, info.compress_size), lambda info=info: opened.open(info))  # type: ignore[misc]


def _tar(archive: Path | IO[bytes], label: str) -> Iterator[_Member]:
    packed = archive.stat().st_size if isinstance(archive, Path) else 0
    with tarfile.open(archive, "r:*") if isinstance(archive, Path) else tarfile.open(fileobj=archive) as opened:
        for info in opened:
            if info.isdir():
                continue
            if not info.isfile():
                raise DataFormatError(f"member '{info.name}' is a link or a device", hint="refused", file=label)
            stream = opened.extractfile(info)
            assert stream is not None
            yield _Member(info.name, packed, lambda stream=stream: stream)  # type: ignore[misc]
