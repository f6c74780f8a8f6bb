"""A comparison in plain sentences: what is shown, what is not, what cannot be concluded and why.

One claim a sentence. Each is a note, so that `verdict_fr` says the same in French.
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
from biobench.report.languages.notes import Note, note
from biobench.stats import Estimand, MeanTest

#: Pairs that are spoken of one by one where no test over corpora can be had.
MOST_SPOKEN = 6


def verdict(comparison: Compared) -> tuple[Note, ...]:
    """The sentences: twins first (where both have ledgers), then the result, then its limits; a language at a time."""
    lines = [twins.words for twins in comparison.twins]
    if comparison.plan:
        lines.append(note("Declared before looking: plan {hash}.", hash=comparison.plan))
    if comparison.parts:
        for part in comparison.parts:
            lines += _one(part, note(" in {language}", language=_language(part.language)))
        lines.append(note("Each language has its own verdict; --pooled asks for one over all of them."))
        return tuple(lines)
    return (*lines, *_one(comparison, ""))


def _one(comparison: Compared, where: str) -> list[Note]:
    """where: `` in English`` in a verdict of several languages, else nothing."""
    lines = _pair(comparison, comparison.pairs[0], where) if len(comparison.models) == 2 else _many(comparison, where)
    return [*lines, *_limits(comparison)]


def _language(code: str) -> str:
    return {"en": note("English"), "fr": note("French")}.get(code, code)


def _pair(comparison: Compared, result: PairResult, where: str) -> list[Note]:
    suite = result.pair.comparison
    first, second = result.pair.first, result.pair.second
    count = len(comparison.tasks)
    names = {"first": first, "second": second}
    if not any(suite.task_differences):
        form = (
            "No difference: {first} and {second} have the same scores on {tasks}{where} (difference 0, p = 1, one tie "
            "group)."
        )
        return [note(form, tasks=tasks_of(count), where=where, **names)]
    lines = [*_statements(comparison, result, where), *_same(comparison, result)]
    within = note(" (within {points})", points=points_of(suite.rope)) if suite.rope else ""
    form = "Mean scores: {first} is higher on {wins} of {tasks}, equal on {ties}{within}, lower on {losses}."
    lines.append(
        note(
            form,
            first=first,
            wins=suite.wins,
            tasks=tasks_of(count),
            ties=suite.ties,
            within=within,
            losses=suite.losses,
        )
    )
    lines += carried(comparison, result)
    if suite.wilcoxon_p is not None:
        lines.append(note("Wilcoxon's signed ranks over the corpora give {p}.", p=equals(suite.wilcoxon_p)))
        least = suite.wilcoxon_smallest_p
        if least > comparison.alpha:
            form = "That p cannot fall below {least} with {corpora}."
            lines.append(note(form, least=p_value(least), corpora=corpora_of(len(comparison.clusters))))
    if suite.improvement is not None:
        form = "A run of {first} beats a run of {second} with probability {chance:.2f} (ties count half)."
        lines.append(note(form, chance=suite.improvement, **names))
    return [*lines, *_design(comparison, result)]


def _statements(comparison: Compared, result: PairResult, where: str) -> list[Note]:
    """What is shown of tasks like these, and of these tasks; never that nothing is shown and something is."""
    suite, within = result.pair.comparison.test, result.within.test
    signed = result.pair.comparison.difference
    order = (result.pair.first, result.pair.second)
    better, worse = order if signed > 0 else order[::-1]
    who = {"better": better, "worse": worse}
    count = len(comparison.tasks)
    here = (
        note("this task{where}", where=where)
        if count == 1
        else note("these {count} tasks{where}", count=count, where=where)
    )
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
        return [note(form, here=here, size=size, **who), *lines, *_likewise(result, general)]
    if shown and local is not None and is_about_runs(result) and not result.pair.different:
        form = "Nothing is shown about the models {better} and {worse}{where}: a single seed may have been lucky."
        sentences = [note(form, where=where, **who)]
        form = "These two runs differ by {size} on {here} ({evidence}): the run of {better} scores higher."
        sentences.append(note(form, size=size, here=here, evidence=local, better=better))
        return [*sentences, *lines, *_likewise(result, general)]
    if shown and local is not None and not is_about_runs(result) and (is_certain(result) or not result.pair.different):
        form = "{better} is better than {worse} on {here}, by {size} ({evidence})."
        if is_certain(result):
            form = "Certain: {better} is better than {worse} on {here}, by {size} ({evidence})."
            local = _evidence(comparison, within, signed, p=_certainty(result)) if within is not None else local
        claim = note(form, here=here, size=size, evidence=local, **who)
        return [claim, *lines, *_likewise(result, general)]
    if result.pair.different and general is not None:
        form = "{better} is better than {worse} on tasks like these{where}, by {size} ({evidence})."
        lines = [note(form, size=size, evidence=general, where=where, **who)]
        if local is not None and shown:
            lines.append(note("On {here} themselves it is shown too ({evidence}).", here=here, evidence=local))
        return lines
    sentences = [
        note(
            "No difference is shown between {first} and {second}{where}.", first=order[0], second=order[1], where=where
        )
    ]
    if general is None and local is None:
        form = "{better} is {size} higher on average; the uncertainty of that is unknown."
        return [*sentences, note(form, better=better, size=size), *lines]
    sentences.append(note("{better} is {size} higher on average.", better=better, size=size))
    if general is not None:
        sentences.append(note("Tasks like these: {evidence}.", evidence=general))
    if local is not None:
        sentences.append(note("Only {here}: {evidence}.", here=here, evidence=local))
    return [*sentences, *lines]


def _size(comparison: Compared, difference: float) -> Note:
    """``2.08 points of macro F1``; two forms, because French takes the singular below 2."""
    metric = metric_name(comparison)
    if 100 * difference < 2:
        return note("{few:.2f} points of {metric}", few=100 * difference, metric=metric)
    return note("{points:.2f} points of {metric}", points=100 * difference, metric=metric)


def _likewise(result: PairResult, general: Note | None) -> list[Note]:
    """What a statement about these tasks leaves to be said of tasks like these."""
    if general is None:
        return []
    if result.pair.different:
        return [note("On tasks like these it is shown too ({evidence}).", evidence=general)]
    return [note("On other tasks like these it is not shown ({evidence}).", evidence=general)]


def _varies(comparison: Compared, result: PairResult, name: str) -> list[Note]:
    interaction = result.interactions[name]
    form = "The difference depends on the {part} (F test over corpora, {p}): {each}."
    each = [
        note(
            "{points} points on {corpora} ({name})",
            points=points(d),
            corpora=corpora_of(interaction.corpora[k]),
            name=_part(k),
        )
        for k, d in interaction.parts.items()
    ]
    part = note("language") if name == "language" else note("kind of task")
    return [
        note(form, part=part, p=equals(interaction.p), each=each),
        note("So nothing is said about tasks like these as a whole."),
    ]


def _part(name: str) -> str:
    known = {"entities": note("named entities"), "classes": note("classification")}
    return known.get(name) or _language(name.replace("_", " "))


def _same(comparison: Compared, result: PairResult) -> list[Note]:
    """Equivalence within the rope, on the widest ground that shows it."""
    rope = result.pair.comparison.rope
    if not rope or (result.same is None and result.same_here is None):
        return []
    shared = {"first": result.pair.first, "second": result.pair.second, "points": points_of(rope)}
    if result.same is not None and result.same <= comparison.alpha and not result.unspoken(comparison.alpha):
        form = "{first} and {second} are the same within {points} on tasks like these (two one-sided tests, {p})."
        return [note(form, p=equals(result.same), **shared)]
    if result.same_here is not None and result.same_here <= comparison.alpha:
        form = "{first} and {second} are the same within {points} on these tasks alone (two one-sided tests, {p})."
        return [note(form, p=equals(result.same_here), **shared)]
    p = result.same if result.same is not None else result.same_here
    form = "That {first} and {second} are the same within {points} is not shown (two one-sided tests, {p})."
    return [note(form, p=equals(p), **shared)]


def is_about_runs(result: PairResult) -> bool:
    """Whether the test on these tasks speaks of the runs at hand alone: some task has a single seed."""
    return result.within.test is not None and result.within.test.estimand is Estimand.THESE_RUNS


def untested(comparison: Compared) -> bool:
    """Whether no pair could be tested on tasks like these, which takes two corpora."""
    return all(r.pair.p_holm is None for r in comparison.pairs)


def _evidence(
    comparison: Compared, test: MeanTest, signed: float, p: float | Note | None = None, *, general: bool = False
) -> Note:
    """``95% interval 0.07 to 4.08, t over 6 corpora, p = 0.045``, the better model first."""
    interval = test.interval
    if interval is None:
        return note("no interval")
    if signed < 0:
        interval = replace(interval, low=-interval.high, high=-interval.low)
    how = note("t over {corpora}", corpora=corpora_of(len(comparison.clusters))) if general else _VARIES[test.estimand]
    shared = {"level": level_of(comparison), "ends": ends_of(interval), "how": how}
    shown = p if isinstance(p, Note) else equals(test.p if p is None else p)
    return note("{level} interval {ends}, {how}, {p}", p=shown, **shared)


def _certainty(result: PairResult) -> Note:
    """The p that certainty rests on: with few seeds their spread is taken for granted, and that is said."""
    if least_seeds(result) >= CERTAIN_SEEDS:
        return note("p below one in a million")
    return note("p below one in a million unless seeds spread by more than 5 points")


_VARIES = {
    Estimand.THESE_TASKS: note("other seeds and test sets"),
    Estimand.THESE_TEST_SETS: note("other seeds, these test sets"),
    Estimand.THESE_RUNS: note("these runs, other test sets"),
}
"""What a test on these tasks lets vary."""


def _design(comparison: Compared, result: PairResult) -> list[Note]:
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
    lines = [note(form, corpora=corpora, low=100 * detectable.low, high=100 * detectable.high)]
    plan = result.plan
    if plan is None:
        return lines  # the limits say that the spread over seeds is unknown
    want = points_of(plan.wanted)
    if plan.seeds is not None:
        form = "About {seeds} seeds a task find a true difference of {want} in 4 of 5 cases."
        return [*lines, note(form, seeds=plan.seeds, want=want)]
    if not plan.certain:
        form = "How many seeds find a true difference of {want} cannot be told from {corpora}."
        return [*lines, note(form, want=want, corpora=corpora)]
    form = "No number of seeds finds a true difference of {want} in 4 of 5 cases; more corpora would."
    return [*lines, note(form, want=want)]


def _many(comparison: Compared, where: str) -> list[Note]:
    best = comparison.standings[0]
    level = [s.model for s in comparison.standings if s.rank == 1]
    lines = []
    if len(level) == len(comparison.standings):
        lines.append(
            note("No difference: all {count} models have the same average{where}.", count=len(level), where=where)
        )
    else:
        form = "Highest average{where}: {models} ({score:.2f}, {metric}, mean over corpora)."
        lines.append(
            note(form, models=joined(level), where=where, score=100 * best.score, metric=metric_name(comparison))
        )
    lines += _by_order(comparison)
    different = [r.pair for r in comparison.pairs if r.pair.different]
    corpora = corpora_of(len(comparison.clusters))
    if untested(comparison):
        form = "No pair is tested on tasks like these: there is {corpora}, and a t over corpora needs two."
        lines.append(note(form, corpora=corpora))
        if len(comparison.pairs) <= MOST_SPOKEN:
            for r in comparison.pairs:
                if any(r.pair.comparison.task_differences):
                    lines += _statements(comparison, r, where)[: 2 if is_about_runs(r) else 1]
            if len(comparison.pairs) > 1:
                lines.append(note("These p are corrected for the number of pairs (Holm)."))
        return lines
    form = (
        "Pairs told apart on tasks like these: {told} of {pairs} (t over {corpora}, Holm's correction, p at most "
        "{alpha})."
    )
    lines.append(
        note(form, told=len(different), pairs=len(comparison.pairs), corpora=corpora, alpha=f"{comparison.alpha:g}")
    )
    if any(r.pair.p_moderated is not None for r in comparison.pairs):
        lines.append(note("Each variance is moderated by those of all pairs."))
    varying = sum(r.unspoken(comparison.alpha) is not None for r in comparison.pairs)
    if varying:
        form = "Pairs left out because their difference depends on the kind of task or the language: {count}."
        lines.append(note(form, count=varying))
    if best.ties is not None:
        with_best = [s.model for s in comparison.standings[1:] if set(s.ties or "") & set(best.ties)]
        rest = len(comparison.standings) - 1 - len(with_best)
        if with_best:
            lines.append(note("Not told apart from {model}: {others}.", model=best.model, others=", ".join(with_best)))
        if rest:
            others = note("1 model") if rest == 1 else note("{count} models", count=rest)
            lines.append(note("Told apart from {model}: {others}.", model=best.model, others=others))
    if comparison.ranks:
        shown = ", ".join(f"{r.model} {ranks(r)}" for r in sorted(comparison.ranks, key=lambda r: r.rank))
        form = "Possible ranks, for each model alone ({level}, bootstrap): {ranks}."
        lines.append(note(form, level=level_of(comparison), ranks=shown))
    return lines


def _by_order(comparison: Compared) -> list[Note]:
    """Whether another average would put another model first, or order the models otherwise."""
    orders = [
        (note("the mean over tasks"), sorted(comparison.standings, key=lambda s: -round(s.task_mean, 9))),
        (note("the mean rank"), sorted(comparison.standings, key=lambda s: round(s.mean_rank, 9))),
    ]
    best = comparison.standings[0].model
    other = [note("{name} puts {model} first", name=n, model=o[0].model) for n, o in orders if o[0].model != best]
    if other:
        return [note("The first place depends on the average: {other}.", other=other)]
    if any([s.model for s in order] != [s.model for s in comparison.standings] for _, order in orders):
        return [note("The order of the others depends on the average; the table has all three.")]
    return []


def _limits(comparison: Compared) -> list[Note]:
    """What cannot be concluded, each with its reason."""
    lines = []
    if comparison.published:
        form = (
            "Cannot be concluded: whether other seeds or another test set would change the result on one task, how "
            "often a run of one model beats a run of the other, and how many seeds would be needed. Why: only printed "
            "means are known of {models}, without their spread over seeds and without predictions."
        )
        lines.append(note(form, models=joined(list(comparison.published))))
    if 0 < len(comparison.published) < len(comparison.models):
        form = (
            "Cannot be concluded: that a difference comes from the models. Why: the printed scores were made with "
            "other code and maybe other splits than the runs here."
        )
        lines.append(note(form))
    if len(comparison.clusters) == 1 and any(any(r.pair.comparison.task_differences) for r in comparison.pairs):
        one = note("there is one task only") if len(comparison.tasks) == 1 else note("all tasks are of one corpus")
        lines.append(note("Cannot be concluded: anything about other tasks. Why: {one}.", one=one))
    if comparison.policies and len(comparison.policies) < len(comparison.models):
        lines.append(note("Policies of the gate have no seeds: their score stands for every seed compared with it."))
    if (
        not comparison.published
        and len(comparison.policies) < len(comparison.models)
        and any(r.pair.comparison.variance is None for r in comparison.pairs)
    ):
        lines.append(note("Cannot be concluded: anything about other seeds. Why: some task was run with a single one."))
    if any(r.exploratory for r in comparison.pairs):
        pairs = [f"{r.pair.first} – {r.pair.second}" for r in comparison.pairs if r.exploratory]
        lines.append(note("Exploratory, not in the declared plan: {pairs}.", pairs=pairs))
    return lines
