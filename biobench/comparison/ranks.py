"""The models of a comparison in order, with the ranks that the corrected pairs leave possible."""

from __future__ import annotations

import math
from collections.abc import Sequence

from biobench.comparison.result import PairResult, RankedModel
from biobench.comparison.tasks import CommonTasks
from biobench.report.evidence import Evidence
from biobench.report.guessing import Bars, TaskScores, is_guessing
from biobench.stats import possible_ranks, task_weights

DIGITS = 9
"""Scores that agree to so many decimals tie, whatever the order in which they were added up."""


def guessing_models(common: CommonTasks, bars: Bars, evidence: Evidence) -> frozenset[str]:
    """Labels of the models that are not above guessing on the common tasks."""
    labels = set()
    for entrant, cells in zip(common.entrants, common.cells, strict=True):
        scores = [
            TaskScores(info, common.metrics[info.id], cells[info.id].scores, cells[info.id].group)
            for info in common.tasks
        ]
        if is_guessing(scores, bars, evidence):
            labels.add(entrant.label)
    return frozenset(labels)


def ranked_models(
    common: CommonTasks, pairs: Sequence[PairResult], guessing: frozenset[str]
) -> tuple[RankedModel, ...]:
    """Best first, by the mean over corpora of their tasks' means; ties in order of the names."""
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
            guessing=label in guessing,
        )
        for label, score, own, possible in zip(
            labels, scores, rounded, possible_ranks(len(labels), ahead), strict=True
        )
    ]
    return tuple(sorted(models, key=lambda model: (model.rank, model.model)))
