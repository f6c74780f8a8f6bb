"""The pairs of a comparison corrected for each other (Holm): claims, sameness and words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from biobench.comparison.plan import DeclaredPlan
from biobench.comparison.ranks import Guessing
from biobench.comparison.result import TIE, Conclusion, PairResult, Verdict, Word
from biobench.stats import Answer, HolmStep, holm

SAME_SEEDS = 5
"""Seeds of each model on every task from which "the same within" a margin may be said ..."""
SAME_RUNS = 59
"""... and runs of each model: a failure in one run of twenty then shows with 95% (0.95^59)."""


def corrected(
    pairs: Sequence[PairResult], *, alpha: float, rope: float, guessing: Guessing
) -> tuple[PairResult, ...]:
    """The pairs with their verdicts after Holm's correction over all of them.

    rope: margin of sameness, a fraction; 0 for none.
    """
    here = holm([_p(pair.answer) for pair in pairs], alpha)
    beyond = holm([_p(pair.wider_answer) for pair in pairs], alpha)
    same = holm([_p_outside(pair, rope) for pair in pairs], alpha)
    tested = len(here) - here.count(None)
    results = []
    for pair, step_here, step_beyond, step_same in zip(pairs, here, beyond, same, strict=True):
        conclusion = _conclusion(pair.answer, step_here)
        wider_conclusion = _conclusion(pair.wider_answer, step_beyond)
        if conclusion is not None and wider_conclusion is not None:
            wider_conclusion = _never_narrower(wider_conclusion, conclusion)
        detectable = None
        if pair.answer is not None:
            detectable = pair.answer.detectable(alpha=alpha / tested)
        result = replace(
            pair,
            here=conclusion,
            beyond=wider_conclusion,
            tested=tested,
            rope=rope,
            same=_conclusion(pair.answer, step_same, tails=2),
            detectable=detectable,
        )
        results.append(replace(result, verdict=_verdict(result, guessing)))
    return tuple(results)


def by_plan(
    among_all: Sequence[PairResult],
    plan: DeclaredPlan,
    *,
    alpha: float,
    rope: float,
    guessing: Guessing,
) -> tuple[PairResult, ...]:
    """The same, where a plan declared some pairs: these are corrected for each other alone, the
    rest, exploratory, as they are `among_all`.
    """
    planned = [pair for pair in among_all if plan.declares(pair.first, pair.second)]
    if not planned:
        return tuple(among_all)
    declared = iter(corrected(planned, alpha=alpha, rope=rope, guessing=guessing))
    results = []
    for pair in among_all:
        if plan.declares(pair.first, pair.second):
            results.append(next(declared))
        else:
            results.append(replace(pair, exploratory=True))
    return tuple(results)


def may_be_same(pair: PairResult) -> bool:
    """Whether there are runs enough to say that two models are the same within a margin."""
    seeds = np.array([(line.n_first, line.n_second) for line in pair.tasks])
    return bool(seeds.min() >= SAME_SEEDS and seeds.sum(axis=0).min() >= SAME_RUNS)


def _p(answer: Answer | None) -> float | None:
    return None if answer is None else answer.p


def _p_outside(pair: PairResult, rope: float) -> float | None:
    """None where nothing is asked, and where the runs cannot say it."""
    if not rope or pair.answer is None or not may_be_same(pair):
        return None
    return pair.answer.p_outside(rope)


def _conclusion(
    answer: Answer | None, step: HolmStep | None, *, tails: int = 1
) -> Conclusion | None:
    """tails: tests at the level of the step."""
    if answer is None or step is None:
        return None
    return Conclusion(
        answer=answer,
        p_corrected=step.adjusted,
        interval=answer.interval(1 - tails * step.alpha),
        is_shown=step.passed,
    )


def _never_narrower(wider: Conclusion, narrower: Conclusion) -> Conclusion:
    """The wider question with an interval at least as wide as that about these tasks, though Holm
    may decide about it at a lower level.
    """
    half_width = narrower.interval.half_width
    if half_width <= wider.interval.half_width:
        return wider
    return replace(wider, interval=wider.answer.interval_as_wide_as(half_width))


def _verdict(pair: PairResult, guessing: Guessing) -> Verdict:
    leaders = {pair.better}
    if pair.is_tied:
        leaders.add(pair.worse)
    leads_nobody = leaders <= guessing.on_mean
    return Verdict(
        here=_word(pair.here, leads_nobody),
        beyond=_word(pair.beyond, leads_nobody),
        same=None if pair.same is None else _word(pair.same),
        equal=bool((np.abs(pair.differences) <= TIE).all()),
        guessing=leads_nobody,
    )


def _word(conclusion: Conclusion | None, leads_nobody: bool = False) -> Word:
    if conclusion is None:
        return "not tested"
    if conclusion.is_shown and not leads_nobody:
        return "shown"
    return "not shown"
