"""A submission that arrives as one zip file, unpacked within bounds; `layout` then checks what lies
in it.
"""

from __future__ import annotations

import io
from pathlib import Path
from typing import IO

from biobench.data.unpack import unpack as unpack_archive
from biobench.errors import DataFormatError
from biobench.reporting.escape import plain
from biobench.submission.checks import Check, error
from biobench.submission.layout import MOST_FILES

UPLOAD_BYTES = 64 * 2**20
"""Size of the zip file."""
UNPACKED_BYTES = 512 * 2**20
"""Size of everything in it."""


def unpack(file: IO[bytes], target: Path) -> tuple[Path, list[Check]]:
    """The submission's folder below `target`, which must be new, and what refuses the file; then
    nothing is written.

    The submission may stand at the top of the file or in one folder.
    """
    file.seek(0)
    content = file.read(UPLOAD_BYTES + 1)
    if len(content) > UPLOAD_BYTES:
        return target, [error("L03", ".", f"has more than {UPLOAD_BYTES} bytes")]
    if (
        content.count(b"PK\1\2") > MOST_FILES
    ):  # begins each entry of the list, which a reader holds whole in memory
        return target, [error("L04", ".", f"holds more than {MOST_FILES} files")]
    try:
        unpack_archive(
            io.BytesIO(content),
            "zip",
            target,
            most_bytes=UNPACKED_BYTES,
            most_files=MOST_FILES,
            name="upload",
        )
    except (DataFormatError, OSError) as problem:
        what = problem.what if isinstance(problem, DataFormatError) else str(problem)
        return target, [error("L06", "upload", plain(what))]
    inner = [*target.iterdir()]
    return inner[0] if len(inner) == 1 and inner[0].is_dir() else target, []
