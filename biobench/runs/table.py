"""The results of `run` in print: the table of runs, or of a dry run, with means, reasons, and what
to do next.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator, Sequence
from html import escape
from typing import TYPE_CHECKING

from biobench.core.progress import in_words
from biobench.runs.result import RunResult

if TYPE_CHECKING:
    from rich.console import Console

_FILE_WIDTH = 140
"""Columns of the table where no terminal sets them."""
_ADDRESSES = re.compile(r" \(from https?://[^)]*\)")
_TEXTS = ("model", "task", "seed", "seeds", "status", "settings")
"""Columns that may be folded; the others are numbers."""


class RunResults(list[RunResult]):
    """What `biobench.run` returns: the results, which print themselves as a table."""

    def __str__(self) -> str:
        from rich.console import Console

        console = Console(width=_FILE_WIDTH, no_color=True, force_terminal=False)
        with console.capture() as captured:
            _print(self, console)
        return "\n".join([captured.get().rstrip("\n"), *notes(self)])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        import pandas as pd

        names, rows = cells_of(self)
        below = "".join(f"<p>{escape(line)}</p>" for line in (*reasons(self), *notes(self)))
        return pd.DataFrame(rows, columns=names).to_html(index=False) + below


def percent(value: float | None) -> str:
    """A fraction as percent with two decimals; a dash where there is none."""
    return "–" if value is None else f"{100 * value:.2f}"


def print_results(results: Sequence[RunResult]) -> None:
    """The table and the reasons on stdout."""
    from rich.console import Console

    console = Console()
    if not console.is_terminal and not os.environ.get("COLUMNS"):
        console.width = max(console.width, _FILE_WIDTH)
    _print(results, console)


def _print(results: Sequence[RunResult], console: Console) -> None:
    from rich.table import Table
    from rich.text import Text

    names, rows = cells_of(results)
    table = Table(box=None, pad_edge=False)
    for name in names:
        text = name in _TEXTS
        table.add_column(
            name, overflow="fold", justify="left" if text else "right", no_wrap=not text
        )
    for row in rows:
        table.add_row(*map(Text, row))
    console.print(table)
    for line in reasons(results):
        console.print(line, markup=False, highlight=False, soft_wrap=True)


def cells_of(results: Sequence[RunResult]) -> tuple[list[str], list[list[str]]]:
    """The names of the columns, and the rows."""
    if any(r.status == "planned" for r in results):
        return _plan_cells(results)
    other = any(r.scores and "macro_f1" not in r.scores for r in results)  # kinds without F1
    names = ["model", "task", "seed", "status", "macro", "micro", "weighted"]
    names += [*(["score"] if other else []), "seconds", "cut", "lost"]
    rows = []
    for r in results:
        row = [r.model, r.task, "" if r.seed is None else str(r.seed), r.status]
        row += [percent(r.scores.get(metric)) for metric in ("macro_f1", "micro_f1", "weighted_f1")]
        if other:
            plain = not r.scores or "macro_f1" in r.scores
            row.append("–" if plain else f"{r.primary} {percent(r.scores.get(r.primary))}")
        row.append("–" if r.seconds is None else f"{r.seconds:.1f}")
        rows.append([*row, str(r.truncated_documents or "–"), str(r.lost_gold or "–")])
    return names, rows


def _plan_cells(results: Sequence[RunResult]) -> tuple[list[str], list[list[str]]]:
    """Steps and tokens of a run and time of all that are still to be made; settings where they are
    not the spec's.
    """
    groups: dict[tuple[str, str, str, str], list[RunResult]] = {}
    for r in results:
        groups.setdefault((r.model, r.task, r.status, settings_of(r)), []).append(r)
    settings = any(key[-1] for key in groups)
    names = [
        "model",
        "task",
        "seeds",
        "status",
        "steps",
        "tokens",
        "time",
        *(["settings"] if settings else []),
    ]
    rows = []
    for (model, task, status, words), members in groups.items():
        steps = [r.steps_expected for r in members if r.steps_expected is not None]
        tokens = [r.tokens_expected for r in members if r.tokens_expected is not None]
        times = [r.seconds_expected for r in members if r.seconds_expected is not None]
        row = [model, task, seeds_in_words([r.seed for r in members if r.seed is not None]), status]
        row += [f"{max(steps):,}" if steps else "–", f"{max(tokens):,}" if tokens else "–"]
        row.append(in_words(sum(times)) if times and len(times) == len(members) else "–")
        rows.append([*row, *([words] if settings else [])])
    return names, rows


def reasons(results: Sequence[RunResult]) -> list[str]:
    """Why runs failed or were not possible, without files' addresses; of several seeds alike
    once."""
    lines = [
        f"{r.task}: {r.status}: {r.reason}"
        for r in results
        if r.status in ("failed", "unavailable")
    ]
    return [_ADDRESSES.sub("", line) for line in dict.fromkeys(lines)]


def settings_of(result: RunResult) -> str:
    """In what a run departs from its spec, in words; empty where in nothing."""
    from biobench.schema.protocols import FROZEN, protocol_named_by

    parts = [] if result.track == "fixed" else [f"track {result.track}"]
    parts += [] if result.limit is None else [f"limit {result.limit}"]
    parts += [] if result.split == "test" else ["no test"]
    named = protocol_named_by(result.overrides)
    if named is not None:
        return ", ".join([*parts, f"{named} protocol"])
    return ", ".join(
        [
            *parts,
            *(text for text in result.overrides if result.track != "frozen" or text not in FROZEN),
        ]
    )


def seeds_in_words(seeds: Sequence[int]) -> str:
    """``42-46`` for a run of numbers, else with commas: ``42, 44-46``."""
    parts: list[list[int]] = []
    for seed in sorted(set(seeds)):
        if parts and seed == parts[-1][-1] + 1:
            parts[-1].append(seed)
        else:
            parts.append([seed])
    return ", ".join(str(part[0]) if len(part) == 1 else f"{part[0]}-{part[-1]}" for part in parts)


def notes(results: Sequence[RunResult]) -> Iterator[str]:
    """The lines below the table: what a dry run would take, means over seeds, scores below a
    baseline, signs.
    """
    yield from _expected_time(results)
    scored = [r for r in results if r.status in ("done", "skipped") and r.scores]
    groups: dict[tuple[str, str], list[RunResult]] = {}
    for r in scored:
        groups.setdefault((r.model, r.task), []).append(r)
    for (model, task), members in groups.items():
        low = [r for r in members if r.baseline is not None]
        if len(members) > 1 or low:
            line = f"{model} on {task}: {_mean(members)}"
            if low:
                assert low[0].baseline is not None
                which = "" if len(low) == len(members) else f"{len(low)} of {len(members)} runs "
                line += (
                    f", {which}below the baseline {percent(low[0].baseline[1])} "
                    f"({low[0].baseline[0]})"
                )
            yield line
    if any(r.truncated_documents for r in scored):
        yield "cut: test documents longer than the model's window; the rest of them is not read"
    causes = []
    if any(r.lost_gold and r.truncated_documents for r in scored):
        causes.append("beyond the window")
    if any(r.lost_gold and not r.truncated_documents for r in scored):
        causes.append("with edges that no model predicts (`edges` of `biobench data verify`)")
    if causes:
        yield f"lost: gold {', or '.join(causes)}; it counts as missed"


def end_of_run(results: Sequence[RunResult], results_dir: str) -> Iterator[str]:
    """The lines below the table, with the next command where something was scored."""
    yield from notes(results)
    models = list(
        dict.fromkeys(r.model for r in results if r.status in ("done", "skipped") and r.scores)
    )
    if models:
        folder = "" if results_dir == "results" else f" --results-dir {shlex.quote(results_dir)}"
        following = f"biobench report{folder}"
        if len(models) > 1:
            following += f"`, `biobench compare {' '.join(map(shlex.quote, models[:2]))}{folder}"
        yield f"Results: {results_dir}. Next: `{following}`"


def _expected_time(results: Sequence[RunResult]) -> Iterator[str]:
    """The lines of a dry run on how long it would take, one run after the other."""
    planned = [r for r in results if r.status == "planned"]
    if not planned:
        return
    for task in dict.fromkeys(r.task for r in planned if r.fold is not None):
        splits = len({r.fold for r in results if r.task == task})
        yield (
            f"{task}: {splits} splits of one corpus, a training each, which together are one "
            f"result of a model"
        )
    known = [r.seconds_expected for r in planned if r.seconds_expected is not None]
    rest = (
        f", {len(planned) - len(known)} more of unknown length" if len(known) < len(planned) else ""
    )
    time = f"about {in_words(sum(known))}, judged by stored runs on this device{rest}"
    yield f"{len(planned)} runs to make: {time if known else 'no timings on this device yet'}"


def _mean(members: Sequence[RunResult]) -> str:
    """The primary score's mean over seeds, with half its 95% t interval where the seeds differ."""
    metric = members[0].primary
    scores = [r.scores[metric] for r in members]
    if len(scores) == 1:
        return f"{metric} {percent(scores[0])}"
    mean = sum(scores) / len(scores)
    if members[0].fold is not None:
        return (
            f"{metric} {percent(mean)} over {len(members)} splits; `biobench report` has its "
            f"interval"
        )
    from biobench.stats import seed_interval

    interval = seed_interval(scores).interval
    margin = "" if interval is None else f" ± {percent(float(interval.high) - mean)}"
    return f"{metric} {percent(mean)}{margin} over {len(members)} seeds"
