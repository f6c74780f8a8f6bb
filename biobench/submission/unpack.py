"""A submission that arrives as one zip file, unpacked under the bounds of `layout` before anything is read."""

from __future__ import annotations

import shutil
import stat
import zipfile
from pathlib import Path
from typing import IO

from biobench.data.unpack import DAMAGED
from biobench.report.escape import plain
from biobench.submission.checks import Check
from biobench.submission.layout import MOST_FILES, allowed_bytes

UPLOAD_BYTES = 64 * 2**20
"""Size of the zip file."""
UNPACKED_BYTES = 512 * 2**20
"""Size of everything in it."""
_MEMBER = b"PK\1\2"
"""Begins each entry of the list of members, which a reader holds whole in memory."""


def unpack(file: IO[bytes], target: Path) -> list[Check]:
    """Write the zip file's submission into `target`, an empty folder; gives what refuses it.

    The submission may stand at the top of the file or in one folder. A member that is a link, encrypted, or of a
    path that no submission has refuses the whole before anything is written.
    """
    file.seek(0)
    content = file.read(UPLOAD_BYTES + 1)
    if len(content) > UPLOAD_BYTES:
        return [_error("L03", ".", f"has more than {UPLOAD_BYTES} bytes")]
    if content.count(_MEMBER) > MOST_FILES:
        return [_error("L04", ".", f"holds more than {MOST_FILES} files")]
    try:
        with zipfile.ZipFile(file) as archive:
            members = [m for m in archive.infolist() if not m.is_dir()]
            tops = {m.filename.partition("/")[0] for m in members}
            top = f"{tops.pop()}/" if len(tops) == 1 and all("/" in m.filename for m in members) else ""
            checks = [check for m in members if (check := _refused(m, top))]
            if len({m.filename for m in members}) < len(members):
                checks.append(_error("L02", ".", "names a file twice"))
            if (size := sum(m.file_size for m in members)) > UNPACKED_BYTES:
                checks.append(_error("L03", ".", f"unpacks to {size} bytes, at most {UNPACKED_BYTES} are taken"))
            for member in [] if checks else members:
                path = target / member.filename.removeprefix(top)
                path.parent.mkdir(parents=True, exist_ok=True)
                # no more is read than the list of members says
                with archive.open(member) as source, path.open("xb") as out:
                    shutil.copyfileobj(source, out)
            return checks
    except DAMAGED as error:
        return [_error("L06", ".", f"is not a zip file that can be read ({type(error).__name__})")]


def _refused(member: zipfile.ZipInfo, top: str) -> Check | None:
    where = plain(member.filename)
    kind = stat.S_IFMT(member.external_attr >> 16)
    # other methods than these unpack any number of bytes at once
    packed = member.compress_type in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
    if kind not in (0, stat.S_IFREG) or member.flag_bits & 1 or not packed:
        return _error("L01", where, "is a link, a special file, encrypted or packed in an unusual way")
    limit = allowed_bytes(member.filename.removeprefix(top))
    if limit is None:
        return _error("L02", where, "does not belong into a submission")
    if member.file_size > limit:
        return _error("L03", where, f"has {member.file_size} bytes, at most {limit} are taken")
    return None


def _error(code: str, where: str, what: str) -> Check:
    return Check(code, "error", where, what)
