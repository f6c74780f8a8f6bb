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
from typing import IO

from biobench.errors import DataFormatError

_CHUNK = 1 << 20
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
_DISK = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM, errno.EIO)
"""What the system says where the disk, and not the archive, is at fault."""


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
    label, limits = name or str(archive), limits or Limits()
    target.mkdir(parents=True)
    written: list[Path] = []
    total = 0
    try:
        for member, packed, opened in _zip(archive, label) if kind == "zip" else _tar(archive, label):
            relative = _relative(member, subfolder, label)
            if relative is None or (members and relative not in members):
                continue
            if len(written) >= limits.files:
                raise DataFormatError(f"the archive holds more than {limits.files} files", hint="refused", file=label)
            path = target / relative
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("xb") as sink, opened() as source:
                size = 0
                while chunk := source.read(_CHUNK):
                    size += len(chunk)
                    total += len(chunk)
                    # Sizes are counted as they come; what the archive says of itself is not believed.
                    bomb = size > limits.ratio_from and packed and size > limits.ratio * packed
                    if total > limits.bytes or bomb:
                        what = f"'{member}' unpacks to more than is allowed ({size} bytes from {packed})"
                        raise DataFormatError(what, hint="refused as a decompression bomb", file=label)
                    sink.write(chunk)
            written.append(path)
        missing = sorted(set(members or ()) - {p.relative_to(target).as_posix() for p in written})
        if missing or not written:
            what = f"'{missing[0]}' is not" if missing else f"nothing below '{subfolder}' is"
            raise DataFormatError(f"{what} in the archive", hint="check `subfolder` and `members`", file=label)
    except BaseException as error:
        shutil.rmtree(target, ignore_errors=True)
        if not isinstance(error, DAMAGED) or (isinstance(error, OSError) and error.errno in _DISK):
            raise
        what = str(error) or type(error).__name__
        raise DamagedArchiveError(f"the archive is damaged: {what}", hint="fetch it again", file=label) from None
    return written


def _relative(name: str, subfolder: str, label: str) -> str | None:
    """The member's path below `subfolder`; None for what is not wanted. Raises for a path that escapes."""
    posix = PurePosixPath(name.replace("\\", "/"))
    if posix.is_absolute() or ".." in posix.parts or (posix.parts and ":" in posix.parts[0]) or "\0" in name:
        raise DataFormatError(f"member '{name}' would be written outside the folder", hint="refused", file=label)
    if "__MACOSX" in posix.parts or posix.name.startswith("._") or not posix.is_relative_to(subfolder):
        return None
    return posix.relative_to(subfolder).as_posix()


_Member = tuple[str, int, Callable[[], IO[bytes]]]
"""Name, packed bytes, and what opens it."""


def _zip(archive: Path | IO[bytes], label: str) -> Iterator[_Member]:
    with zipfile.ZipFile(archive) as opened:
        for info in opened.infolist():
            mode = info.external_attr >> 16
            if mode and stat.S_IFMT(mode) not in (0, stat.S_IFREG, stat.S_IFDIR):
                raise DataFormatError(f"member '{info.filename}' is a link", hint="refused", file=label)
            if info.flag_bits & 1:
                raise DataFormatError(f"member '{info.filename}' is encrypted", hint="unpack it by hand", file=label)
            if not info.is_dir():
                yield info.filename, max(1, info.compress_size), lambda info=info: opened.open(info)  # type: ignore[misc]


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
            yield info.name, packed, lambda stream=stream: stream  # type: ignore[misc]
