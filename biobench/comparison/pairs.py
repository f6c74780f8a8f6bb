"""Two models on their common tasks: the numbers of a pair, before they are corrected for others."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from biobench.comparison.cells import PairedTask
from biobench.comparison.ranks import Guessing
from biobench.comparison.result import TIE, KindPart, PairResult, TaskLine, is_reversed
from biobench.comparison.tasks import CommonTasks
from biobench.report.evidence import Evidence
from biobench.report.tasks import TASK_FAMILIES
from biobench.stats import (
    Answer,
    Estimand,
    LeftOut,
    TaskNoise,
    Variances,
    holm,
    mean_variances,
    task_weights,
    tasks_like_these,
    these_tasks,
)

Labels = tuple[str, str]
"""Names of the first and the second model."""


@dataclass(frozen=True, slots=True)
class TaskEvidence:
    """Two models on one task, and their scores without each group of documents.

    documents: of both sides; None where that is unknown, for the reason in `unread`.
    """

    row: PairedTask
    documents: tuple[LeftOut, LeftOut] | None
    unread: str = ""

    @property
    def noise(self) -> TaskNoise:
        """What the difference of the two varies by."""
        row = self.row
        if row.ratio:
            return TaskNoise(row.info.corpus, None, None, splits=row.splits_noise)
        return TaskNoise(row.info.corpus, row.seed_noise, self.documents)


def pair_result(
    common: CommonTasks,
    first: int,
    second: int,
    evidence: Evidence,
    guessing: Guessing,
    *,
    alpha: float,
) -> PairResult:
    """Two entrants, by their positions, on all common tasks, not yet corrected for other pairs.

    alpha: level of the count of tasks on which a model is shown to be better.
    """
    labels = common.entrants[first].label, common.entrants[second].label
    tasks = [task_evidence(row, evidence) for row in common.pair(first, second)]
    rows = [task.row for task in tasks]
    noises = [task.noise for task in tasks]
    printed = any(row.is_printed for row in rows)
    weights = task_weights([row.info.corpus for row in rows])
    differences = np.array([row.difference for row in rows])
    difference = math.fsum(weights * differences)
    known_noise = these_tasks(difference, mean_variances(noises, weights))
    lines = [_task_line(task, printed) for task in tasks]
    answer, wider_answer, reason = None, None, ""
    if known_noise is not None and _is_tested(known_noise, printed):
        answer = known_noise
        wider_answer = _beyond(rows, differences, answer)
    else:
        reason = _reason(labels, tasks, reverse=is_reversed(*labels, difference))
    return PairResult(
        first=labels[0],
        second=labels[1],
        language=_common_language(rows),
        tasks=tuple(lines),
        difference=difference,
        answer=answer,
        wider_answer=wider_answer,
        runs=_test_sets_alone(known_noise),
        reason=reason,
        parts=_parts(rows),
        tasks_shown=_tasks_shown(labels, lines, guessing, alpha),
        untrained=_untrained(labels, rows),
        printed=printed,
    )


def task_evidence(row: PairedTask, evidence: Evidence) -> TaskEvidence:
    """The row with what stored predictions say of both sides."""
    sides = []
    for cell in (row.first, row.second):
        if cell.group is None:
            return TaskEvidence(row, None, "a printed score has no predictions")
        left_out = evidence.left_out(cell.group, row.metric)
        if isinstance(left_out, str):
            return TaskEvidence(row, None, left_out)
        sides.append(left_out)
    first, second = sides
    if first.groups != second.groups:
        return TaskEvidence(row, None, "the models were scored on other documents; repeat the runs")
    if len(first.groups) < 2:
        return TaskEvidence(row, None, "one group of documents")
    return TaskEvidence(row, (first, second))


def _test_sets_alone(answer: Answer | None) -> Answer | None:
    if answer is None or answer.estimand is not Estimand.THESE_RUNS:
        return None
    return answer


def _task_line(task: TaskEvidence, printed: bool) -> TaskLine:
    """One task by itself, its noises apart and together."""
    row = task.row
    variances = mean_variances([task.noise], np.ones(1))
    over_seeds = None
    if not (row.first.is_untrained and row.second.is_untrained):
        over_seeds = these_tasks(
            row.difference, Variances(variances.seeds, None, splits=variances.splits)
        )
    over_documents = Variances(None, variances.documents, splits=variances.splits)
    both = these_tasks(row.difference, variances)
    is_tested = both is not None and _is_tested(both, printed)
    return TaskLine(
        task=row.info.id,
        corpus=row.info.corpus,
        metric=row.metric,
        first=row.first.mean,
        second=row.second.mean,
        difference=row.difference,
        n_first=len(row.first.seeds),
        n_second=len(row.second.seeds),
        splits=bool(row.ratio),
        seeds=over_seeds,
        documents=None if row.ratio else these_tasks(row.difference, over_documents),
        total=both if is_tested else None,
        groups=None if task.documents is None else len(task.documents[0].groups),
    )


def _is_tested(answer: Answer, printed: bool) -> bool:
    """Over seeds and test sets; of a printed score the spread over seeds is all there can be."""
    needed = Estimand.THESE_TEST_SETS if printed else Estimand.THESE_TASKS
    return answer.estimand is needed


def _beyond(rows: Sequence[PairedTask], differences: np.ndarray, here: Answer) -> Answer | None:
    resolution = math.sqrt(math.fsum(row.unit**2 for row in rows) / len(rows))
    corpora = [row.info.corpus for row in rows]
    return tasks_like_these(differences, corpora, here, resolution=resolution)


def _reason(labels: Labels, tasks: Sequence[TaskEvidence], *, reverse: bool) -> str:
    """Why nothing is tested on these tasks: each lack with the tasks that have it.

    reverse: whether the second model is named first.
    """
    tasks_of: dict[tuple[str, str], list[str]] = {}
    for task in tasks:
        for lack in _lacks(labels, task, reverse):
            tasks_of.setdefault(lack, []).append(task.row.info.id)
    reasons = []
    for (words, detail), ids in tasks_of.items():
        # what is true of several tasks, of all of them, needs no list
        on_tasks = "" if len(ids) == len(tasks) > 1 else f" on {', '.join(ids)}"
        reasons.append(f"{words}{on_tasks}{detail}")
    return "; ".join(reasons)


def _lacks(labels: Labels, task: TaskEvidence, reverse: bool) -> list[tuple[str, str]]:
    """What a task's test needs and does not have: in words, and a detail in brackets."""
    row = task.row
    if row.ratio:
        if row.is_printed:
            return [("printed scores have no splits to pair with", "")]
        return [] if row.splits_noise else [("fewer than three splits in common", "")]
    first, second = row.lacks
    if first and first == second:
        return [(f"both models have {first}", "")]
    sides = [(labels[0], first), (labels[1], second)]
    if reverse:
        sides.reverse()
    lacks = [(f"{label} has {lack}", "") for label, lack in sides if lack]
    if not lacks and task.documents is None and not row.is_printed:
        # what to do about it stands in the notes
        why, _, _ = task.unread.partition(" (")
        lacks.append(("test-set noise is unknown", f" ({why})"))
    return lacks


