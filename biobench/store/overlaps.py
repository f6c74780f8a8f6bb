"""Measured contamination in a results folder: <results>/overlap/<task>/<32 hex digits>.json."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from pydantic import ValidationError

from biobench.errors import StoreError
from biobench.schema.contamination import OVERLAP_VERSION, Contamination, OverlapRecord
from biobench.store.files import write_atomic
from biobench.store.keys import is_task_id
from biobench.store.store import Store

_AGAIN = "delete the file and repeat `biobench data overlap`"


def save_overlap(results_dir: str | Path, record: OverlapRecord) -> Path:
    """Write the measurement, atomically, over an older one of the same model, data and text. Raises StoreError."""
    path = _folder(results_dir, record.task) / f"{_key(record)}.json"
    text = json.dumps(record.model_dump(mode="json"), indent=1, ensure_ascii=False, allow_nan=False)
    write_atomic(path, (text + "\n").encode("utf-8", "backslashreplace"))
    return path


def find_overlap(results_dir: str | Path, task: str, model_hash: str, data_hash: str) -> Contamination | None:
    """The worst measurement of this model on this data, None where there is none of this version.

    A model may have several training texts; the one that shows most test documents counts, then the newest.
    Raises StoreError for a damaged file.
    """
    found = [
        record
        for path in sorted(_folder(results_dir, task).glob("*.json"))
        if (record := _read(path)) is not None and (record.model_hash, record.data_hash) == (model_hash, data_hash)
    ]
    worst = max(found, key=lambda r: (r.contamination.seen, r.made), default=None)
    return None if worst is None else worst.contamination


def note_in_records(results_dir: str | Path, task: str, model_hash: str, data_hash: str) -> int:
    """Write the worst measurement into the records of runs that were made before it; how many changed."""
    known = find_overlap(results_dir, task, model_hash, data_hash)
    store = Store(results_dir)
    changed = 0
    for record in store.records():
        if (record.task.id, record.model.hash, record.task.data_hash) != (task, model_hash, data_hash):
            continue
        if record.contamination != known:
            store.update(record.model_copy(update={"contamination": known}))
            changed += 1
    return changed


def _key(record: OverlapRecord) -> str:
    parts = f"{record.model_hash}\n{record.data_hash}\n{record.contamination.corpus_hash}"
    return hashlib.sha256(parts.encode()).hexdigest()[:32]


def _folder(results_dir: str | Path, task: str) -> Path:
    if not is_task_id(task):
        raise StoreError(f"'{task[:40]}' is not a task id", hint="lower-case letters, digits and underscores")
    return Path(results_dir) / "overlap" / task


def _read(path: Path) -> OverlapRecord | None:
    """The record; None for one of another version, which counts as not made."""
    try:
        data = json.loads(path.read_bytes())
    except OSError as error:
        raise StoreError(f"cannot be read: {error.strerror or error}", hint="check permissions", file=path) from error
    except (ValueError, RecursionError) as error:
        raise StoreError("is not JSON", hint=_AGAIN, file=path, line=getattr(error, "lineno", None)) from error
    if not isinstance(data, dict):
        raise StoreError("does not hold a measurement", hint=_AGAIN, file=path)
    if data.get("overlap_version") != OVERLAP_VERSION:
        return None
    try:
        return OverlapRecord.model_validate(data)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(step) for step in first["loc"]) or "the record"
        raise StoreError(f"damaged record: {where}: {first['msg']}", hint=_AGAIN, file=path) from error
