"""A task's verdict from the results folder, made where it is not there yet."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from biobench.data.catalog import LoadedTask
from biobench.data.hashing import task_hash
from biobench.gate.verdict import gate
from biobench.schema.document import TaskData
from biobench.schema.floor import FloorRecord
from biobench.store.floors import find_floor, save_floor


def ensure(
    task: LoadedTask, data: TaskData, results_dir: str | Path, *, full: Callable[[], TaskData] | None = None
) -> FloorRecord:
    """The stored verdict that holds for this task on this data; else the gate is run and stored.

    full: reads the data whole, where `data` is limited; the gate always looks at all of it. Raises StoreError.
    """
    digest = task_hash(task, data.source)
    stored = find_floor(results_dir, task.id, digest, data.hash)
    if stored is not None and stored.expect == task.spec.gate.expect:
        return stored
    verdict = gate(task, data if full is None else full())
    save_floor(results_dir, verdict)
    return verdict
