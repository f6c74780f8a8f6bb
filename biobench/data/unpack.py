"""Unpacking downloaded archives: no escapes, no links, limits on size, nothing half-written."""

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
from functools import partial
from pathlib import Path, PurePosixPath
from typing import IO, Self

from biobench.errors import DataFormatError

_VALUES = (LookupError, ValueError, ArithmeticError, RuntimeError, MemoryError)
DAMAGED = (
    zipfile.BadZipFile,
    tarfile.TarError,
    lzma.LZMAError,
    zlib.error,
    struct.error,
    EOFError,
    OSError,
    *_VALUES,
)
"""What the standard library raises while it reads an archive whose parts contradict each other:
empty names, names that are not UTF-8, negative or huge places, unknown methods.
"""
_TRUSTED = "unpack it by hand if you trust it"
_DISK = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM, errno.EIO)
"""What the system says where the disk, and not the archive, is at fault."""


class DamagedArchiveError(DataFormatError):
    """An archive cannot be read to its end: what was downloaded is not the archive."""


def unpack(
    archive: Path | IO[bytes],
    kind: str,
    target: Path,
    *,
    subfolder: str = "",
    members: list[str] | None = None,
    most_bytes: int = 20 << 30,
    most_files: int = 200_000,
    name: str | None = None,
) -> list[Path]:
    """Write the archive's files below `target` (which must be new) and give their paths.

    kind: zip or tar (any compression). subfolder: only what lies below it, without it. members: of
    that only these. macOS resource files are skipped. Raises DataFormatError for a damaged archive,
    a member that escapes or is no plain file, an archive of more bytes or files, and for asked
    members that are not there; then nothing is left of `target`.
    """
    read = {"zip": _zip, "tar": _tar}[kind]
    asked = set(members or ())
    target.mkdir(parents=True)
    total = 0
    written: list[str] = []
    try:
        for relative, size, opened in _wanted(read(archive), subfolder, asked):
            total += size  # no more is read than the archive declares
            if total > most_bytes or len(written) >= most_files:
                message = f"the archive holds more than {most_files} files or {most_bytes} bytes"
                raise DataFormatError(message, hint=_TRUSTED)
            path = target / relative
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("xb") as sink, opened() as source:
                shutil.copyfileobj(source, sink)
            written.append(relative)
        _check_complete(written, asked, subfolder)
    except BaseException as error:
        shutil.rmtree(target, ignore_errors=True)
        label = name or str(archive)
        if isinstance(error, DataFormatError):
            error.file = label
        if not _is_damage(error):
            raise
        message = f"the archive is damaged: {str(error) or type(error).__name__}"
        raise DamagedArchiveError(message, hint="fetch it again", file=label) from None
    return [target / relative for relative in written]


def _wanted(archive: Iterator[_Member], subfolder: str, asked: set[str]) -> Iterator[_Member]:
    """Those of the members that are asked for, by their paths below the subfolder."""
    for name, size, opened in archive:
        relative = _relative(name, subfolder)
        if relative is not None and (not asked or relative in asked):
            yield relative, size, opened


def _check_complete(written: list[str], asked: set[str], subfolder: str) -> None:
    """Refuse an archive without one of the members, or with nothing below the subfolder."""
    lacking = sorted(asked - set(written))
    if subfolder and not written:
        lacking.append(subfolder)
    if lacking:
        message = f"'{lacking[0]}' is not in the archive"
        raise DataFormatError(message, hint="check `subfolder` and `members`")
    if not written:
        raise DataFormatError("the archive holds no file", hint="check `url`, or fetch it again")


def _is_damage(error: BaseException) -> bool:
    """Whether the archive is at fault, and not the disk, the limits or the user."""
    of_the_disk = isinstance(error, OSError) and error.errno in _DISK
    return isinstance(error, DAMAGED) and not of_the_disk


def _relative(name: str, subfolder: str) -> str | None:
    """The member's path below `subfolder`; None for what is not wanted. Raises for a path that
    escapes.
    """
    posix = PurePosixPath(name.replace("\\", "/"))
    has_drive = ":" in str(posix).partition("/")[0]
    if posix.is_absolute() or ".." in posix.parts or has_drive:
        message = f"member '{name}' would be written outside the folder"
        raise DataFormatError(message, hint="refused")
    of_a_system = "__MACOSX" in posix.parts or posix.name.startswith("._")
    if of_a_system or not posix.is_relative_to(subfolder):
        return None
    return posix.relative_to(subfolder).as_posix()


_Member = tuple[str, int, Callable[[], IO[bytes]]]
"""Name, declared size in bytes, and what opens it."""


def _zip(archive: Path | IO[bytes]) -> Iterator[_Member]:
    with zipfile.ZipFile(archive) as opened:
        for info in opened.infolist():
            plain = stat.S_IFMT(info.external_attr >> 16) in (0, stat.S_IFREG, stat.S_IFDIR)
            encrypted = info.flag_bits & 1
            # other methods than these unpack any number of bytes at once
            usual = info.compress_type in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
            if not plain or encrypted or not usual:
                raise _no_plain_file(info.filename)
            if not info.is_dir():
                yield info.filename, info.file_size, partial(opened.open, info)


def _no_plain_file(member: str) -> DataFormatError:
    message = f"member '{member}' is a link, a device, sparse, encrypted or packed unusually"
    return DataFormatError(message, hint=_TRUSTED)


HEADER_BYTES = 2**20
"""Of one long name or list of attributes in a tar; the library reads each of them whole."""
_HEADERS = (
    tarfile.XHDTYPE,
    tarfile.XGLTYPE,
    tarfile.SOLARIS_XHDTYPE,
    tarfile.GNUTYPE_LONGNAME,
    tarfile.GNUTYPE_LONGLINK,
)


class _PlainInfo(tarfile.TarInfo):
    """A member whose headers are small, and which is no sparse file."""

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> Self:
        """As of the library. Raises DataFormatError before a large header is read."""
        info = super().frombuf(buf, encoding, errors)
        if info.type in _HEADERS and info.size > HEADER_BYTES:
            size = f"{info.size} bytes, at most {HEADER_BYTES} are read"
            raise DataFormatError(f"a header of the archive has {size}", hint="refused")
        if info.type == tarfile.GNUTYPE_SPARSE:
            raise _no_plain_file(info.name)
        return info

    def _refuse(self, *_: object) -> None:
        raise _no_plain_file(self.name)

    # the three forms in which a list of attributes says that a file is sparse
    _proc_gnusparse_00 = _proc_gnusparse_01 = _proc_gnusparse_10 = _refuse


def _tar(archive: Path | IO[bytes]) -> Iterator[_Member]:
    name, stream = (archive, None) if isinstance(archive, Path) else (None, archive)
    with tarfile.open(name, "r:*", fileobj=stream, tarinfo=_PlainInfo) as opened:
        while (info := opened.next()) is not None:
            # else the headers of all members stay in memory
            opened.members.clear()  # type: ignore[attr-defined]
            if not info.isdir():
                stream = opened.extractfile(info) if info.isfile() else None
                if stream is None:
                    raise _no_plain_file(info.name)
                yield info.name, info.size, lambda stream=stream: stream  # type: ignore[misc]
