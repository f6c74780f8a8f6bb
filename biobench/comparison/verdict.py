"""What a comparison shows, in words: one function decides, and the eight forms of `FORMS` say it, one claim each."""

from __future__ import annotations

from collections.abc import Sequence

from scipy import special

from biobench.comparison.result import Compared, ComparedPart, PairResult
from biobench.report.literature.comparison import NAMES
from biobench.stats import Interval

FORMS = {
    "tested": "{on}, {better} scores higher than {worse}. {word} for {here}{higher}: {size}{interval}, over seeds and "
    "test sets{among}{failed}. {beyond}.",
    "untested": "{on}, {better} scores higher than {worse}. Not tested for {here}: {reason}. The difference is "
    "{size}{known}.",
    "guessing": "{on}, {better} scores higher than {worse}. Not shown: {better} is not above guessing. The difference "
    "on {here} is {size}{interval}.",
    "printed": "{on}, {ahead}; printed without spread, so not tested.",
    "equal": "{on}, {better} and {worse} have the same scores: no difference.",
    "same": "{word} to be the same within {margin} on these tasks ({level:g}% interval {low:.1f} to {high:.1f}).",
    "detectable": "A true difference of {size} would be shown in 4 of 5 such comparisons.",
    "many": "Told apart after Holm's correction: {here} of {pairs} on these tasks, {beyond} on tasks like these; "
    "possible ranks on these tasks: {ranks}.",
}
"""Every sentence of a verdict. Twins of the same ledger have their own (`twins`); what else a reader must know is a
note."""
MOST_NAMED = 6
"""Tasks that a sentence names; of more it says how many."""
LANGUAGES = {"en": "English", "fr": "French"}

#: "The same within" a margin needs so many seeds of each model on every task ...
SAME_SEEDS = 5
#: ... and so many runs of each model: a failure in one run of ten would show among them with 95%.
SAME_RUNS = 29


def may_be_same(runs: Sequence[tuple[int, int]]) -> bool:
    """Whether so many runs (of each model, a task each) may show two models to be the same."""
    return all(min(pair) >= SAME_SEEDS for pair in runs) and min(map(sum, zip(*runs, strict=True))) >= SAME_RUNS


def sentences(comparison: Compared) -> tuple[str, ...]:
    """Twins first (where both have ledgers), then each language: who is ahead and what is shown of it."""
    lines = [twins.words for twins in comparison.twins]
    for part in comparison.parts:
        if len(comparison.models) == 2:
            lines += pair_sentences(comparison, part.pairs[0])
            continue
        best, *others = (s.model for s in part.standings)
        top = next((r for r in part.pairs if {r.first, r.second} == {best, others[0]}), part.pairs[0])
        lines += [*pair_sentences(comparison, top), *_many(part)]
    return tuple(lines)


def pair_sentences(comparison: Compared, pair: PairResult) -> list[str]:
    """The headline of a pair, then whether they may be the same and what the test can find."""
    lines = [headline(comparison, pair)]
    if pair.verdict.same is not None and pair.here is not None and pair.here.se is not None:
        level = 2 * pair.here.interval.level - 1 if pair.here.interval else 0.9
        half = 0.0 if pair.here.df is None else float(special.stdtrit(pair.here.df, (1 + level) / 2)) * pair.here.se
        limits = {"low": 100 * (pair.here.estimate - half), "high": 100 * (pair.here.estimate + half)}
        margin = f"{100 * pair.rope:g} point{'' if round(100 * pair.rope, 9) == 1 else 's'}"
        word = pair.verdict.same.capitalize()
        lines.append(FORMS["same"].format(word=word, margin=margin, level=100 * level, **limits))
    if pair.verdict.here == "not shown" and pair.detectable and not pair.verdict.guessing:
        lines.append(FORMS["detectable"].format(size=points(pair.detectable)))
    return lines


