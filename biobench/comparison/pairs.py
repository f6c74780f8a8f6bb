"""Two models on their common tasks, task by task, on the mean of these tasks and on tasks like these."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from biobench.comparison.evidence import Drawn
from biobench.comparison.result import KindPart, PairResult, TaskLine, Verdict
from biobench.comparison.tasks import Cell, CommonTasks, Paired
from biobench.comparison.verdict import may_be_same
from biobench.schema.kind import is_numeric
from biobench.stats import (
    DocumentNoise,
    Estimand,
    Part,
    cluster_means,
    compare_seeds,
    detectable_difference,
    document_noise,
    equivalent,
    holm,
    t_from_se,
    task_weights,
    tasks_like_these,
    these_tasks,
)

KINDS = {
    "token_ner": "named entities",
    "span_ner": "named entities",
    "single_label": "classes",
    "multi_label": "classes",
}
"""Types of task that ask the same kind of question."""


@dataclass(frozen=True, slots=True)
class Options:
    """rope: margin of sameness, a fraction. alpha: of the corrected tests."""

    rope: float
    alpha: float


def pair_results(
    common: CommonTasks,
    pairs: Sequence[tuple[int, int]],
    drawn: Drawn,
    options: Options,
    guessing: frozenset[str],
    planned: Sequence[bool] | None = None,
) -> tuple[PairResult, ...]:
    """Every pair on its own seeds and documents, corrected for the others.

    guessing: models that are not above a baseline without skill. planned: which pairs a plan declared; they are
    corrected for each other alone, the rest for all.
    """
    results = [_pair(common, a, b, drawn, options, guessing) for a, b in pairs]
    among_all = corrected(results, options.alpha)
    if planned is None or not any(planned):
        return among_all
    declared = iter(corrected([one for one, take in zip(results, planned, strict=True) if take], options.alpha))
    return tuple(
        next(declared) if take else replace(one, exploratory=True) for one, take in zip(among_all, planned, strict=True)
    )


def corrected(results: Sequence[PairResult], alpha: float) -> tuple[PairResult, ...]:
    """The pairs with their verdicts, after Holm's correction over all of them."""
    here = holm([one.here.p if one.here else None for one in results])
    beyond = holm([one.beyond.p if one.beyond else None for one in results])
    tested = sum(p is not None for p in here)
    return tuple(
        replace(one, p_here=p, p_beyond=q, tested=tested, verdict=one.verdict.decided(p, q, one.same_p, alpha))
        for one, p, q in zip(results, here, beyond, strict=True)
    )


def _pair(common: CommonTasks, a: int, b: int, drawn: Drawn, options: Options, guessing: frozenset[str]) -> PairResult:
    match, level = common.pair(a, b), 1 - options.alpha
    cells, tasks = match.cells, [info.id for info in common.tasks]
    clusters = [info.corpus for info in common.tasks]
    weights = [float(w) for w in task_weights(clusters)]
    single, reasons = {}, {}
    for task in tasks:
        noise = _noise(match, [task], (a, b), drawn)
        if isinstance(noise, str):
            reasons[task] = noise
        elif noise is not None:
            single[task] = noise
    lines = tuple(_line(match, common, task, single.get(task), reasons.get(task), drawn, level) for task in tasks)
    scores = [[mine[task].scores for task in tasks] for mine in cells]
    about = {
        "paired": [match.together[task] for task in tasks],
        "resolutions": [match.unit(task) for task in tasks],
        "ratios": [match.ratio(task) for task in tasks],
        "level": level,
    }
    # tasks of a corpus share documents; splits of a corpus have test sets of their own
    together: dict[tuple[str, bool], list[int]] = {}
    for i, info in enumerate(common.tasks):
        if not match.ratio(info.id):
            together.setdefault((info.corpus, is_numeric(info.type)), []).append(i)
    documents: list[Part] = []
    twice = 0.0
    for places in together.values() if not reasons else ():
        share = sum(weights[i] for i in places)
        noise = _noise(match, [tasks[i] for i in places], (a, b), drawn)
        assert isinstance(noise, DocumentNoise)
        documents.append((share**2 * noise.variance, noise.df))
        twice += share**2 * noise.twice
    known = None if reasons else documents
    within = these_tasks(*scores, weights=weights, documents=known, twice=twice, **about)  # type: ignore[arg-type]
    test = within.test
    here = test if test is not None and test.estimand is Estimand.THESE_TASKS and not _published(match) else None
    gaps = np.array([line.difference for line in lines])
    several = len(set(clusters)) > 1
    beyond = None
    if here is not None and several:
        beyond = tasks_like_these(gaps, clusters, here, level=level, resolution=match.resolution)
    runs = [(line.n_first, line.n_second) for line in lines]
    asked = options.rope and here is not None and may_be_same(runs)
    same = tuple(equivalent(t, options.rope) if asked and t is not None else None for t in (here, beyond))
    labels = common.entrants[a].label, common.entrants[b].label
    languages = {info.language for info in common.tasks}
    return PairResult(
        first=labels[0],
        second=labels[1],
        language=languages.pop() if len(languages) == 1 else "",
        tasks=lines,
        difference=within.difference,
        here=here,
        beyond=beyond,
        runs=test if test is not None and test.estimand is Estimand.THESE_RUNS else None,
        p_here=None,
        p_beyond=None,
        parts=_parts(common, gaps),
        rope=options.rope,
        same_p=(same[0], same[1]),
        detectable=detectable_difference(here.se, here.df, alpha=options.alpha)
        if here and here.se and here.df
        else None,
        reason=_reason(match, common, lines, reasons),
        verdict=Verdict(
            equal=not any(line.difference for line in lines), guessing=labels[within.difference < 0] in guessing
        ),
        tested=0,
    )


