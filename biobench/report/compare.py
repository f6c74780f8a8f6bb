"""Models compared: paired task by task, tested over the suite, corrected for the number of pairs.

Scores and differences are fractions; what each interval is about is its `estimand`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

from biobench.data.catalog import load_task
from biobench.errors import UsageError
from biobench.report.contest import Contest, Refused, contest
from biobench.report.entrants import find_entrants
from biobench.report.evidence import Evidence
from biobench.report.rows import AverageName
from biobench.report.table import load
from biobench.report.twins import Twins, compare_ledgers, find_ledgers
from biobench.stats import (
    Estimand,
    MeanTest,
    Pair,
    RankInterval,
    SeedPlan,
    Standing,
    TaskPool,
    TaskRuns,
    WithinTasks,
    compare_many,
    compare_seeds,
    compare_task,
    document_pools,
    rank_intervals,
    score_pool,
    seeds_needed,
    suite_draws,
    within_tasks,
    within_tasks_seeds,
)
from biobench.store import Finding
from biobench.store.floors import scan_floors

#: A difference in F1 that is worth finding unless told otherwise: one point.
WANTED = 0.01
#: Pairs for which test-set noise is computed task by task; with more, the pairs have the suite test alone.
MOST_DETAILED = 15


@dataclass(frozen=True, slots=True)
class TaskLine:
    """First minus second model on one task.

    seeds: other seeds, this test set. documents: these runs, another test set (None without predictions).
    total: both. Each is None where it is unknown; `note` says why. groups: independent documents of the test
    split. detectable: smallest true difference found with 80% power, by the total.
    """

    task: str
    corpus: str
    metric: str
    first: float
    second: float
    difference: float
    n_first: int
    n_second: int
    published: bool
    paired: bool
    seeds: MeanTest
    documents: MeanTest | None
    total: MeanTest | None
    groups: int | None
    detectable: float | None
    note: str | None


@dataclass(frozen=True, slots=True)
class PairResult:
    """One pair. pair: the suite test with its corrected p. within: these tasks alone, held fixed.
    plan: seeds that a wanted difference needs, None without seeds."""

    pair: Pair
    tasks: tuple[TaskLine, ...]
    within: WithinTasks
    plan: SeedPlan | None


@dataclass(frozen=True, slots=True)
class Comparison:
    """What `compare` gives. pairs: first named against second and so on; standings: best first.

    published, policies: which of the models are known from print alone, or are policies of the gate; perfect:
    which of these returns the gold and so errs on no test set. ranks: bootstrap intervals of the ranks, for
    three models or more. notes: what a reader must know; findings: damaged records; refused: runs left out because
    their task fails its gate. `verdict` says it in words, `text()` with the tables, `as_json()` as plain data.
    """

    models: tuple[str, ...]
    average: AverageName
    tasks: tuple[str, ...]
    clusters: tuple[str, ...]
    metrics: Mapping[str, str]
    published: tuple[str, ...]
    policies: tuple[str, ...]
    perfect: tuple[str, ...]
    pairs: tuple[PairResult, ...]
    standings: tuple[Standing, ...]
    ranks: tuple[RankInterval, ...]
    twins: tuple[Twins, ...]
    alpha: float
    estimand: Estimand
    notes: tuple[str, ...]
    findings: tuple[Finding, ...]
    refused: tuple[Refused, ...] = ()

    @property
    def verdict(self) -> tuple[str, ...]:
        """Plain sentences, the most important first."""
        from biobench.report.verdict import verdict

        return verdict(self)

    def text(self) -> str:
        """The verdict, then the tables; differences in points (percent)."""
        from biobench.report.compare_render import to_text

        return to_text(self)

    def as_json(self) -> dict[str, Any]:
        """Plain data, numbers as fractions, nothing that is not JSON."""
        from biobench.report.compare_render import to_json

        return to_json(self)


def compare(
    models: str | Path | Sequence[str | Path],
    *others: str | Path,
    results_dir: str | Path = "results",
    data_dir: str | Path | None = None,
    suite: str | None = None,
    tasks: str | Sequence[str] | None = None,
    average: AverageName | None = None,
    rope: float = 0.0,
    alpha: float = 0.05,
    wanted: float = WANTED,
    ledgers: Mapping[str, str | Path] | None = None,
    documents: bool = True,
    against_first: bool = False,
) -> Comparison:
    """Compare two models or more on the tasks that all of them have.

    models: names as in the report, folders, or published models. suite, tasks (ids or YAML paths): keep only
    these. average: macro, micro, weighted or paper; by default macro, or paper where a model is known from a
    publication alone. rope: differences up to this (a fraction) count as ties in win/tie/loss. alpha: of the
    corrected tests; intervals have level 1 - alpha. wanted: the difference to compute the needed seeds for.
    ledgers: model -> training ledger, besides those found in the models' folders. documents: read the stored
    predictions for test-set noise. against_first: test the first model against each other one only.
    Raises UsageError where a name is unknown, where the runs may not be compared or nothing is shared, and
    StoreError for a damaged ledger. Damaged records become findings.
    """
    given = [str(m) for m in (*([models] if isinstance(models, str | Path) else models), *others)]
    _check(given, rope, alpha, wanted)
    results = load(results_dir)
    floors, damaged = scan_floors(results_dir)
    entrants = find_entrants(given, results, floors)
    twins = compare_ledgers(find_ledgers(given, entrants, ledgers))
    named = [tasks] if isinstance(tasks, str) else list(tasks or ())
    chosen = [load_task(t).id if t.endswith((".yaml", ".yml")) else t for t in named]
    held = contest(entrants, results, average, suite=suite, tasks=chosen or None)
    labels = [e.label for e in entrants]
    pairs = [(labels[0], b) for b in labels[1:]] if against_first else list(combinations(labels, 2))
    evidence, reasons = _evidence(held, data_dir, read=documents)
    many = compare_many(
        [held.scores(i) for i in range(len(entrants))],
        labels,
        tasks=[info.id for info in held.tasks],
        clusters=held.clusters,
        pairs=pairs,
        alpha=alpha,
        rope=rope,
        # a model and itself agree exactly, however coarsely it was printed
        resolution=held.resolution if len({(e.model, e.source) for e in entrants}) > 1 else 0.0,
        paired_seeds=all(held.paired.values()),
    )
    detailed = len(many.pairs) <= MOST_DETAILED
    notes = [*held.notes, *many.notes, *_documents_notes(reasons, documents)]
    if not detailed:
        notes.append(f"{len(many.pairs)} pairs: test-set noise task by task is computed up to {MOST_DETAILED} pairs")
    return Comparison(
        models=tuple(labels),
        average=held.average,
        tasks=tuple(info.id for info in held.tasks),
        clusters=tuple(dict.fromkeys(held.clusters)),
        metrics=held.metrics,
        published=tuple(e.label for e in entrants if e.is_published),
        policies=tuple(e.label for e in entrants if e.is_policy),
        perfect=tuple(label for i, label in enumerate(labels) if _perfect(held, i)),
        pairs=tuple(_pair(p, held, evidence if detailed else {}, reasons, alpha, wanted) for p in many.pairs),
        standings=many.standings,
        ranks=_ranks(held, labels, evidence, alpha) if len(labels) > 2 else (),
        twins=twins,
        alpha=alpha,
        estimand=many.estimand,
        notes=tuple(dict.fromkeys(notes)),
        findings=tuple(dict.fromkeys((*results.findings, *damaged))),
        refused=held.refused,
    )


def _perfect(held: Contest, entrant: int) -> bool:
    """The gate's oracle, where the score compared gives it 1."""
    is_oracle = held.entrants[entrant].is_policy and held.entrants[entrant].source == "ceiling"
    return is_oracle and all(cell.mean == 1.0 for cell in held.cells[entrant].values())


