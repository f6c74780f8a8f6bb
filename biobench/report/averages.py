"""The average over a suite's tasks, with the part of its uncertainty that comes from seeds."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from biobench.errors import UsageError
from biobench.report.groups import RunGroup, Source
from biobench.report.rows import Row
from biobench.report.tasks import TaskInfo
from biobench.stats import task_ranks, task_weights, variance_shares
from biobench.stats.means import pooled_df, t_from_se
from biobench.stats.types import Estimand


@dataclass(frozen=True, slots=True)
class Averages:
    """rows: one a line and suite, task `avg_<suite>`. notes: what was not averaged."""

    rows: tuple[Row, ...]
    notes: tuple[str, ...]


def suite_averages(
    rows: Sequence[Row],
    infos: Mapping[str, TaskInfo],
    *,
    incomplete: bool = False,
    asked: Collection[str] | None = None,
    weights: Mapping[str, float] | None = None,
) -> Averages:
    """Means over the corpora of each suite of their tasks' means, for every line that has all tasks.

    incomplete: lines with a part of the suite are averaged over that part and say so; otherwise they get no
    average and a note counts them. Limited runs have none: their test sets are smaller, and a mean of them would
    stand among means of whole ones. Suites of a single task have no average. asked: the tasks that `rows` were
    narrowed to; where it cuts a suite, no line is said to lack a task. weights: of tasks (1 where one has none), in the
    place of the mean over corpora.
    """
    members: dict[str, list[str]] = defaultdict(list)
    for info in infos.values():
        if info.in_suite:
            members[info.suite].append(info.id)
    lines: dict[tuple[str, tuple[str, str, Source]], list[Row]] = defaultdict(list)
    for row in rows:
        if infos[row.task].in_suite and row.source not in ("ceiling", "floor"):
            lines[row.suite, row.line].append(row)
    averages: list[Row] = []
    parts: dict[str, int] = defaultdict(int)
    for (suite, _), members_rows in lines.items():
        needed = len(members[suite])
        if needed < 2 or members_rows[0].partial:
            continue
        complete = len(members_rows) == needed
        if complete or (incomplete and len(members_rows) > 1):
            averages.append(_average(suite, members_rows, needed, _shares(members_rows, infos, weights)))
        else:
            parts[suite] += 1
    notes = [
        f"lines with only a part of the {len(members[suite])} {suite} tasks beside this average, and so no suite "
        f"average: {count}"
        for suite, count in parts.items()
        if asked is None or set(members[suite]) <= set(asked)
    ]
    ranked, rank_notes = _beside(averages, lines, infos)
    return Averages(tuple(ranked), tuple(dict.fromkeys([*(n for r in averages for n in r.notes), *notes, *rank_notes])))


def _beside(
    averages: Sequence[Row],
    lines: Mapping[tuple[str, tuple[str, str, Source]], Sequence[Row]],
    infos: Mapping[str, TaskInfo],
) -> tuple[list[Row], list[str]]:
    """The averages with their mean ranks, and what to know of them: which tasks decide, whether the order depends.

    Over the complete lines of each suite, where there are three or more; probes on frozen encoders are ranked nowhere.
    """
    ranks: dict[tuple[str, tuple[str, str, Source]], float] = {}
    notes: list[str] = []
    for suite in dict.fromkeys(row.suite for row in averages):
        whole = sorted(
            (r for r in averages if r.suite == suite and r.complete and r.source != "frozen"), key=lambda r: -r.mean
        )
        if len(whole) < 3:
            continue
        tasks = sorted(r.task for r in lines[suite, whole[0].line])
        means = np.array([[{r.task: r.mean for r in lines[suite, row.line]}[t] for t in tasks] for row in whole])
        weights = task_weights([infos[t].corpus for t in tasks])
        by_rank = [math.fsum(row) for row in task_ranks(means) * weights]
        ranks |= {(suite, row.line): rank for row, rank in zip(whole, by_rank, strict=True)}
        shares = sorted(zip(tasks, variance_shares(means, weights), strict=True), key=lambda x: -x[1])
        each = ", ".join(f"{task} {100 * share:.0f}%" for task, share in shares)
        notes.append(f"{suite}: share of each task in the variance of the average: {each}")
        others = (
            ("by task", [-(row.task_mean or 0.0) for row in whole]),
            ("by mean rank", by_rank),
        )
        orders = [name for name, by in others if any(a > b + 1e-9 for a, b in pairwise(by))]
        if orders:
            form = "{suite}: the order depends on the average; it is another one {orders}"
            notes.append(form.format(suite=suite, orders="; ".join(orders)))
    return [replace(row, mean_rank=ranks.get((row.suite, row.line))) for row in averages], notes


def known_mean(values: Sequence[float | None]) -> float | None:
    """The mean where every value is known."""
    known = [v for v in values if v is not None]
    return sum(known) / len(known) if known and len(known) == len(values) else None


def costs_of(group: RunGroup) -> dict[str, Any]:
    """The row's fields on what a run costs and what its window hides; none where the predictions are from outside."""
    runs, count = group.briefs, len(group.briefs)
    if runs[0].origin == "outside":
        return {}
    return {
        "seconds": sum(b.seconds for b in runs) / count,
        "peak_memory_bytes": max(b.peak_memory_bytes for b in runs),
        "energy_kwh": known_mean([b.energy_kwh for b in runs]),
        "train_tokens_per_second": sum(b.train_tokens_per_second for b in runs) / count,
        "truncated_documents": runs[0].truncated_documents,
        "lost_gold": runs[0].lost_gold,
        "parameters": runs[0].parameters,
    }


