"""A comparison as text and as JSON."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from textwrap import fill
from typing import Any

from biobench.comparison.result import (
    Compared,
    ComparedPart,
    Conclusion,
    PairResult,
    Sameness,
    TaskLine,
)
from biobench.comparison.verdict import LANGUAGES, level, metric_name, p_value, sentences
from biobench.report.escape import plain
from biobench.report.printers import grid
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
    "seeds": "95% interval for other seeds on this test set",
    "documents": "95% interval for these runs on another test set",
    "both": "95% interval for other seeds and another test set, never narrower than the two",
    "p": "of that, uncorrected for several tasks",
}
"""... and of the tables of tasks."""
Table = tuple[str, list[str], list[list[str]]]
"""Title, head and rows; the first column is text."""


def tables(comparison: Compared) -> Iterator[Table]:
    """Ranking and pairs of several models, every pair task by task."""
    for part in comparison.parts:
        where = ""
        if len(comparison.parts) > 1:
            where = f" in {LANGUAGES.get(part.language, part.language)}"
        if len(comparison.models) > 2:
            yield ranking_table(part, where)
            yield pairs_table(part, where)
        for pair in part.pairs[:MOST_TABLES]:
            yield tasks_table(pair, where)


def ranking_table(part: ComparedPart, where: str) -> Table:
    """The models, best first."""
    rows = [
        [
            model.model,
            str(model.rank),
            f"{100 * model.score:.2f}",
            "guessing" if model.guessing else model.shown_ranks,
        ]
        for model in part.ranking
    ]
    return f"Ranking{where}", ["model", "rank", "mean", "possible"], rows


def pairs_table(part: ComparedPart, where: str) -> Table:
    """Every pair with its corrected answers."""
    conclusion_head = ["level", "p Holm", "verdict"]
    head = ["pair", "A - B", "win/tie/loss", "these tasks", *conclusion_head]
    head += ["tasks like these", *conclusion_head]
    rows = []
    for pair in part.pairs:
        names = f"{_short(pair.better)} - {_short(pair.worse)}"
        counts = [str(pair.wins), str(pair.ties), str(pair.losses)]
        if pair.is_reversed:
            counts.reverse()
        row = [names, points(abs(pair.difference)), "/".join(counts)]
        row += [*_conclusion_cells(pair.here, pair), pair.verdict.here]
        row += [*_conclusion_cells(pair.beyond, pair), pair.verdict.beyond]
        rows.append(row)
    return f"Pairs{where}", head, rows


def tasks_table(pair: PairResult, where: str) -> Table:
    """The better model minus the other one on each task, the kinds of noise apart; then the means,
    of each kind of task too.
    """
    head = ["task", "A", "B", "A - B", "seeds", "documents", "both", "p", "n seeds", "n docs"]
    sign = -1 if pair.is_reversed else 1
    rows = [_task_row(line, pair) for line in pair.tasks]
    for kind, part in pair.parts.items():
        name = LANGUAGES.get(kind, kind.replace("_", " "))
        corpora = "corpus" if part.corpora == 1 else "corpora"
        rows.append(
            [f"{name} ({part.corpora} {corpora})", "", "", points(sign * part.difference)]
            + [""] * 6
        )
    if len(pair.tasks) > 1:
        means = [f"{100 * mean:.2f}" for mean in pair.means]
        if pair.is_reversed:
            means.reverse()
        means.append(points(abs(pair.difference)))
        for name, conclusion in (("these tasks", pair.here), ("tasks like these", pair.beyond)):
            cells = ["–", "–"]
            if conclusion is not None:
                cells = [_shown(conclusion.answer.interval(), pair), p_value(conclusion.p)]
            rows.append([name, *means, "", "", *cells, "", ""])
    title = f"Task by task{where}\nA = {plain(pair.better)}\nB = {plain(pair.worse)}"
    return title, head, rows


def _task_row(line: TaskLine, pair: PairResult) -> list[str]:
    # of a printed score nothing is known of other test sets
    total = None if line.is_printed else line.total
    answers = (line.seeds, line.documents, total)
    intervals = ["–" if answer is None else _shown(answer.interval(), pair) for answer in answers]
    scores, difference = [line.first, line.second], line.difference
    seeds = [line.n_first, line.n_second]
    if pair.is_reversed:
        scores.reverse()
        seeds.reverse()
        difference = -difference
    return [
        line.task,
        *(f"{100 * score:.2f}" for score in scores),
        points(difference),
        *intervals,
        p_value(None if total is None else total.p),
        _seed_counts(line, seeds),
        "–" if line.groups is None else str(line.groups),
    ]


def _seed_counts(line: TaskLine, seeds: Sequence[int]) -> str:
    """``3``, ``3/9``, ``10 splits`` or ``printed``. seeds: of A and B."""
    if line.is_printed:
        return "printed"
    if line.splits:
        return f"{line.n_first} splits"
    return str(seeds[0]) if seeds[0] == seeds[1] else f"{seeds[0]}/{seeds[1]}"


def _conclusion_cells(conclusion: Conclusion | None, pair: PairResult) -> list[str]:
    if conclusion is None:
        return ["–", "–", "–"]
    return [
        _shown(conclusion.interval, pair),
        level(conclusion.interval),
        p_value(conclusion.p_corrected),
    ]


def _short(name: str) -> str:
    return name if len(name) <= NAME_WIDTH else f"{name[: NAME_WIDTH - 1]}…"


def _shown(interval: Interval, pair: PairResult) -> str:
    """``0.07 to 4.08``, in points, the better model of the pair minus the other one."""
    low, high = interval.low, interval.high
    if pair.is_reversed:
        low, high = -high, -low
    return " to ".join(_unsigned_zero(f"{100 * end:.2f}") for end in (low, high))


def points(difference: float) -> str:
    """A signed difference in points: ``+2.08``."""
    return _unsigned_zero(f"{100 * difference:+.2f}")


def _unsigned_zero(number: str) -> str:
    return "0.00" if float(number) == 0 else number


def to_text(comparison: Compared, width: int | None = None) -> str:
    """Verdict, tables, notes; scores in percent, differences in points.

    width: columns of the terminal; wider tables are cut between their columns, and longer lines
    between words.
    """
    paragraphs = [_wrapped(sentences(comparison), width)]
    for title, head, rows in tables(comparison):
        paragraphs.append(f"{title}\n{grid(head, rows, width)}")
    hidden = sum(max(0, len(part.pairs) - MOST_TABLES) for part in comparison.parts)
    if hidden:
        paragraphs.append(f"{hidden} more pairs: --json has their tasks.")
    metric = metric_name(list(comparison.metrics.values()), comparison.slice)
    explained = RANKING | TASKS if len(comparison.models) > 2 else TASKS
    units = [f"Scores in percent ({metric}), differences in points."]
    units += [f"{name:10} {text}" for name, text in explained.items()]
    paragraphs.append(_wrapped(units, width, indent=" " * 11))
    notes = [f"* {_escaped(note)}" for note in comparison.notes]
    notes += [f"! {_escaped(str(f))}; {_escaped(f.hint)}" for f in comparison.findings]
    if notes:
        paragraphs.append(_wrapped(notes, width))
    return "\n\n".join(paragraphs) + "\n"


def _wrapped(lines: Sequence[str], width: int | None, indent: str = "") -> str:
    """indent: of what follows the first line of each."""
    if width is None:
        return "\n".join(lines)
    wrapped = []
    for line in lines:
        wrapped.append(
            fill(
                line,
                width,
                subsequent_indent=indent,
                break_long_words=False,
                break_on_hyphens=False,
            )
        )
    return "\n".join(wrapped)


def _escaped(text: str) -> str:
    return " ".join(plain(word) for word in text.split())


def to_json(comparison: Compared) -> dict[str, Any]:
    """Plain data; scores, differences and intervals are fractions, a missing number is null."""
    data = {
        field.name: _json(getattr(comparison, field.name))
        for field in fields(comparison)
        if field.name != "parts"
    }
    ranking = [
        _json(model) | {"language": part.language}
        for part in comparison.parts
        for model in part.ranking
    ]
    return data | {
        "verdict": list(sentences(comparison)),
        "tasks": list(comparison.tasks),
        "pairs": [_pair_json(pair) for pair in comparison.pairs],
        "ranking": ranking,
    }


def _pair_json(pair: PairResult) -> dict[str, Any]:
    data: dict[str, Any] = _json(pair)
    for name in ("answer", "wider_answer"):  # `here` and `beyond` hold them
        del data[name]
    return data | {
        "p_here": None if pair.here is None else pair.here.p_corrected,
        "p_beyond": None if pair.beyond is None else pair.beyond.p_corrected,
        "wins": pair.wins,
        "ties": pair.ties,
        "losses": pair.losses,
    }


def _json(value: Any) -> Any:
    if isinstance(value, Conclusion):
        return _answer_json(value.answer, value.interval) | {"p_corrected": value.p_corrected}
    if isinstance(value, Sameness):
        return {
            "p_corrected": value.p_corrected,
            "low": value.interval.low,
            "high": value.interval.high,
            "level": value.interval.level,
        }
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
