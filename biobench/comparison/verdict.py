"""A comparison in plain sentences: what is shown, what is not, what cannot be concluded and why.

One claim a sentence.
"""

from __future__ import annotations

from dataclasses import replace

from biobench.comparison.carried import carried
from biobench.comparison.certain import CERTAIN_SEEDS, is_certain, least_seeds
from biobench.comparison.result import Compared, PairResult
from biobench.comparison.words import (
    corpora_of,
    ends_of,
    equals,
    joined,
    level_of,
    metric_name,
    p_value,
    points,
    points_of,
    ranks,
    tasks_of,
)
from biobench.stats import Estimand, MeanTest

#: Pairs that are spoken of one by one where no test over corpora can be had.
MOST_SPOKEN = 6


def verdict(comparison: Compared) -> tuple[str, ...]:
    """The sentences: twins first (where both have ledgers), then the result, then its limits; a language at a time."""
    lines = [twins.words for twins in comparison.twins]
    if comparison.plan:
        lines.append(f"Declared before looking: plan {comparison.plan}.")
    if comparison.parts:
        for part in comparison.parts:
            lines += _one(part, f" in {_language(part.language)}")
        lines.append("Each language has its own verdict; --pooled asks for one over all of them.")
        return tuple(lines)
    return (*lines, *_one(comparison, ""))


def _one(comparison: Compared, where: str) -> list[str]:
    """where: `` in English`` in a verdict of several languages, else nothing."""
    lines = _pair(comparison, comparison.pairs[0], where) if len(comparison.models) == 2 else _many(comparison, where)
    return [*lines, *_limits(comparison)]


def _language(code: str) -> str:
    return {"en": "English", "fr": "French"}.get(code, code)


def _pair(comparison: Compared, result: PairResult, where: str) -> list[str]:
    suite = result.pair.comparison
    first, second = result.pair.first, result.pair.second
    count = len(comparison.tasks)
    names = {"first": first, "second": second}
    if not any(suite.task_differences):
        form = (
            "No difference: {first} and {second} have the same scores on {tasks}{where} (difference 0, p = 1, one tie "
            "group)."
        )
        return [form.format(tasks=tasks_of(count), where=where, **names)]
    lines = [*_statements(comparison, result, where), *_same(comparison, result)]
    within = f" (within {points_of(suite.rope)})" if suite.rope else ""
    form = "Mean scores: {first} is higher on {wins} of {tasks}, equal on {ties}{within}, lower on {losses}."
    lines.append(
        form.format(
            first=first, wins=suite.wins, tasks=tasks_of(count), ties=suite.ties, within=within, losses=suite.losses
        )
    )
    lines += carried(comparison, result)
    if suite.wilcoxon_p is not None:
        lines.append(f"Wilcoxon's signed ranks over the corpora give {equals(suite.wilcoxon_p)}.")
        least = suite.wilcoxon_smallest_p
        if least > comparison.alpha:
            form = "That p cannot fall below {least} with {corpora}."
            lines.append(form.format(least=p_value(least), corpora=corpora_of(len(comparison.clusters))))
    if suite.improvement is not None:
        form = "A run of {first} beats a run of {second} with probability {chance:.2f} (ties count half)."
        lines.append(form.format(chance=suite.improvement, **names))
    return [*lines, *_design(comparison, result)]


