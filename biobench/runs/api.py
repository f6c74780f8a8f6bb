"""`biobench.run`: the Python face of the command."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from pathlib import Path

import torch

from biobench.baselines import ensure
from biobench.core.files import make_folder
from biobench.data.load import load_data
from biobench.data.releases import release_problem
from biobench.finetune.kept import KEEPING
from biobench.models.loading import without_progress_bars
from biobench.runs.cluster.entry import run_on_ray
from biobench.runs.estimate import Paced, TokensRead, pace_of, savepoint_bytes, steps_of
from biobench.runs.execute import Reporter, Silent, execute, without_data
from biobench.runs.options import RunRequest, with_arguments_of
from biobench.runs.parallel import run_workers, runs_per_device, worker_count
from biobench.runs.plan import Item, RunPlan, TaskEntry, make_plan
from biobench.runs.result import RunResult, of_record, without_record
from biobench.schema.document import TaskData
from biobench.store import Store
from biobench.store.floors import find_floor


@dataclass(frozen=True, kw_only=True)
class _Call(RunRequest):
    """What `run` takes: a request and who is told of it."""

    reporter: Reporter | None = None


@with_arguments_of(_Call)
def run(call: _Call) -> list[RunResult]:
    """Fine-tune and score, as `biobench run` does; one result a run.

    model: hub id, ``id@revision`` or folder, or several. tasks: ids or YAML paths. seeds: ``42-50``, a seed,
    or several. overrides: ``KEY=VALUE``, one or several. save_every: seconds. gate: before a task's first run,
    store what policies without skill reach on it and whether it measures something. dry_run: say what would be
    made. threads: of all workers together. Raises BioBenchError when the input is wrong; a failed run is a result,
    not an exception.
    """
    request = RunRequest(**{f.name: getattr(call, f.name) for f in fields(RunRequest)})
    with without_progress_bars():
        return make_runs(request, call.reporter or Silent())


def make_runs(request: RunRequest, reporter: Reporter) -> list[RunResult]:
    """Plan the request and make its runs; one result a run. Raises BioBenchError when the input is wrong."""
    return run_plan(make_plan(request), reporter)


def planned(plan: RunPlan) -> list[RunResult]:
    """The results of a dry run: what is stored is `skipped`, what would be made is `planned`."""
    store = Store(plan.request.results_dir)
    lines = without_data(plan)
    pace, read = pace_of(plan), TokensRead()
    for item in plan.items:
        record = None if plan.request.force else store.get(item.task.id, item.key)
        if record is not None:
            lines.append(of_record(record, "skipped", str(store.path_of(record)), "the same run is stored already"))
            continue
        begun = not plan.request.force and store.is_begun(item.task.id, item.key)
        lines.append(
            without_record(
                plan.request,
                item.task,
                item.checkpoint.id,
                "planned",
                seed=item.seed,
                reason="goes on from where it was stopped" if begun else None,
                key=item.key,
                expected=pace.seconds(item, item.checkpoint.parameters),
                steps=0 if plan.request.no_training else steps_of(item),
                tokens=None if plan.request.no_training else read.of(item),
                disk=0 if plan.request.no_training else savepoint_bytes(item),
            )
        )
    return lines


def contradicted(plan: RunPlan) -> list[str]:
    """Which tasks' data are not what their specs count, or no known release, a line each; for before any run."""
    lines = []
    for entry in plan.tasks:
        if entry.data is None:
            continue
        if problem := release_problem(entry.loaded, entry.data.source, entry.data.hash):
            lines.append(f"warning: {entry.id}: {problem}")
        problems = entry.data.count_problems
        if problems:
            more = f" (and {len(problems) - 1} more counts)" if len(problems) > 1 else ""
            lines.append(f"warning: {entry.id}: {problems[0]}{more}; scores are not comparable with others")
    return list(dict.fromkeys(lines))


def refused(plan: RunPlan) -> Iterator[str]:
    """Of each task that fails its gate, why: its runs are kept but neither shown nor averaged."""
    for entry in plan.tasks:
        if entry.data is None or entry.loaded.fold:
            continue
        verdict = find_floor(plan.request.results_dir, entry.id, entry.hash, entry.data.hash)
        if verdict is not None and not verdict.passed:
            yield f"{entry.id} fails its gate, reports will not rank it: {'; '.join(verdict.reasons)}"


def undone(plan: RunPlan) -> list[Item]:
    """The items that are not stored yet, or all with --force."""
    store = Store(plan.request.results_dir)
    return [i for i in plan.items if plan.request.force or store.get(i.task.id, i.key) is None]


def workers_asked(plan: RunPlan) -> str:
    """The wanted number as given, checked."""
    worker_count(plan.request.parallel, plan.device)
    runs_per_device(plan)
    return plan.request.parallel


def ask_gate(plan: RunPlan) -> None:
    """Store a verdict for every task with a run to make, where there is none on its data. Seconds a task."""
    # of a task with several splits the first one that is to be run
    for entry in {i.task.id: i.task for i in reversed(undone(plan))}.values():
        assert entry.data is not None
        ensure(entry.loaded, entry.data, plan.request.results_dir, full=_whole(entry, plan.request))


def _whole(entry: TaskEntry, request: RunRequest) -> Callable[[], TaskData] | None:
    """Reads the task's data without the limit; None where there is no limit."""
    if request.limit is None:
        return None
    return lambda: load_data(entry.loaded, request.data_dir, offline=request.offline)


def run_plan(plan: RunPlan, reporter: Reporter) -> list[RunResult]:
    """Ask the gate, then make the runs of a plan, with worker processes where the request asks for several."""
    if plan.request.dry_run:
        return planned(plan)
    workers_asked(plan)  # a wrong number is refused before anything is written
    threads = torch.get_num_threads()
    if plan.request.threads is not None:
        torch.set_num_threads(plan.request.threads)
    try:
        return _make_runs(plan, reporter)
    finally:
        torch.set_num_threads(threads)


def _make_runs(plan: RunPlan, reporter: Reporter) -> list[RunResult]:
    if plan.request.gate and not plan.request.no_test:
        ask_gate(plan)
    waiting = undone(plan)
    if plan.request.keep_model is not None and waiting:
        make_folder(Path(plan.request.keep_model), KEEPING)  # refused before anything is trained
    if plan.request.executor == "ray" and waiting:
        return list(execute(plan, reporter, run_on_ray(plan, workers_asked(plan), waiting, reporter)))
    left = len(waiting)
    workers = min(worker_count(plan.request.parallel, plan.device) * runs_per_device(plan), left)
    reporter = Paced(reporter, plan, waiting, max(1, workers))
    known: dict[str, RunResult] = {}
    if workers > 1:
        known = run_workers(plan, workers, len(plan.items) - left, reporter)
        plan.workers = workers
    return list(execute(plan, reporter, known))
