"""What a comparison shows, in words: some eight sentences, one claim each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from biobench.comparison.result import Compared, ComparedPart, Conclusion, PairResult
from biobench.core.text import plural
from biobench.reporting.literature.comparison import MIXED
from biobench.schema.kind import get_metric
from biobench.score.slices import SLICES
from biobench.stats import Interval

MOST_NAMED = 6
"""Tasks that a sentence names; of more it says how many."""
LANGUAGES = {"en": "English", "fr": "French"}


def sentences(comparison: Compared) -> tuple[str, ...]:
    """Matched pairs first (where both have ledgers), then each language: who is ahead and what is
    shown of it.
    """
    lines = [*comparison.matched]
    for section in comparison.parts:
        lines += pair_sentences(comparison, leading_pair(section))
        if len(section.pairs) > 1:
            lines += several_sentences(section)
    return tuple(lines)


def leading_pair(section: ComparedPart) -> PairResult:
    """The first of the ranking against the second."""
    best = {model.model for model in section.ranking[:2]}
    return next(pair for pair in section.pairs if {pair.first, pair.second} == best)


def pair_sentences(comparison: Compared, pair: PairResult) -> list[str]:
    """The headline of a pair, what single tasks show, whether the models may be the same, and what
    the test can find.
    """
    verdict = pair.verdict
    lines = [headline(comparison, pair)]
    if pair.here is not None and len(pair.tasks) > 1 and not verdict.equal:
        lines.append(single_tasks_sentence(pair))
    if pair.same is not None:
        lines.append(sameness_sentence(pair, pair.same))
    if pair.detectable and verdict.here == "not shown" and not verdict.guessing:
        lines.append(detectable_sentence(pair.detectable))
    return lines


def detectable_sentence(difference: float) -> str:
    """How large a difference such a comparison finds."""
    if difference >= 1:
        return "No difference is so large that 4 of 5 such comparisons would show it."
    return f"A true difference of {points(difference)} would be shown in 4 of 5 such comparisons."


def headline(comparison: Compared, pair: PairResult) -> str:
    """Who is ahead, on which tasks, and whether it is shown: a paragraph that begins with the task
    set.
    """
    ahead = ahead_clause(comparison, pair)
    failed = failures(comparison, pair)
    if pair.verdict.guessing:
        return f"{ahead}. {guessing_clause(pair)}{failed}."
    if pair.here is None and pair.printed:
        return f"{ahead}{failed}; {pair.reason}, so not tested."
    if pair.here is None:
        return f"{ahead}. {untested_clause(pair)}{failed}."
    about = f"over {noise_words(pair)}{correction_words(pair, pair.here)}{failed}"
    if pair.printed:
        about += ": test-set noise is not in it"
    return f"{ahead}. {shown_clause(pair, pair.here)}, {about}. {beyond_clause(pair)}."


def ahead_clause(comparison: Compared, pair: PairResult) -> str:
    """``On gad (macro F1), a scores higher than b``; of printed means by how much."""
    on = task_set(comparison, pair)
    if pair.is_tied:
        return f"{on}, {tied_clause(comparison, pair)}"
    if not pair.printed:
        return f"{on}, {pair.better} scores higher than {pair.worse}"
    # no publication printed the mean that is taken here over several tasks
    mean = "printed mean" if len(pair.tasks) == 1 else "mean of printed scores"
    kind = dict.fromkeys(comparison.published, mean)
    better = f"{pair.better}'s {kind.get(pair.better, 'mean')}"
    worse = f"the {kind.get(pair.worse, 'mean')} of {pair.worse}"
    return f"{on}, {better} is {points(abs(pair.difference))} above {worse}"


def tied_clause(comparison: Compared, pair: PairResult) -> str:
    """``both models have the same mean``: no order of names, which nothing would decide."""
    models = "both models"
    if len(comparison.models) > 2:
        models = f"{pair.better} and {pair.worse}"
    if pair.verdict.equal:
        return f"{models} have the same scores"
    return f"{models} have the same mean"


def guessing_clause(pair: PairResult) -> str:
    """The better model leads nobody."""
    guessing = f"{pair.better} is not above guessing"
    if pair.is_tied:
        guessing = "neither is above guessing"
    size = points(abs(pair.difference))
    if pair.here is not None:
        size += interval_words(pair, pair.here.interval)
    elif pair.reason:
        size += f" (not tested: {pair.reason})"
    return f"Not shown: {guessing}. The difference on {mean_of(pair)} is {size}"


def untested_clause(pair: PairResult) -> str:
    """Why nothing is tested, and what is known all the same."""
    size = points(abs(pair.difference))
    if pair.runs is not None:
        size += f"{interval_words(pair, pair.runs.interval())}, over test sets alone"
    return f"Not tested for {mean_of(pair)}: {pair.reason}. The difference is {size}"


def shown_clause(pair: PairResult, conclusion: Conclusion) -> str:
    """``Shown for the mean of these 4 tasks (higher on 3 of 4): 12.9 points, 95% interval ...``"""
    higher = ""
    if len(pair.tasks) > 1 and not pair.is_tied:
        higher = f" (higher on {pair.higher} of {len(pair.tasks)})"
    size = points(abs(pair.difference))
    interval = interval_words(pair, conclusion.interval)
    return f"{pair.verdict.here.capitalize()} for {mean_of(pair)}{higher}: {size}{interval}"


def noise_words(pair: PairResult) -> str:
    """``seeds and test sets``, and whose seeds play no part."""
    if pair.printed:
        return "seeds alone"
    if not pair.untrained:
        return "seeds and test sets"
    if len(pair.untrained) == 2:
        return "test sets alone (no side was trained here, so seeds play no part)"
    return f"seeds and test sets ({pair.untrained[0]} was not trained here: no seeds on its side)"


def correction_words(pair: PairResult, conclusion: Conclusion) -> str:
    """``, p = 0.012 after Holm's correction for 3 pairs``; empty for one pair.

    Of a declared plan's pairs it counts the declared ones alone, of others all.
    """
    if pair.tested < 2:
        return ""
    p = p_value(conclusion.p_corrected)
    if not p.startswith("<"):
        p = f"= {p}"
    return f", p {p} after Holm's correction for {pair.tested} pairs"


def failures(comparison: Compared, pair: PairResult) -> str:
    """``, counting 1 failed run (b on gad, seed 4)``; empty without one."""
    tasks = {line.task for line in pair.tasks}
    words_of: dict[str, list[str]] = {pair.better: [], pair.worse: []}
    for run in comparison.failed:
        if run.model in words_of and run.task in tasks:
            words_of[run.model].append(f"{run.model} on {run.task}, seed {run.seed}")
    failed = [*words_of[pair.better], *words_of[pair.worse]]
    if not failed:
        return ""
    runs = "run" if len(failed) == 1 else "runs"
    return f", counting {len(failed)} failed {runs} ({'; '.join(failed)})"


def beyond_clause(pair: PairResult) -> str:
    """What is shown of tasks like these."""
    if pair.beyond is None:
        return "Not tested for other tasks like these: one corpus"
    word = pair.verdict.beyond.capitalize()
    if pair.beyond.interval.half_width >= 1:
        # an interval wider than all scores there are: two corpora that differ
        return f"{word} for other tasks like these: too few corpora"
    return f"{word} for other tasks like these ({ends(pair, pair.beyond.interval)})"


def single_tasks_sentence(pair: PairResult) -> str:
    """``By single tasks: shown on 2 of 4 (Holm's correction over tasks).``"""
    better, worse = pair.better_first(*pair.tasks_shown)
    ahead = f"{pair.better} is shown to be ahead on {better} of {len(pair.tasks)}"
    if worse:
        ahead += f", {pair.worse} ahead on {worse}"
    elif not better:
        ahead = f"neither is shown to be ahead on any of the {len(pair.tasks)}"
    guessed = ""
    if pair.guessed:
        guessed = f" On {joined(pair.guessed)} neither is above guessing."
    return f"Task by task, {ahead} (Holm's correction over the tasks).{guessed}"


def sameness_sentence(pair: PairResult, same: Conclusion) -> str:
    """Whether the models are the same within the margin."""
    on_tasks = "this task" if len(pair.tasks) == 1 else "these tasks"
    interval = f"{level(same.interval)} interval {ends(pair, same.interval)}"
    word = "Shown" if same.is_shown else "Not shown"
    margin = points(pair.rope, "g")
    return f"{word} to be the same within {margin} on {on_tasks} ({interval})."


def several_sentences(section: ComparedPart) -> list[str]:
    """Of three models or more: the pairs shown to differ, and the ranks that they leave.

    A declared plan's pairs are corrected for each other alone, the others and the ranks for all.
    """
    if all(pair.here is None for pair in section.pairs):
        return []
    declared = [pair for pair in section.pairs if not pair.exploratory]
    exploratory = [pair for pair in section.pairs if pair.exploratory]
    counts = shown_counts(declared, "pairs")
    corrected_for = ""
    if exploratory:
        # of the pairs that no plan declares each is corrected for all
        counts = f"{shown_counts(declared, 'declared pairs')}, corrected for these alone"
        counts += f"; {shown_counts(exploratory, 'other pairs')}, corrected for all"
        corrected_for = f", corrected for all {len(section.pairs)} pairs"
    ranks = ", ".join(f"{model.model} {model.shown_ranks}" for model in section.ranking)
    return [
        f"Shown to differ after Holm's correction: {counts}; possible ranks on these tasks"
        f"{corrected_for}: {ranks}."
    ]


def shown_counts(pairs: Sequence[PairResult], kind: str) -> str:
    """``2 of 3 pairs on these tasks, 1 on tasks like these``. kind: what the pairs are called."""
    here = Counter(pair.verdict.here for pair in pairs)
    beyond = Counter(pair.verdict.beyond for pair in pairs)
    of_pairs = f"{len(pairs)} {kind}"
    if here["not tested"]:
        of_pairs = f"the {len(pairs) - here['not tested']} tested of {of_pairs}"
    counts = f"{here['shown']} of {of_pairs} on these tasks"
    if beyond["not tested"] < len(pairs):
        counts += f", {beyond['shown']} on tasks like these"
    return counts


def task_set(comparison: Compared, pair: PairResult) -> str:
    """``On the mean of anatem and gad (macro F1; small protocol)``; of fewer corpora than tasks how
    many these are.
    """
    names = [line.task for line in pair.tasks]
    tasks = joined(names)
    if len(names) > MOST_NAMED:
        tasks = f"{len(names)} tasks{in_language(comparison, pair.language)}"
    if len(names) > 1:
        tasks = f"the mean of {tasks}"
    if pair.corpora < len(names):
        tasks += f" over {pair.corpora} {plural(pair.corpora, 'corpus', 'corpora')}"
    about = metric_name([line.metric for line in pair.tasks], comparison.slice)
    if comparison.protocol:
        about += f"; {comparison.protocol}"
    return f"On {tasks} ({about})"


def in_language(comparison: Compared, language: str) -> str:
    """`` in French`` where the verdicts are by language."""
    if len(comparison.parts) == 1:
        return ""
    return f" in {LANGUAGES.get(language, language)}"


def mean_of(pair: PairResult) -> str:
    """``this task`` or ``the mean of these 4 tasks``."""
    if len(pair.tasks) == 1:
        return "this task"
    return f"the mean of these {len(pair.tasks)} tasks"


def points(size: float, digits: str = ".1f") -> str:
    """``14.1 points``, ``1.0 points``; ``1 point`` where it is written in full (``g``)."""
    number = format(100 * size, digits)
    return f"{number} point" if number == "1" else f"{number} points"


def level(interval: Interval) -> str:
    """``95%``; one digit more for the levels that a correction gives, ``99.17%``."""
    return f"{100 * interval.level:.4g}%"


def interval_words(pair: PairResult, interval: Interval) -> str:
    """``, 95% interval 10.1 to 15.7``."""
    return f", {level(interval)} interval {ends(pair, interval)}"


def ends(pair: PairResult, interval: Interval) -> str:
    """``-0.2 to 28.4``, in points, the better model first."""
    return " to ".join(f"{100 * end:z.1f}" for end in pair.ends(interval))


def p_value(p: float | None) -> str:
    """``0.045``: two significant digits; values below 0.0001 by that bound, a dash where there is
    no test.
    """
    if p is None:
        return "–"
    return "< 0.0001" if p < 1e-4 else f"{p:.2g}"


def metric_name(metrics: Sequence[str], slice_name: str = "") -> str:
    """The scores compared, in words: ``micro F1``, ``micro F1 of unseen mentions``."""
    name = get_metric(metrics[0]).words
    if len(set(metrics)) > 1:
        name = MIXED
    if slice_name:
        name = f"{name} of {SLICES[slice_name].words}"
    return name


def joined(names: Sequence[str]) -> str:
    """``a, b and c``."""
    *heads, final = names
    if not heads:
        return final
    return f"{', '.join(heads)} and {final}"
