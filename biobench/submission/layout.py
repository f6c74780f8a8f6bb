"""What may lie in a submission's folder, checked before anything in it is opened."""

from __future__ import annotations

import hashlib
import json
import os
import stat
import unicodedata
from pathlib import Path
from typing import Any, Literal, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pydantic import ValidationError

from biobench.core.text import first_line
from biobench.store.index import FILE as INDEX
from biobench.store.keys import is_key, is_task_id
from biobench.store.tables import SCHEMA, TEXTS
from biobench.submission.pack import MANIFEST, NAME_LIMIT, NOTES_LIMIT, Manifest, packed_files
from biobench.submission.pages import check_footer, held

MOST_FILES = 5_000
"""Files and folders in all."""
MANIFEST_BYTES = 4 * 2**20
RECORD_BYTES = 2**20
RECORDS_BYTES = 32 * 2**20
"""Of all records and verdicts together, which are held at once as sixteen times as much; a whole suite has under 4."""
PREDICTIONS_BYTES = 128 * 2**20
TOTAL_BYTES = 4 * 2**30
MOST_ROWS = 1_000_000
MOST_VALUES = 5_000_000
"""Numbers and texts in all columns of one predictions file; they become Python objects."""
UNPACKED_BYTES = 2**28
"""Bytes of one predictions file, decompressed, as its pages say."""
TEXT_BYTES = 2**27
"""Bytes of all texts of one predictions file, each as often as it stands there."""


class Check(NamedTuple):
    """A coded finding. grade: an error refuses the submission, a warning is shown beside it."""

    code: str
    grade: Literal["error", "warning"]
    where: str
    what: str


def check_layout(folder: Path) -> list[Check]:
    """L codes: links, special files, foreign paths, sizes. Nothing is opened but the footers of parquet files."""
    if folder.is_symlink() or not folder.is_dir():
        return [Check("L05", "error", str(folder), "is not a folder")]
    found: list[Check] = []
    total = count = records = 0
    for root, folders, files in os.walk(folder, followlinks=False):
        for name in [*folders, *files]:
            path = Path(root) / name
            where = path.relative_to(folder).as_posix()
            status = path.lstat()
            count += 1
            if count > MOST_FILES:
                found.append(Check("L04", "error", ".", f"holds more than {MOST_FILES} files and folders"))
                return found
            if stat.S_ISDIR(status.st_mode):
                continue
            if not stat.S_ISREG(status.st_mode):
                found.append(Check("L01", "error", where, "is a link or a special file"))
                continue
            total += status.st_size
            records += status.st_size if where.endswith(".json") and where != MANIFEST else 0
            limit = allowed_bytes(where)
            if where == f"runs/{INDEX}":
                # Never let through: a forged one could stand for other scores than the records'.
                found.append(Check("L02", "error", where, "is an index that the board made; remove it"))
            elif limit is None:
                found.append(Check("L02", "error", where, "does not belong into a submission"))
            elif status.st_size > limit:
                found.append(Check("L03", "error", where, f"has {status.st_size} bytes, at most {limit} are taken"))
            elif where.endswith(".parquet"):
                found += _footer(path, where)
    if records > RECORDS_BYTES:
        found.append(Check("L03", "error", ".", f"has {records} bytes of records, at most {RECORDS_BYTES} are taken"))
    if total > TOTAL_BYTES:
        found.append(Check("L03", "error", ".", f"has {total} bytes in all, at most {TOTAL_BYTES} are taken"))
    return found


def allowed_bytes(where: str) -> int | None:
    """Most bytes of the file at this relative path; None where no submission has one there."""
    if where == MANIFEST:
        return MANIFEST_BYTES
    parts = where.split("/")
    if len(parts) != 3 or parts[0] not in ("runs", "floors") or not is_task_id(parts[1]):
        return None
    key, dot, suffix = parts[2].partition(".")
    if not is_key(key) or not dot:
        return None
    if parts[0] == "floors":
        return RECORD_BYTES if suffix == "json" else None
    return {"json": RECORD_BYTES, "parquet": PREDICTIONS_BYTES}.get(suffix)


def _footer(path: Path, where: str) -> list[Check]:
    """What keeps a predictions file from being read: no parquet file, or one that a few bytes make huge."""
    try:
        with path.open("rb") as content:
            check_footer(content)
        file = pq.ParquetFile(path)
        if not file.schema_arrow.equals(SCHEMA, check_metadata=False):
            return [Check("R07", "error", where, "does not have the columns of stored predictions")]
        with path.open("rb") as content:
            rows, values, unpacked = held(file.metadata, content)
        written = 0
        if rows <= MOST_ROWS and unpacked <= UNPACKED_BYTES and values <= MOST_VALUES:
            # a text that is repeated stands in the file once: only its places are read here
            table = pq.ParquetFile(path, read_dictionary=TEXTS, pre_buffer=False).read(use_threads=False)
            written = sum(_text_bytes(chunk) for column in table.columns for chunk in column.chunks)
    except (pa.ArrowException, KeyError, ValueError, OSError) as error:
        what = first_line(error, 120)
        return [Check("R07", "error", where, f"is no parquet file that can be read: {what}")]
    if rows > MOST_ROWS or values > MOST_VALUES or unpacked > UNPACKED_BYTES or written > TEXT_BYTES:
        what = f"unpacks to {rows} rows, {values} values, {max(unpacked, written)} bytes"
        return [Check("L03", "error", where, what)]
    return []


def _text_bytes(array: Any) -> int:
    """Bytes of all texts at any depth of an arrow array, each text counted as often as it stands there."""
    if pa.types.is_dictionary(array.type):
        lengths = pc.binary_length(array.dictionary)
        return pc.sum(pc.take(lengths, array.indices)).as_py() or 0
    if pa.types.is_list(array.type):
        return _text_bytes(array.flatten())
    if pa.types.is_struct(array.type):
        return sum(_text_bytes(child) for child in array.flatten())
    return 0


def check_manifest(folder: Path) -> tuple[Manifest | None, list[Check]]:
    """M codes: the manifest, its texts, and whether the files are the ones it lists."""
    try:
        manifest = Manifest.model_validate(json.loads((folder / MANIFEST).read_bytes()))
    except (OSError, ValueError, RecursionError, ValidationError) as error:
        return None, [Check("M01", "error", MANIFEST, f"is missing or damaged ({type(error).__name__})")]
    found = []
    for field, limit in (("model", NAME_LIMIT), ("notes", NOTES_LIMIT)):
        text = getattr(manifest, field)
        hidden = [c for c in text if unicodedata.category(c) in ("Cc", "Cf", "Cs", "Co", "Cn") and c != "\n"]
        if len(text) > limit or hidden or (field == "model" and ("\n" in text or not text.strip())):
            found.append(Check("M05", "error", MANIFEST, f"'{field}' is empty, too long or holds hidden characters"))
    listed = {f.path: f for f in manifest.files}
    there = {p.relative_to(folder).as_posix() for p in packed_files(folder)}
    found += [Check("M02", "error", path, "is listed but not there") for path in sorted(listed.keys() - there)]
    found += [Check("M03", "error", path, "is not in the manifest") for path in sorted(there - listed.keys())]
    for path in sorted(there & listed.keys()):
        try:
            content = (folder / path).read_bytes()
        except OSError as error:
            found.append(Check("M04", "error", path, f"cannot be read: {error.strerror}"))
            continue
        if hashlib.sha256(content).hexdigest() != listed[path].sha256 or len(content) != listed[path].size:
            found.append(Check("M04", "error", path, "is not the file that the manifest describes"))
    return manifest, found
