"""The average over a suite's tasks, with the part of its uncertainty that comes from seeds."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Collection, Sequence
from operator import mul
from statistics import fmean
from typing import Any

from biobench.core.grouped import grouped
from biobench.reporting.groups import Source
from biobench.reporting.row import Row
from biobench.reporting.tasks import Infos
from biobench.stats import Estimand, pooled_df, t_from_se, task_weights

COSTS = ("seconds", "train_tokens_per_second")
"""Fields of what runs cost that are means over them."""


def suite_averages(
    rows: Sequence[Row],
    infos: Infos,
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
    members: dict[str, set[str]] = defaultdict(set)
    for info in infos.values():
        if info.in_suite:
            members[info.suite].add(info.id)
    averages: list[Row] = []
    incomplete_lines: Counter[str] = Counter()
    for (suite, *_), line in _lines(rows, infos).items():
        needed = len(members[suite])
        least = needed
        if incomplete:
            least = 2
        if needed > 1 and len(line) >= least:
            averages.append(_average(suite, line, needed, infos))
        elif needed > 1 and members[suite].issubset(asked or infos):
            incomplete_lines[suite] += 1
    notes: list[str] = []
    for row in averages:
        notes += row.notes
    for suite, count in incomplete_lines.items():
        lack = f"some of the {len(members[suite])} {suite} tasks are missing under this average"
        notes.append(f"rows without a suite average, because {lack}: {count}")
    return tuple(averages), notes


Line = tuple[str, str, str, Source]
"""Suite, model, variant and source."""


def _lines(rows: Sequence[Row], infos: Infos) -> dict[Line, list[Row]]:
    """The rows that count for an average, by their line. Baselines and oracles have none, nor have
    runs on a part of the test split.
    """
    counted = []
    for row in rows:
        is_model = row.source not in ("oracle", "baseline")
        if is_model and infos[row.task].in_suite and not row.partial:
            counted.append(row)
    return grouped(counted, lambda row: (row.suite, *row.line))


def known_mean(values: Sequence[float | None]) -> float | None:
    """The mean of one value or more, where every one is known."""
    total = 0.0
    for value in values:
        if value is None:
            return None
        total += value
    return total / len(values)


def _average(suite: str, rows: Sequence[Row], needed: int, infos: Infos) -> Row:
    """The mean over the corpora of the rows' means; costs are means over the tasks, the memory
    their maximum. needed: how many tasks the suite has.
    """
    weights = task_weights([infos[row.task].corpus for row in rows]).tolist()
    trained = _weighted(weights, [row.trained_mean for row in rows])
    sd, low, high = _spread(rows, weights, trained)
    metrics = {row.metric for row in rows}
    failed = sum(row.failed for row in rows)
    notes: tuple[str, ...] = ()
    if len(rows) != needed:
        notes = (f"{rows[0].model}: average over {len(rows)} of {needed} {suite} tasks",)
    return Row(
        model=rows[0].model,
        task=f"avg_{suite}",
        metric=metrics.pop() if len(metrics) == 1 else "mixed",
        mean=_weighted(weights, [row.mean for row in rows]),
        sd=sd,
        low=low,
        high=high,
        n_seeds=min(row.n_seeds for row in rows),
        source=rows[0].source,
        variant=rows[0].variant,
        language=rows[0].language,
        suite=suite,
        tasks=len(rows),
        task_mean=fmean(row.mean for row in rows),
        failed=failed,
        kept=trained if failed else None,
        complete=not notes,
        only_likely=any(row.only_likely for row in rows),
        parameters=rows[0].parameters,
        **_costs(rows),
        notes=notes,
    )


def _costs(rows: Sequence[Row]) -> dict[str, Any]:
    """What the rows cost, by the row's fields: means, of the memory the highest."""
    costs: dict[str, Any] = {}
    for name in COSTS:
        costs[name] = known_mean([getattr(row, name) for row in rows])
    memory = [row.peak_memory_bytes for row in rows if row.peak_memory_bytes is not None]
    costs["peak_memory_bytes"] = max(memory, default=None)
    return costs


def _weighted(weights: Sequence[float], values: Sequence[float]) -> float:
    return math.fsum(map(mul, weights, values))


def _spread(
    rows: Sequence[Row], weights: Sequence[float], mean: float
) -> tuple[float | None, float | None, float | None]:
    """sd and the ends of the 95% interval of the weighted mean over other seeds, for these tasks
    and test sets; None where they are unknown.

    Seeds of different tasks are independent runs, so the variances of the means add up
    (Welch-Satterthwaite degrees of freedom); it is missing where that of a task is. mean: of the
    runs that trained, about which the interval lies.
    """
    # where one task's spread is unknown (its seeds gave equal scores), so is that of the mean
    is_bounded = True
    squares: list[float] = []
    variances: list[tuple[float, float]] = []
    for weight, row in zip(weights, rows, strict=True):
        trained_seeds = row.n_seeds - row.failed
        if row.sd is None or trained_seeds < 2:
            return None, None, None
        is_bounded &= row.low is not None
        square = (weight * row.sd) ** 2
        squares.append(square)
        variances.append((square * (1 / trained_seeds + row.ratio), trained_seeds - 1.0))
    sd = math.sqrt(sum(squares))
    interval = t_from_se(
        mean,
        math.sqrt(sum(variance for variance, _ in variances)),
        pooled_df(variances),
        n=min(row.n_seeds for row in rows),
        estimand=Estimand.THESE_TEST_SETS,
    ).interval
    if interval is None or not is_bounded:
        return sd, None, None
    return sd, max(float(interval.low), 0.0), min(float(interval.high), 1.0)
