"""What may lie in a submission's folder, checked before anything in it is opened."""

from __future__ import annotations

import hashlib
import os
import stat
import unicodedata
from collections import Counter
from pathlib import Path

from pydantic import ValidationError

from biobench.core.files import kind_of, read_regular
from biobench.errors import StoreError
from biobench.report.escape import plain
from biobench.store.index import FILE as INDEX
from biobench.store.keys import is_key, is_task_id
from biobench.store.side_records import parsed
from biobench.submission.checks import Check
from biobench.submission.names import check_name
from biobench.submission.pack import MANIFEST, NAME_LIMIT, NOTES_LIMIT, VERSION, Manifest, packed_files

MOST_FILES = 5_000
"""Files and folders in all."""
MANIFEST_BYTES = 4 * 2**20
RECORD_BYTES = 2**20
RECORDS_BYTES = 32 * 2**20
"""Of all records and verdicts together, which are held at once as sixteen times as much; a whole suite has under 4."""
PREDICTIONS_BYTES = 64 * 2**20
TOTAL_BYTES = 2**30
MOST_RUNS = 400
"""Of one model; all shipped tasks with their seeds are under 200."""
LONGEST_ID = 100
"""Characters of a task's id."""
MOST_SEEDS = 60
"""Runs of one task: each is compared with each. Protocols have ten at most."""


def check_layout(folder: Path) -> list[Check]:
    """L codes: links, special files, foreign paths, numbers, sizes. Nothing is opened."""
    try:
        kind = kind_of(folder.lstat().st_mode)
    except (OSError, ValueError):
        kind = "missing"
    if kind != "folder":
        what = "is not there" if kind == "missing" else f"is a {kind}, not a folder"
        return [Check("L05", "error", str(folder), what)]
    checks: list[Check] = []
    total = count = records = runs = 0
    seeds: Counter[str] = Counter()
    for root, folders, files in os.walk(folder, followlinks=False):
        for name in [*folders, *files]:
            path = Path(root) / name
            where = path.relative_to(folder).as_posix()
            status = path.lstat()
            count += 1
            if count > MOST_FILES:
                checks.append(Check("L04", "error", ".", f"holds more than {MOST_FILES} files and folders"))
                return checks
            if stat.S_ISDIR(status.st_mode):
                continue
            if not stat.S_ISREG(status.st_mode):
                checks.append(Check("L01", "error", where, f"is a {kind_of(status.st_mode)}, not a file"))
                continue
            total += status.st_size
            records += status.st_size if where.endswith(".json") and where != MANIFEST else 0
            if where.startswith("runs/") and where.endswith(".json"):
                runs += 1
                seeds[where.rpartition("/")[0]] += 1
            limit = allowed_bytes(where)
            if where == f"runs/{INDEX}":
                # Never let through: a forged one could stand for other scores than the records'.
                checks.append(Check("L02", "error", where, "is an index that the board made; remove it"))
            elif limit is None:
                checks.append(Check("L02", "error", where, "does not belong into a submission"))
            elif status.st_size > limit:
                checks.append(Check("L03", "error", where, f"has {status.st_size} bytes, at most {limit} are taken"))
    if runs > MOST_RUNS:
        checks.append(Check("L04", "error", "runs", f"holds {runs} runs, at most {MOST_RUNS} are taken"))
    for task, number in seeds.items():
        if number > MOST_SEEDS:
            checks.append(Check("L04", "error", task, f"holds {number} runs, at most {MOST_SEEDS} of a task are taken"))
    if records > RECORDS_BYTES:
        checks.append(Check("L03", "error", ".", f"has {records} bytes of records, at most {RECORDS_BYTES} are taken"))
    if total > TOTAL_BYTES:
        checks.append(Check("L03", "error", ".", f"has {total} bytes in all, at most {TOTAL_BYTES} are taken"))
    return checks


def allowed_bytes(where: str) -> int | None:
    """Most bytes of the file at this relative path; None where no submission has one there."""
    if where == MANIFEST:
        return MANIFEST_BYTES
    parts = where.split("/")
    if len(parts) != 3 or parts[0] not in ("runs", "floors") or not is_task_id(parts[1]) or len(parts[1]) > LONGEST_ID:
        return None
    key, dot, suffix = parts[2].partition(".")
    if not is_key(key) or not dot:
        return None
    if parts[0] == "floors":
        return RECORD_BYTES if suffix == "json" else None
    return {"json": RECORD_BYTES, "parquet": PREDICTIONS_BYTES}.get(suffix)


def check_manifest(folder: Path) -> tuple[Manifest | None, list[Check]]:
    """M codes: the manifest, its texts, and whether the files are the ones it lists."""
    try:
        manifest = Manifest.model_validate(parsed(read_regular(folder / MANIFEST), folder / MANIFEST, ""))
    except StoreError as error:
        missing = isinstance(error.__cause__, FileNotFoundError)
        return None, [Check("M01", "error", MANIFEST, "is missing" if missing else f"is damaged: {plain(error.what)}")]
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        what = ": ".join(filter(None, ["is damaged", ".".join(map(str, first["loc"])), first["msg"]]))
        return None, [Check("M01", "error", MANIFEST, plain(what)[:200])]
    checks = check_name(manifest.model)
    if manifest.version != VERSION:
        what = f"is of version {manifest.version}, this BioBench reads {VERSION}"
        checks.append(Check("M01", "error", MANIFEST, what))
    for field, limit in (("model", NAME_LIMIT), ("notes", NOTES_LIMIT)):
        text = getattr(manifest, field)
        hidden = [c for c in text if unicodedata.category(c) in ("Cc", "Cf", "Cs", "Co", "Cn") and c != "\n"]
        if len(text) > limit or hidden or (field == "model" and ("\n" in text or not text.strip())):
            checks.append(Check("M05", "error", MANIFEST, f"'{field}' is empty, too long or holds hidden characters"))
    listed = {f.path: f for f in manifest.files}
    if len(listed) < len(manifest.files):
        checks.append(Check("M02", "error", MANIFEST, "lists a file twice"))
    there = {p.relative_to(folder).as_posix() for p in packed_files(folder)}
    checks += [Check("M02", "error", path, "is listed but not there") for path in sorted(listed.keys() - there)]
    checks += [Check("M03", "error", path, "is not in the manifest") for path in sorted(there - listed.keys())]
    for path in sorted(there & listed.keys()):
        try:
            content = read_regular(folder / path)
        except StoreError as error:
            checks.append(Check("M04", "error", path, plain(error.what)))
            continue
        if hashlib.sha256(content).hexdigest() != listed[path].sha256 or len(content) != listed[path].size:
            checks.append(Check("M04", "error", path, "is not the file that the manifest describes"))
    return manifest, checks
