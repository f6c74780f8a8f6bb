"""Two models on their common tasks, task by task, on the mean of these tasks and on tasks like
these.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from biobench.comparison.evidence import Drawn
from biobench.comparison.result import KindPart, PairResult, TaskLine, Verdict, Word
from biobench.comparison.tasks import CommonTasks, PairedTask
from biobench.schema.kind import is_numeric
from biobench.stats import (
    DocumentNoise,
    Estimand,
    Part,
    Redrawn,
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
    "token_ner": "entities",
    "span_ner": "entities",
    "single_label": "classes",
    "multi_label": "classes",
    "relation": "relations",
}
"""Types of task that ask the same kind of question, which has a mean of its own."""


#: "The same within" a margin needs so many seeds of each model on every task ...
SAME_SEEDS = 5
#: ... and so many runs of each model: a failure in one run of ten would show among them with 95%.
SAME_RUNS = 29


def may_be_same(runs: Sequence[tuple[int, int]]) -> bool:
    """Whether so many runs (of each model, a task each) may show two models to be the same."""
    return (
        all(min(pair) >= SAME_SEEDS for pair in runs)
        and min(map(sum, zip(*runs, strict=True))) >= SAME_RUNS
    )


def pair_results(
    common: CommonTasks,
    pairs: Sequence[tuple[int, int]],
    drawn: Drawn,
    *,
    rope: float,
    alpha: float,
    guessing: frozenset[str],
    planned: Sequence[bool],
) -> tuple[PairResult, ...]:
    """Every pair on its own seeds and documents, corrected for the others.

    guessing: models that are not above a baseline without skill. planned: which pairs a plan
    declared; they are corrected for each other alone, the rest for all. Without a plan, none is.
    """
    results = [_pair(common, a, b, drawn, rope, alpha, guessing) for a, b in pairs]
    among_all = corrected(results, alpha)
    if not any(planned):
        return among_all
    declared = iter(
        corrected([one for one, take in zip(results, planned, strict=True) if take], alpha)
    )
    return tuple(
        next(declared) if take else replace(one, exploratory=True)
        for one, take in zip(among_all, planned, strict=True)
    )


def corrected(results: Sequence[PairResult], alpha: float) -> tuple[PairResult, ...]:
    """The pairs with their verdicts after Holm's correction over all of them: those of `compare`,
    of the board's headline, badge and ranks. The wider question is never the surer.
    """

    def word(one: PairResult, p: float | None) -> Word:
        if p is None:
            return "not tested"
        return (
            "shown"
            if p <= alpha and not one.verdict.guessing and not one.verdict.equal
            else "not shown"
        )

    tests = [(one.here, one.beyond) for one in results]
    here, beyond = (
        holm([test.p if test else None for test in side]) for side in zip(*tests, strict=True)
    )
    decided = []
    for one, p, q in zip(results, here, beyond, strict=True):
        on_these, beyond_these = word(one, p), word(one, q)
        if beyond_these == "shown" and on_these != "shown":
            beyond_these = "not shown"
        differ = one.same_p[0]
        same: Word | None = None if differ is None else "shown" if differ <= alpha else "not shown"
        verdict = replace(one.verdict, here=on_these, beyond=beyond_these, same=same)
        decided.append(
            replace(
                one, p_here=p, p_beyond=q, tested=sum(p is not None for p in here), verdict=verdict
            )
        )
    return tuple(decided)


def _pair(
    common: CommonTasks,
    a: int,
    b: int,
    drawn: Drawn,
    rope: float,
    alpha: float,
    guessing: frozenset[str],
) -> PairResult:
    rows, level = common.pair(a, b), 1 - alpha
    clusters = [info.corpus for info in common.tasks]
    weights = [float(w) for w in task_weights(clusters)]
    noise = [_noise([row], (a, b), drawn) for row in rows]
    reasons = {
        row.info.id: one for row, one in zip(rows, noise, strict=True) if isinstance(one, str)
    }
    lines = tuple(
        _line(row, common.metrics[row.info.id], one, drawn[a, row.info.id], level)
        for row, one in zip(rows, noise, strict=True)
    )
    # tasks of a corpus share documents; splits of a corpus have test sets of their own
    together: dict[tuple[str, bool], list[int]] = {}
    for i, row in enumerate(rows):
        if not row.ratio:
            together.setdefault((row.info.corpus, is_numeric(row.info.type)), []).append(i)
    documents: list[Part] = []
    twice = 0.0
    for places in together.values() if not reasons else ():
        share = sum(weights[i] for i in places)
        one = (
            noise[places[0]]
            if len(places) == 1
            else _noise([rows[i] for i in places], (a, b), drawn)
        )
        assert isinstance(one, DocumentNoise)
        documents.append((share**2 * one.variance, one.df))
        twice += share**2 * one.twice
    within = these_tasks(
        [row.first.scores for row in rows],
        [row.second.scores for row in rows],
        weights=weights,
        paired=[row.together for row in rows],
        resolutions=[row.unit for row in rows],
        ratios=[row.ratio for row in rows],
        documents=None if reasons else documents,
        twice=twice,
        level=level,
    )
    published = any(common.entrants[i].is_published for i in (a, b))
    test = within.test
    here = (
        test
        if test is not None and test.estimand is Estimand.THESE_TASKS and not published
        else None
    )
    gaps = np.array([line.difference for line in lines])
    beyond = None
    if here is not None and len(set(clusters)) > 1:
        resolution = math.sqrt(sum(row.unit**2 for row in rows) / len(rows))
        beyond = tasks_like_these(gaps, clusters, here, level=level, resolution=resolution)
    asked = (
        rope and here is not None and may_be_same([(line.n_first, line.n_second) for line in lines])
    )
    same = [equivalent(t, rope) if asked and t is not None else None for t in (here, beyond)]
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
        rope=rope,
        same_p=(same[0], same[1]),
        detectable=detectable_difference(here.se, here.df, alpha=alpha)
        if here and here.se and here.df
        else None,
        reason="printed without spread" if published else _reason(labels, rows, reasons),
        verdict=Verdict(
            equal=not any(line.difference for line in lines),
            guessing=labels[within.difference < 0] in guessing,
        ),
        tested=0,
    )


def _reason(labels: tuple[str, str], rows: Sequence[PairedTask], reasons: Mapping[str, str]) -> str:
    """Why nothing is tested on these tasks; empty where it is."""
    for label, side in zip(labels, ("first", "second"), strict=True):
        single = [row.info.id for row in rows if len(getattr(row, side).scores) < 2]
        if single:
            return f"{label} has one seed on {', '.join(single)}"
    unknown = [row.info.id for row in rows if row.info.id in reasons and not row.ratio]
    return (
        f"test-set noise is unknown on {', '.join(unknown)} ({reasons[unknown[0]]})"
        if unknown
        else ""
    )


def _noise(
    rows: Sequence[PairedTask], who: tuple[int, int], drawn: Drawn
) -> DocumentNoise | str | None:
    """Over other documents of these tasks of a corpus; why it is unknown, in words; None where none
    is needed.
    """
    if all(row.ratio for row in rows):
        return None
    sides: tuple[list[Redrawn], list[Redrawn]] = ([], [])
    for row in rows:
        for side, one, cell in zip(sides, who, (row.first, row.second), strict=True):
            known = drawn[one, row.info.id]
            if isinstance(known, str):
                return known
            assert cell.group is not None
            # the places of the compared seeds among all of the group's
            side.append(known.of([cell.group.seeds.index(seed) for seed in cell.seeds]))
    noise = document_noise(*sides, paired=[row.together for row in rows])
    return "one group of documents: test-set noise is unknown" if noise is None else noise


def _line(
    row: PairedTask,
    metric: str,
    noise: DocumentNoise | str | None,
    drawn: Redrawn | str,
    level: float,
) -> TaskLine:
    first, second, step, ratio, together = row.first, row.second, row.unit, row.ratio, row.together
    seeds = compare_seeds(
        first.scores, second.scores, paired=together, level=level, resolution=step, ratio=ratio
    )
    difference = first.mean - second.mean
    documents = None
    total = seeds if ratio else None
    if isinstance(noise, DocumentNoise):
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
            paired=[together],
            resolutions=[step],
            documents=[(noise.variance, noise.df)],
            twice=noise.twice,
            level=level,
        ).test
        total = both if both is not None and both.estimand is Estimand.THESE_TASKS else None
    return TaskLine(
        task=row.info.id,
        corpus=row.info.corpus,
        metric=metric,
        first=first.mean,
        second=second.mean,
        difference=difference,
        n_first=len(first.seeds),
        n_second=len(second.seeds),
        paired=together,
        seeds=seeds,
        documents=documents,
        total=total,
        groups=None if documents is None or isinstance(drawn, str) else len(drawn.places),
    )


def _parts(common: CommonTasks, gaps: np.ndarray) -> dict[str, KindPart]:
    """Mean difference over the corpora of each kind of task (of each language where there are
    several).
    """
    languages = {info.language for info in common.tasks}
    kinds = [
        info.language if len(languages) > 1 else KINDS.get(info.type, info.type)
        for info in common.tasks
    ]
    if len(set(kinds)) < 2:
        return {}
    rows = pd.DataFrame(
        {"kind": kinds, "corpus": [info.corpus for info in common.tasks], "gap": gaps}
    )
    means = rows.groupby(["kind", "corpus"], sort=False)["gap"].mean().groupby("kind", sort=False)
    return {str(kind): KindPart(float(of_kind.mean()), len(of_kind)) for kind, of_kind in means}
