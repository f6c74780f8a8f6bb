"""Recomputing the scores of a results folder, with the data at hand where a run's gold is not
stored.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from biobench.data.catalog import load_task
from biobench.data.load import data_of, subset
from biobench.errors import DataUnavailableError, SpecError, UsageError
from biobench.reporting.escape import plain
from biobench.schema.document import Document, TaskData
from biobench.schema.record import RunRecord
from biobench.schema.task import TaskSpec
from biobench.score import Rescored, rescore
from biobench.score.slices import RunTexts
from biobench.store import Store

Location = str | Path
"""A folder, or the id or file of a spec."""


def rescore_all(
    results_dir: Location, data_dir: Location | None = None, tasks: Sequence[Location] = ()
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

    read_texts = RunTextReader(data_dir, {task: Path(spec) for task, spec in specs.items()})

    def load_texts(record: RunRecord) -> RunTexts | None:
        if data_dir is None and not record.redacted:
            return None
        return read_texts(record)

    return rescore(store, load_texts, tasks=specs or None)


def run_data(
    record: RunRecord, data_dir: Location | None, spec: Location | None = None
) -> TaskData:
    """The record's own data. spec: the task's, where it is not a shipped one. Raises
    DataUnavailableError.
    """
    return _spec_and_data(record, data_dir, spec)[1]


def _spec_and_data(
    record: RunRecord, data_dir: Location | None, spec: Location | None
) -> tuple[TaskSpec, TaskData]:
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
    return task.spec, data


@dataclass(frozen=True, slots=True)
class RunTextReader:
    """Reads what runs trained on and were scored on, once for all runs on the same documents.

    data_dir: the corpora. specs: by task, those that are not shipped.
    """

    data_dir: Location | None
    specs: Mapping[str, Location]
    _read: dict[tuple[Any, ...], RunTexts] = field(default_factory=dict)

    def __call__(self, record: RunRecord) -> RunTexts:
        """Raises as `run_data`."""
        fold = None if record.resampling is None else record.resampling.fold
        task = record.task
        key = (task.id, task.data_hash, record.overrides, record.limit, record.split, fold)
        if key not in self._read:
            spec, data = _spec_and_data(record, self.data_dir, self.specs.get(task.id))
            recipe = spec.training
            self._read[key] = RunTexts(
                type=task.type,
                trained_on=subset(data.train, recipe.train_fraction, recipe.train_documents),
                scored_on=data.documents[record.split],
                redacted=record.redacted,
            )
        return self._read[key]


def run_documents(
    record: RunRecord, data_dir: Location | None, spec: Location | None = None
) -> list[Document]:
    """The split of the record's own data that it was scored on. Raises as `run_data`."""
    return run_data(record, data_dir, spec).documents[record.split]
