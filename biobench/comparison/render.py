"""A comparison as text, as HTML for notebooks, and as JSON."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict
from html import escape
from textwrap import fill
from typing import Any

from biobench.comparison.result import Compared, ComparedPart, PairResult, TaskLine
from biobench.comparison.verdict import LANGUAGES, metric_name, sentences
from biobench.report.escape import plain
from biobench.stats import Interval, MeanTest

#: Per-task tables are printed for so many pairs; JSON has them all.
MOST_TABLES = 6
Table = tuple[str, list[str], list[list[str]]]
"""Title, head and rows; the first column is text."""


def tables(comparison: Compared) -> list[Table]:
    """Standings and pairs of several models, every pair task by task."""
    listed: list[Table] = []
    for part in comparison.parts:
        where = f" in {LANGUAGES.get(part.language, part.language)}" if len(comparison.parts) > 1 else ""
        if len(comparison.models) > 2:
            listed += [_standings(part, where), _pairs(part, where)]
        listed += [_tasks(result, where) for result in part.pairs[:MOST_TABLES]]
    return listed


def _standings(part: ComparedPart, where: str) -> Table:
    head = ["model", "rank", "mean", "by task", "mean rank", "possible"]
    rows = [
        [
            s.model,
            str(s.rank),
            f"{100 * s.score:.2f}",
            f"{100 * s.task_mean:.2f}",
            f"{s.mean_rank:.2f}",
            "guessing" if s.guessing else s.shown_ranks,
        ]
        for s in part.standings
    ]
    return f"Standings{where}", head, rows


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
        names = f"{_short(r.first)} - {_short(r.second)}", points(r.difference), f"{r.wins}/{r.ties}/{r.losses}"
        here = _interval(r.here), p_value(r.p_here), r.verdict.here
        rows.append([*names, *here, _interval(r.beyond), p_value(r.p_beyond), r.verdict.beyond])
    return f"Pairs{where}", head, rows


def _tasks(result: PairResult, where: str) -> Table:
    """First minus second on each task, the kinds of noise apart."""
    head = ["task", "A", "B", "A - B", "seeds", "documents", "both", "p", "n seeds", "n docs"]
    rows = [
        [
            line.task,
            f"{100 * line.first:.2f}",
            f"{100 * line.second:.2f}",
            points(line.difference),
            _interval(line.seeds),
            _interval(line.documents),
            _interval(line.total),
            p_value((line.total or line.seeds).p),
            _seeds(line),
            "–" if line.groups is None else str(line.groups),
        ]
        for line in result.tasks
    ]
    if len(result.tasks) > 1:
        corpora: dict[str, list[TaskLine]] = {}
        for line in result.tasks:
            corpora.setdefault(line.corpus, []).append(line)
        sides = [
            sum(sum(getattr(line, side) for line in lines) / len(lines) for lines in corpora.values()) / len(corpora)
            for side in ("first", "second")
        ]
        means = [f"{100 * side:.2f}" for side in sides] + [points(result.difference)]
        p = result.here.p if result.here else None
        rows.append(["these tasks", *means, "", "", _interval(result.here), p_value(p), "", ""])
        p = result.beyond.p if result.beyond else None
        rows.append(["tasks like these", *means, "", "", _interval(result.beyond), p_value(p), "", ""])
    title = f"Task by task{where}\nA = {plain(result.first)}\nB = {plain(result.second)}"
    return title, head, rows


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


def to_text(comparison: Compared, width: int | None = None) -> str:
    """Verdict, tables, notes; scores in percent, differences in points.

    width: columns of the terminal; wider tables are cut between their columns, and longer lines between words.
    """
    parts = [_wrapped(sentences(comparison), width)]
    for title, head, rows in tables(comparison):
        parts.append(f"{title}\n{_grid(head, rows, width)}" if title else _grid(head, rows, width))
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
    """The verdict and the tables."""
    lines = [f"<p>{_bold(escape(_words(line)))}</p>" for line in sentences(comparison)]
    for title, head, rows in tables(comparison):
        cells = [f"<tr>{''.join(f'<th>{escape(cell)}</th>' for cell in head)}</tr>"]
        cells += [f"<tr>{''.join(f'<td>{escape(_words(cell))}</td>' for cell in row)}</tr>" for row in rows]
        lines.append(f"<table><caption>{escape(title)}</caption>{''.join(cells)}</table>")
    lines.append(f"<p>{escape(_units(comparison))}</p>")
    lines += [f"<p>{escape(_words(note))}</p>" for note in comparison.notes]
    return "\n".join(lines)


def _bold(text: str) -> str:
    """The words of the verdict in bold."""
    for word in ("Not shown", "Not tested", "Shown"):
        text = text.replace(f"{word} ", f"<b>{word}</b> ")
    return text


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
    if interval is None:
        return "–"
    return " to ".join(
        "0.00" if round(100 * end, 2) == 0 else f"{100 * end:.2f}" for end in (interval.low, interval.high)
    )


def _seeds(line: TaskLine) -> str:
    if line.published:
        return "printed"
    if not max(line.n_first, line.n_second):
        return "baseline"
    count = str(line.n_first) if line.n_first == line.n_second else f"{line.n_first}/{line.n_second}"
    return count if line.paired else f"{count} unpaired"


def _short(name: str) -> str:
    """Of a model's name what a table's head has room for; a key above the tables has it whole."""
    return name if len(name) <= 34 else name[:33] + "…"


def _wrapped(lines: Sequence[str], width: int | None) -> str:
    """The lines, cut between words where they are longer than `width`."""
    if width is None:
        return "\n".join(lines)
    return "\n".join(fill(line, width, break_long_words=False, break_on_hyphens=False) for line in lines)


def _grid(head: Sequence[str], rows: Sequence[Sequence[str]], width: int | None = None) -> str:
    """Columns side by side, the first set left, numbers right; several grids, each with the first column, where they
    are wider than `width`."""
    widths = [max(len(row[i]) for row in (head, *rows)) for i in range(len(head))]
    pieces = [[0]]
    for i in range(1, len(head)):
        if width is not None and len(pieces[-1]) > 1 and sum(widths[k] + 2 for k in (*pieces[-1], i)) - 2 > width:
            pieces.append([0])
        pieces[-1].append(i)
    grids = []
    for piece in pieces:
        lines = []
        filled = [row for row in rows if len(pieces) == 1 or any(row[i].strip() for i in piece[1:])]
        for row in (head, ["-" * w for w in widths], *filled):
            cells = [row[i].rjust(widths[i]) if i else row[i].ljust(widths[i]) for i in piece]
            lines.append("  ".join(cells).rstrip())
        grids.append("\n".join(lines))
    return "\n\n".join(grids)


def to_json(comparison: Compared) -> dict[str, Any]:
    """Plain data; scores, differences and intervals are fractions, a missing number is null."""
    return {
        "models": list(comparison.models),
        "average": comparison.average,
        "protocol": comparison.protocol,
        "metrics": dict(comparison.metrics),
        "tasks": list(comparison.tasks),
        "alpha": comparison.alpha,
        "plan": comparison.plan,
        "verdict": list(sentences(comparison)),
        "published": list(comparison.published),
        "policies": list(comparison.policies),
        "pairs": [_pair_json(pair) for pair in comparison.pairs],
        "standings": [asdict(s) | {"language": part.language} for part in comparison.parts for s in part.standings],
        "twins": [asdict(t) | {"differing": list(t.differing)} for t in comparison.twins],
        "failed": [asdict(f) for f in comparison.failed],
        "notes": list(comparison.notes),
        "refused": [asdict(r) | {"reasons": list(r.reasons)} for r in comparison.refused],
        "findings": [{"file": f.file, "what": f.what, "hint": f.hint} for f in comparison.findings],
    }


def _pair_json(result: PairResult) -> dict[str, Any]:
    tests = ("here", "beyond", "runs")
    return {
        "first": result.first,
        "second": result.second,
        "language": result.language,
        "difference": result.difference,
        "verdict": asdict(result.verdict),
        "reason": result.reason,
        **{name: _test_json(getattr(result, name)) for name in tests},
        "p_here": result.p_here,
        "p_beyond": result.p_beyond,
        "wins": result.wins,
        "ties": result.ties,
        "losses": result.losses,
        "rope": result.rope,
        "same_p": list(result.same_p),
        "detectable": result.detectable,
        "parts": {kind: {"difference": gap, "corpora": n} for kind, (gap, n) in result.parts.items()},
        "exploratory": result.exploratory,
        "tasks": [
            {name: getattr(line, name) for name in TaskLine.__slots__ if name not in ("seeds", "documents", "total")}
            | {name: _test_json(getattr(line, name)) for name in ("seeds", "documents", "total")}
            for line in result.tasks
        ],
    }


def _test_json(test: MeanTest | None) -> dict[str, Any] | None:
    if test is None:
        return None
    interval = test.interval
    return {
        "estimate": test.estimate,
        "se": test.se,
        "df": None if test.df is None or math.isinf(test.df) else test.df,
        "low": None if interval is None else interval.low,
        "high": None if interval is None else interval.high,
        "level": None if interval is None else interval.level,
        "p": test.p,
        "estimand": test.estimand.value,
    }