def _statements(comparison: Compared, result: PairResult, where: str) -> list[str]:
    """What is shown of tasks like these, and of these tasks; never that nothing is shown and something is."""
    suite, within = result.pair.comparison.test, result.within.test
    signed = result.pair.comparison.difference
    order = (result.pair.first, result.pair.second)
    better, worse = order if signed > 0 else order[::-1]
    who = {"better": better, "worse": worse}
    count = len(comparison.tasks)
    here = f"this task{where}" if count == 1 else f"these {count} tasks{where}"
    size = _size(comparison, abs(signed))
    unspoken = result.unspoken(comparison.alpha)
    general = None if suite.p is None or unspoken else _evidence(comparison, suite, signed, general=True)
    local = (
        None if within is None or result.within_p is None else _evidence(comparison, within, signed, result.within_p)
    )
    shown = result.within_p is not None and result.within_p <= comparison.alpha
    wins = result.pair.comparison.wins if signed > 0 else result.pair.comparison.losses
    lines = _varies(comparison, result, unspoken) if unspoken else []
    if better in comparison.perfect and wins == len(comparison.tasks):
        form = (
            "Certain: {better} is better than {worse} on {here}, by {size}: it returns the gold, so it errs on no test "
            "set."
        )
        return [form.format(here=here, size=size, **who), *lines, *_likewise(result, general)]
    if shown and local is not None and is_about_runs(result) and not result.pair.different:
        form = "Nothing is shown about the models {better} and {worse}{where}: a single seed may have been lucky."
        sentences = [form.format(where=where, **who)]
        form = "These two runs differ by {size} on {here} ({evidence}): the run of {better} scores higher."
        sentences.append(form.format(size=size, here=here, evidence=local, better=better))
        return [*sentences, *lines, *_likewise(result, general)]
    if shown and local is not None and not is_about_runs(result) and (is_certain(result) or not result.pair.different):
        form = "{better} is better than {worse} on {here}, by {size} ({evidence})."
        if is_certain(result):
            form = "Certain: {better} is better than {worse} on {here}, by {size} ({evidence})."
            local = _evidence(comparison, within, signed, p=_certainty(result)) if within is not None else local
        claim = form.format(here=here, size=size, evidence=local, **who)
        return [claim, *lines, *_likewise(result, general)]
    if result.pair.different and general is not None:
        form = "{better} is better than {worse} on tasks like these{where}, by {size} ({evidence})."
        lines = [form.format(size=size, evidence=general, where=where, **who)]
        if local is not None and shown:
            lines.append(f"On {here} themselves it is shown too ({local}).")
        return lines
    sentences = [f"No difference is shown between {order[0]} and {order[1]}{where}."]
    if general is None and local is None:
        form = "{better} is {size} higher on average; the uncertainty of that is unknown."
        return [*sentences, form.format(better=better, size=size), *lines]
    sentences.append(f"{better} is {size} higher on average.")
    if general is not None:
        sentences.append(f"Tasks like these: {general}.")
    if local is not None:
        sentences.append(f"Only {here}: {local}.")
    return [*sentences, *lines]


def _size(comparison: Compared, difference: float) -> str:
    """``2.08 points of macro F1``; two forms, because French takes the singular below 2."""
    metric = metric_name(comparison)
    if 100 * difference < 2:
        return f"{100 * difference:.2f} points of {metric}"
    return f"{100 * difference:.2f} points of {metric}"


def _likewise(result: PairResult, general: str | None) -> list[str]:
    """What a statement about these tasks leaves to be said of tasks like these."""
    if general is None:
        return []
    if result.pair.different:
        return [f"On tasks like these it is shown too ({general})."]
    return [f"On other tasks like these it is not shown ({general})."]


def _varies(comparison: Compared, result: PairResult, name: str) -> list[str]:
    interaction = result.interactions[name]
    form = "The difference depends on the {part} (F test over corpora, {p}): {each}."
    each = [
        f"{points(d)} points on {corpora_of(interaction.corpora[k])} ({_part(k)})" for k, d in interaction.parts.items()
    ]
    part = "language" if name == "language" else "kind of task"
    return [
        form.format(part=part, p=equals(interaction.p), each="; ".join(each)),
        "So nothing is said about tasks like these as a whole.",
    ]


def _part(name: str) -> str:
    known = {"entities": "named entities", "classes": "classification"}
    return known.get(name) or _language(name.replace("_", " "))


def _same(comparison: Compared, result: PairResult) -> list[str]:
    """Equivalence within the rope, on the widest ground that shows it."""
    rope = result.pair.comparison.rope
    if not rope or (result.same is None and result.same_here is None):
        return []
    shared = {"first": result.pair.first, "second": result.pair.second, "points": points_of(rope)}
    if result.same is not None and result.same <= comparison.alpha and not result.unspoken(comparison.alpha):
        form = "{first} and {second} are the same within {points} on tasks like these (two one-sided tests, {p})."
        return [form.format(p=equals(result.same), **shared)]
    if result.same_here is not None and result.same_here <= comparison.alpha:
        form = "{first} and {second} are the same within {points} on these tasks alone (two one-sided tests, {p})."
        return [form.format(p=equals(result.same_here), **shared)]
    p = result.same if result.same is not None else result.same_here
    form = "That {first} and {second} are the same within {points} is not shown (two one-sided tests, {p})."
    return [form.format(p=equals(p), **shared)]