def _shares(rows: Sequence[Row], infos: Mapping[str, TaskInfo], weights: Mapping[str, float] | None) -> list[float]:
    """Of each row in the mean; they add up to 1. Raises UsageError for a weight that is not above zero."""
    if weights is None:
        return [float(w) for w in task_weights([infos[row.task].corpus for row in rows])]
    chosen = [weights.get(row.task, 1.0) for row in rows]
    for row, weight in zip(rows, chosen, strict=True):
        if not (math.isfinite(weight) and weight > 0):
            raise UsageError(f"the weight {weight} of {row.task}", hint="give a number above zero, or leave it out")
    return [weight / math.fsum(chosen) for weight in chosen]


def _average(suite: str, rows: Sequence[Row], needed: int, weights: Sequence[float]) -> Row:
    """The mean of the rows' means with these weights. Its interval: other seeds, these tasks and test sets.

    Seeds of different tasks are independent runs, so the variances of the means add up
    (Welch-Satterthwaite degrees of freedom); it is missing where that of a task is. Costs are means over the
    tasks too, the memory their maximum.
    """
    count = len(rows)
    mean = math.fsum(w * r.mean for w, r in zip(weights, rows, strict=True))
    trained = math.fsum(w * (r.mean if r.kept is None else r.kept) for w, r in zip(weights, rows, strict=True))
    failed = sum(r.failed for r in rows)
    sd = low = high = None
    if all(r.sd is not None and r.n_seeds - r.failed > 1 for r in rows):
        variances = [(w * (r.sd or 0.0)) ** 2 for w, r in zip(weights, rows, strict=True)]
        counts = [r.n_seeds - r.failed for r in rows]
        parts = [(v * (1 / n + r.ratio), n - 1.0) for v, n, r in zip(variances, counts, rows, strict=True)]
        sd = math.sqrt(sum(variances))
        test = t_from_se(
            trained,
            math.sqrt(sum(v for v, _ in parts)),
            pooled_df(parts),
            n=min(r.n_seeds for r in rows),
            estimand=Estimand.THESE_TEST_SETS,
        )
        # where one task's spread is unknown (its seeds gave equal scores), so is the spread of the mean
        if test.interval is not None and all(r.low is not None for r in rows):
            low, high = max(float(test.interval.low), 0.0), min(float(test.interval.high), 1.0)
    metrics = {r.metric for r in rows}
    first = rows[0]
    complete = count == needed
    part = f"{first.model}: average over {count} of {needed} {suite} tasks"
    return Row(
        model=first.model,
        task=f"avg_{suite}",
        metric=metrics.pop() if len(metrics) == 1 else "mixed",
        mean=mean,
        sd=sd,
        low=low,
        high=high,
        n_seeds=min(r.n_seeds for r in rows),
        source=first.source,
        variant=first.variant,
        language=first.language,
        suite=suite,
        tasks=count,
        task_mean=math.fsum(r.mean for r in rows) / count,
        failed=failed,
        kept=trained if failed else None,
        complete=complete,
        only_likely=any(r.only_likely for r in rows),
        parameters=first.parameters,
        seconds=known_mean([r.seconds for r in rows]),
        peak_memory_bytes=max((r.peak_memory_bytes for r in rows if r.peak_memory_bytes is not None), default=None),
        energy_kwh=known_mean([r.energy_kwh for r in rows]),
        train_tokens_per_second=known_mean([r.train_tokens_per_second for r in rows]),
        notes=() if complete else (part,),
    )