def headline(comparison: Compared, pair: PairResult) -> str:
    """Who is ahead, on which tasks, and whether it is shown: a paragraph that begins with the task set."""
    verdict, count, size, printed = pair.verdict, len(pair.tasks), points(abs(pair.difference)), comparison.published
    words = {
        "on": _on(comparison, pair),
        "better": pair.first if verdict.equal else pair.better,
        "worse": pair.second if verdict.equal else pair.worse,
        "here": "this task" if count == 1 else f"the mean of these {count} tasks",
        "size": size,
        "interval": "",
    }
    if pair.here is not None and pair.here.interval is not None:
        level = f"{100 * pair.here.interval.level:g}%"
        words["interval"] = f", {level} interval {ends(pair, pair.here.interval)}"
    if verdict.equal:
        return FORMS["equal"].format(**words)
    if {pair.better, pair.worse} & set(printed):
        ahead = f"{pair.better}'s mean is {size} above the printed mean of {pair.worse}"
        if pair.better in printed:
            ahead = f"{pair.better}'s printed mean is {size} higher"
        return FORMS["printed"].format(**words, ahead=ahead)
    if verdict.guessing:
        return FORMS["guessing"].format(**words)
    if pair.here is None:
        known = "" if pair.runs is None else f", 95% interval {ends(pair, pair.runs.interval)}, over test sets alone"
        return FORMS["untested"].format(**words, reason=pair.reason, known=known)
    among = f", {p_value(pair.p_here)} after Holm's correction for {pair.tested} pairs" if pair.tested > 1 else ""
    if pair.beyond is not None and pair.beyond.interval is not None:
        beyond = f"{verdict.beyond.capitalize()} for other tasks like these ({ends(pair, pair.beyond.interval)})"
    else:
        one = len({line.corpus for line in pair.tasks}) == 1
        beyond = f"Not tested for other tasks like these: {'one corpus' if one else 'no spread over corpora'}"
    higher = "" if count == 1 else f" (higher on {pair.higher} of {count})"
    word, failed = verdict.here.capitalize(), _failed(comparison, pair)
    return FORMS["tested"].format(**words, word=word, higher=higher, among=among, failed=failed, beyond=beyond)


def _on(comparison: Compared, pair: PairResult) -> str:
    """The task set: ``On the mean of anatem and gad (macro F1; small protocol)``."""
    names = [line.task for line in pair.tasks]
    where = f" in {LANGUAGES.get(pair.language, pair.language)}" if len(comparison.parts) > 1 and pair.language else ""
    shown = joined(names) if len(names) <= MOST_NAMED else f"{len(names)} tasks{where}"
    about = "; ".join([metric_name([line.metric for line in pair.tasks]), *filter(None, [comparison.protocol])])
    return f"On {'the mean of ' if len(names) > 1 else ''}{shown} ({about})"


def _failed(comparison: Compared, pair: PairResult) -> str:
    names, tasks = {pair.first, pair.second}, {line.task for line in pair.tasks}
    failed = [f for f in comparison.failed if f.model in names and f.task in tasks]
    each = "; ".join(f"{f.model} on {f.task}, seed {f.seed}" for f in failed)
    return f", counting {len(failed)} failed run{'s' if len(failed) > 1 else ''} ({each})" if failed else ""


def _many(part: ComparedPart) -> list[str]:
    """Of three models or more, how many pairs are told apart."""
    tested = [r for r in part.pairs if r.here is not None]
    if not tested:
        return []
    here, beyond = (sum(getattr(r.verdict, name) == "shown" for r in tested) for name in ("here", "beyond"))
    pairs = f"{len(tested)} pair{'' if len(tested) == 1 else 's'}"
    ranks = ", ".join(f"{s.model} {s.shown_ranks}" for s in part.standings)
    return [FORMS["many"].format(here=here, beyond=beyond, pairs=pairs, ranks=ranks)]


def points(size: float) -> str:
    """``14.1 points``."""
    return f"{100 * size:.1f} points"


def ends(pair: PairResult, interval: Interval | None) -> str:
    """``-0.2 to 28.4``, in points, the better model first."""
    if interval is None:
        return "unknown"
    low, high = (interval.low, interval.high) if pair.difference >= 0 else (-interval.high, -interval.low)
    return f"{100 * low:.1f} to {100 * high:.1f}".replace("-0.0", "0.0")


def p_value(p: float | None) -> str:
    """``p = 0.045``: two significant digits; ``p < 0.0001`` below that."""
    return "no p" if p is None else "p < 0.0001" if p < 1e-4 else f"p = {p:.2g}"


def metric_name(metrics: Sequence[str]) -> str:
    """The scores compared, in words."""
    names = set(metrics)
    return NAMES.get(next(iter(names)), next(iter(names))) if len(names) == 1 else NAMES["mixed"]


def joined(names: Sequence[str]) -> str:
    """``a, b and c``."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
