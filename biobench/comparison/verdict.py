"""What a comparison shows, in words: one function decides, and a few forms say it, one claim each."""

from __future__ import annotations

from collections.abc import Sequence

from biobench.comparison.result import Compared, ComparedPart, PairResult
from biobench.report.literature.beside import NAMES
from biobench.stats import Interval

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
    if comparison.plan:
        lines.append(f"Declared before looking: plan {comparison.plan}.")
    for part in comparison.parts:
        lines += _many(comparison, part) if len(comparison.models) > 2 else pair_sentences(comparison, part.pairs[0])
    if len(comparison.parts) > 1:
        lines.append("Each language has its own verdict; --pooled asks for one over all of them.")
    exploratory = [f"{r.first} – {r.second}" for r in comparison.parts[0].pairs if r.exploratory]
    if exploratory:
        lines.append(f"Exploratory, not in the declared plan: {', '.join(exploratory)}.")
    return tuple(lines)


def pair_sentences(comparison: Compared, pair: PairResult) -> list[str]:
    """The headline of a pair, then what stands beside it."""
    lines = [headline(comparison, pair)]
    if pair.rope:
        lines.append(_same(pair))
    if pair.verdict.here == "not shown" and pair.detectable and not pair.verdict.guessing:
        lines.append(f"A true difference of {points(pair.detectable)} would be shown in 4 of 5 such comparisons.")
    if pair.parts and not pair.verdict.equal:
        each = ", ".join(
            f"{LANGUAGES.get(kind, kind.replace('_', ' '))} {100 * gap:+.1f} ({_count(corpora, 'corpus', 'corpora')})"
            for kind, (gap, corpora) in pair.parts.items()
        )
        lines.append(f"{pair.first} minus {pair.second} in points, by part: {each}.")
    if len({pair.first, pair.second} & set(comparison.published)) == 1:
        lines.append("The printed scores were made with other code and maybe other splits than the runs here.")
    return lines


def headline(comparison: Compared, pair: PairResult) -> str:
    """Who is ahead, on which tasks, and whether it is shown: a paragraph that begins with the task set."""
    verdict, count, size = pair.verdict, len(pair.tasks), points(abs(pair.difference))
    if verdict.equal:
        return f"{_on(comparison, pair)}, {pair.first} and {pair.second} have the same scores: no difference."
    printed = set(comparison.published)
    if {pair.better, pair.worse} & printed:
        if pair.better in printed:
            ahead = f"{pair.better}'s printed mean is {size} higher"
        else:
            ahead = f"{pair.better}'s mean is {size} above the printed mean of {pair.worse}"
        return f"{_on(comparison, pair)}, {ahead}; printed without spread, so not tested."
    lead = f"{_on(comparison, pair)}, {pair.better} scores higher than {pair.worse}."
    here = "this task" if count == 1 else f"the mean of these {count} tasks"
    if verdict.guessing:
        lead += f" Not shown: {pair.better} is not above guessing."
        return f"{lead} The difference on {here} is {size}{_interval(pair)}."
    if pair.here is None:
        known = "" if pair.runs is None else f", 95% interval {ends(pair, pair.runs.interval)}, over test sets alone"
        return f"{lead} Not tested for {here}: {pair.reason}. The difference is {size}{known}."
    higher = "" if count == 1 else f" (higher on {pair.higher} of {count})"
    claim = f"{verdict.here.capitalize()} for {here}{higher}: {size}{_interval(pair)}, over seeds and test sets"
    claim += f", {p_value(pair.p_here)} after Holm's correction for {pair.tested} pairs" if pair.tested > 1 else ""
    claim += f"{_failed(comparison, pair)}."
    if pair.beyond is None or pair.beyond.interval is None:
        corpora = len({line.corpus for line in pair.tasks})
        why = "one corpus" if corpora == 1 else "no spread over corpora"
        return f"{lead} {claim} Not tested for other tasks like these: {why}."
    wider = verdict.beyond.capitalize()
    return f"{lead} {claim} {wider} for other tasks like these ({ends(pair, pair.beyond.interval)})."