def _untrained(labels: Labels, rows: Sequence[PairedTask]) -> tuple[str, ...]:
    sides = [[row.first for row in rows], [row.second for row in rows]]
    return tuple(
        label
        for label, cells in zip(labels, sides, strict=True)
        if all(cell.is_untrained for cell in cells)
    )


def _common_language(rows: Sequence[PairedTask]) -> str:
    """The language of all tasks; empty where there are several."""
    languages = {row.info.language for row in rows}
    return languages.pop() if len(languages) == 1 else ""


def _parts(rows: Sequence[PairedTask]) -> dict[str, KindPart]:
    """Mean difference over the corpora of each kind of task (of each language where there are
    several).
    """
    several_languages = len({row.info.language for row in rows}) > 1
    rows_of: dict[str, list[PairedTask]] = {}
    for row in rows:
        family = TASK_FAMILIES.get(row.info.type, row.info.type)
        kind = row.info.language if several_languages else family
        rows_of.setdefault(kind, []).append(row)
    if len(rows_of) < 2:
        return {}
    parts = {}
    for kind, of_kind in rows_of.items():
        corpora = [row.info.corpus for row in of_kind]
        weights = task_weights(corpora)
        difference = math.fsum(weights * [row.difference for row in of_kind])
        parts[kind] = KindPart(difference=difference, corpora=len(set(corpora)))
    return parts


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
