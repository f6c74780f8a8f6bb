"""Two models on their common tasks: the numbers of a pair, before they are corrected for others."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from biobench.comparison.cells import PairedTask, paired_task
from biobench.comparison.ranks import Guessing
from biobench.comparison.result import TIE, KindPart, PairResult, TaskLine, is_reversed
from biobench.comparison.tasks import CommonTasks
from biobench.reporting.evidence import Evidence
from biobench.reporting.tasks import TASK_FAMILIES
from biobench.stats import (
    Answer,
    Estimand,
    holm,
    mean_variances,
    task_weights,
    tasks_like_these,
    these_tasks,
)

Labels = tuple[str, str]
"""Names of the first and the second model."""


def pair_result(
    common: CommonTasks,
    labels: Labels,
    evidence: Evidence,
    guessing: Guessing,
    *,
    alpha: float,
) -> PairResult:
    """Two models on all common tasks, not yet corrected for other pairs.

    alpha: level of the count of tasks on which a model is shown to be better.
    """
    rows = []
    for sides in zip(*map(common.cells_of, labels), strict=True):
        rows.append(paired_task(sides, evidence))
    corpora = [row.info.corpus for row in rows]
    printed = any(row.is_printed for row in rows)
    weights = task_weights(corpora)
    differences = np.array([row.difference for row in rows])
    difference = math.fsum(weights * differences)
    answer = these_tasks(difference, mean_variances([row.noise for row in rows], weights))
    wider_answer = None
    runs = None
    reason = ""
    if answer is not None and answer.estimand is Estimand.THESE_RUNS:
        runs = answer
    answer = _if_tested(answer, printed)
    if answer is None:
        reason = _reason(labels, rows, reverse=is_reversed(*labels, difference))
    else:
        resolution = math.sqrt(math.fsum(row.unit**2 for row in rows) / len(rows))
        wider_answer = tasks_like_these(differences, corpora, answer, resolution=resolution)
    lines = [_task_line(row, printed) for row in rows]
    return PairResult(
        first=labels[0],
        second=labels[1],
        language=common.language,
        tasks=tuple(lines),
        difference=difference,
        answer=answer,
        wider_answer=wider_answer,
        runs=runs,
        reason=reason,
        parts=_means_by_kind(rows),
        tasks_shown=_tasks_shown(labels, lines, guessing, alpha),
        guessed=_guessed(labels, lines, guessing),
        untrained=_untrained(labels, rows),
        printed=printed,
    )


def _task_line(row: PairedTask, printed: bool) -> TaskLine:
    """One task by itself, its noises apart and together."""
    difference = row.difference
    variances = mean_variances([row.noise], np.ones(1))
    over_seeds = over_documents = None
    if not all(side.is_untrained for side in row.sides):
        over_seeds = these_tasks(difference, replace(variances, documents=None))
    if not row.ratio:
        over_documents = these_tasks(difference, replace(variances, seeds=None))
    of_first, of_second = row.sides
    return TaskLine(
        task=row.info.id,
        corpus=row.info.corpus,
        metric=of_first.metric,
        first=of_first.mean,
        second=of_second.mean,
        difference=difference,
        n_first=len(of_first.seeds),
        n_second=len(of_second.seeds),
        splits=bool(row.ratio),
        seeds=over_seeds,
        documents=over_documents,
        total=_if_tested(these_tasks(difference, variances), printed),
        groups=None if row.documents is None else len(row.documents[0].groups),
    )


def _if_tested(answer: Answer | None, printed: bool) -> Answer | None:
    """The answer where it is over seeds and test sets; of a printed score the spread over seeds is
    all there can be.
    """
    needed = Estimand.THESE_TEST_SETS if printed else Estimand.THESE_TASKS
    if answer is None or answer.estimand is not needed:
        return None
    return answer


def _untrained(labels: Labels, rows: Sequence[PairedTask]) -> tuple[str, ...]:
    """The models of whose runs none was trained."""
    untrained = []
    for position, label in enumerate(labels):
        if all(row.sides[position].is_untrained for row in rows):
            untrained.append(label)
    return tuple(untrained)


def _reason(labels: Labels, rows: Sequence[PairedTask], *, reverse: bool) -> str:
    """Why nothing is tested on these tasks: each lack with the tasks that have it.

    reverse: whether the second model is named first.
    """
    tasks_of: dict[tuple[str, str], list[str]] = defaultdict(list)
    for row in rows:
        for lack in _lacks(labels, row, reverse):
            tasks_of[lack].append(row.info.id)
    reasons = []
    for (words, detail), ids in tasks_of.items():
        on_tasks = f" on {', '.join(ids)}"
        # what is true of several tasks, of all of them, needs no list
        if len(ids) == len(rows) > 1:
            on_tasks = ""
        reasons.append(f"{words}{on_tasks}{detail}")
    return "; ".join(reasons)


def _lacks(labels: Labels, row: PairedTask, reverse: bool) -> list[tuple[str, str]]:
    """What a task's test needs and does not have: in words, and a detail in brackets."""
    if row.ratio and row.is_printed:
        return [("printed scores have no splits to pair with", "")]
    if row.ratio:
        return [("fewer than three splits in common", "")] if row.splits_noise is None else []
    of_first, of_second = row.lacks
    if of_first and of_first == of_second:
        return [(f"both models have {of_first}", "")]
    lacks = []
    for label, lack in zip(labels, row.lacks, strict=True):
        if lack:
            lacks.append((f"{label} has {lack}", ""))
    if reverse:
        lacks.reverse()
    if not lacks and row.documents is None and not row.is_printed:
        # what to do about it stands in the notes
        why, _, _ = row.unread.partition(" (")
        lacks.append(("test-set noise is unknown", f" ({why})"))
    return lacks


def _means_by_kind(rows: Sequence[PairedTask]) -> dict[str, KindPart]:
    """Mean difference over the corpora of each kind of task (of each language where there are
    several).
    """
    several_languages = len({row.info.language for row in rows}) > 1
    rows_of: dict[str, list[PairedTask]] = defaultdict(list)
    for row in rows:
        kind = TASK_FAMILIES.get(row.info.type, row.info.type)
        if several_languages:
            kind = row.info.language
        rows_of[kind].append(row)
    if len(rows_of) < 2:
        return {}
    means = {}
    for kind, of_kind in rows_of.items():
        corpora = [row.info.corpus for row in of_kind]
        differences = [row.difference for row in of_kind]
        difference = math.fsum(task_weights(corpora) * differences)
        means[kind] = KindPart(difference=difference, corpora=len(set(corpora)))
    return means


def _guessed(labels: Labels, lines: Sequence[TaskLine], guessing: Guessing) -> tuple[str, ...]:
    """The tasks on which neither model is above guessing."""
    tasks = []
    for line in lines:
        if {(label, line.task) for label in labels} <= guessing.on_task:
            tasks.append(line.task)
    return tuple(tasks)


def _tasks_shown(
    labels: Labels, lines: Sequence[TaskLine], guessing: Guessing, alpha: float
) -> tuple[int, int]:
    """On how many tasks the first and the second model are shown to be better (Holm over tasks).

    A model that is not above guessing on a task leads nobody there.
    """
    steps = holm([None if line.total is None else line.total.p for line in lines], alpha)
    ahead = [0, 0]
    for line, step in zip(lines, steps, strict=True):
        leader = 0 if line.difference > TIE else 1
        is_above = (labels[leader], line.task) not in guessing.on_task
        if step is not None and step.passed and is_above:
            ahead[leader] += 1
    return ahead[0], ahead[1]
