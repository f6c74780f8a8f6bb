"""Baselines without skill beside the runs of a plan: asked before a task's first run, and compared
with its results.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from operator import itemgetter

from biobench.data.load import load_data
from biobench.runs.plan import RunPlan, TaskEntry
from biobench.runs.result import Reporter, RunResult
from biobench.schema.baseline import AFTER_FAILED_GATE, ORDER, BaselineRecord
from biobench.store.baselines import find_baseline


def announce(plan: RunPlan, reporter: Reporter) -> None:
    """Say what a user must know before the runs begin: the plan's remarks, and which tasks have
    failed their gate already.
    """
    for line in plan.remarks():
        reporter.warn(line)
    stored = stored_verdicts(plan)
    for entry in plan.tasks:
        verdict = stored.pop(entry.id, None)
        # a verdict on another expectation is about to be made anew
        if verdict is not None and verdict.expect == entry.spec.gate.expect:
            warn_of_failure(verdict, reporter)


def ask_gate(plan: RunPlan, task_id: str, reporter: Reporter) -> None:
    """Store a verdict on the task, where there is none on its data, and say at once that it fails.

    Raises StoreError.
    """
    request = plan.request
    if not request.gate or request.no_test:
        return
    from biobench.baselines import ensure

    # the verdict looks at the first of several splits, and always at all documents
    entry = next(e for e in plan.tasks if e.id == task_id)
    stored = _stored_verdict(plan, entry)
    if stored is None:
        reporter.stage(f"measuring baselines of {task_id}")
    read_whole = None
    if request.limit is not None:
        read_whole = partial(load_data, entry.loaded, request.data_dir)
    verdict = ensure(entry.loaded, entry.data, request.results_dir, full=read_whole)
    if verdict != stored:
        warn_of_failure(verdict, reporter)


def warn_of_failure(verdict: BaselineRecord, reporter: Reporter) -> None:
    """Say why the task fails its gate and what to do; nothing where it passes."""
    if not verdict.passed:
        reporter.warn(failure_line(verdict))


def failure_line(verdict: BaselineRecord) -> str:
    """Why the task of a failed verdict is not ranked, and what to do."""
    reasons = "; ".join(verdict.reasons)
    failure = f"{verdict.task} fails its gate, reports will not rank it: {reasons}"
    return f"{failure}; {AFTER_FAILED_GATE}"


def stored_verdicts(plan: RunPlan) -> dict[str, BaselineRecord]:
    """Baselines and verdict of each task for which the results folder holds them; of several splits
    those of the first that has any.
    """
    stored: dict[str, BaselineRecord] = {}
    for entry in plan.tasks:
        if entry.id in stored:
            continue
        verdict = _stored_verdict(plan, entry)
        if verdict is not None:
            stored[entry.id] = verdict
    return stored


def _stored_verdict(plan: RunPlan, entry: TaskEntry) -> BaselineRecord | None:
    return find_baseline(plan.request.results_dir, entry.id, entry.hash, entry.data.hash)


def below_baselines(
    results: Sequence[RunResult], verdicts: Mapping[str, BaselineRecord]
) -> list[RunResult]:
    """The results, those that do not reach their task's best stored baseline with its name and
    score.

    Baselines learn from all training documents: a run on some of them is compared with none.
    """
    marked = []
    for result in results:
        if result.task in verdicts and result.is_scored and result.limit is None:
            best = _best_baseline(verdicts[result.task], result.headline)
            if best is not None and result.scores[result.headline] < best[1]:
                result = replace(result, baseline=best)
        marked.append(result)
    return marked


def _best_baseline(verdict: BaselineRecord, metric: str) -> tuple[str, float] | None:
    """Name and score of the policy without skill that scores highest."""
    scores = {}
    for policy in verdict.policies:
        if policy.kind == "floor" and policy.name != ORDER and metric in policy.scores:
            scores[policy.name] = policy.scores[metric]
    return max(scores.items(), key=itemgetter(1), default=None)
