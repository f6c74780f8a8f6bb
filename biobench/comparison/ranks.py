"""The models of a comparison in order, with the ranks that the corrected pairs leave possible."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from biobench.comparison.result import PairResult, RankedModel
from biobench.comparison.tasks import CommonTasks
from biobench.report.evidence import Evidence
from biobench.report.guessing import Bars, TaskScores, is_guessing
from biobench.stats import possible_ranks, task_weights

DIGITS = 9
"""Scores that agree to so many decimals tie, whatever the order in which they were added up."""


@dataclass(frozen=True, slots=True)
class Guessing:
    """Who is not above guessing: models on the mean of the common tasks, and (model, task) on
    single tasks.
    """

    on_mean: frozenset[str] = frozenset()
    on_task: frozenset[tuple[str, str]] = frozenset()


def find_guessing(common: CommonTasks, bars: Bars, evidence: Evidence) -> Guessing:
    """Judge every model on the common tasks. bars: what guessing scores."""
    on_mean: set[str] = set()
    on_task: set[tuple[str, str]] = set()
    for entrant, cells in zip(common.entrants, common.cells, strict=True):
        by_task = []
        for info in common.tasks:
            cell, metric = cells[info.id], common.metrics[info.id]
            scores = TaskScores(info, metric, cell.scores, cell.group, cell.printed)
            by_task.append(scores)
            if is_guessing([scores], bars, evidence):
                on_task.add((entrant.label, info.id))
        if is_guessing(by_task, bars, evidence):
            on_mean.add(entrant.label)
    return Guessing(frozenset(on_mean), frozenset(on_task))


def ranked_models(
    common: CommonTasks, pairs: Sequence[PairResult], guessing: Guessing
) -> tuple[RankedModel, ...]:
    """Best first, by the mean over corpora of their tasks' means; ties in order of the names.

    pairs: all of them, corrected for each other; the ranks hold together for these alone.
    """
    labels = [entrant.label for entrant in common.entrants]
    weights = task_weights([info.corpus for info in common.tasks])
    scores = [
        math.fsum(weights * [cells[info.id].mean for info in common.tasks])
        for cells in common.cells
    ]
    rounded = [round(score, DIGITS) for score in scores]
    ahead = [
        (labels.index(pair.better), labels.index(pair.worse))
        for pair in pairs
        if pair.verdict.here == "shown"
    ]
    models = [
        RankedModel(
            model=label,
            score=score,
            rank=1 + sum(other > own for other in rounded),
            ranks=possible,
            guessing=label in guessing.on_mean,
        )
        for label, score, own, possible in zip(
            labels, scores, rounded, possible_ranks(len(labels), ahead), strict=True
        )
    ]
    return tuple(sorted(models, key=lambda model: (model.rank, model.model)))
