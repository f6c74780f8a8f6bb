"""The models of a comparison in order, with the ranks that the corrected pairs leave possible."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from operator import attrgetter

from biobench.comparison.result import PairResult, RankedModel
from biobench.comparison.tasks import CommonTasks
from biobench.reporting.evidence import Evidence
from biobench.reporting.guessing import Bars, is_guessing
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
    for label in common.labels:
        cells = common.cells_of(label)
        if is_guessing(cells, bars, evidence):
            on_mean.add(label)
        for cell in cells:
            if is_guessing([cell], bars, evidence):
                on_task.add((label, cell.info.id))
    return Guessing(frozenset(on_mean), frozenset(on_task))


def ranked_models(
    common: CommonTasks, pairs: Sequence[PairResult], guessing: Guessing
) -> tuple[RankedModel, ...]:
    """Best first, by the mean over corpora of their tasks' means; ties in order of the names.

    pairs: all of them, corrected for each other; the ranks hold together for these alone.
    """
    labels = common.labels
    weights = task_weights([info.corpus for info in common.tasks])
    scores = {}
    for label in labels:
        means = [cell.mean for cell in common.cells_of(label)]
        scores[label] = math.fsum(weights * means)
    descending = sorted((round(score, DIGITS) for score in scores.values()), reverse=True)
    ahead = []
    for pair in pairs:
        if pair.verdict.here == "shown":
            ahead.append((labels.index(pair.better), labels.index(pair.worse)))
    models = []
    for label, possible in zip(labels, possible_ranks(len(labels), ahead), strict=True):
        models.append(
            RankedModel(
                model=label,
                score=scores[label],
                rank=1 + descending.index(round(scores[label], DIGITS)),
                ranks=possible,
                guessing=label in guessing.on_mean,
            )
        )
    return tuple(sorted(models, key=attrgetter("rank", "model")))
