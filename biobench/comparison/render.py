"""A comparison as text and as JSON."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from textwrap import TextWrapper
from typing import Any

from biobench.comparison.result import (
    Compared,
    ComparedPart,
    Conclusion,
    PairResult,
    TaskLine,
)
from biobench.comparison.verdict import (
    LANGUAGES,
    in_language,
    level,
    metric_name,
    p_value,
    sentences,
)
from biobench.core.text import plural
from biobench.reporting.escape import plain
from biobench.reporting.printers import grid, plain_note
from biobench.stats import Answer, Interval

#: Per-task tables are printed for so many pairs; JSON has them all.
MOST_TABLES = 6
NAME_WIDTH = 34
"""Columns of a model's name in the table of pairs; the tables below it have the names whole."""
RANKING = {
    "mean": "mean over corpora of their tasks' means; it orders the models",
    "possible": "ranks that the pairs leave possible on these tasks, after Holm's correction",
    "level": "of a pair's interval: the level at which Holm's correction decided about it",
}
"""A line a column of the ranking and of the pairs ..."""
TASKS = {
    "both": "95% interval for other seeds and another test set, never narrower than the next two",
    "p": "of that, uncorrected for several tasks",
    "seeds": "95% interval for other seeds on this test set",
    "documents": "95% interval for these runs on another test set",
    "n docs": "articles or patients of the test set, of which each may hold several documents",
}
"""... and of the tables of tasks."""
Table = tuple[str, list[str], list[list[str]]]
"""Title, head and rows; the first column is text."""


def tables(comparison: Compared) -> Iterator[Table]:
    """Ranking and pairs of several models, every pair task by task."""
    for section in comparison.parts:
        language = in_language(comparison, section.language)
        if len(section.pairs) > 1:
            yield ranking_table(section, language)
            yield pairs_table(section, language)
        for pair in section.pairs[:MOST_TABLES]:
            yield tasks_table(pair, language)


def ranking_table(section: ComparedPart, language: str) -> Table:
    """The models, best first."""
    rows = []
    for model in section.ranking:
        possible = "guessing" if model.guessing else model.shown_ranks
        rows.append([model.model, str(model.rank), percent(model.score), possible])
    return f"Ranking{language}", ["model", "rank", "mean", "possible"], rows


def pairs_table(section: ComparedPart, language: str) -> Table:
    """Every pair with its corrected answers."""
    conclusion_head = ["level", "p Holm", "verdict"]
    head = ["pair", "A - B", "win/tie/loss", "these tasks", *conclusion_head]
    head += ["tasks like these", *conclusion_head]
    rows = []
    for pair in section.pairs:
        wins, losses = pair.better_first(pair.wins, pair.losses)
        row = [f"{_short(pair.better)} - {_short(pair.worse)}"]
        row += [points(abs(pair.difference)), f"{wins}/{pair.ties}/{losses}"]
        row += [*_conclusion_cells(pair.here, pair), pair.verdict.here]
        row += [*_conclusion_cells(pair.beyond, pair), pair.verdict.beyond]
        rows.append(row)
    return f"Pairs{language}", head, rows


def tasks_table(pair: PairResult, language: str) -> Table:
    """The better model minus the other one on each task, the kinds of noise apart; then the means,
    of each kind of task too.
    """
    # what decides stands first: a narrow table is cut behind it
    head = ["task", "A", "B", "A - B", "both", "p", "seeds", "documents", "n seeds", "n docs"]
    rows = [_task_row(line, pair) for line in pair.tasks]
    for kind, average in pair.parts.items():
        name = LANGUAGES.get(kind, kind.replace("_", " "))
        difference = points(pair.sign * average.difference)
        rows.append([f"{name} ({_corpora(average.corpora)})", "", "", difference, *[""] * 6])
    if len(pair.tasks) > 1:
        over = "" if pair.corpora == len(pair.tasks) else f" ({_corpora(pair.corpora)})"
        rows.append(_mean_row(f"these tasks{over}", pair, pair.here))
        rows.append(_mean_row("tasks like these", pair, pair.beyond))
    title = f"Task by task{language}\nA = {plain(pair.better)}\nB = {plain(pair.worse)}"
    return title, head, rows


def _corpora(number: int) -> str:
    return f"{number} {plural(number, 'corpus', 'corpora')}"


def _task_row(line: TaskLine, pair: PairResult) -> list[str]:
    score_a, score_b = pair.better_first(line.first, line.second)
    row = [line.task, percent(score_a), percent(score_b), points(pair.sign * line.difference)]
    # of printed means nothing is known of other test sets
    total = None
    counts = "printed"
    groups = None
    if not line.is_printed:
        total = line.total
        counts = _seed_counts(line, pair)
        groups = line.groups
    row += _interval_and_p(total, pair)
    row += [_interval(line.seeds, pair), _interval(line.documents, pair)]
    return [*row, counts, "–" if groups is None else str(groups)]


def _mean_row(name: str, pair: PairResult, conclusion: Conclusion | None) -> list[str]:
    mean_a, mean_b = pair.better_first(*pair.means)
    row = [name, percent(mean_a), percent(mean_b), points(abs(pair.difference))]
    answer = None if conclusion is None else conclusion.answer
    return [*row, *_interval_and_p(answer, pair), "", "", "", ""]