def is_about_runs(result: PairResult) -> bool:
    """Whether the test on these tasks speaks of the runs at hand alone: some task has a single seed."""
    return result.within.test is not None and result.within.test.estimand is Estimand.THESE_RUNS


def untested(comparison: Compared) -> bool:
    """Whether no pair could be tested on tasks like these, which takes two corpora."""
    return all(r.pair.p_holm is None for r in comparison.pairs)


def _evidence(
    comparison: Compared, test: MeanTest, signed: float, p: float | str | None = None, *, general: bool = False
) -> str:
    """``95% interval 0.07 to 4.08, t over 6 corpora, p = 0.045``, the better model first."""
    interval = test.interval
    if interval is None:
        return "no interval"
    if signed < 0:
        interval = replace(interval, low=-interval.high, high=-interval.low)
    how = f"t over {corpora_of(len(comparison.clusters))}" if general else _VARIES[test.estimand]
    shared = {"level": level_of(comparison), "ends": ends_of(interval), "how": how}
    shown = p if isinstance(p, str) else equals(test.p if p is None else p)
    return "{level} interval {ends}, {how}, {p}".format(p=shown, **shared)


def _certainty(result: PairResult) -> str:
    """The p that certainty rests on: with few seeds their spread is taken for granted, and that is said."""
    if least_seeds(result) >= CERTAIN_SEEDS:
        return "p below one in a million"
    return "p below one in a million unless seeds spread by more than 5 points"


_VARIES = {
    Estimand.THESE_TASKS: "other seeds and test sets",
    Estimand.THESE_TEST_SETS: "other seeds, these test sets",
    Estimand.THESE_RUNS: "these runs, other test sets",
}
"""What a test on these tasks lets vary."""


def _design(comparison: Compared, result: PairResult) -> list[str]:
    suite = result.pair.comparison
    if suite.detectable_range is None or suite.detectable_range.high == 0:
        return []
    detectable, corpora = suite.detectable_range, corpora_of(len(comparison.clusters))
    if detectable.high > 1:  # more than scores can differ
        form = "The smallest true difference found in 4 of 5 cases cannot be told from {corpora}."
    else:
        form = (
            "The smallest true difference found in 4 of 5 cases lies between {low:.2f} and {high:.2f} points "
            "(90% range from {corpora})."
        )
    lines = [form.format(corpora=corpora, low=100 * detectable.low, high=100 * detectable.high)]
    plan = result.plan
    if plan is None:
        return lines  # the limits say that the spread over seeds is unknown
    want = points_of(plan.wanted)
    if plan.seeds is not None:
        form = "About {seeds} seeds a task find a true difference of {want} in 4 of 5 cases."
        return [*lines, form.format(seeds=plan.seeds, want=want)]
    if not plan.certain:
        form = "How many seeds find a true difference of {want} cannot be told from {corpora}."
        return [*lines, form.format(want=want, corpora=corpora)]
    form = "No number of seeds finds a true difference of {want} in 4 of 5 cases; more corpora would."
    return [*lines, form.format(want=want)]


