"""A comparison as text and as JSON."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict
from textwrap import fill
from typing import Any

import numpy as np

from biobench.comparison.result import Compared, PairResult, SuiteStanding, TaskLine
from biobench.comparison.verdict import verdict
from biobench.comparison.words import ends, metric_name, p_value, points, ranks
from biobench.report.escape import plain
from biobench.stats import DetectableRange, MeanTest, SeedPlan, Standing, cluster_means

#: Per-task tables are printed for so many pairs; JSON has them all.
MOST_TABLES = 6
SHORT = 34
"""Characters of a model's name in a table's head; a key above the tables has it whole."""


def to_text(comparison: Compared, width: int | None = None) -> str:
    """Verdict, standings, pairs, tasks, notes; scores in percent, differences in points; a language at a time.

    width: columns of the terminal; wider tables are cut between their columns, and longer lines between words.
    """
    parts = [_wrapped(verdict(comparison), width)]
    for part in comparison.parts or (comparison,):
        if comparison.parts:
            parts.append(f"== {part.language} ==")
        if len(comparison.models) > 2:
            parts += [_standings(part, width), _pairs(part, width)]
        shown = part.pairs[:MOST_TABLES]
        parts += [_tasks(result, width) for result in shown]
        if len(shown) < len(part.pairs):
            parts.append(f"{len(part.pairs) - len(shown)} more pairs: --json has their tasks.")
    if comparison.declared is not None:
        parts.append(_declared(comparison.declared))
    parts.append(_explained(comparison))
    notes = [f"* {_words(note)}" for note in comparison.notes]
    notes += [f"! {_words(str(f))}; {_words(f.hint)}" for f in comparison.findings]
    if notes:
        parts.append(_wrapped(notes, width))
    return "\n\n".join(parts) + "\n"


def _declared(suite: SuiteStanding) -> str:
    """The suite's own mean of each model, and the pairs' differences."""
    over = "types of their tasks' means" if suite.mean == "types" else "tasks"
    title = f"Mean of {suite.name}, over {over}"
    if not suite.is_whole:
        title += f" ({suite.tasks} of {suite.needed} tasks: not the suite's score)"
    order = sorted(suite.means.items(), key=lambda item: -item[1])
    models = _grid(["model", "mean"], [[name, f"{100 * mean:.2f}"] for name, mean in order])
    rows = [
        [f"{_short(a)} - {_short(b)}", points(suite.means[a] - suite.means[b]), _interval(test),
         "–" if test is None else p_value(test.p)]
        for (a, b), test in suite.tests.items()
    ]  # fmt: skip
    return f"{title}\n{models}\n\n{_grid(['pair', 'A - B', 'interval, these tasks', 'p'], rows)}"


def _words(text: str) -> str:
    return " ".join(plain(word) for word in text.split())


def _tasks(result: PairResult, width: int | None) -> str:
    """First minus second on each task, the kinds of noise apart."""
    first, second = result.pair.first, result.pair.second
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
            p_value(_best(line)),
            _seeds(line),
            "–" if line.groups is None else str(line.groups),
        ]
        for line in result.tasks
    ]
    suite = result.pair.comparison
    last = [points(suite.difference), "", "", _interval(suite.test), p_value(suite.test.p), "", ""]
    rows.append(["suite", *_suite_means(result), *last])
    return f"A = {first}\nB = {second}\n{_grid(head, rows, width=width)}"


def _best(line: TaskLine) -> float | None:
    """The p of the most that may vary: seeds and documents, else seeds."""
    return line.total.p if line.total is not None else line.seeds.p


def _suite_means(result: PairResult) -> list[str]:
    """Of the scores that the pair was compared by: means over corpora."""
    corpora = [line.corpus for line in result.tasks]
    sides = np.array([[line.first, line.second] for line in result.tasks]).T
    return [f"{100 * cluster_means(side, corpora)[1].mean():.2f}" for side in sides]


def _seeds(line: TaskLine) -> str:
    if line.published:
        return "printed"
    if not max(line.n_first, line.n_second):
        return "policy"
    count = str(line.n_first) if line.n_first == line.n_second else f"{line.n_first}/{line.n_second}"
    return count if line.paired else f"{count} unpaired"


def _interval(test: MeanTest | None) -> str:
    return "–" if test is None else ends(test.interval)


def _standings(comparison: Compared, width: int | None) -> str:
    known = {r.model: r for r in comparison.ranks}
    rows = []
    for s in comparison.standings:
        r = known.get(s.model)
        rows.append(
            [
                str(s.rank),
                s.model,
                f"{100 * s.score:.2f}",
                f"{100 * s.task_mean:.2f}",
                s.ties or "–",
                f"{s.mean_rank:.2f}",
                "–" if r is None else ranks(r),
                "–" if s.shrunken is None else f"{100 * s.shrunken:.2f}",
            ]
        )
    head = ["rank", "model", "mean", "by task", "ties", "mean rank", "possible", "shrunken"]
    return f"Standings ({metric_name(comparison)})\n{_grid(head, rows, texts=2, width=width)}{_shares(comparison)}"


def _shares(comparison: Compared) -> str:
    """How much each task decides of the order, largest first."""
    if not comparison.shares:
        return ""
    order = sorted(comparison.shares.items(), key=lambda item: -item[1])
    return "\nShare of each task in the variance of the mean: " + ", ".join(f"{t} {100 * v:.0f}%" for t, v in order)


def _pairs(comparison: Compared, width: int | None) -> str:
    rows = []
    for result in comparison.pairs:
        pair, suite = result.pair, result.pair.comparison
        rows.append(
            [
                f"{_short(pair.first)} - {_short(pair.second)}",
                points(suite.difference),
                ends(suite.test.interval),
                p_value(suite.test.p),
                p_value(pair.p_holm),
                p_value(pair.p_moderated),
                p_value(suite.wilcoxon_p),
                f"{suite.wins}/{suite.ties}/{suite.losses}",
                "–" if suite.improvement is None else f"{suite.improvement:.2f}",
                "–" if suite.detectable_range is None else _range(suite.detectable_range),
            ]
        )
    head = ["pair", "A - B", "interval", "p", "p Holm", "p mod", "Wilcoxon", "win/tie/loss", "P(better)", "detectable"]
    return f"Pairs over the suite\n{_grid(head, rows, width=width)}"


def _short(name: str) -> str:
    return name if len(name) <= SHORT else name[: SHORT - 1] + "…"


def _range(test: DetectableRange) -> str:
    return f"{100 * test.low:.2f} to {100 * test.high:.2f}"


def _explained(comparison: Compared) -> str:
    """A line a column."""
    level = f"{100 * (1 - comparison.alpha):g}%"
    lines = [f"Scores in percent ({metric_name(comparison)}), differences in points, intervals at {level}."]
    if len(comparison.models) > 2:
        lines += [
            "mean       mean over corpora of their tasks' means; it orders the models",
            "by task    plain mean over tasks",
            "ties       models that share a letter were not told apart",
            "mean rank  mean over corpora of the ranks within their tasks; 1 is best",
            "possible   ranks of this model alone that the bootstrap does not exclude",
            "shrunken   the mean drawn to the others' as far as its own seeds leave it uncertain",
            "p Holm     p corrected for the number of pairs",
            "p mod      the same on variances moderated by all pairs; it decides the letters",
        ]
    lines += [
        "seeds      interval for other seeds on this test set",
        "documents  interval for these runs on another test set",
        "both       interval for other seeds and another test set",
        "p          of a task: of the widest of these, uncorrected for several tasks",
        "suite      mean over corpora; interval and p are about tasks like these",
    ]
    return "\n".join(lines)


def _wrapped(lines: Sequence[str], width: int | None) -> str:
    """The lines, cut between words where they are longer than `width`."""
    return "\n".join(
        lines
        if width is None
        else (fill(line, width, break_long_words=False, break_on_hyphens=False) for line in lines)
    )


def _grid(head: Sequence[str], rows: Sequence[Sequence[str]], *, texts: int = 1, width: int | None = None) -> str:
    """Columns side by side, the first ``texts`` of them set left, numbers right.

    Where they are wider than `width`, several grids, each with the first ``texts`` columns.
    """
    widths = [max(len(row[i]) for row in (head, *rows)) for i in range(len(head))]
    first = list(range(texts))
    pieces = [list(first)]
    for i in range(texts, len(head)):
        if width is not None and len(pieces[-1]) > texts and sum(widths[k] + 2 for k in (*pieces[-1], i)) - 2 > width:
            pieces.append(list(first))
        pieces[-1].append(i)
    if len(pieces) > 1:
        parts = ([[row[i] for i in piece] for row in (head, *rows)] for piece in pieces)
        return "\n\n".join(_grid(top, rest, texts=texts) for top, *rest in parts)
    lines = []
    for row in (head, ["-" * w for w in widths], *rows):
        cells = [c.ljust(w) if i < texts else c.rjust(w) for i, (c, w) in enumerate(zip(row, widths, strict=True))]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def to_json(comparison: Compared) -> dict[str, Any]:
    """Plain data; scores, differences and intervals are fractions, a missing number is null."""
    return {
        "models": list(comparison.models),
        "average": comparison.average,
        "metrics": dict(comparison.metrics),
        "tasks": list(comparison.tasks),
        "corpora": list(comparison.clusters),
        "estimand": comparison.estimand.value,
        "alpha": comparison.alpha,
        "language": comparison.language,
        "plan": comparison.plan,
        "languages": {part.language: to_json(part) for part in comparison.parts},
        "shares": dict(comparison.shares),
        "failed": [{"model": f.model, "task": f.task, "seed": f.seed, "score": f.score} for f in comparison.failed],
        "verdict": list(verdict(comparison)),
        "twins": [
            {
                "first": t.first,
                "second": t.second,
                "matched": t.matched,
                "noise_pair": t.noise_pair,
                "differing": list(t.differing),
            }
            for t in comparison.twins
        ],
        "suite": None if comparison.declared is None else _declared_json(comparison.declared),
        "published": list(comparison.published),
        "policies": list(comparison.policies),
        "pairs": [_pair_json(result) for result in comparison.pairs],
        "standings": [_standing_json(s) for s in comparison.standings],
        "ranks": [
            {
                "model": r.model,
                "rank": r.rank,
                "low": r.low,
                "high": r.high,
                "level": r.level,
                "estimand": r.estimand.value,
            }
            for r in comparison.ranks
        ],
        "notes": list(comparison.notes),
        "refused": [{"model": r.model, "task": r.task, "reasons": list(r.reasons)} for r in comparison.refused],
        "findings": [{"file": f.file, "what": f.what, "hint": f.hint} for f in comparison.findings],
    }


def _declared_json(suite: SuiteStanding) -> dict[str, Any]:
    return {
        "name": suite.name,
        "mean": suite.mean,
        "needed": suite.needed,
        "tasks": suite.tasks,
        "means": dict(suite.means),
        "pairs": [
            {"first": a, "second": b, "difference": suite.means[a] - suite.means[b]}
            | ({} if test is None else {"test": _test_json(test)})
            for (a, b), test in suite.tests.items()
        ],
    }


def _pair_json(result: PairResult) -> dict[str, Any]:
    pair, suite = result.pair, result.pair.comparison
    return {
        "first": pair.first,
        "second": pair.second,
        "difference": suite.difference,
        "task_difference": suite.task_difference,
        "test": _test_json(suite.test),
        "p": suite.test.p,
        "p_holm": pair.p_holm,
        "p_moderated": pair.p_moderated,
        "exploratory": result.exploratory,
        "same": result.same,
        "different": pair.different,
        "wilcoxon_p": suite.wilcoxon_p,
        "wilcoxon_smallest_p": suite.wilcoxon_smallest_p,
        "wins": suite.wins,
        "ties": suite.ties,
        "losses": suite.losses,
        "rope": suite.rope,
        "improvement": suite.improvement,
        "detectable": suite.detectable,
        "detectable_range": None if suite.detectable_range is None else asdict(suite.detectable_range),
        "seeds_needed": _plan_json(result.plan),
        "corpora": dict(zip(suite.clusters, suite.cluster_differences, strict=True)),
        "without": dict(zip(suite.clusters, result.without, strict=True)),
        "interactions": {name: asdict(interaction) for name, interaction in result.interactions.items()},
        "within": {
            "difference": result.within.difference,
            "test": _test_json(result.within.test),
            "p_holm": result.within_p,
            "same": result.same_here,
            "se_seeds": result.within.se_seeds,
            "se_documents": result.within.se_documents,
            "notes": list(result.within.notes),
        },
        "tasks": [
            {
                "task": line.task,
                "corpus": line.corpus,
                "metric": line.metric,
                "first": line.first,
                "second": line.second,
                "difference": line.difference,
                "n_first": line.n_first,
                "n_second": line.n_second,
                "published": line.published,
                "paired": line.paired,
                "groups": line.groups,
                "seeds": _test_json(line.seeds),
                "documents": _test_json(line.documents),
                "total": _test_json(line.total),
                "detectable": line.detectable,
                "same": line.same,
                "note": line.note,
            }
            for line in result.tasks
        ],
        "notes": list(suite.notes),
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
        "method": None if interval is None else interval.method,
        "p": test.p,
        "estimand": test.estimand.value,
        "note": test.note,
    }


def _standing_json(s: Standing) -> dict[str, Any]:
    return {
        "model": s.model,
        "rank": s.rank,
        "score": s.score,
        "task_mean": s.task_mean,
        "mean_rank": s.mean_rank,
        "ties": s.ties,
        "shrunken": s.shrunken,
    }


def _plan_json(plan: SeedPlan | None) -> dict[str, Any] | None:
    if plan is None:
        return None
    return {"wanted": plan.wanted, "seeds": plan.seeds, "limit": plan.limit, "certain": plan.certain, "note": plan.note}
