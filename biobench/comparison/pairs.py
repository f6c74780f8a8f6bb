"""Two models on their common tasks: the numbers of a pair, before they are corrected for others."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from biobench.comparison.cells import PairedTask
from biobench.comparison.result import KindPart, PairResult, TaskLine
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

PRINTED = "printed without spread"


def pair_result(
    common: CommonTasks, first: int, second: int, evidence: Evidence, *, alpha: float
) -> PairResult:
    """Two entrants, by their positions, on all common tasks, not yet corrected for other pairs.

    alpha: level of the count of tasks on which a model is shown to be better.
    """
    entrants = common.entrants[first], common.entrants[second]
    printed = any(entrant.is_published for entrant in entrants)
    rows = common.pair(first, second)
    documents = [_documents(row, evidence) for row in rows]
    noises = [_task_noise(row, known) for row, known in zip(rows, documents, strict=True)]
    lines = [
        _task_line(row, noise, known, printed)
        for row, noise, known in zip(rows, noises, documents, strict=True)
    ]
    weights = task_weights([row.info.corpus for row in rows])
    differences = np.array([row.difference for row in rows])
    difference = math.fsum(weights * differences)
    known_noise = these_tasks(difference, mean_variances(noises, weights))
    answer = known_noise if _is_tested(known_noise, printed) else None
    labels = entrants[0].label, entrants[1].label
    return PairResult(
        first=labels[0],
        second=labels[1],
        language=_one_language(rows),
        tasks=tuple(lines),
        difference=difference,
        answer=answer,
        wider_answer=None if answer is None else _beyond(rows, differences, answer),
        runs=_test_sets_alone(known_noise),
        reason="" if answer is not None else _reason(labels, rows, documents, printed),
        parts=_parts(rows),
        tasks_shown=_tasks_shown(lines, alpha),
        untrained=_untrained(labels, rows),
        printed=printed,
    )


def _test_sets_alone(answer: Answer | None) -> Answer | None:
    return answer if answer is not None and answer.estimand is Estimand.THESE_RUNS else None


def _documents(row: PairedTask, evidence: Evidence) -> tuple[LeftOut, LeftOut] | str:
    """Both sides without each group of documents; why that is unknown, in words."""
    sides = []
    for cell in (row.first, row.second):
        if cell.group is None:
            return PRINTED
        left_out = evidence.left_out(cell.group, row.metric)
        if isinstance(left_out, str):
            return left_out
        sides.append(left_out)
    first, second = sides
    if first.groups != second.groups:
        return "the models were scored on other documents; repeat the runs"
    if len(first.groups) < 2:
        return "one group of documents"
    return first, second


def _task_noise(row: PairedTask, documents: tuple[LeftOut, LeftOut] | str) -> TaskNoise:
    if row.ratio:
        return TaskNoise(row.info.corpus, None, None, splits=row.splits_noise)
    known = None if isinstance(documents, str) else documents
    return TaskNoise(row.info.corpus, row.seed_noise, known)


def _task_line(
    row: PairedTask, noise: TaskNoise, documents: tuple[LeftOut, LeftOut] | str, printed: bool
) -> TaskLine:
    """One task by itself, its noises apart and together."""
    variances = mean_variances([noise], np.ones(1))
    seeds = these_tasks(row.difference, _only(variances, "seeds"))
    over_documents = these_tasks(row.difference, _only(variances, "documents"))
    both = these_tasks(row.difference, variances)
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
        seeds=seeds,
        documents=None if row.ratio else over_documents,
        total=both if _is_tested(both, printed) else None,
        groups=None if isinstance(documents, str) else len(documents[0].groups),
    )


def _only(variances: Variances, source: str) -> Variances:
    """One source of noise alone; splits are of both."""
    return Variances(
        seeds=variances.seeds if source == "seeds" else None,
        documents=variances.documents if source == "documents" else None,
        splits=variances.splits,
    )


def _is_tested(answer: Answer | None, printed: bool) -> bool:
    """Over seeds and test sets; of a printed score the spread over seeds is all there can be."""
    if answer is None:
        return False
    if printed:
        return answer.estimand is Estimand.THESE_TEST_SETS
    return answer.estimand is Estimand.THESE_TASKS


def _beyond(rows: Sequence[PairedTask], differences: np.ndarray, here: Answer) -> Answer | None:
    resolution = math.sqrt(math.fsum(row.unit**2 for row in rows) / len(rows))
    corpora = [row.info.corpus for row in rows]
    return tasks_like_these(differences, corpora, here, resolution=resolution)


def _reason(
    labels: tuple[str, str],
    rows: Sequence[PairedTask],
    documents: Sequence[tuple[LeftOut, LeftOut] | str],
    printed: bool,
) -> str:
    """Why nothing is tested on these tasks."""
    if printed:
        return PRINTED
    for label, side in zip(labels, ("first", "second"), strict=True):
        few: dict[str, list[str]] = {}
        for row in rows:
            count = getattr(row, side).too_few_seeds
            if count:
                few.setdefault(count, []).append(row.info.id)
        if few:
            counts = [f"{count} on {', '.join(tasks)}" for count, tasks in few.items()]
            return f"{label} has {' and '.join(counts)}"
    unknown = {
        row.info.id: reason
        for row, reason in zip(rows, documents, strict=True)
        if isinstance(reason, str) and not row.ratio
    }
    reason = next(iter(unknown.values()))
    return f"test-set noise is unknown on {', '.join(unknown)} ({reason})"


def _untrained(labels: tuple[str, str], rows: Sequence[PairedTask]) -> tuple[str, ...]:
    sides = [[row.first for row in rows], [row.second for row in rows]]
    return tuple(
        label
        for label, cells in zip(labels, sides, strict=True)
        if all(cell.is_untrained for cell in cells)
    )


def _one_language(rows: Sequence[PairedTask]) -> str:
    """The language of all tasks; empty where there are several."""
    languages = {row.info.language for row in rows}
    return languages.pop() if len(languages) == 1 else ""


def _parts(rows: Sequence[PairedTask]) -> dict[str, KindPart]:
    """Mean difference over the corpora of each kind of task (of each language where there are
    several).
    """
    several_languages = len({row.info.language for row in rows}) > 1
    corpora: dict[str, dict[str, list[float]]] = {}
    for row in rows:
        family = TASK_FAMILIES.get(row.info.type, row.info.type)
        kind = row.info.language if several_languages else family
        corpora.setdefault(kind, {}).setdefault(row.info.corpus, []).append(row.difference)
    if len(corpora) < 2:
        return {}
    return {
        kind: KindPart(
            difference=math.fsum(math.fsum(gaps) / len(gaps) for gaps in of_kind.values())
            / len(of_kind),
            corpora=len(of_kind),
        )
        for kind, of_kind in corpora.items()
    }


def _tasks_shown(lines: Sequence[TaskLine], alpha: float) -> tuple[int, int]:
    """On how many tasks the first and the second model are shown to be better (Holm over tasks)."""
    steps = holm([None if line.total is None else line.total.p for line in lines], alpha)
    passed = [
        line.difference > 0
        for line, step in zip(lines, steps, strict=True)
        if step is not None and step.passed
    ]
    return sum(passed), len(passed) - sum(passed)