def _interval(answer: Answer | None, pair: PairResult) -> str:
    return "–" if answer is None else _ends(answer.interval(), pair)


def _interval_and_p(answer: Answer | None, pair: PairResult) -> list[str]:
    if answer is None:
        return ["–", "–"]
    return [_ends(answer.interval(), pair), p_value(answer.p)]


def _seed_counts(line: TaskLine, pair: PairResult) -> str:
    """``3``, ``3/9`` (of A and B) or ``10 splits``."""
    if line.splits:
        return f"{line.n_first} splits"
    if line.n_first == line.n_second:
        return str(line.n_first)
    return "/".join(map(str, pair.better_first(line.n_first, line.n_second)))


def _conclusion_cells(conclusion: Conclusion | None, pair: PairResult) -> list[str]:
    if conclusion is None:
        return ["–", "–", "–"]
    interval = conclusion.interval
    return [_ends(interval, pair), level(interval), p_value(conclusion.p_corrected)]


def _short(name: str) -> str:
    if len(name) <= NAME_WIDTH:
        return name
    return f"{name[: NAME_WIDTH - 1]}…"


def _ends(interval: Interval, pair: PairResult) -> str:
    """``0.07 to 4.08``, in points, the better model of the pair minus the other one."""
    return " to ".join(f"{100 * end:z.2f}" for end in pair.ends(interval))


def points(difference: float) -> str:
    """A signed difference in points: ``+2.08``, ``0.00``."""
    number = f"{100 * difference:+z.2f}"
    return "0.00" if float(number) == 0 else number


def percent(score: float) -> str:
    """``71.30``."""
    return f"{100 * score:.2f}"


def to_text(comparison: Compared, width: int | None = None) -> str:
    """Verdict, tables, notes; scores in percent, differences in points.

    width: columns of the terminal; wider tables are cut between their columns, and longer lines
    between words.
    """
    paragraphs = [_wrapped(sentences(comparison), width)]
    for title, head, rows in tables(comparison):
        paragraphs.append(f"{title}\n{grid(head, rows, width)}")
    hidden = 0
    for section in comparison.parts:
        hidden += len(section.pairs[MOST_TABLES:])
    if hidden:
        paragraphs.append(f"{hidden} more pairs: --json has their tasks.")
    metric = metric_name(list(comparison.metrics.values()), comparison.slice)
    explained = TASKS
    if len(comparison.models) > 2:
        explained = RANKING | TASKS
    units = [f"Scores in percent ({metric}), differences in points."]
    units += [f"{name:10} {text}" for name, text in explained.items()]
    paragraphs.append(_wrapped(units, width, indent=" " * 11))
    notes = [f"* {plain_note(note)}" for note in comparison.notes]
    notes += [f"! {plain_note(str(f))}; {plain_note(f.hint)}" for f in comparison.findings]
    if notes:
        paragraphs.append(_wrapped(notes, width))
    return "\n\n".join(paragraphs) + "\n"


def _wrapped(lines: Sequence[str], width: int | None, indent: str = "") -> str:
    """indent: of what follows the first line of each."""
    if width is None:
        return "\n".join(lines)
    wrapper = TextWrapper(
        width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )
    return "\n".join(map(wrapper.fill, lines))


def to_json(comparison: Compared) -> dict[str, Any]:
    """Plain data; scores, differences and intervals are fractions, a missing number is null."""
    data: dict[str, Any] = _json(comparison)
    del data["parts"]
    pairs = []
    ranking = []
    for section in comparison.parts:
        pairs += [_pair_json(pair) for pair in section.pairs]
        for model in section.ranking:
            ranking.append(_json(model) | {"language": section.language})
    return data | {
        "verdict": list(sentences(comparison)),
        "tasks": list(comparison.tasks),
        "pairs": pairs,
        "ranking": ranking,
    }


def _pair_json(pair: PairResult) -> dict[str, Any]:
    data: dict[str, Any] = _json(pair)
    for name in ("answer", "wider_answer"):  # `here` and `beyond` hold them
        del data[name]
    if pair.same is not None:
        fields_of_same = ("p_corrected", "low", "high", "level")
        data["same"] = {name: data["same"][name] for name in fields_of_same}
    return data | {
        "p_here": data["here"] and data["here"]["p_corrected"],
        "p_beyond": data["beyond"] and data["beyond"]["p_corrected"],
        "wins": pair.wins,
        "ties": pair.ties,
        "losses": pair.losses,
    }


def _json(value: Any) -> Any:
    if isinstance(value, Conclusion):
        return _answer_json(value.answer, value.interval) | {"p_corrected": value.p_corrected}
    if isinstance(value, Answer):
        return _answer_json(value, value.interval())
    if is_dataclass(value):
        return {field.name: _json(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {key: _json(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return [_json(item) for item in value]
    return value


def _answer_json(answer: Answer, interval: Interval) -> dict[str, Any]:
    """se and df: of the noise that sets the width of the interval."""
    widest = answer.widest(interval.level)
    return {
        "estimate": answer.estimate,
        "se": widest.se,
        "df": None if math.isinf(widest.df) else widest.df,
        "low": interval.low,
        "high": interval.high,
        "level": interval.level,
        "p": answer.p,
        "estimand": interval.estimand,
        "noises": {noise.name: noise.se for noise in answer.noises},
    }
