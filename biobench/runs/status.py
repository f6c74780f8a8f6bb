"""How far a results folder is, read from its records and claims alone: from any machine that sees
the folder.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from operator import attrgetter
from pathlib import Path
from typing import Any, Literal

from biobench.errors import StoreError
from biobench.store import Store
from biobench.store.claims import RUNNING, is_alive, read_heartbeat
from biobench.store.records import is_key, is_task_id

State = Literal["done", "running", "failed", "stopped", "corrupt"]
"""stopped: begun, and nobody is at it; the next process that makes it resumes it from its last
state. corrupt: stored, and its record cannot be read.
"""


@dataclass(frozen=True, slots=True)
class FolderRun:
    """One run. host, pid, job (the batch system's number), started, step, steps, seconds_left: of a
    running one.

    started: seconds since the epoch. seconds_left: by the steps so far. reason: of a failed or
    corrupt one.
    """

    key: str
    task: str
    state: State
    host: str | None = None
    pid: int | None = None
    job: str | None = None
    started: float | None = None
    step: int | None = None
    steps: int | None = None
    seconds_left: float | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class FolderState:
    """All runs that have left a file in a results folder."""

    results_dir: str
    runs: tuple[FolderRun, ...]

    def counts(self) -> dict[State, int]:
        """How many runs are in each state; corrupt is named where some are."""
        counts: dict[State, int] = dict.fromkeys(("done", "running", "failed", "stopped"), 0)
        return {**counts, **Counter(map(attrgetter("state"), self.runs))}

    def as_json(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "results_dir": self.results_dir,
            "counts": self.counts(),
            "runs": self.runs,
        }


def folder_state(results_dir: str | Path) -> FolderState:
    """Look at the folder once. Raises StoreError where it cannot be read."""
    store = Store(results_dir)
    briefs, unusable = store.briefs()
    stored = {}
    for brief in briefs:
        stored[brief.task, brief.key] = FolderRun(brief.key, brief.task, "done")
    for finding in unusable:
        record = Path(finding.file)
        task = record.parent.name
        key = record.stem
        reason = f"{finding.what}; {finding.hint}"
        stored[task, key] = FolderRun(key, task, "corrupt", reason=reason)
    runs = []
    for task, key in sorted({*stored, *_begun(store)}):
        run = _running(store, task, key) or stored.get((task, key))
        runs.append(run or _left(store, task, key))
    return FolderState(str(results_dir), tuple(runs))


def _begun(store: Store) -> Iterator[tuple[str, str]]:
    """Task and key of every run that has left a file next to the results."""
    for path in (store.root / "locks").glob("*/*"):
        task, (key, dot, ending) = path.parent.name, path.name.partition(".")
        is_of_run = (dot + ending).startswith((RUNNING, ".failed", ".state"))
        if is_of_run and is_key(key) and is_task_id(task):
            yield task, key


def _running(store: Store, task: str, key: str) -> FolderRun | None:
    """The run as its process last reported it; None where no process is at it."""
    path = store.heartbeat_path(task, key)
    beat = read_heartbeat(path)
    if beat is None or not is_alive(path):
        return None
    run = FolderRun(key, task, "running", beat.host, beat.pid, beat.job or None, beat.started)
    if not beat.steps:
        return run
    run = replace(run, step=beat.step, steps=beat.steps)
    if not beat.step:
        return run
    # the time spent is that of the holder's monotonic clock
    spent = max(0.0, beat.written - beat.began)
    seconds_left = spent * (beat.steps - beat.step) / beat.step
    return replace(run, seconds_left=seconds_left)


def _left(store: Store, task: str, key: str) -> FolderRun:
    """A run that was begun and is not stored."""
    try:
        reason = store.failure(task, key)
    except StoreError as error:
        reason = str(error)
    return FolderRun(key, task, "stopped" if reason is None else "failed", reason=reason)