def _check(given: Sequence[str], rope: float, alpha: float, wanted: float) -> None:
    if len(given) < 2:
        raise UsageError("a comparison needs two models or more", hint="for example: biobench compare A B")
    if not 0 < alpha < 1:
        raise UsageError(f"alpha {alpha} is not between 0 and 1", hint="0.05 is usual")
    if not 0 <= rope < 1:
        raise UsageError(f"rope {rope} is not a difference of scores", hint="zero or more, one point is 0.01")
    if not 0 < wanted < 1:
        raise UsageError(f"wanted difference {wanted} is not one of scores", hint="above zero, one point is 0.01")


def _evidence(held: Contest, data_dir: str | Path | None, *, read: bool) -> tuple[dict[str, TaskRuns], dict[str, str]]:
    """Counts by task, and for the tasks without them the reason."""
    if not read:
        return {}, {info.id: "not asked for" for info in held.tasks}
    source = Evidence(None if data_dir is None else Path(data_dir))
    found: dict[str, TaskRuns] = {}
    reasons: dict[str, str] = {}
    for info in held.tasks:
        runs = source.task_runs(held, info)
        if isinstance(runs, str):
            reasons[info.id] = runs
        else:
            found[info.id] = runs
    return found, reasons


def _documents_notes(reasons: Mapping[str, str], asked: bool) -> Iterable[str]:
    if not asked:
        return []
    tasks: dict[str, list[str]] = {}
    for task, reason in reasons.items():
        tasks.setdefault(reason, []).append(task)
    return [f"test-set noise is unknown on {', '.join(names)}: {reason}" for reason, names in tasks.items()]


