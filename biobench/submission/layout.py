"""What may lie in a submission's folder, checked before anything in it is opened; then its manifest."""

from __future__ import annotations

import hashlib
import os
import re
import stat
import unicodedata
from collections import Counter
from pathlib import Path

from pydantic import ValidationError

from biobench.core.files import kind_of, read_regular
from biobench.errors import StoreError
from biobench.report.escape import HIDDEN, plain
from biobench.store.index import FILE as INDEX
from biobench.store.records import is_key, is_task_id, parsed
from biobench.store.statements import MANIFEST
from biobench.submission.checks import Check
from biobench.submission.pack import NAME_LIMIT, NOTES_LIMIT, VERSION, Manifest, packed_files

MOST_FILES = 5_000
"""Files and folders in all."""
MANIFEST_BYTES = 4 * 2**20
RECORD_BYTES = 2**20
RECORDS_BYTES = 32 * 2**20
"""Of all records together, which are held at once as sixteen times as much; a whole suite has under 4."""
PREDICTIONS_BYTES = 64 * 2**20
TOTAL_BYTES = 2**30
MOST_RUNS = 400
"""Of one model; all shipped tasks with their seeds are under 200."""
LONGEST_ID = 100
"""Characters of a task's id."""
MOST_SEEDS = 60
"""Runs of one task: each is compared with each. Protocols have ten at most."""
_MARKS = re.compile(
    r"[\[\]]|\(\W*(verified|consistent|reproduced|re-?scored|claimed|published|official|baseline|oracle|"
    r"submission|submitted|external|run)\b.*\)"
)
"""What the board writes beside names: variants in brackets, and words about a row."""


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
    sums, seeds = Counter[str](), Counter[str]()

    def bounded(code: str, where: str, number: int, most: int, of: str) -> None:
        if number > most:
            checks.append(Check(code, "error", where, f"has {number} {of}, at most {most} are taken"))

    for root, folders, files in os.walk(folder, followlinks=False):
        for name in [*folders, *files]:
            path = Path(root) / name
            where, status = path.relative_to(folder).as_posix(), path.lstat()
            sums["files"] += 1
            if sums["files"] > MOST_FILES:
                return [*checks, Check("L04", "error", ".", f"holds more than {MOST_FILES} files and folders")]
            if stat.S_ISDIR(status.st_mode):
                continue
            if not stat.S_ISREG(status.st_mode):
                checks.append(Check("L01", "error", where, f"is a {kind_of(status.st_mode)}, not a file"))
                continue
            sums["bytes"] += status.st_size
            sums["records"] += status.st_size if where.endswith(".json") and where != MANIFEST else 0
            if where.startswith("runs/") and where.endswith(".json"):
                seeds[where.rpartition("/")[0]] += 1
            limit = allowed_bytes(where)
            if limit is None:
                # an index would stand for other scores than the records'
                what = "is an index that the board made; remove it" if name == INDEX else "does not belong here"
                checks.append(Check("L02", "error", where, what))
            else:
                bounded("L03", where, status.st_size, limit, "bytes")
    bounded("L04", "runs", seeds.total(), MOST_RUNS, "runs")
    for task, number in seeds.items():
        bounded("L04", task, number, MOST_SEEDS, "runs")
    bounded("L03", ".", sums["records"], RECORDS_BYTES, "bytes of records")
    bounded("L03", ".", sums["bytes"], TOTAL_BYTES, "bytes in all")
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
    return {"json": RECORD_BYTES, "parquet": PREDICTIONS_BYTES if parts[0] == "runs" else None}.get(suffix)


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
    for field, text, limit in (("model", manifest.model, NAME_LIMIT), ("notes", manifest.notes, NOTES_LIMIT)):
        lines = text if field == "model" else text.replace("\n", " ")
        if len(text) > limit or any(unicodedata.category(c) in HIDDEN for c in lines):
            checks.append(Check("M05", "error", MANIFEST, f"'{field}' is too long or holds hidden characters"))
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


def check_name(model: str) -> list[Check]:
    """M06: a name that imitates the board's own marks, is empty, or holds letters of other scripts than Latin."""
    shown = unicodedata.normalize("NFKC", model).casefold()
    if _MARKS.search(shown) or not shown.strip():
        what = "'model' is empty, or imitates a mark of the board: square brackets, or a word such as (verified)"
        return [Check("M06", "error", MANIFEST, what)]
    odd = {c for c in model if not (" " <= unicodedata.normalize("NFD", c)[0] <= "~" or c in "œæŒÆß")}
    odd |= {c for c in model if unicodedata.combining(c)}
    if odd or model != model.strip():
        letters = ", ".join(f"U+{ord(c):04X}" for c in sorted(odd)[:5]) or "outer blanks"
        what = f"'model' holds characters that can be taken for others or for none: {letters}"
        return [Check("M06", "person", MANIFEST, what)]
    return []
