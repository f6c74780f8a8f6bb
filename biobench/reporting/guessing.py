"""Whether a model is above guessing: one rule for comparison, ranking, report and board."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from biobench.reporting.evidence import LEAST_SEEDS, Evidence, seed_noise
from biobench.reporting.groups import RunGroup
from biobench.reporting.literature.published import PublishedValue
from biobench.reporting.tasks import TaskInfo
from biobench.stats import TaskNoise, mean_variances, splits_part, task_weights, these_tasks

Bars = Mapping[tuple[str, str], float]
"""(task, metric) -> score of the best policy that does not look at the text."""
ALPHA = 0.05
"""How often a model that guesses may pass as above guessing."""
REACH = 0.25
FEW_DOCUMENTS = 50
"""Documents are read where they can decide: on a gap of less than 25 points, or a small test set.
At 50 documents the standard error of an accuracy is 7 points at most.
"""


@dataclass(frozen=True, slots=True)
class TaskScores:
    """A model's scores on a task under one metric, fractions: of its runs, or a printed mean."""

    info: TaskInfo
    metric: str
    scores: Sequence[float]
    group: RunGroup | None
    printed: PublishedValue | None = None


def is_guessing(tasks: Sequence[TaskScores], bars: Bars, evidence: Evidence) -> bool:
    """Whether a model's mean over the tasks is not shown to lie above that of guessing.

    One-sided t at 5% on the mean (over corpora) of score minus bar, the largest p over seeds and
    documents, as far as they are known; where neither is, the mean alone decides. Tasks without a
    bar are skipped, and limited runs, whose test documents are not the bar's; where no task is
    left, the bar is 0: a model that gets nothing right leads nobody.
    """
    judged = [task for task in tasks if (task.info.id, task.metric) in bars and not _limited(task)]
    if not judged:
        return all(max(task.scores) <= 0 for task in tasks)
    weights = task_weights([task.info.corpus for task in judged])
    gaps = []
    has_few_documents = False
    for weight, task in zip(weights, judged, strict=True):
        gaps.append(weight * (float(np.mean(task.scores)) - bars[task.info.id, task.metric]))
        documents = math.inf
        if task.group is not None:
            documents = task.group.briefs[0].test_documents
        has_few_documents |= documents < FEW_DOCUMENTS
    gap = math.fsum(gaps)
    if gap <= 0:
        return True
    read = None
    if has_few_documents or gap < REACH:
        read = evidence
    noises = [_noise(task, read) for task in judged]
    answer = these_tasks(gap, mean_variances(noises, weights))
    return answer is not None and answer.p_not_above > ALPHA


def _limited(task: TaskScores) -> bool:
    return task.group is not None and task.group.briefs[0].limit is not None


def _noise(task: TaskScores, evidence: Evidence | None) -> TaskNoise:
    corpus = task.info.corpus
    group = task.group
    seeds = seed_noise(task.scores, group, task.printed)
    if group is None:
        return TaskNoise(corpus, seeds=seeds, documents=None)
    if group.ratio and len(task.scores) >= LEAST_SEEDS:
        splits = splits_part(task.scores, group.ratio, resolution=group.unit)
        return TaskNoise(corpus, seeds=None, documents=None, splits=splits)
    documents = None
    if evidence is not None:
        left_out = evidence.left_out(group, task.metric)
        if not isinstance(left_out, str):
            documents = (left_out,)
    return TaskNoise(corpus, seeds=seeds, documents=documents)
