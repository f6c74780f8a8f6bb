"""A submission that arrives as one zip file, unpacked under the bounds of `layout` before anything is read."""

from __future__ import annotations

import re
import stat
import zipfile
from pathlib import Path
from typing import IO

from biobench.data.unpack import DAMAGED
from biobench.report.escape import plain
from biobench.store.statements import MANIFEST
from biobench.submission.checks import Check
from biobench.submission.layout import MOST_FILES, PREDICTIONS_BYTES, allowed_bytes

UPLOAD_BYTES = 64 * 2**20
"""Size of the zip file."""
UNPACKED_BYTES, RATIO, RATIO_FROM = 512 * 2**20, 30, 32 * 2**20
"""Size of everything in it; from `RATIO_FROM` bytes on no more than so many times the zip file. Predictions are packed
already, and records shrink to a tenth."""
DIRECTORY_BYTES = 4 * 2**20
"""Of the list of members, which is read as a whole: what `MOST_FILES` names need, many times over."""
_CHUNK = 2**20
_END, _END64 = b"PK\5\6", b"PK\6\7"
_TAIL = 22 + 2**16
"""Bytes from the end of a zip file in which its last record may begin."""


def unpack(file: IO[bytes], target: Path) -> list[Check]:
    """Write the zip file's submission into `target`, an empty folder; gives what refuses it.

    The submission may stand at the top of the file or in one folder. A member that is a link, encrypted, or of a
    path that no submission has refuses the whole before anything is written. Sizes are counted while reading,
    whatever the file says of them.
    """
    size = file.seek(0, 2)
    file.seek(0)
    if size > UPLOAD_BYTES:
        return [_error("L03", ".", f"has {size} bytes, at most {UPLOAD_BYTES} are taken")]
    if (listed := _directory_bytes(file, size)) > DIRECTORY_BYTES:
        return [_error("L04", ".", f"has {listed} bytes of names, at most {DIRECTORY_BYTES} are taken")]
    file.seek(0)
    try:
        with zipfile.ZipFile(file) as archive:
            members = [m for m in archive.infolist() if not m.is_dir()]
            if len(members) > MOST_FILES:
                return [_error("L04", ".", f"holds more than {MOST_FILES} files")]
            top = _top(members)
            checks = [check for m in members if (check := _refused(m, top))]
            if len({m.filename for m in members}) < len(members):
                checks.append(_error("L02", ".", "names a file twice"))
            return checks or _write(archive, members, top, target, min(UNPACKED_BYTES, max(RATIO_FROM, RATIO * size)))
    except DAMAGED as error:
        return [_error("L06", ".", f"is not a zip file that can be read ({type(error).__name__})")]


def _directory_bytes(file: IO[bytes], size: int) -> int:
    """The greatest size of a list of members that any reading of the file's end finds; zip64 counts as endless.

    A file of at most `UPLOAD_BYTES` needs no zip64, whose sizes would stand in for those looked at here.
    """
    file.seek(max(0, size - _TAIL - 20))
    tail = file.read()
    places = [m.start() for m in re.finditer(re.escape(_END), tail) if m.start() + 16 <= len(tail)]
    sizes = [int.from_bytes(tail[place + 12 : place + 16], "little") for place in places]
    return max([0, *sizes, *([2**32] if _END64 in tail else [])])


def _top(members: list[zipfile.ZipInfo]) -> str:
    """The one folder that everything lies in, with its slash; empty where the manifest stands at the top."""
    if any(m.filename == MANIFEST for m in members):
        return ""
    tops = {m.filename.split("/", 1)[0] for m in members}
    return f"{next(iter(tops))}/" if len(tops) == 1 and all("/" in m.filename for m in members) else ""


def _refused(member: zipfile.ZipInfo, top: str) -> Check | None:
    where = plain(member.filename)
    kind = stat.S_IFMT(member.external_attr >> 16)
    if kind not in (0, stat.S_IFREG) or member.flag_bits & 1:
        return _error("L01", where, "is a link, a special file or encrypted")
    limit = allowed_bytes(member.filename.removeprefix(top))
    if limit is None:
        return _error("L02", where, "does not belong into a submission")
    if member.file_size > min(limit, PREDICTIONS_BYTES):
        return _error("L03", where, f"has {member.file_size} bytes, at most {limit} are taken")
    return None


def _write(archive: zipfile.ZipFile, members: list[zipfile.ZipInfo], top: str, target: Path, most: int) -> list[Check]:
    total = 0
    for member in members:
        path = target / member.filename.removeprefix(top)
        path.parent.mkdir(parents=True, exist_ok=True)
        with archive.open(member) as source, path.open("xb") as out:
            while chunk := source.read(_CHUNK):
                total += len(chunk)
                if total > most:
                    return [_error("L03", ".", f"unpacks to more than {most} bytes")]
                out.write(chunk)
    return []


def _error(code: str, where: str, what: str) -> Check:
    return Check(code, "error", where, what)