def _noise(match: Paired, tasks: Sequence[str], who: tuple[int, int], drawn: Drawn) -> DocumentNoise | str | None:
    """Over other documents of these tasks of a corpus; why it is unknown, in words; None where none is needed."""
    if all(match.ratio(task) for task in tasks):
        return None
    for task in tasks:
        for one in who:
            if (one, task) in drawn.reasons:
                return drawn.reasons[one, task]
            if (one, task) not in drawn.scores:
                return "test-set noise was not read"
    sides = [
        [drawn.scores[one, task].of(_places(match.cells[side][task])) for task in tasks] for side, one in enumerate(who)
    ]
    noise = document_noise(*sides, paired=[match.together[task] for task in tasks])
    return "one group of documents: test-set noise is unknown" if noise is None else noise


def _places(cell: Cell) -> list[int]:
    """Where the seeds that are compared stand among all of the group's."""
    assert cell.group is not None
    order = {seed: place for place, seed in enumerate(cell.group.seeds)}
    return [order[seed] for seed in cell.seeds]


def _published(match: Paired) -> bool:
    return any(entrant.is_published for entrant in match.entrants)


def _reason(match: Paired, common: CommonTasks, lines: Sequence[TaskLine], reasons: Mapping[str, str]) -> str:
    """Why nothing is tested on these tasks; empty where it is."""
    if _published(match):
        return "printed without spread"
    for entrant, cells in zip(match.entrants, match.cells, strict=True):
        single = [i.id for i in common.tasks if cells[i.id].group is not None and len(cells[i.id].scores) < 2]
        if single:
            return f"{entrant.label} has one seed on {', '.join(single)}"
    unknown = [task for task in reasons if not match.ratio(task)]
    if unknown:
        return f"test-set noise is unknown on {', '.join(unknown)} ({reasons[unknown[0]]})"
    return ""


def _line(
    match: Paired,
    common: CommonTasks,
    task: str,
    noise: DocumentNoise | None,
    reason: str | None,
    drawn: Drawn,
    level: float,
) -> TaskLine:
    first, second = (cells[task] for cells in match.cells)
    info = next(info for info in common.tasks if info.id == task)
    step, ratio = max(first.step, second.step, match.unit(task)), match.ratio(task)
    seeds = compare_seeds(
        first.scores, second.scores, paired=match.together[task], level=level, resolution=step, ratio=ratio
    )
    difference = first.mean - second.mean
    documents = None
    total = None
    if noise is not None:
        documents = t_from_se(
            difference,
            math.sqrt(noise.variance),
            noise.df,
            n=int(noise.df) + 1,
            estimand=Estimand.NEW_DOCUMENTS,
            level=level,
            method="t on the standard error over documents",
        )
        both = these_tasks(
            [first.scores],
            [second.scores],
            paired=[match.together[task]],
            resolutions=[step],
            documents=[(noise.variance, noise.df)],
            twice=noise.twice,
            level=level,
        ).test
        total = both if both is not None and both.estimand is Estimand.THESE_TASKS else None
    elif ratio:
        total = seeds
    one_seed = "one seed: nothing is said about other seeds" if seeds.se is None else None
    return TaskLine(
        task=task,
        corpus=info.corpus,
        metric=common.metrics[task],
        first=first.mean,
        second=second.mean,
        difference=difference,
        n_first=0 if first.policy else len(first.seeds),
        n_second=0 if second.policy else len(second.seeds),
        published=bool(first.step or second.step),
        paired=match.together[task],
        seeds=seeds,
        documents=documents,
        total=total,
        groups=drawn.groups.get(task) if noise is not None else None,
        note="; ".join(text for text in (one_seed, reason) if text) or None,
    )


def _parts(common: CommonTasks, gaps: np.ndarray) -> dict[str, KindPart]:
    """Mean difference over the corpora of each kind of task (of each language where there are several)."""
    languages = {info.language for info in common.tasks}
    kinds = [info.language if len(languages) > 1 else KINDS.get(info.type, info.type) for info in common.tasks]
    if len(set(kinds)) < 2:
        return {}
    parts = {}
    for kind in Counter(kinds):
        rows = [i for i, of in enumerate(kinds) if of == kind]
        _, means = cluster_means(gaps[rows], [common.tasks[i].corpus for i in rows])
        parts[kind] = KindPart(float(means.mean()), len(means))
    return parts
