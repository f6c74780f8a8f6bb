"""Other test sets: one model's interval, and the paired noise of two models on the tasks of a
corpus.

Groups of documents (files, patients) are resampled, the same ones for all models and seeds.
`redraw` does it once for any number of models; every pair then reads its task_weights difference
off the same draws.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from biobench.stats.counts import Average, Counts, check_average, evaluated_labels, f1_scores
from biobench.stats.resample import (
    group_weights,
    interaction_variance,
    jackknife_se,
    leave_one_out,
    rare_labels,
    score_draws,
)
from biobench.stats.types import (
    BoolArray,
    Estimand,
    FloatArray,
    Interval,
    StatsInputError,
    check_level,
    is_zero,
)

#: Draws from which a standard error is taken: its task_weights relative error is 1/sqrt(2 draws),
#: 2.2%.
DRAWS = 1_000
#: Below this many groups with gold, a label makes the bootstrap's standard error too small: a label
#: seen once is either there with its value or absent. The jackknife then takes its place.
RARE = 10


@dataclass(frozen=True)
class DocumentSummary:
    """What another test set of the same size would do to the score (the mean over these seeds).

    score, se: fractions. interval: t with groups - 1 degrees of freedom, on the logit scale, so
    that it stays in [0, 1] and is the longer on the side of one half.
    method: where the se comes from. rare_labels: scored labels with gold in fewer than 10 groups.
    """

    score: float
    se: float | None
    interval: Interval | None
    method: Literal["bootstrap", "jackknife", "none"]
    n_groups: int
    rare_labels: int
    note: str | None


def document_interval(
    counts: Counts,
    average: Average,
    *,
    evaluated: ArrayLike | None = None,
    draws: int = DRAWS,
    level: float = 0.95,
    seed: int = 0,
) -> DocumentSummary:
    """Test-set noise of the mean score over the runs in ``counts``, by resampling document groups.

    Estimand: the expected score of these runs on another test set of this size from the same
    source. F1 is recomputed in every draw; where some label that weighs in the average has gold in
    fewer than 10 groups, one group is left out at a time (jackknife). Nominal coverage (0.93 to
    0.97) from about 50 groups and twenty errors on, a little wide (0.98) below; with rare labels
    from nominal to somewhat wide. One group: no interval. A score that no draw changes (a perfect
    one) has an interval of no width and a note with the rule of three (3 / groups).
    """
    check_level(level)
    score = float(f1_scores(counts, average, evaluated).mean())
    rare = rare_labels(counts, average, evaluated, RARE)
    groups = counts.n_groups
    if groups == 1:
        return DocumentSummary(
            score, None, None, "none", 1, rare, "one group of documents: nothing to resample"
        )
    ((one,),) = redraw(
        [TaskRuns.of("task", [counts], average, evaluated=evaluated)], draws=draws, seed=seed
    )
    method: Literal["bootstrap", "jackknife"] = "jackknife" if one.drawn is None else "bootstrap"
    if one.drawn is not None:
        se = float(one.drawn.mean(axis=1).std(ddof=1))
    else:
        assert one.left_out is not None
        se = jackknife_se(one.left_out.mean(axis=1))
    notes = [f"{rare} labels have gold in fewer than {RARE} groups"] if rare else []
    if is_zero(se, 0.0):
        notes.append(
            f"no draw changes the score; up to {3 / groups:.1%} of documents could still do so"
        )
        interval = Interval(score, score, level, "no variation", Estimand.NEW_DOCUMENTS)
    else:
        half = float(special.stdtrit(groups - 1, (1 + level) / 2)) * se / (score * (1 - score))
        low, high = (float(special.expit(special.logit(score) + end)) for end in (-half, half))
        interval = Interval(
            low, high, level, "t on the standard error of the logit", Estimand.NEW_DOCUMENTS
        )
    return DocumentSummary(score, se, interval, method, groups, rare, "; ".join(notes) or None)


@dataclass(frozen=True)
class TaskRuns:
    """One task: the counts of each model on it.

    groups: an id per group of documents, by which tasks of a corpus that share documents are
    resampled together; None means shared with nobody.
    """

    task: str
    models: tuple[Counts, ...]
    average: Average
    evaluated: BoolArray
    groups: tuple[str, ...] | None

    @classmethod
    def of(
        cls,
        task: str,
        models: Sequence[Counts],
        average: Average,
        *,
        groups: Sequence[str] | None = None,
        evaluated: ArrayLike | None = None,
    ) -> TaskRuns:
        """Checked runs: one test split for all models, one id a group."""
        first = models[0]
        for index, counts in enumerate(models):
            if counts.gold.shape != first.gold.shape or (counts.gold != first.gold).any():
                raise StatsInputError(
                    f"{task}: model {index + 1} was scored on other gold than model 1",
                    hint="compare runs of the same task version and data only",
                )
        if groups is not None and (
            len(groups) != first.n_groups or len(set(groups)) != len(groups)
        ):
            raise StatsInputError(
                f"{task}: {len(groups)} group ids ({len(set(groups))} distinct) for "
                f"{first.n_groups} groups",
                hint="give each group of documents one id, in the order of the counts",
            )
        ids = None if groups is None else tuple(groups)
        return cls(
            task, tuple(models), check_average(average), evaluated_labels(first, evaluated), ids
        )


@dataclass(frozen=True)
class Redrawn:
    """One model's scores on one task with other documents.

    full: (seeds,), on the whole test split. drawn: (draws, seeds), None where a label is too rare
    for it. left_out: (groups, seeds), without each group in turn, None for measures of numbers.
    places: of the task's groups among the
    `groups` of its corpus.
    """

    full: FloatArray
    drawn: FloatArray | None
    left_out: FloatArray | None
    places: NDArray[np.int64]
    groups: int

    def of(self, seeds: Sequence[int]) -> Redrawn:
        """These seeds alone, by their places."""
        rows = list(seeds)
        return replace(
            self,
            full=self.full[rows],
            drawn=None if self.drawn is None else self.drawn[:, rows],
            left_out=None if self.left_out is None else self.left_out[:, rows],
        )


def redraw(
    tasks: Sequence[TaskRuns], *, draws: int = DRAWS, seed: int = 0
) -> list[tuple[Redrawn, ...]]:
    """The tasks of one corpus redrawn, for the same models on each. Documents that tasks share are
    drawn together.

    The draws do not depend on the models, so a pair finds the same ones beside any others.
    """
    size, rows = shared_groups(tasks)
    models = range(len(tasks[0].models))
    plain = [
        size > 1 and not any(rare_labels(t.models[m], t.average, t.evaluated, RARE) for t in tasks)
        for m in models
    ]
    parts: list[list[list[FloatArray]]] = [[[] for _ in models] for _ in tasks]
    for weights in group_weights(size, draws, np.random.default_rng(seed)) if any(plain) else ():
        for task, places, into in zip(tasks, rows, parts, strict=True):
            task_weights = np.ascontiguousarray(weights[:, places])
            for m in models:
                if plain[m]:
                    into[m].append(
                        score_draws(task.models[m], task_weights, task.average, task.evaluated)
                    )
    return [
        tuple(
            Redrawn(
                f1_scores(counts, task.average, task.evaluated),
                np.concatenate(drawn) if drawn else None,
                leave_one_out(counts, task.average, task.evaluated),
                places,
                size,
            )
            for counts, drawn in zip(task.models, into, strict=True)
        )
        for task, places, into in zip(tasks, rows, parts, strict=True)
    ]


@dataclass(frozen=True)
class DocumentNoise:
    """Variance of the mean difference over the tasks of a corpus, over other test sets; df: groups
    - 1.

    twice: the part of it that the variance over seeds holds too.
    """

    variance: float
    df: float
    twice: float


def document_noise(
    first: Sequence[Redrawn], second: Sequence[Redrawn], *, paired: Sequence[bool]
) -> DocumentNoise | None:
    """Two models on the tasks of one corpus; None for a single group of documents.

    paired: whether seed i of the first model goes with seed i of the second, one a task.
    """
    if first[0].groups < 2:
        return None
    twice = 0.0
    for a, b, together in zip(first, second, paired, strict=True):
        if a.left_out is None or b.left_out is None:
            continue
        if together and len(a.full) != len(b.full):
            what = f"{len(a.full)} and {len(b.full)} seeds cannot be paired"
            raise StatsInputError(
                what, hint="give both models the same seeds, or compare them unpaired"
            )
        sides = [a.left_out - b.left_out] if together else [a.left_out, b.left_out]
        twice += sum(interaction_variance(side) for side in sides)
    se = _se(first, second)
    return DocumentNoise(se**2, first[0].groups - 1.0, twice / len(first) ** 2)


def _se(first: Sequence[Redrawn], second: Sequence[Redrawn]) -> float:
    """Standard error of the mean difference over the tasks: of the draws where both models have
    them on every task.
    """
    gaps = [
        a.drawn.mean(axis=1) - b.drawn.mean(axis=1)
        for a, b in zip(first, second, strict=True)
        if a.drawn is not None and b.drawn is not None
    ]
    if len(gaps) == len(first):
        return float(np.mean(gaps, axis=0).std(ddof=1))
    left = np.zeros(first[0].groups)
    for a, b in zip(first, second, strict=True):
        if a.left_out is None or b.left_out is None:
            raise StatsInputError("no draws and no counts", hint="redraw the predictions")
        without = np.full(left.size, a.full.mean() - b.full.mean())
        without[a.places] = a.left_out.mean(axis=1) - b.left_out.mean(axis=1)
        left += without / len(first)
    return jackknife_se(left)


def shared_groups(tasks: Sequence[TaskRuns]) -> tuple[int, list[NDArray[np.int64]]]:
    """How many distinct groups a corpus has, and where each task's groups stand among them."""
    places: dict[tuple[str, str | int], int] = {}
    rows = []
    for task in tasks:
        keys: list[tuple[str, str | int]]
        if task.groups is None:
            keys = [(task.task, index) for index in range(task.models[0].n_groups)]
        else:
            keys = [("", group) for group in task.groups]
        rows.append(np.array([places.setdefault(key, len(places)) for key in keys], dtype=np.int64))
    return len(places), rows
