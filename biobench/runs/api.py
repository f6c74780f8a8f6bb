"""`biobench.run`: the Python face of the command."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

from biobench.core.files import make_folder
from biobench.runs.gates import announce, below_baselines, stored_verdicts
from biobench.runs.options import RunRequest, with_arguments_of
from biobench.runs.plan import Item, RunPlan, make_plan, unstored
from biobench.runs.result import Reporter, RunResult, of_record
from biobench.runs.table import RunResults
from biobench.store import Store

if TYPE_CHECKING:
    from biobench.runs.execute import RunContext


@dataclass(frozen=True, kw_only=True)
class _Call(RunRequest):
    """What `run` takes: a request and its reporter."""

    reporter: Reporter | None = None


@with_arguments_of(_Call)
def run(call: _Call) -> RunResults:
    """Fine-tune and score, as `biobench run` does; one result a run, which together print
    themselves as a table.

    >>> made = run("dummy", "demo_topic", seeds="1-3", limit=60, overrides="training.epochs=1")
    >>> made[0].scores["macro_f1"]  # of one run, a fraction

    Where several may be given, a list is taken as well as one. reporter: hears of the plan and of
    each run (`biobench.runs.result.Reporter`; default: nobody does). Raises BioBenchError when the
    input is wrong, and DataUnavailableError where a task of `tasks` has no data; a failed run is a
    result, not an exception.
    """
    from transformers.utils.logging import disable_progress_bar

    disable_progress_bar()  # type: ignore[no-untyped-call]
    reporter = call.reporter or Reporter()
    plan = make_plan(replace(call, reporter=None), reporter)
    announce(plan, reporter)
    return run_plan(plan, reporter)


def make_runs(request: RunRequest, reporter: Reporter) -> RunResults:
    """Plan the request and make its runs; one result a run. Raises BioBenchError when the input is
    wrong.
    """
    return run_plan(make_plan(request, reporter), reporter)


def run_plan(plan: RunPlan, reporter: Reporter) -> RunResults:
    """Make the runs of a plan, with worker processes where the request asks for several; results in
    its order.
    """
    results = RunResults(_unavailable(plan))
    if plan.request.dry_run:
        results += map(plan.told_apart, _planned(plan))
        return results
    import torch

    for result in results:
        reporter.finish(result)
    threads = torch.get_num_threads()
    if plan.request.threads is not None:
        torch.set_num_threads(plan.request.threads)
    try:
        made = _run(plan, reporter)
    finally:
        torch.set_num_threads(threads)
    results += made if plan.request.no_test else below_baselines(made, stored_verdicts(plan))
    return results


def _unavailable(plan: RunPlan) -> Iterator[RunResult]:
    """A line for each model and task without data."""
    for checkpoint, (task, error) in product(plan.checkpoints, plan.unavailable):
        reason = f"{error}; {error.hint}"
        line = unstored(task, plan.request, checkpoint, "unavailable", reason)
        yield plan.told_apart(line)


def _planned(plan: RunPlan) -> list[RunResult]:
    """The results of a dry run: what is stored is `skipped`, what would be made is `planned`."""
    from biobench.runs.estimate import Pace, steps_of, tokens_read

    store = Store(plan.request.results_dir)
    request = plan.request
    lines = []
    undone = plan.undone()
    pace = Pace(plan)
    tokens = tokens_read(undone)
    for item in plan.items:
        if item.key not in tokens:
            record = store.get(item.task.id, item.key)
            assert record is not None
            lines.append(of_record(store, record, "skipped", "the same run is stored already"))
            continue
        reason = None
        if not request.force and store.is_begun(item.task.id, item.key):
            reason = "resumes from its last state"
        lines.append(
            replace(
                item.result(request, "planned", reason),
                seconds_expected=pace.seconds(item, tokens[item.key]),
                steps_expected=steps_of(item),
                tokens_expected=tokens[item.key],
            )
        )
    return lines


def _run(plan: RunPlan, reporter: Reporter) -> list[RunResult]:
    waiting = plan.undone()
    if waiting:
        if plan.request.keep_model is not None:
            from biobench.finetune.kept import KEEPING

            # refused before anything is trained
            make_folder(Path(plan.request.keep_model), KEEPING)
        reporter.stage("loading the training engine")
    from biobench.runs.estimate import longest_first
    from biobench.runs.execute import RunContext, execute

    context = RunContext(plan)
    made = {}
    if waiting:
        made = _made_elsewhere(context, longest_first(waiting), reporter)
    order = {item.key: position for position, item in enumerate(plan.items)}
    ended = execute(context, longest_first(plan.items), reporter, made)
    return sorted(ended, key=lambda result: order[result.key or ""])


def _made_elsewhere(
    context: RunContext, waiting: Sequence[Item], reporter: Reporter
) -> dict[str, RunResult]:
    """What a cluster or several worker processes made of these runs, by key; empty where this
    process makes them.
    """
    plan = context.plan
    if plan.request.executor == "ray":
        from biobench.runs.ray import run_on_ray

        return run_on_ray(context, waiting, reporter)
    from biobench.runs.workers import run_workers, worker_count

    workers = min(worker_count(plan), len(waiting))
    if workers == 1:
        return {}
    return run_workers(plan, workers, len(plan.items) - len(waiting), reporter)
