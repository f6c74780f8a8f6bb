"""What may lie in a submission's folder, checked before anything in it is opened; then its
manifest.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from biobench.core.files import kind_of
from biobench.errors import StoreError
from biobench.store.records import is_key, is_task_id, read_record
from biobench.store.statements import MANIFEST
from biobench.submission.checks import Check, error
from biobench.submission.names import is_plain_name
from biobench.submission.pack import VERSION, Manifest, packed_file, packed_files

MOST_FILES = 5_000
"""Files and folders in all."""
JSON_BYTES = 2**20
PREDICTIONS_BYTES = 64 * 2**20
TOTAL_BYTES = 2**30
"""Of one record or the manifest, of one file of predictions, and of all files together."""


def check_layout(folder: Path) -> list[Check]:
    """L codes: links, special files, foreign paths, numbers, sizes. Nothing is opened."""
    if folder.is_symlink() or not folder.is_dir():
        return [error("L05", str(folder), "is not a folder")]
    checks: list[Check] = []
    number = size = 0
    for root, folders, files in os.walk(folder, followlinks=False):
        number += len(folders) + len(files)
        if number > MOST_FILES:
            return [*checks, error("L04", ".", f"holds more than {MOST_FILES} files and folders")]
        for name in (*folders, *files):
            path = Path(root, name)
            status = path.lstat()
            kind = kind_of(status.st_mode)
            if kind == "folder":
                continue
            size += status.st_size
            checks += _file_checks(path.relative_to(folder).as_posix(), kind, status.st_size)
    if size > TOTAL_BYTES:
        checks.append(error("L03", ".", f"has {size} bytes, at most {TOTAL_BYTES} are taken"))
    return checks


def _file_checks(relative: str, kind: str, size: int) -> Iterator[Check]:
    """What is wrong with one file of this kind and these bytes."""
    limit = allowed_bytes(relative)
    if kind != "file":
        yield error("L01", relative, f"is a {kind}, not a file")
    elif limit is None:
        yield error("L02", relative, "does not belong here")
    elif size > limit:
        yield error("L03", relative, f"has {size} bytes, at most {limit} are taken")


def allowed_bytes(relative: str) -> int | None:
    """Most bytes of the file at this relative path; None where no submission has one there."""
    if relative == MANIFEST:
        return JSON_BYTES
    match = re.fullmatch(r"runs/([^/]{1,100})/([^/.]+)\.(json|parquet)", relative)
    if match is None or not is_task_id(match[1]) or not is_key(match[2]):
        return None
    return {"json": JSON_BYTES, "parquet": PREDICTIONS_BYTES}[match[3]]


def check_manifest(folder: Path) -> tuple[Manifest | None, list[Check]]:
    """M codes: the manifest, its texts, and whether the files are the ones it lists."""
    try:
        manifest = read_record(folder / MANIFEST, Manifest, ("version", VERSION), "")
    except StoreError as problem:
        missing = isinstance(problem.__cause__, FileNotFoundError)
        return None, [error("M01", MANIFEST, "is missing" if missing else problem.what)]
    if manifest is None:
        return None, [error("M01", MANIFEST, f"is not of version {VERSION}")]
    checks: list[Check] = []
    if not is_plain_name(manifest.model):
        message = (
            "'model' is empty, imitates a mark of the board (brackets, a word such as (verified)), "
            "or holds other signs than Latin letters, digits, '._+/()=-' and single blanks"
        )
        checks.append(error("M06", MANIFEST, message))
    return manifest, [*checks, *_listing_checks(folder, manifest)]


def _listing_checks(folder: Path, manifest: Manifest) -> Iterator[Check]:
    """Whether the manifest lists the files that are there, each once."""
    listed = {file.path: file for file in manifest.files}
    present = {path.relative_to(folder).as_posix(): path for path in packed_files(folder)}
    if len(listed) < len(manifest.files):
        yield error("M02", MANIFEST, "lists a file twice")
    for name in sorted(listed.keys() | present.keys()):
        if name not in present:
            yield error("M02", name, "is listed but not there")
        elif name not in listed:
            yield error("M03", name, "is not in the manifest")
        elif packed_file(present[name], folder) != listed[name]:
            yield error("M04", name, "is not the file that the manifest describes")
