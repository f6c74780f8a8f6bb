"""`biobench.run`: the Python face of the command."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from pathlib import Path

import torch

from biobench.core.files import make_folder
from biobench.data.hashing import release_problem
from biobench.finetune.kept import KEEPING
from biobench.models.loading import without_progress_bars
from biobench.runs.estimate import Paced, TokensRead, longest_first, pace_of, savepoint_bytes, steps_of
from biobench.runs.execute import RunContext, execute
from biobench.runs.options import RunRequest, with_arguments_of
from biobench.runs.plan import Item, RunPlan, make_plan
from biobench.runs.ray import run_on_ray
from biobench.runs.result import Reporter, RunResult, Silent, of_item, of_record, without_record
from biobench.runs.workers import run_workers, worker_count
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
    store, request = Store(plan.request.results_dir), plan.request
    lines = without_data(plan)
    pace, read = pace_of(plan), TokensRead()
    for item in plan.items:
        record = None if request.force else store.get(item.task.id, item.key)
        if record is not None:
            lines.append(of_record(record, "skipped", str(store.path_of(record)), "the same run is stored already"))
            continue
        begun = not request.force and store.is_begun(item.task.id, item.key)
        line = of_item(item, request, "planned", "resumes from its last state" if begun else None)
        seconds = pace.seconds(item)
        lines.append(
            replace(
                line,
                seconds_expected=None if seconds is None else round(seconds, 1),
                steps_expected=0 if request.no_training else steps_of(item),
                tokens_expected=None if request.no_training else read.of(item),
                disk_expected=0 if request.no_training else savepoint_bytes(item),
            )
        )
    return lines


def without_data(plan: RunPlan) -> list[RunResult]:
    """One `unavailable` line per model and task without available data."""
    return [
        without_record(
            plan.request, entry, checkpoint.id, "unavailable", f"{entry.unavailable}; {entry.unavailable.hint}"
        )
        for checkpoint in plan.checkpoints
        for entry in plan.tasks
        if entry.unavailable is not None
    ]


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


def run_plan(plan: RunPlan, reporter: Reporter) -> list[RunResult]:
    """Make the runs of a plan, with worker processes where the request asks for several; results in its order."""
    if plan.request.dry_run:
        return planned(plan)
    threads = torch.get_num_threads()
    if plan.request.threads is not None:
        torch.set_num_threads(plan.request.threads)
    try:
        return _make_runs(plan, reporter)
    finally:
        torch.set_num_threads(threads)


def _make_runs(plan: RunPlan, reporter: Reporter) -> list[RunResult]:
    pace, waiting = pace_of(plan), undone(plan)
    if plan.request.keep_model is not None and waiting:
        make_folder(Path(plan.request.keep_model), KEEPING)  # refused before anything is trained
    results = without_data(plan)
    for result in results:
        reporter.finish(result)
    context, known = RunContext(plan), {}
    if plan.request.executor == "ray" and waiting:
        known = run_on_ray(context, longest_first(waiting, pace), reporter, pace)
    else:
        workers = min(worker_count(plan), len(waiting))
        reporter = Paced(reporter, plan, waiting, pace, max(1, workers))
        if workers > 1:
            known = run_workers(plan, workers, len(plan.items) - len(waiting), reporter)
    order = {item.key: place for place, item in enumerate(plan.items)}
    ended = list(execute(context, longest_first(plan.items, pace), reporter, known))
    return results + sorted(ended, key=lambda result: order[result.key or ""])
