"""The average over a suite's tasks, with the part of its uncertainty that comes from seeds."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from biobench.report.groups import Source
from biobench.report.row import Row
from biobench.report.tasks import TaskInfo
from biobench.stats import Estimand, pooled_df, t_from_se, task_weights

COSTS = ("seconds", "energy_kwh", "train_tokens_per_second")
"""Fields of what runs cost that are means over them."""


def suite_averages(
    rows: Sequence[Row],
    infos: Mapping[str, TaskInfo],
    *,
    incomplete: bool = False,
    asked: Collection[str] | None = None,
) -> tuple[tuple[Row, ...], list[str]]:
    """A row `avg_<suite>` for every line that has all tasks, and notes on what was not averaged.

    The average is the mean over the corpora of their tasks' means. incomplete: lines with a part of
    the suite are averaged over that part and say so; otherwise they get no average and a note
    counts them. Limited runs have none: their test sets are smaller. Suites of a single task have
    no average. asked: the tasks that `rows` were narrowed to; where it cuts a suite, no line is
    said to lack a task.
    """
    members: dict[str, list[str]] = defaultdict(list)
    for info in infos.values():
        if info.in_suite:
            members[info.suite].append(info.id)
    lines: dict[tuple[str, tuple[str, str, Source]], list[Row]] = defaultdict(list)
    for row in rows:
        if infos[row.task].in_suite and row.source not in ("oracle", "baseline"):
            lines[row.suite, row.line].append(row)
    averages: list[Row] = []
    parts: dict[str, int] = defaultdict(int)
    for (suite, _), of_line in lines.items():
        needed = len(members[suite])
        if needed < 2 or of_line[0].partial:
            continue
        if len(of_line) == needed or (incomplete and len(of_line) > 1):
            weights = task_weights([infos[row.task].corpus for row in of_line]).tolist()
            averages.append(_average(suite, of_line, needed, weights))
        else:
            parts[suite] += 1
    notes = [note for row in averages for note in row.notes]
    for suite, count in parts.items():
        if asked is None or set(members[suite]) <= set(asked):
            part = f"some of the {len(members[suite])} {suite} tasks are missing under this average"
            notes.append(f"rows without a suite average, because {part}: {count}")
    return tuple(averages), notes


def known_mean(values: Sequence[float | None]) -> float | None:
    """The mean where every value is known."""
    known = [v for v in values if v is not None]
    return sum(known) / len(known) if known and len(known) == len(values) else None


def _average(suite: str, rows: Sequence[Row], needed: int, weights: Sequence[float]) -> Row:
    """The mean of the rows' means with these weights. Its interval: other seeds, these tasks and
    test sets.

    Seeds of different tasks are independent runs, so the variances of the means add up
    (Welch-Satterthwaite degrees of freedom); it is missing where that of a task is. Costs are means
    over the tasks too, the memory their maximum.
    """
    trained = math.fsum(
        w * (r.mean if r.kept is None else r.kept) for w, r in zip(weights, rows, strict=True)
    )
    failed = sum(r.failed for r in rows)
    seeds = min(r.n_seeds for r in rows)
    sd = low = high = None
    parts = [
        (w * r.sd, r.n_seeds - r.failed, r.ratio)
        for w, r in zip(weights, rows, strict=True)
        if r.sd is not None
    ]
    if len(parts) == len(rows) and all(n > 1 for _, n, _ in parts):
        variances = [(spread**2 * (1 / n + ratio), n - 1.0) for spread, n, ratio in parts]
        sd = math.sqrt(sum(spread**2 for spread, *_ in parts))
        error = math.sqrt(sum(v for v, _ in variances))
        test = t_from_se(
            trained, error, pooled_df(variances), n=seeds, estimand=Estimand.THESE_TEST_SETS
        )
        # where one task's spread is unknown (its seeds gave equal scores), so is the spread of the
        # mean
        if test.interval is not None and all(r.low is not None for r in rows):
            low, high = max(float(test.interval.low), 0.0), min(float(test.interval.high), 1.0)
    costs: dict[str, Any] = {name: known_mean([getattr(r, name) for r in rows]) for name in COSTS}
    metrics = {r.metric for r in rows}
    complete = len(rows) == needed
    part = f"{rows[0].model}: average over {len(rows)} of {needed} {suite} tasks"
    return Row(
        model=rows[0].model,
        task=f"avg_{suite}",
        metric=metrics.pop() if len(metrics) == 1 else "mixed",
        mean=math.fsum(w * r.mean for w, r in zip(weights, rows, strict=True)),
        sd=sd,
        low=low,
        high=high,
        n_seeds=seeds,
        source=rows[0].source,
        variant=rows[0].variant,
        language=rows[0].language,
        suite=suite,
        tasks=len(rows),
        task_mean=math.fsum(r.mean for r in rows) / len(rows),
        failed=failed,
        kept=trained if failed else None,
        complete=complete,
        only_likely=any(r.only_likely for r in rows),
        parameters=rows[0].parameters,
        peak_memory_bytes=max(
            (r.peak_memory_bytes for r in rows if r.peak_memory_bytes is not None), default=None
        ),
        **costs,
        notes=() if complete else (part,),
    )
