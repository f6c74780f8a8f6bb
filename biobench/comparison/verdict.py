"""What a comparison shows, in words: some eight sentences, one claim each."""

from __future__ import annotations

from collections.abc import Sequence

from scipy import special

from biobench.comparison.result import Compared, ComparedPart, PairResult
from biobench.report.literature.comparison import NAMES
from biobench.stats import Interval

MOST_NAMED = 6
"""Tasks that a sentence names; of more it says how many."""
LANGUAGES = {"en": "English", "fr": "French"}


def sentences(comparison: Compared) -> tuple[str, ...]:
    """Matched pairs first (where both have ledgers), then each language: who is ahead and what is
    shown of it.
    """
    lines = [*comparison.matched]
    for part in comparison.parts:
        best = {model.model for model in part.ranking[:2]}
        top = next((r for r in part.pairs if {r.first, r.second} == best), part.pairs[0])
        lines += pair_sentences(comparison, top)
        if len(comparison.models) > 2:
            lines += _many(part)
    return tuple(lines)


def pair_sentences(comparison: Compared, pair: PairResult) -> list[str]:
    """The headline of a pair, then whether they may be the same and what the test can find."""
    lines = [headline(comparison, pair)]
    if pair.verdict.same is not None and pair.here is not None and pair.here.se is not None:
        level = 2 * pair.here.interval.level - 1 if pair.here.interval else 0.9
        half = (
            0.0
            if pair.here.df is None
            else float(special.stdtrit(pair.here.df, (1 + level) / 2)) * pair.here.se
        )
        low, high = 100 * (pair.here.estimate - half), 100 * (pair.here.estimate + half)
        margin = f"{100 * pair.rope:g} point{'' if round(100 * pair.rope, 9) == 1 else 's'}"
        lines.append(
            f"{pair.verdict.same.capitalize()} to be the same within {margin} on these tasks "
            f"({100 * level:g}% interval {low:.1f} to {high:.1f})."
        )
    if pair.verdict.here == "not shown" and pair.detectable and not pair.verdict.guessing:
        lines.append(
            f"A true difference of {points(pair.detectable)} would be shown in 4 of 5 such "
            f"comparisons."
        )
    return lines


def headline(comparison: Compared, pair: PairResult) -> str:
    """Who is ahead, on which tasks, and whether it is shown: a paragraph that begins with the task
    set.
    """
    verdict, size, on = pair.verdict, points(abs(pair.difference)), _task_set(comparison, pair)
    here = "this task" if len(pair.tasks) == 1 else f"the mean of these {len(pair.tasks)} tasks"
    if verdict.equal:
        return f"{on}, {pair.first} and {pair.second} have the same scores: no difference."
    if {pair.better, pair.worse} & {*comparison.published}:
        ahead = f"{pair.better}'s mean is {size} above the printed mean of {pair.worse}"
        if pair.better in comparison.published:
            ahead = f"{pair.better}'s printed mean is {size} higher"
        return f"{on}, {ahead}; printed without spread, so not tested."
    start = f"{on}, {pair.better} scores higher than {pair.worse}."
    interval = ""
    if pair.here is not None and pair.here.interval is not None:
        interval = (
            f", {100 * pair.here.interval.level:g}% interval {ends(pair, pair.here.interval)}"
        )
    if verdict.guessing:
        return (
            f"{start} Not shown: {pair.better} is not above guessing. The difference on {here} "
            f"is {size}{interval}."
        )
    if pair.here is None:
        known = (
            ""
            if pair.runs is None
            else f", 95% interval {ends(pair, pair.runs.interval)}, over test sets alone"
        )
        return f"{start} Not tested for {here}: {pair.reason}. The difference is {size}{known}."
    if pair.beyond is not None and pair.beyond.interval is not None:
        beyond = (
            f"{verdict.beyond.capitalize()} for other tasks like these "
            f"({ends(pair, pair.beyond.interval)})"
        )
    else:
        one = len({line.corpus for line in pair.tasks}) == 1
        beyond = (
            f"Not tested for other tasks like these: "
            f"{'one corpus' if one else 'no spread over corpora'}"
        )
    higher = "" if len(pair.tasks) == 1 else f" (higher on {pair.higher} of {len(pair.tasks)})"
    among = ""
    if pair.tested > 1 and pair.p_here is not None:
        among = f", p {'' if pair.p_here < 1e-4 else '= '}{p_value(pair.p_here)}"
        among += f" after Holm's correction for {pair.tested} pairs"
    tasks = {line.task for line in pair.tasks}
    failed = [
        f for f in comparison.failed if f.model in (pair.first, pair.second) and f.task in tasks
    ]
    counting = ""
    if failed:
        each = "; ".join(f"{f.model} on {f.task}, seed {f.seed}" for f in failed)
        counting = f", counting {len(failed)} failed run{'s' if len(failed) > 1 else ''} ({each})"
    return (
        f"{start} {verdict.here.capitalize()} for {here}{higher}: {size}{interval}, over seeds "
        f"and test sets{among}"
        f"{counting}. {beyond}."
    )


def _task_set(comparison: Compared, pair: PairResult) -> str:
    """``On the mean of anatem and gad (macro F1; small protocol)``."""
    names = [line.task for line in pair.tasks]
    where = (
        f" in {LANGUAGES.get(pair.language, pair.language)}"
        if len(comparison.parts) > 1 and pair.language
        else ""
    )
    shown = joined(names) if len(names) <= MOST_NAMED else f"{len(names)} tasks{where}"
    about = "; ".join(
        [metric_name([line.metric for line in pair.tasks]), *filter(None, [comparison.protocol])]
    )
    return f"On {'the mean of ' if len(names) > 1 else ''}{shown} ({about})"


def _many(part: ComparedPart) -> list[str]:
    """Of three models or more, how many pairs are shown to differ."""
    tested = [r.verdict for r in part.pairs if r.here is not None]
    if not tested:
        return []
    here, beyond = sum(v.here == "shown" for v in tested), sum(v.beyond == "shown" for v in tested)
    ranks = ", ".join(f"{model.model} {model.shown_ranks}" for model in part.ranking)
    return [
        f"Shown to differ after Holm's correction: {here} of {len(tested)} "
        f"pair{'' if len(tested) == 1 else 's'} on "
        f"these tasks, {beyond} on tasks like these; possible ranks on these tasks: {ranks}."
    ]


def points(size: float) -> str:
    """``14.1 points``."""
    return f"{100 * size:.1f} points"


def ends(pair: PairResult, interval: Interval | None) -> str:
    """``-0.2 to 28.4``, in points, the better model first."""
    if interval is None:
        return "unknown"
    low, high = (
        (interval.low, interval.high) if pair.difference >= 0 else (-interval.high, -interval.low)
    )
    return f"{100 * low:.1f} to {100 * high:.1f}".replace("-0.0", "0.0")


def p_value(p: float | None) -> str:
    """``0.045``: two significant digits; values below 0.0001 by that bound, a dash where there is
    no test.
    """
    return "–" if p is None else "< 0.0001" if p < 1e-4 else f"{p:.2g}"


def metric_name(metrics: Sequence[str]) -> str:
    """The scores compared, in words."""
    first, *others = dict.fromkeys(metrics)
    return NAMES["mixed"] if others else NAMES.get(first, first)


def joined(names: Sequence[str]) -> str:
    """``a, b and c``."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
