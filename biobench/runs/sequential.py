"""Seeds until the difference of two models is decided: `biobench run A --against B --until-decided`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from biobench.errors import UsageError
from biobench.runs.checks import names_of_models
from biobench.runs.options import RunRequest
from biobench.runs.plan import RunPlan
from biobench.runs.result import RunResult
from biobench.stats import Look, look, next_task, task_weights
from biobench.stats.sequential import FIRST

Make = Callable[[RunRequest], tuple[RunPlan, list[RunResult]]]
"""Plans and makes the runs of a request; stored ones are not made again."""
START = 42
"""The first seed unless the request names others."""


@dataclass(slots=True, kw_only=True)
class Decided:
    """What came of it. look: the last one. seeds: task -> seeds that each of the two models has. runs: all lines."""

    first: str
    second: str
    rope: float
    look: Look
    seeds: dict[str, int]
    runs: list[RunResult] = field(default_factory=list)


def run_until_decided(
    request: RunRequest, against: str, make: Make, *, max_seeds: int = 20, rope: float = 0.01, alpha: float = 0.05
) -> Decided:
    """Run both models seed by seed, first three of every task, then where a seed tells most for its time.

    Stops when `stats.look` shows a difference, or sameness within `rope` (a fraction); at the latest with `max_seeds`
    of every task. Estimand: these tasks and test sets, other seeds. Stored runs count. Raises UsageError where the
    request names several models or too few seeds, and where a run fails.
    """
    if len(request.model) != 1:
        raise UsageError("--until-decided compares one model", hint="name one model, and the other with --against")
    if max_seeds < FIRST:
        raise UsageError(f"--max-seeds {max_seeds} is too few", hint=f"{FIRST} or more")
    if request.seeds is not None:
        raise UsageError("--seeds and --until-decided exclude each other", hint="leave --seeds out; --max-seeds bounds")
    called = names_of_models(replace(request, model=(*request.model, against)))
    scores: dict[str, tuple[list[float], list[float]]] = {}
    seconds: dict[str, list[float]] = {}
    corpora: dict[str, str] = {}
    paths: dict[str, str] = {}
    lines: list[RunResult] = []

    def extend(tasks: Sequence[str] | None, seeds: str) -> None:
        for side, model in enumerate((request.model[0], against)):
            part = replace(request, model=(model,), seeds=seeds, name=[called[model]] if called else [])
            if tasks is not None:
                part = replace(part, suite=None, tasks=tuple(paths[t] for t in tasks))
            plan, results = make(part)
            for entry in plan.tasks:
                if entry.resampled is not None:
                    raise UsageError(
                        f"--until-decided adds seeds, and {entry.id} has {entry.resampled.count} splits",
                        hint="run its splits once with each model, then `biobench compare`",
                    )
                corpora[entry.id] = entry.loaded.spec.corpus_id
                paths[entry.id] = str(entry.loaded.path)
            for line in results:
                lines.append(line)
                if line.status == "unavailable":
                    continue
                if line.status not in ("done", "skipped") or line.primary not in line.scores:
                    raise UsageError(
                        f"{line.model} on {line.task}, seed {line.seed}: {line.status}, {line.reason}",
                        hint="repair that run, then repeat the command: what is done is kept",
                    )
                scores.setdefault(line.task, ([], []))[side].append(line.scores[line.primary])
                seconds.setdefault(line.task, []).append(line.seconds or 1.0)

    extend(None, f"{START}-{START + FIRST - 1}")
    if not scores:
        raise UsageError("no task has its data", hint="`biobench data status` tells what is missing")
    names = list(scores)
    weights = [float(w) for w in task_weights([corpora[name] for name in names])]
    while True:
        gaps = [[a - b for a, b in zip(*scores[name], strict=True)] for name in names]
        evidence = look(gaps, weights, rope=rope, alpha=alpha)
        counts = {name: len(gap) for name, gap in zip(names, gaps, strict=True)}
        if evidence.decision is not None or min(counts.values()) >= max_seeds:
            first, second = (called.get(model, model) for model in (request.model[0], against))
            return Decided(first=first, second=second, rope=rope, look=evidence, seeds=counts, runs=lines)
        costs = [2 * sum(seconds[name]) / len(seconds[name]) for name in names]
        # a task with all its seeds is ahead of the others and waits for them by itself
        name = names[next_task(gaps, weights, costs)]
        if counts[name] >= max_seeds:
            name = min(counts, key=lambda n: counts[n])
        extend([name], str(START + counts[name]))