def _on(comparison: Compared, pair: PairResult) -> str:
    """The task set: ``On the mean of anatem and gad (macro F1; small protocol)``."""
    names = [line.task for line in pair.tasks]
    several = len(comparison.parts) > 1
    where = f" in {LANGUAGES.get(pair.language, pair.language)}" if several and pair.language else ""
    shown = joined(names) if len(names) <= MOST_NAMED else f"{len(names)} tasks{where}"
    about = "; ".join([metric_name([line.metric for line in pair.tasks]), *filter(None, [comparison.protocol])])
    return f"On {'the mean of ' if len(names) > 1 else ''}{shown} ({about})"


def _interval(pair: PairResult) -> str:
    if pair.here is None or pair.here.interval is None:
        return ""
    return f", {100 * pair.here.interval.level:g}% interval {ends(pair, pair.here.interval)}"


def _failed(comparison: Compared, pair: PairResult) -> str:
    names, tasks = {pair.first, pair.second}, {line.task for line in pair.tasks}
    failed = [f for f in comparison.failed if f.model in names and f.task in tasks]
    if not failed:
        return ""
    each = "; ".join(f"{f.model} on {f.task}, seed {f.seed}" for f in failed)
    return f", counting {_count(len(failed), 'failed run', 'failed runs')} ({each})"


def _same(pair: PairResult) -> str:
    margin = f"{100 * pair.rope:g} point{'' if round(100 * pair.rope, 9) == 1 else 's'}"
    if pair.verdict.same is None or pair.here is None or pair.here.se is None:
        needs = f"it needs {SAME_SEEDS} seeds on every task and {SAME_RUNS} runs of each model"
        return f"Not tested whether they are the same within {margin}: {needs}."
    level = 2 * pair.here.interval.level - 1 if pair.here.interval else 0.9
    low, high = pair.here.estimate, pair.here.estimate
    if pair.here.df is not None:
        from scipy import special

        half = float(special.stdtrit(pair.here.df, (1 + level) / 2)) * pair.here.se
        low, high = low - half, high + half
    claim = f"{pair.verdict.same.capitalize()} to be the same within {margin} on these tasks"
    return f"{claim} ({100 * level:g}% interval {100 * low:.1f} to {100 * high:.1f})."


def _many(comparison: Compared, part: ComparedPart) -> list[str]:
    """Three models or more: the best against the next, then how many pairs are told apart."""
    best, *others = (s.model for s in part.standings)
    top = next((r for r in part.pairs if {r.first, r.second} == {best, others[0]}), part.pairs[0])
    lines = pair_sentences(comparison, top)
    tested = [r for r in part.pairs if r.here is not None]
    if tested:
        here, beyond = (sum(getattr(r.verdict, name) == "shown" for r in tested) for name in ("here", "beyond"))
        lines.append(
            f"Told apart after Holm's correction: {here} of {_count(len(tested), 'pair', 'pairs')} on these tasks, "
            f"{beyond} on tasks like these."
        )
    if tested and all(s.ranks is not None for s in part.standings):
        lines.append(
            f"Possible ranks on these tasks: {', '.join(f'{s.model} {s.shown_ranks}' for s in part.standings)}."
        )
    guessing = [s.model for s in part.standings if s.guessing]
    if guessing:
        lines.append(f"Not above guessing: {', '.join(guessing)}.")
    return lines


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
    if p is None:
        return "no p"
    return "p < 0.0001" if p < 1e-4 else f"p = {p:.2g}"


def metric_name(metrics: Sequence[str]) -> str:
    """The scores compared, in words."""
    names = set(metrics)
    return NAMES.get(next(iter(names)), next(iter(names))) if len(names) == 1 else NAMES["mixed"]


def joined(names: Sequence[str]) -> str:
    """``a, b and c``."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _count(number: int, one: str, many: str) -> str:
    return f"{number} {one if number == 1 else many}"