def _pair(
    pair: Pair,
    held: Contest,
    evidence: Mapping[str, TaskRuns],
    reasons: Mapping[str, str],
    alpha: float,
    wanted: float,
) -> PairResult:
    labels = [e.label for e in held.entrants]
    a, b = labels.index(pair.first), labels.index(pair.second)
    lines = tuple(_line(info.id, info.corpus, held, a, b, evidence.get(info.id), reasons, alpha) for info in held.tasks)
    if len(evidence) == len(held.tasks):
        within = within_tasks([evidence[info.id] for info in held.tasks], a, b, level=1 - alpha)
    else:
        paired = all(held.paired.values())
        within = within_tasks_seeds(
            held.scores(a),
            held.scores(b),
            clusters=held.clusters,
            paired_seeds=paired,
            level=1 - alpha,
            resolutions=[held.unit(info.id) for info in held.tasks],
        )
    variance = pair.comparison.variance
    return PairResult(pair, lines, within, None if variance is None else seeds_needed(wanted, variance, alpha=alpha))


def _line(
    task: str,
    corpus: str,
    held: Contest,
    a: int,
    b: int,
    runs: TaskRuns | None,
    reasons: Mapping[str, str],
    alpha: float,
) -> TaskLine:
    first, second = held.cells[a][task], held.cells[b][task]
    published = bool(first.step or second.step)
    step = max(first.step, second.step, held.unit(task))
    seeds = compare_seeds(first.scores, second.scores, paired=held.paired[task], level=1 - alpha, resolution=step).test
    shown = None
    if runs is not None:
        shown = compare_task(
            runs.models[a],
            runs.models[b],
            runs.average,
            evaluated=runs.evaluated,
            paired_seeds=runs.paired_seeds,
            level=1 - alpha,
            resolution=runs.resolution,
        )
    notes = list(shown.notes) if shown is not None else [reasons.get(task, "not computed for so many pairs")]
    return TaskLine(
        task=task,
        corpus=corpus,
        metric=held.metrics[task],
        first=first.mean,
        second=second.mean,
        difference=first.mean - second.mean,
        n_first=0 if first.policy else len(first.seeds),
        n_second=0 if second.policy else len(second.seeds),
        published=published,
        paired=held.paired[task],
        seeds=seeds,
        documents=None if shown is None else shown.documents,
        total=None if shown is None else shown.total,
        groups=None if runs is None else runs.models[a].n_groups,
        detectable=None if shown is None else shown.detectable,
        note="; ".join(notes) or None,
    )


def _ranks(
    held: Contest, labels: Sequence[str], evidence: Mapping[str, TaskRuns], alpha: float
) -> tuple[RankInterval, ...]:
    """Over tasks like these; documents are redrawn too where the counts of every task are at hand."""
    pools: list[TaskPool]
    if len(evidence) == len(held.tasks):
        pools = document_pools(evidence[info.id] for info in held.tasks)
    else:
        pools = [
            score_pool(
                info.id,
                [mine[info.id].scores for mine in held.cells],
                cluster=info.corpus,
                paired_seeds=held.paired[info.id],
            )
            for info in held.tasks
        ]
    return rank_intervals(suite_draws(pools), labels, level=1 - alpha)
