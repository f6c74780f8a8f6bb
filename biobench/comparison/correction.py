"""The pairs of a comparison corrected for each other (Holm): claims, sameness and words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

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
    tested = len([step for step in here if step is not None])
    results = []
    for pair, step_here, step_beyond, step_same in zip(pairs, here, beyond, same, strict=True):
        conclusion = _conclusion(pair.answer, step_here)
        result = replace(
            pair,
            here=conclusion,
            beyond=_conclusion(pair.wider_answer, step_beyond, narrower=conclusion),
            tested=tested,
            rope=rope,
            same=_conclusion(pair.answer, step_same, tails=2),
        )
        if pair.answer is not None:
            result = replace(result, detectable=pair.answer.detectable(alpha=alpha / tested))
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
        if pair in planned:
            results.append(next(declared))
        else:
            results.append(replace(pair, exploratory=True))
    return tuple(results)


def may_be_same(pair: PairResult) -> bool:
    """Whether there are runs enough to say that two models are the same within a margin."""
    seeds = [line.n_first for line in pair.tasks], [line.n_second for line in pair.tasks]
    return all(min(of_side) >= SAME_SEEDS and sum(of_side) >= SAME_RUNS for of_side in seeds)


def _p(answer: Answer | None) -> float | None:
    return None if answer is None else answer.p


def _p_outside(pair: PairResult, rope: float) -> float | None:
    """None where nothing is asked, and where the runs cannot say it."""
    if not rope or pair.answer is None or not may_be_same(pair):
        return None
    return pair.answer.p_outside(rope)


def _conclusion(
    answer: Answer | None,
    step: HolmStep | None,
    *,
    narrower: Conclusion | None = None,
    tails: int = 1,
) -> Conclusion | None:
    """narrower: the conclusion about these tasks; the wider question has no narrower interval,
    though Holm may decide about it at a lower level. tails: tests at the level of the step.
    """
    if answer is None or step is None:
        return None
    interval = answer.interval(1 - tails * step.alpha)
    if narrower is not None and narrower.interval.half_width > interval.half_width:
        interval = answer.interval_as_wide_as(narrower.interval.half_width)
    return Conclusion(answer, step.adjusted, interval, step.passed)


def _verdict(pair: PairResult, guessing: Guessing) -> Verdict:
    leads_nobody = pair.better in guessing.on_mean
    if pair.is_tied:
        leads_nobody = {pair.first, pair.second} <= guessing.on_mean
    return Verdict(
        here=_word(pair.here, leads_nobody),
        beyond=_word(pair.beyond, leads_nobody),
        same=None if pair.same is None else _word(pair.same),
        equal=all(abs(line.difference) <= TIE for line in pair.tasks),
        guessing=leads_nobody,
    )


def _word(conclusion: Conclusion | None, leads_nobody: bool = False) -> Word:
    if conclusion is None:
        return "not tested"
    if conclusion.is_shown and not leads_nobody:
        return "shown"
    return "not shown"
