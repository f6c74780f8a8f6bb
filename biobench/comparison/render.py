"""A comparison as text and as JSON."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from textwrap import fill
from typing import Any

from biobench.comparison.result import Compared, ComparedPart, PairResult
from biobench.comparison.verdict import LANGUAGES, metric_name, p_value, sentences
from biobench.report.escape import plain
from biobench.report.printers import grid
from biobench.stats import MeanTest

#: Per-task tables are printed for so many pairs; JSON has them all.
MOST_TABLES = 6
RANKING = {
    "mean": "mean over corpora of their tasks' means; it orders the models",
    "by task": "plain mean over tasks",
    "mean rank": "mean over corpora of the ranks within their tasks; 1 is best",
    "possible": "ranks that the pairs leave possible on these tasks, after Holm's correction",
}
"""A line a column of the ranking ..."""
TASKS = {
    "seeds": "interval for other seeds on this test set",
    "documents": "interval for these runs on another test set",
    "both": "interval for other seeds and another test set",
    "p": "of the widest of these, uncorrected for several tasks",
}
"""... and of the tables of tasks."""
Table = tuple[str, list[str], list[list[str]]]
"""Title, head and rows; the first column is text."""


def tables(comparison: Compared) -> Iterator[Table]:
    """Ranking and pairs of several models, every pair task by task."""
    for part in comparison.parts:
        where = (
            f" in {LANGUAGES.get(part.language, part.language)}"
            if len(comparison.parts) > 1
            else ""
        )
        if len(comparison.models) > 2:
            yield _ranking(part, where)
            yield _pairs(part, where)
        for result in part.pairs[:MOST_TABLES]:
            yield _tasks(result, where)


def _ranking(part: ComparedPart, where: str) -> Table:
    rows = []
    for m in part.ranking:
        means = [f"{mean:.2f}" for mean in (100 * m.score, 100 * m.task_mean, m.mean_rank)]
        rows.append([m.model, str(m.rank), *means, "guessing" if m.guessing else m.shown_ranks])
    return f"Ranking{where}", ["model", "rank", *RANKING], rows


def _pairs(part: ComparedPart, where: str) -> Table:
    test = ["p Holm", "verdict"]
    head = ["pair", "A - B", "win/tie/loss", "these tasks", *test, "tasks like these", *test]
    rows = []
    for r in part.pairs:
        # what a table's head has room for; a key above the tables has the names whole
        pair = " - ".join(
            name if len(name) <= 34 else name[:33] + "…" for name in (r.first, r.second)
        )
        row = [pair, points(r.difference), f"{r.wins}/{r.ties}/{r.losses}"]
        row += [_interval(r.here), p_value(r.p_here), r.verdict.here]
        rows.append([*row, _interval(r.beyond), p_value(r.p_beyond), r.verdict.beyond])
    return f"Pairs{where}", head, rows


def _tasks(result: PairResult, where: str) -> Table:
    """First minus second on each task, the kinds of noise apart; then the means, of each kind of
    task too.
    """
    head = ["task", "A", "B", "A - B", "seeds", "documents", "both", "p", "n seeds", "n docs"]
    rows = []
    for line in result.tasks:
        n = (
            str(line.n_first)
            if line.n_first == line.n_second
            else f"{line.n_first}/{line.n_second}"
        )
        n = n if line.paired else f"{n} unpaired"
        scores = f"{100 * line.first:.2f}", f"{100 * line.second:.2f}", points(line.difference)
        rows.append([line.task, *scores, *map(_interval, (line.seeds, line.documents, line.total))])
        rows[-1] += [
            p_value((line.total or line.seeds).p),
            n if line.n_first and line.n_second else "printed",
        ]
        rows[-1].append("–" if line.groups is None else str(line.groups))
    for kind, part in result.parts.items():
        of = LANGUAGES.get(kind, kind.replace("_", " "))
        name = f"{of} ({part.corpora} corp{'us' if part.corpora == 1 else 'ora'})"
        rows.append([name, "", "", points(part.difference), *[""] * 6])
    if len(result.tasks) > 1:
        means = [f"{100 * side:.2f}" for side in result.means] + [points(result.difference)]
        for name, test in (("these tasks", result.here), ("tasks like these", result.beyond)):
            rows.append(
                [name, *means, "", "", _interval(test), p_value(test.p if test else None), "", ""]
            )
    return f"Task by task{where}\nA = {plain(result.first)}\nB = {plain(result.second)}", head, rows


def to_text(comparison: Compared, width: int | None = None) -> str:
    """Verdict, tables, notes; scores in percent, differences in points.

    width: columns of the terminal; wider tables are cut between their columns, and longer lines
    between words.
    """

    def wrapped(line: str) -> str:
        return (
            line
            if width is None
            else fill(line, width, break_long_words=False, break_on_hyphens=False)
        )

    def escaped(text: str) -> str:
        return " ".join(plain(word) for word in text.split())

    parts = ["\n".join(map(wrapped, sentences(comparison)))]
    parts += [f"{title}\n{grid(head, rows, width)}" for title, head, rows in tables(comparison)]
    hidden = sum(max(0, len(part.pairs) - MOST_TABLES) for part in comparison.parts)
    if hidden:
        parts.append(f"{hidden} more pairs: --json has their tasks.")
    metric = metric_name(list(comparison.metrics.values()))
    level = f"{100 * (1 - comparison.alpha):g}%"
    units = f"Scores in percent ({metric}), differences in points, intervals at {level}."
    explained = RANKING | TASKS if len(comparison.models) > 2 else TASKS
    parts.append("\n".join([units, *(f"{name:10} {text}" for name, text in explained.items())]))
    notes = [f"* {escaped(note)}" for note in comparison.notes]
    notes += [f"! {escaped(str(f))}; {escaped(f.hint)}" for f in comparison.findings]
    if notes:
        parts.append("\n".join(map(wrapped, notes)))
    return "\n\n".join(parts) + "\n"


def points(difference: float) -> str:
    """A signed difference in points: ``+2.08``."""
    shown = f"{100 * difference:+.2f}"
    return "0.00" if float(shown) == 0 else shown


def _interval(test: MeanTest | None) -> str:
    """``0.07 to 4.08``, in points."""
    if test is None or test.interval is None:
        return "–"
    ends = (test.interval.low, test.interval.high)
    return " to ".join("0.00" if round(100 * end, 2) == 0 else f"{100 * end:.2f}" for end in ends)


def to_json(comparison: Compared) -> dict[str, Any]:
    """Plain data; scores, differences and intervals are fractions, a missing number is null."""
    data = {
        field.name: _json(getattr(comparison, field.name))
        for field in fields(comparison)
        if field.name != "parts"
    }
    return data | {
        "verdict": list(sentences(comparison)),
        "tasks": list(comparison.tasks),
        "pairs": [
            _json(p) | {"wins": p.wins, "ties": p.ties, "losses": p.losses}
            for p in comparison.pairs
        ],
        "ranking": [
            _json(m) | {"language": part.language}
            for part in comparison.parts
            for m in part.ranking
        ],
    }


def _json(value: Any) -> Any:
    if isinstance(value, MeanTest):
        ends = {name: getattr(value.interval, name, None) for name in ("low", "high", "level")}
        df = None if value.df is None or math.isinf(value.df) else value.df
        return {
            "estimate": value.estimate,
            "se": value.se,
            "df": df,
            **ends,
            "p": value.p,
            "estimand": value.estimand,
        }
    if is_dataclass(value):
        return {field.name: _json(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {key: _json(one) for key, one in value.items()}
    if isinstance(value, tuple | list):
        return [_json(one) for one in value]
    return value
