"""How far a plan or a results folder is, read from its files alone: from any machine that sees the folder."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from biobench.errors import StoreError
from biobench.runs.jobs.plan_file import PlanFile
from biobench.store import Store
from biobench.store.claims import RUNNING, Heartbeat, is_alive, read_heartbeat
from biobench.store.index import list_files
from biobench.store.keys import is_key, is_task_id

State = Literal["done", "running", "failed", "stopped", "waiting"]
"""stopped: begun, and nobody is at it; the next process that makes it resumes it from its last state."""


@dataclass(frozen=True, slots=True)
class WatchedRun:
    """One run. model, seed and seconds: as the plan has them, None without one. seconds_left: of a running one.

    reason: of a failed one. job: the batch system's number, where there is one.
    """

    key: str
    task: str
    state: State
    model: str | None = None
    seed: int | None = None
    seconds: float | None = None
    host: str | None = None
    pid: int | None = None
    job: str | None = None
    started: float | None = None
    step: int | None = None
    steps: int | None = None
    seconds_left: float | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class PlanProgress:
    """All runs of a plan, or those that have left a file in the folder. seconds_left: with as many at once as now."""

    results_dir: str
    runs: tuple[WatchedRun, ...]
    planned: bool
    seconds_left: float | None

    def count(self, state: State) -> int:
        """How many runs are in this state."""
        return sum(run.state == state for run in self.runs)

    def as_json(self) -> dict[str, Any]:
        """Plain data."""
        states = ("done", "running", "failed", "stopped", "waiting")
        return {
            "results_dir": self.results_dir,
            "planned": self.planned,
            "counts": {state: self.count(state) for state in states},  # type: ignore[arg-type]
            "seconds_left": self.seconds_left,
            "runs": [asdict(run) for run in self.runs],
        }


def progress(results_dir: str | Path, plan: PlanFile | None = None) -> PlanProgress:
    """Look at the folder once. Raises StoreError where it cannot be read."""
    store = Store(results_dir)
    done = {(seen.task, seen.key) for seen in list_files(store.root / "runs") if seen.complete}
    if plan is None:
        keys = sorted(done | set(_begun(store)))
        runs = tuple(_state(store, task, key, done=(task, key) in done) for task, key in keys)
        return PlanProgress(str(results_dir), runs, planned=False, seconds_left=None)
    models = {m.hash: m.id for m in plan.models}
    runs = tuple(
        _state(
            store,
            run.task,
            run.key,
            done=(run.task, run.key) in done,
            model=models[run.model],
            seed=run.seed,
            seconds=run.seconds,
        )
        for run in plan.runs
    )
    return PlanProgress(str(results_dir), runs, planned=True, seconds_left=_left(runs))


def _begun(store: Store) -> Iterator[tuple[str, str]]:
    """Task and key of every run that has left a file beside the results."""
    for path in (store.root / "locks").glob("*/*"):
        key = path.name.partition(".")[0]
        files = (RUNNING, ".failed", ".state")
        if is_key(key) and is_task_id(path.parent.name) and path.name.startswith(tuple(key + s for s in files)):
            yield path.parent.name, key


def _state(
    store: Store,
    task: str,
    key: str,
    *,
    done: bool,
    model: str | None = None,
    seed: int | None = None,
    seconds: float | None = None,
) -> WatchedRun:
    beat = read_heartbeat(path := store.heartbeat_path(task, key))
    if beat is not None and is_alive(path):
        left = _seconds_left(beat, seconds)
        where = {"host": beat.host, "pid": beat.pid, "job": beat.job or None, "started": beat.started}
        steps = {"step": beat.step, "steps": beat.steps} if beat.steps else {}
        return WatchedRun(key, task, "running", model, seed, seconds, **where, **steps, seconds_left=left)  # type: ignore[arg-type]
    if done:
        return WatchedRun(key, task, "done", model, seed, seconds)
    try:
        reason = store.last_failure(task, key)
    except StoreError as error:
        reason = str(error)
    if reason is not None:
        return WatchedRun(key, task, "failed", model, seed, seconds, reason=reason)
    begun = beat is not None or store.is_begun(task, key)
    return WatchedRun(key, task, "stopped" if begun else "waiting", model, seed, seconds)


def _seconds_left(beat: Heartbeat, seconds: float | None) -> float | None:
    """By the steps so far, else by the plan's seconds; the time spent is that of the holder's monotonic clock."""
    spent = max(0.0, beat.written - beat.began)
    if beat.step and beat.steps:
        return spent * (beat.steps - beat.step) / beat.step
    return None if seconds is None else max(0.0, seconds - spent)


def _left(runs: Sequence[WatchedRun]) -> float | None:
    """Of the whole plan; None where nothing runs or a run's cost is not known."""
    running = [run.seconds_left for run in runs if run.state == "running"]
    waiting = [run.seconds for run in runs if run.state in ("waiting", "stopped")]
    if not running or None in running or None in waiting:
        return None
    parts = [seconds for seconds in (*running, *waiting) if seconds is not None]
    return max(sum(parts) / len(running), max(parts))
