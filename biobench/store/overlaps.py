"""Measured contamination in a results folder: <results>/overlap/<task>/<32 hex digits>.json."""

from __future__ import annotations

from pathlib import Path

from biobench.schema.contamination import OVERLAP_VERSION, Contamination, OverlapRecord
from biobench.store.records import read_record, small_record, write_record
from biobench.store.store import Store

_AGAIN = "delete the file and repeat `biobench analyze overlap`"


def save_overlap(results_dir: str | Path, record: OverlapRecord) -> Path:
    """Write the measurement, atomically, over an older one of the same model, data and text. Raises
    StoreError.
    """
    decided = record.model_hash, record.data_hash, record.contamination.corpus_hash
    path = small_record(results_dir, "overlap", record.task, *decided)
    write_record(path, record)
    return path


def find_overlap(
    results_dir: str | Path, task: str, model_hash: str, data_hash: str
) -> Contamination | None:
    """The worst measurement of this model on this data, None where there is none of this version.

    A model may have several training texts; the one that shows most test documents counts, then the
    newest. Raises StoreError for a damaged file.
    """
    measured: list[OverlapRecord] = []
    version = ("overlap_version", OVERLAP_VERSION)
    folder = small_record(results_dir, "overlap", task).parent
    for path in sorted(folder.glob("*.json")):
        record = read_record(path, OverlapRecord, version, _AGAIN)
        if record is not None and (record.model_hash, record.data_hash) == (model_hash, data_hash):
            measured.append(record)
    worst = max(measured, key=_severity, default=None)
    return None if worst is None else worst.contamination


def _severity(record: OverlapRecord) -> tuple[int, str]:
    return record.contamination.seen, record.made


def note_in_records(results_dir: str | Path, task: str, model_hash: str, data_hash: str) -> int:
    """Write the worst measurement into the records of runs that were made before it; how many
    changed.
    """
    worst = find_overlap(results_dir, task, model_hash, data_hash)
    store = Store(results_dir)
    changed = 0
    for record in store.records():
        identity = record.task.id, record.model.hash, record.task.data_hash
        if identity == (task, model_hash, data_hash) and record.contamination != worst:
            store.update(record.model_copy(update={"contamination": worst}))
            changed += 1
    return changed
