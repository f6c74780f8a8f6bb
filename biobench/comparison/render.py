"""A comparison as text, as HTML for notebooks, and as JSON."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from html import escape
from textwrap import fill
from typing import Any

from biobench.comparison.result import Compared, ComparedPart, PairResult, TaskLine
from biobench.comparison.verdict import LANGUAGES, metric_name, sentences
from biobench.report.escape import plain
from biobench.report.printers import grid
from biobench.stats import Interval, MeanTest

#: Per-task tables are printed for so many pairs; JSON has them all.
MOST_TABLES = 6
EXPLAINED = {
    "mean": "mean over corpora of their tasks' means; it orders the models",
    "by task": "plain mean over tasks",
    "mean rank": "mean over corpora of the ranks within their tasks; 1 is best",
    "possible": "ranks that the pairs leave possible on these tasks, after Holm's correction",
    "seeds": "interval for other seeds on this test set",
    "documents": "interval for these runs on another test set",
    "both": "interval for other seeds and another test set",
    "p": "of the widest of these, uncorrected for several tasks",
}
"""A line a column; the first four where there are standings."""
Table = tuple[str, list[str], list[list[str]]]
"""Title, head and rows; the first column is text."""


def tables(comparison: Compared) -> Iterator[Table]:
    """Standings and pairs of several models, every pair task by task."""
    for part in comparison.parts:
        where = f" in {LANGUAGES.get(part.language, part.language)}" if len(comparison.parts) > 1 else ""
        if len(comparison.models) > 2:
            yield _standings(part, where)
            yield _pairs(part, where)
        for result in part.pairs[:MOST_TABLES]:
            yield _tasks(result, where)


def _standings(part: ComparedPart, where: str) -> Table:
    rows = []
    for s in part.standings:
        numbers = f"{100 * s.score:.2f}", f"{100 * s.task_mean:.2f}", f"{s.mean_rank:.2f}"
        rows.append([s.model, str(s.rank), *numbers, "guessing" if s.guessing else s.shown_ranks])
    return f"Standings{where}", ["model", "rank", "mean", "by task", "mean rank", "possible"], rows


def _pairs(part: ComparedPart, where: str) -> Table:
    head = [
        "pair",
        "A - B",
        "win/tie/loss",
        "these tasks",
        "p Holm",
        "verdict",
        "tasks like these",
        "p Holm",
        "verdict",
    ]
    rows = []
    for r in part.pairs:
        # what a table's head has room for; a key above the tables has the names whole
        pair = " - ".join(name if len(name) <= 34 else name[:33] + "…" for name in (r.first, r.second))
        row = [pair, points(r.difference), f"{r.wins}/{r.ties}/{r.losses}"]
        row += [_interval(r.here), p_value(r.p_here), r.verdict.here]
        rows.append([*row, _interval(r.beyond), p_value(r.p_beyond), r.verdict.beyond])
    return f"Pairs{where}", head, rows


def _tasks(result: PairResult, where: str) -> Table:
    """First minus second on each task, the kinds of noise apart; then the means, of each kind of task too."""
    head = ["task", "A", "B", "A - B", "seeds", "documents", "both", "p", "n seeds", "n docs"]
    rows = [
        [
            *(line.task, f"{100 * line.first:.2f}", f"{100 * line.second:.2f}", points(line.difference)),
            *(_interval(line.seeds), _interval(line.documents), _interval(line.total)),
            *(p_value((line.total or line.seeds).p), _seeds(line), "–" if line.groups is None else str(line.groups)),
        ]
        for line in result.tasks
    ]
    for kind, part in result.parts.items():
        name = (
            f"{LANGUAGES.get(kind, kind.replace('_', ' '))} ({part.corpora} corp{'us' if part.corpora == 1 else 'ora'})"
        )
        rows.append([name, "", "", points(part.difference), *[""] * 6])
    if len(result.tasks) > 1:
        means = [f"{100 * side:.2f}" for side in result.means] + [points(result.difference)]
        for name, test in (("these tasks", result.here), ("tasks like these", result.beyond)):
            rows.append([name, *means, "", "", _interval(test), p_value(test.p if test else None), "", ""])
    return f"Task by task{where}\nA = {plain(result.first)}\nB = {plain(result.second)}", head, rows


def to_text(comparison: Compared, width: int | None = None) -> str:
    """Verdict, tables, notes; scores in percent, differences in points.

    width: columns of the terminal; wider tables are cut between their columns, and longer lines between words.
    """
    parts = [_wrapped(sentences(comparison), width)]
    parts += [f"{title}\n{grid(head, rows, width)}" for title, head, rows in tables(comparison)]
    hidden = sum(max(0, len(part.pairs) - MOST_TABLES) for part in comparison.parts)
    if hidden:
        parts.append(f"{hidden} more pairs: --json has their tasks.")
    shown = list(EXPLAINED.items())[0 if len(comparison.models) > 2 else 4 :]
    parts.append("\n".join([_units(comparison), *(f"{name:10} {text}" for name, text in shown)]))
    notes = [f"* {_words(note)}" for note in comparison.notes]
    notes += [f"! {_words(str(f))}; {_words(f.hint)}" for f in comparison.findings]
    if notes:
        parts.append(_wrapped(notes, width))
    return "\n\n".join(parts) + "\n"


def to_html(comparison: Compared) -> str:
    """The verdict and the tables; the words of the verdict in bold."""
    lines = []
    for sentence in sentences(comparison):
        text = escape(_words(sentence))
        for word in ("Not shown", "Not tested", "Shown"):
            text = text.replace(f"{word} ", f"<b>{word}</b> ")
        lines.append(f"<p>{text}</p>")
    for title, head, rows in tables(comparison):
        cells = [f"<tr>{''.join(f'<th>{escape(cell)}</th>' for cell in head)}</tr>"]
        cells += [f"<tr>{''.join(f'<td>{escape(_words(cell))}</td>' for cell in row)}</tr>" for row in rows]
        lines.append(f"<table><caption>{escape(title)}</caption>{''.join(cells)}</table>")
    return "\n".join([*lines, *(f"<p>{escape(_words(note))}</p>" for note in (_units(comparison), *comparison.notes))])


def _units(comparison: Compared) -> str:
    level = f"{100 * (1 - comparison.alpha):g}%"
    metric = metric_name(list(comparison.metrics.values()))
    return f"Scores in percent ({metric}), differences in points, intervals at {level}."


def _words(text: str) -> str:
    return " ".join(plain(word) for word in text.split())


def points(difference: float) -> str:
    """A signed difference in points: ``+2.08``."""
    shown = f"{100 * difference:+.2f}"
    return "0.00" if float(shown) == 0 else shown


def p_value(p: float | None) -> str:
    """``0.045``: two significant digits; values below 0.0001 by that bound, a dash where there is no test."""
    return "–" if p is None else "< 0.0001" if p < 1e-4 else f"{p:.2g}"


def _interval(test: MeanTest | None) -> str:
    """``0.07 to 4.08``, in points."""
    interval: Interval | None = None if test is None else test.interval
    ends = () if interval is None else (interval.low, interval.high)
    return " to ".join("0.00" if round(100 * end, 2) == 0 else f"{100 * end:.2f}" for end in ends) or "–"


def _seeds(line: TaskLine) -> str:
    if line.published:
        return "printed"
    if not max(line.n_first, line.n_second):
        return "baseline"
    count = str(line.n_first) if line.n_first == line.n_second else f"{line.n_first}/{line.n_second}"
    return count if line.paired else f"{count} unpaired"


def _wrapped(lines: Sequence[str], width: int | None) -> str:
    """The lines, cut between words where they are longer than `width`."""
    if width is None:
        return "\n".join(lines)
    return "\n".join(fill(line, width, break_long_words=False, break_on_hyphens=False) for line in lines)


def to_json(comparison: Compared) -> dict[str, Any]:
    """Plain data; scores, differences and intervals are fractions, a missing number is null."""
    data = {field.name: _json(getattr(comparison, field.name)) for field in fields(comparison) if field.name != "parts"}
    return data | {
        "verdict": list(sentences(comparison)),
        "tasks": list(comparison.tasks),
        "pairs": [_json(p) | {"wins": p.wins, "ties": p.ties, "losses": p.losses} for p in comparison.pairs],
        "standings": [_json(s) | {"language": part.language} for part in comparison.parts for s in part.standings],
    }


def _json(value: Any) -> Any:
    if isinstance(value, MeanTest):
        ends = {name: getattr(value.interval, name, None) for name in ("low", "high", "level")}
        df = None if value.df is None or math.isinf(value.df) else value.df
        return {"estimate": value.estimate, "se": value.se, "df": df, **ends, "p": value.p, "estimand": value.estimand}
    if is_dataclass(value):
        return {field.name: _json(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {key: _json(one) for key, one in value.items()}
    if isinstance(value, tuple | list):
        return [_json(one) for one in value]
    return value
