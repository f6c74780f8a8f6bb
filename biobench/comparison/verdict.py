"""A comparison in plain sentences: what is shown, what is not, what cannot be concluded and why."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from statistics import NormalDist

from biobench.comparison.result import Compared, PairResult
from biobench.report.beside import NAMES
from biobench.stats import Estimand, Interval, MeanTest, RankInterval

#: A p value below this is called certain, where seeds and test-set noise are part of it.
CERTAIN = 1e-6
#: From fewer seeds than these their spread is too badly known for so small a p; it is then taken for SEED_SD.
CERTAIN_SEEDS = 5
#: More than fine-tuning seeds of a working recipe differ by (standard deviation, a fraction).
SEED_SD = 0.05
#: Pairs that are spoken of one by one where no test over corpora can be had.
MOST_SPOKEN = 6


def verdict(held: Compared) -> tuple[str, ...]:
    """The sentences: twins first (where both have ledgers), then the result, then its limits."""
    lines = [twins.words for twins in held.twins]
    if len(held.models) == 2:
        lines += _pair(held, held.pairs[0])
    else:
        lines += _many(held)
    lines += _limits(held)
    return tuple(lines)


def points(difference: float) -> str:
    """A signed difference in points: ``+2.08``."""
    shown = f"{100 * difference:+.2f}"
    return "0.00" if float(shown) == 0 else shown


def ends(interval: Interval | None) -> str:
    """``0.07 to 4.08``, in points."""
    return "–" if interval is None else f"{_plain(interval.low)} to {_plain(interval.high)}"


def _plain(value: float) -> str:
    shown = f"{100 * value:.2f}"
    return "0.00" if float(shown) == 0 else shown


def p_value(p: float | None) -> str:
    """``0.04482``; values below 0.0001 by that bound, a dash where there is no test."""
    if p is None:
        return "–"
    return "< 0.0001" if p < 1e-4 else f"{p:.4g}"


def _equals(p: float) -> str:
    return f"p {p_value(p)}" if p < 1e-4 else f"p = {p_value(p)}"


def plural(count: int, one: str, many: str | None = None) -> str:
    """``1 task``, ``2 tasks``."""
    return f"{count} {one if count == 1 else many or one + 's'}"


def metric_name(held: Compared) -> str:
    """The scores compared, in words."""
    names = set(held.metrics.values())
    return NAMES.get(next(iter(names)), next(iter(names))) if len(names) == 1 else NAMES["mixed"]


def _pair(held: Compared, result: PairResult) -> list[str]:
    suite = result.pair.comparison
    first, second = result.pair.first, result.pair.second
    tasks = plural(len(held.tasks), "task")
    if not any(suite.task_differences):
        same = f"{first} and {second} have the same scores on {tasks}"
        return [f"No difference: {same} (difference 0, p = 1, one tie group)."]
    lines = _statements(held, result)
    rope = f" within {100 * suite.rope:g} points" if suite.rope else ""
    lines.append(f"{first} is better on {suite.wins} of {tasks}, equal{rope} on {suite.ties}, worse on {suite.losses}.")
    if suite.wilcoxon_p is not None:
        least = suite.wilcoxon_smallest_p
        bound = f" (with {len(held.clusters)} corpora it cannot fall below {least:.3g})" if least > held.alpha else ""
        shown = _equals(suite.wilcoxon_p)
        lines.append(f"Beside the t test, Wilcoxon's signed ranks over the corpora: {shown}{bound}.")
    if suite.improvement is not None:
        lines.append(
            f"A run of {first} beats a run of {second} with probability {suite.improvement:.2f} (ties count half)."
        )
    return [*lines, *_design(held, result)]


def _statements(held: Compared, result: PairResult) -> list[str]:
    """The strongest statement first: these tasks for certain, else tasks like these, else these tasks.

    The two tests answer two questions: would it hold with other seeds and test sets of these tasks, and
    would it hold on other tasks.
    """
    suite, within = result.pair.comparison.test, result.within.test
    signed = result.pair.comparison.difference
    order = (result.pair.first, result.pair.second)
    better, worse = order if signed > 0 else order[::-1]
    claim = f"{better} is better than {worse}"
    here = "this task" if len(held.tasks) == 1 else f"these {len(held.tasks)} tasks"
    general = None if suite.p is None else _evidence(held, suite, signed, f"t over {_corpora(held)}")
    local = None if within is None or within.p is None else _evidence(held, within, signed)
    shown = within is not None and within.p is not None and within.p <= held.alpha
    certain = shown and is_certain(result)
    wins = result.pair.comparison.wins if signed > 0 else result.pair.comparison.losses
    if better in held.perfect and wins == len(held.tasks):
        size = f"{100 * abs(signed):.2f} points of {metric_name(held)}"
        lines = [f"Certain: {claim} on {here}, by {size}: it returns the gold, so it errs on no test set."]
        return [*lines, f"Tasks like these: {general}."] if general else lines
    if certain and local is not None:
        lines = [f"Certain: {claim} on {here}, by {local}."]
        if general is not None:
            known = "Tasks like these: shown too" if result.pair.different else "Other tasks like these: not shown"
            lines.append(f"{known}: {general}.")
        return lines
    if result.pair.different and general is not None:
        lines = [f"{claim} on tasks like these, by {general}."]
        if local is not None:
            lines.append(f"On {here} themselves it is {'shown too' if shown else 'not shown'}: {local}.")
        return lines
    if shown and local is not None:
        lines = [f"{claim} on {here}, by {local}."]
        if is_about_runs(result):
            runs = f"The runs at hand of {better} are better than those of {worse} on {here}, by {local}."
            lines = [f"Whether {claim} is not shown: a single seed may have been lucky. {runs}"]
        return [*lines, f"Whether it holds on other tasks like these is not shown: {general}."] if general else lines
    lines = [f"No difference is shown between {order[0]} and {order[1]}."]
    if general is not None:
        lines.append(f"On tasks like these {better} is ahead by {general}.")
    if local is not None:
        lines.append(f"On {here} {better} is ahead by {local}.")
    if general is None and local is None:
        size = f"{100 * abs(signed):.2f} points of {metric_name(held)}"
        lines.append(f"{better} is ahead by {size}; the uncertainty of that is unknown.")
    return lines


def is_certain(result: PairResult) -> bool:
    """Whether the difference on these tasks leaves no doubt, seeds and test-set noise taken in.

    With five seeds or more that is a p below `CERTAIN`. With fewer it is a difference that is as far from zero
    if the seeds spread by `SEED_SD`.
    """
    within = result.within
    if within.test is None or within.test.p is None or within.se_documents is None:
        return False
    counts = [(line.n_first, line.n_second) for line in result.tasks]
    if min((n for pair in counts for n in pair if n), default=0) >= CERTAIN_SEEDS:
        return within.test.p < CERTAIN
    # the difference is a mean of means over corpora, so a task of a corpus of several weighs less
    corpora = Counter(line.corpus for line in result.tasks)
    weights = [(len(corpora) * corpora[line.corpus]) ** -2 for line in result.tasks]
    seeds = SEED_SD**2 * sum(w / n for w, pair in zip(weights, counts, strict=True) for n in pair if n)
    noise = math.sqrt(within.se_documents**2 + seeds)
    return within.test.p <= 0.05 and 2 * NormalDist().cdf(-abs(within.difference) / noise) < CERTAIN


def is_about_runs(result: PairResult) -> bool:
    """Whether the test on these tasks speaks of the runs at hand alone: some task has a single seed."""
    return result.within.test is not None and result.within.test.estimand is Estimand.THESE_RUNS


def untested(held: Compared) -> bool:
    """Whether no pair could be tested on tasks like these, which takes two corpora."""
    return all(r.pair.p_holm is None for r in held.pairs)


def _evidence(held: Compared, test: MeanTest, signed: float, method: str = "") -> str:
    """``2.08 points (95% interval 0.07 to 4.08, p = 0.04482; about tasks like these)``, the better model first."""
    interval = test.interval
    if interval is not None and signed < 0:
        interval = replace(interval, low=-interval.high, high=-interval.low)
    how = f"{method}, " if method else ""
    return (
        f"{100 * abs(signed):.2f} points of {metric_name(held)} ({_level(held)} interval {ends(interval)}, {how}"
        f"{_equals(1.0 if test.p is None else test.p)}; about {test.estimand.value})"
    )


def _corpora(held: Compared) -> str:
    return plural(len(held.clusters), "corpus", "corpora")


def _design(held: Compared, result: PairResult) -> list[str]:
    suite = result.pair.comparison
    if suite.detectable is None:
        return []
    line = (
        f"The smallest true difference that {_corpora(held)} of this spread find in 4 "
        f"of 5 cases is {100 * suite.detectable:.2f} points"
    )
    plan = result.plan
    if plan is None:
        return [line + "; the seeds needed for a wanted one cannot be had without seeds."]
    want = f"{100 * plan.wanted:g} {'point' if plan.wanted == 0.01 else 'points'}"
    if plan.seeds is None:
        limit = "" if plan.limit is None else f" (their limit is {100 * plan.limit:.2f} points)"
        return [f"{line}; to find {want}, {plan.note}{limit}."]
    return [f"{line}; to find {want}, {plural(plan.seeds, 'seed')} a task would do."]


def _many(held: Compared) -> list[str]:
    best = held.standings[0]
    level = [s.model for s in held.standings if s.rank == 1]
    lines = []
    if len(level) == len(held.standings):
        lines.append(f"No difference: all {len(level)} models have the same average.")
    else:
        lines.append(f"Highest average: {' and '.join(level)} ({100 * best.score:.2f}, {metric_name(held)}).")
    told = [r.pair for r in held.pairs if r.pair.different]
    if untested(held):
        lines.append(
            f"No pair is tested on tasks like these: there is {_corpora(held)}, and a t over corpora needs two."
        )
        if len(held.pairs) <= MOST_SPOKEN:
            lines += [_statements(held, r)[0] for r in held.pairs if any(r.pair.comparison.task_differences)]
        return lines
    lines.append(
        f"{len(told)} of {plural(len(held.pairs), 'pair')} told apart on tasks like these (t over {_corpora(held)}, "
        f"Holm's correction, p at most {held.alpha:g})."
    )
    if best.ties is not None:
        with_best = [s.model for s in held.standings[1:] if set(s.ties or "") & set(best.ties)]
        rest = len(held.standings) - 1 - len(with_best)
        if with_best:
            lines.append(f"Not told apart from {best.model}: {', '.join(with_best)}.")
        if rest:
            lines.append(f"Told apart from {best.model}: {plural(rest, 'model')}.")
    if held.ranks:
        shown = ", ".join(f"{r.model} {ranks(r)}" for r in sorted(held.ranks, key=lambda r: r.rank))
        lines.append(f"Ranks that the bootstrap cannot exclude at {_level(held)}: {shown}.")
    return lines


def ranks(r: RankInterval) -> str:
    """``1–3``, or a single rank."""
    return str(r.low) if r.low == r.high else f"{r.low}–{r.high}"


def _limits(held: Compared) -> list[str]:
    """What cannot be concluded, each with its reason."""
    lines = []
    if held.published:
        lines.append(
            "Cannot be concluded: whether other fine-tuning seeds or another test set would change the result on any "
            "one task, how often a run of one model beats a run of the other, and how many seeds would be needed. Why: "
            f"{_listed(held.published)} known from printed means, without the spread over seeds and without "
            "predictions."
        )
    if 0 < len(held.published) < len(held.models):
        lines.append(
            "Cannot be concluded: that a difference comes from the models. Why: the printed scores were made with "
            "other code and maybe other splits than the runs here."
        )
    if len(held.clusters) == 1 and any(any(r.pair.comparison.task_differences) for r in held.pairs):
        one = "one task" if len(held.tasks) == 1 else "tasks of one corpus"
        lines.append(f"Cannot be concluded: anything about other tasks. Why: there is {one} only.")
    if held.policies and len(held.policies) < len(held.models):
        lines.append("Policies of the gate have no seeds: their score stands for every seed compared with it.")
    if (
        not held.published
        and len(held.policies) < len(held.models)
        and any(r.pair.comparison.variance is None for r in held.pairs)
    ):
        lines.append("Cannot be concluded: anything about other seeds. Why: some task was run with a single one.")
    return lines


def _listed(names: tuple[str, ...]) -> str:
    if len(names) == 1:
        return f"{names[0]} is"
    return f"{', '.join(names[:-1])} and {names[-1]} are"


def _level(held: Compared) -> str:
    return f"{100 * (1 - held.alpha):g}%"
