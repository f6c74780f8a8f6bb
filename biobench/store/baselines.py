"""Baselines and gate verdicts in a results folder: <results>/floors/<task>/<32 hex digits>.json."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from biobench.errors import StoreError
from biobench.schema.baseline import BASELINE_VERSION, BaselineRecord
from biobench.store.records import read_record, small_record, write_record
from biobench.store.store import UnusableFile

_AGAIN = "delete the file and repeat `biobench tasks gate`"


def save_baseline(results_dir: str | Path, record: BaselineRecord) -> Path:
    """Write the record, atomically, over an older one of the same task and data. Raises
    StoreError."""
    path = small_record(results_dir, "floors", record.task, record.task_hash, record.data_hash)
    write_record(path, record)
    return path


def find_baseline(
    results_dir: str | Path, task: str, task_hash: str, data_hash: str
) -> BaselineRecord | None:
    """The verdict that holds for this task on this data, None where there is none of this gate
    version.

    The pair itself first. Else the newest of the same task id on the same data: baselines see
    documents and labels, which the data hash covers, and nothing of the training fields that a task
    hash also holds. Raises StoreError where the pair's own file is damaged.
    """
    path = small_record(results_dir, "floors", task, task_hash, data_hash)
    record = _read(path) if path.is_file() else None
    return record or latest(scan_baselines(results_dir, task)[0], task, data_hash)


def latest(records: Sequence[BaselineRecord], task: str, data_hash: str) -> BaselineRecord | None:
    """The newest of the records that were made on this data of the task."""
    matching = [r for r in records if r.task == task and r.data_hash == data_hash]
    return max(matching, key=lambda r: r.made, default=None)


def scan_baselines(
    results_dir: str | Path, task: str = "*"
) -> tuple[list[BaselineRecord], list[UnusableFile]]:
    """All readable records of this gate version, in order of file name, and what could not be
    read."""
    records: list[BaselineRecord] = []
    findings: list[UnusableFile] = []
    for path in sorted(Path(results_dir).glob(f"floors/{task}/*.json")):
        try:
            record = _read(path)
        except StoreError as error:
            findings.append(UnusableFile(error.file or str(path), error.what, error.hint))
        else:
            if record is not None:
                records.append(record)
    return records, findings


def _read(path: Path) -> BaselineRecord | None:
    """The record; None for one of another gate version, which counts as not made."""
    record = read_record(path, BaselineRecord, ("floor_version", BASELINE_VERSION), _AGAIN)
    if record is None:
        return None
    if path != small_record(
        path.parents[2], "floors", record.task, record.task_hash, record.data_hash
    ):
        raise StoreError(
            f"holds the baselines of another task ({record.task})", hint=_AGAIN, file=path
        )
    return record
