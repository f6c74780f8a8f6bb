"""Recomputing the scores of a results folder, with the data at hand where a run's gold is not
stored.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from biobench.data.catalog import load_task
from biobench.data.load import data_of
from biobench.errors import DataUnavailableError, SpecError, UsageError
from biobench.report.escape import plain
from biobench.schema.document import Document, TaskData
from biobench.schema.record import RunRecord
from biobench.score import Rescored, rescore
from biobench.store import Store


def rescore_all(
    results_dir: str | Path, data_dir: str | Path | None = None, tasks: Sequence[str | Path] = ()
) -> list[Rescored]:
    """Score every stored run again and replace the records whose scores differ.

    tasks: ids or paths of specs; only their runs, where any is named. Damaged records and data that
    is not available become rows; the others go on. Raises UsageError where there is no such folder,
    no such task or no run of one, StoreError where a record cannot be written.
    """
    if not Path(results_dir).is_dir():
        hint = "give the folder of your runs with --results-dir; `biobench run` makes one"
        raise UsageError(f"{plain(str(results_dir))}: there is no results folder", hint=hint)
    store = Store(results_dir)
    stored = {r.task.id for r in store.records()}
    specs = {load_task(task).id: task for task in tasks}
    for task_id, task in specs.items():
        if task_id not in stored:
            hint = "`biobench report` shows the tasks that have results"
            raise UsageError(
                f"{plain(str(results_dir))} holds no run of {plain(str(task))}", hint=hint
            )

    def documents(record: RunRecord) -> Sequence[Document]:
        return run_documents(record, data_dir, specs.get(record.task.id))

    return rescore(store, documents, tasks=specs or None)


def run_data(
    record: RunRecord, data_dir: str | Path | None, spec: str | Path | None = None
) -> TaskData:
    """The record's own data. spec: the task's, where it is not a shipped one. Raises
    DataUnavailableError.
    """
    hint = "give the folder with the data of that run with --data-dir"
    try:
        task = load_task(spec or record.task.id, record.overrides)
    except (UsageError, SpecError) as error:
        what = f"the spec of {record.task.id} is not available: {error.what}"
        hint = "name its file, as in --task my_task.yaml, or install the BioBench that ships it"
        raise DataUnavailableError(what, hint=hint) from error
    data = data_of(record, task, data_dir)
    if data.hash != record.task.data_hash:
        what = f"the data of {record.task.id} available here is not the data of the run"
        raise DataUnavailableError(what, hint=hint)
    return data


def run_documents(
    record: RunRecord, data_dir: str | Path | None, spec: str | Path | None = None
) -> list[Document]:
    """The split of the record's own data that it was scored on. Raises as `run_data`."""
    return run_data(record, data_dir, spec).documents[record.split]