def _many(comparison: Compared, where: str) -> list[str]:
    best = comparison.standings[0]
    level = [s.model for s in comparison.standings if s.rank == 1]
    lines = []
    if len(level) == len(comparison.standings):
        lines.append(f"No difference: all {len(level)} models have the same average{where}.")
    else:
        form = "Highest average{where}: {models} ({score:.2f}, {metric}, mean over corpora)."
        lines.append(
            form.format(models=joined(level), where=where, score=100 * best.score, metric=metric_name(comparison))
        )
    lines += _by_order(comparison)
    different = [r.pair for r in comparison.pairs if r.pair.different]
    corpora = corpora_of(len(comparison.clusters))
    if untested(comparison):
        form = "No pair is tested on tasks like these: there is {corpora}, and a t over corpora needs two."
        lines.append(form.format(corpora=corpora))
        if len(comparison.pairs) <= MOST_SPOKEN:
            for r in comparison.pairs:
                if any(r.pair.comparison.task_differences):
                    lines += _statements(comparison, r, where)[: 2 if is_about_runs(r) else 1]
            if len(comparison.pairs) > 1:
                lines.append("These p are corrected for the number of pairs (Holm).")
        return lines
    form = (
        "Pairs told apart on tasks like these: {told} of {pairs} (t over {corpora}, Holm's correction, p at most "
        "{alpha})."
    )
    lines.append(
        form.format(told=len(different), pairs=len(comparison.pairs), corpora=corpora, alpha=f"{comparison.alpha:g}")
    )
    if any(r.pair.p_moderated is not None for r in comparison.pairs):
        lines.append("Each variance is moderated by those of all pairs.")
    varying = sum(r.unspoken(comparison.alpha) is not None for r in comparison.pairs)
    if varying:
        form = "Pairs left out because their difference depends on the kind of task or the language: {count}."
        lines.append(form.format(count=varying))
    if best.ties is not None:
        with_best = [s.model for s in comparison.standings[1:] if set(s.ties or "") & set(best.ties)]
        rest = len(comparison.standings) - 1 - len(with_best)
        if with_best:
            lines.append("Not told apart from {model}: {others}.".format(model=best.model, others=", ".join(with_best)))
        if rest:
            others = "1 model" if rest == 1 else f"{rest} models"
            lines.append(f"Told apart from {best.model}: {others}.")
    if comparison.ranks:
        shown = ", ".join(f"{r.model} {ranks(r)}" for r in sorted(comparison.ranks, key=lambda r: r.rank))
        form = "Possible ranks, for each model alone ({level}, bootstrap): {ranks}."
        lines.append(form.format(level=level_of(comparison), ranks=shown))
    return lines


def _by_order(comparison: Compared) -> list[str]:
    """Whether another average would put another model first, or order the models otherwise."""
    orders = [
        ("the mean over tasks", sorted(comparison.standings, key=lambda s: -round(s.task_mean, 9))),
        ("the mean rank", sorted(comparison.standings, key=lambda s: round(s.mean_rank, 9))),
    ]
    best = comparison.standings[0].model
    other = [f"{n} puts {o[0].model} first" for n, o in orders if o[0].model != best]
    if other:
        return [f"The first place depends on the average: {'; '.join(other)}."]
    if any([s.model for s in order] != [s.model for s in comparison.standings] for _, order in orders):
        return ["The order of the others depends on the average; the table has all three."]
    return []


def _limits(comparison: Compared) -> list[str]:
    """What cannot be concluded, each with its reason."""
    lines = []
    if comparison.published:
        form = (
            "Cannot be concluded: whether other seeds or another test set would change the result on one task, how "
            "often a run of one model beats a run of the other, and how many seeds would be needed. Why: only printed "
            "means are known of {models}, without their spread over seeds and without predictions."
        )
        lines.append(form.format(models=joined(list(comparison.published))))
    if 0 < len(comparison.published) < len(comparison.models):
        form = (
            "Cannot be concluded: that a difference comes from the models. Why: the printed scores were made with "
            "other code and maybe other splits than the runs here."
        )
        lines.append(form)
    if len(comparison.clusters) == 1 and any(any(r.pair.comparison.task_differences) for r in comparison.pairs):
        one = "there is one task only" if len(comparison.tasks) == 1 else "all tasks are of one corpus"
        lines.append(f"Cannot be concluded: anything about other tasks. Why: {one}.")
    if comparison.policies and len(comparison.policies) < len(comparison.models):
        lines.append("Policies of the gate have no seeds: their score stands for every seed compared with it.")
    if (
        not comparison.published
        and len(comparison.policies) < len(comparison.models)
        and any(r.pair.comparison.variance is None for r in comparison.pairs)
    ):
        lines.append("Cannot be concluded: anything about other seeds. Why: some task was run with a single one.")
    if any(r.exploratory for r in comparison.pairs):
        pairs = [f"{r.pair.first} – {r.pair.second}" for r in comparison.pairs if r.exploratory]
        lines.append(f"Exploratory, not in the declared plan: {'; '.join(pairs)}.")
    return lines
