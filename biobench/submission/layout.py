"""What may lie in a submission's folder, checked before anything in it is opened; then its manifest."""

from __future__ import annotations

import os
import re
import unicodedata
from pathlib import Path

from pydantic import ValidationError

from biobench.core.files import file_hash, kind_of, read_regular
from biobench.errors import StoreError
from biobench.report.escape import HIDDEN, plain
from biobench.store.records import is_key, is_task_id, parsed
from biobench.store.statements import MANIFEST
from biobench.submission.checks import Check
from biobench.submission.pack import NAME_LIMIT, NOTES_LIMIT, VERSION, Manifest, packed_files

MOST_FILES = 5_000
"""Files and folders in all."""
JSON_BYTES, PREDICTIONS_BYTES, TOTAL_BYTES = 2**20, 64 * 2**20, 2**30
"""Of one record or the manifest, of one file of predictions, and of all files together."""
MOST_RUNS = 400
"""Of one model; all shipped tasks with their seeds are under 200."""
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
        return [Check("L05", "error", str(folder), f"is not a folder ({kind})")]
    checks: list[Check] = []
    seen = size = runs = 0
    for root, folders, files in os.walk(folder, followlinks=False):
        seen += len(folders) + len(files)
        if seen > MOST_FILES:
            return [*checks, Check("L04", "error", ".", f"holds more than {MOST_FILES} files and folders")]
        for path in (Path(root) / name for name in [*folders, *files]):
            where, status = path.relative_to(folder).as_posix(), path.lstat()
            kind, limit = kind_of(status.st_mode), allowed_bytes(where)
            if kind == "folder":
                continue
            size += status.st_size
            runs += where.startswith("runs/") and where.endswith(".json")
            if kind != "file":
                checks.append(Check("L01", "error", where, f"is a {kind}, not a file"))
            elif limit is None:
                checks.append(Check("L02", "error", where, "does not belong here"))
            elif status.st_size > limit:
                checks.append(Check("L03", "error", where, f"has {status.st_size} bytes, at most {limit} are taken"))
    if runs > MOST_RUNS:
        checks.append(Check("L04", "error", "runs", f"has {runs} runs, at most {MOST_RUNS} are taken"))
    if size > TOTAL_BYTES:
        checks.append(Check("L03", "error", ".", f"has {size} bytes, at most {TOTAL_BYTES} are taken"))
    return checks


def allowed_bytes(where: str) -> int | None:
    """Most bytes of the file at this relative path; None where no submission has one there."""
    match = re.fullmatch(r"(runs|floors)/([^/]{1,100})/([^/.]+)\.(json|parquet)", where)
    if where != MANIFEST and (match is None or not is_task_id(match[2]) or not is_key(match[3])):
        return None
    if match is None or match[4] == "json":
        return JSON_BYTES
    return PREDICTIONS_BYTES if match[1] == "runs" else None


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
        checks.append(Check("M01", "error", MANIFEST, f"is of version {manifest.version}, not {VERSION}"))
    texts = ("model", manifest.model, NAME_LIMIT), ("notes", manifest.notes.replace("\n", " "), NOTES_LIMIT)
    for field, text, limit in texts:
        if len(text) > limit or any(unicodedata.category(c) in HIDDEN for c in text):
            checks.append(Check("M05", "error", MANIFEST, f"'{field}' is too long or holds hidden characters"))
    listed = {f.path: f for f in manifest.files}
    if len(listed) < len(manifest.files):
        checks.append(Check("M02", "error", MANIFEST, "lists a file twice"))
    there = {p.relative_to(folder).as_posix(): p for p in packed_files(folder)}
    for path in sorted(listed.keys() | there.keys()):
        if path not in there:
            checks.append(Check("M02", "error", path, "is listed but not there"))
        elif path not in listed:
            checks.append(Check("M03", "error", path, "is not in the manifest"))
        elif file_hash(there[path]) != listed[path].sha256 or there[path].stat().st_size != listed[path].size:
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
