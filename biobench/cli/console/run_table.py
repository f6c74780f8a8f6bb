"""What `run` prints: the table of runs, or of a dry run, with means, reasons, and what to do next."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from biobench.cli.console.common import percent

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from biobench.runs import RunResult

_FILE_WIDTH = 140
"""Columns of the table where no terminal sets them."""
_ADDRESSES = re.compile(r" \(from https?://[^)]*\)")


def print_results(results: list[RunResult]) -> None:
    """A table of the runs on stdout; of a dry run a line for all seeds of a task."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console()
    if not console.is_terminal and not os.environ.get("COLUMNS"):
        console.width = max(console.width, _FILE_WIDTH)
    if any(r.status == "planned" for r in results):
        console.print(plan_table(results))
        _print_reasons(console, results)
        return
    table = Table(box=None, pad_edge=False)
    for name in ("model", "task", "seed", "status"):
        table.add_column(name, overflow="fold")
    plain = [r.primary for r in results if r.scores and "macro_f1" not in r.scores]
    for name in ("macro", "micro", "weighted", *(["score"] if plain else []), "seconds", "cut", "lost"):
        table.add_column(name, justify="right", no_wrap=True)
    for r in results:
        table.add_row(
            Text(r.model),
            r.task,
            "" if r.seed is None else str(r.seed),
            r.status,
            *(percent(r.scores.get(m)) for m in ("macro_f1", "micro_f1", "weighted_f1")),
            *([_leading(r)] if plain else []),
            "–" if r.seconds is None else f"{r.seconds:.1f}",
            "–" if not r.truncated_documents else str(r.truncated_documents),
            "–" if not r.lost_gold else str(r.lost_gold),
        )
    console.print(table)
    _print_reasons(console, results)


def _leading(result: RunResult) -> str:
    """The leading score of a kind without F1."""
    if not result.scores or "macro_f1" in result.scores:
        return "–"
    return f"{result.primary} {percent(result.scores.get(result.primary))}"


def _print_reasons(console: Console, results: list[RunResult]) -> None:
    """Why runs failed or were not possible, without files' addresses; of several seeds alike once."""
    lines = [f"{r.task}: {r.status}: {r.reason}" for r in results if r.status in ("failed", "unavailable")]
    for line in dict.fromkeys(lines):
        console.print(_ADDRESSES.sub("", line), markup=False, highlight=False, soft_wrap=True)


def plan_table(results: Sequence[RunResult]) -> Table:
    """model, task, seeds, status, steps and tokens of a run, time of all; settings where they are not the spec's.

    Steps, tokens and time are of runs that are still to be made, dashes where they are not known.
    """
    from rich.table import Table
    from rich.text import Text

    groups: dict[tuple[str, str, str, str], list[RunResult]] = {}
    for r in results:
        groups.setdefault((r.model, r.task, r.status, settings_of(r)), []).append(r)
    settings = any(key[-1] for key in groups)
    table = Table(box=None, pad_edge=False)
    for name in ("model", "task", "seeds", "status"):
        table.add_column(name, overflow="fold")
    for name in ("steps", "tokens", "time"):
        table.add_column(name, justify="right", no_wrap=True)
    if settings:
        table.add_column("settings", overflow="fold")
    for (model, task, status, words), members in groups.items():
        cells = [
            seeds_in_words([r.seed for r in members if r.seed is not None]),
            status,
            _steps(members),
            _tokens(members),
        ]
        table.add_row(Text(model), task, *cells, _time(members), *([Text(words)] if settings else []))
    return table


def settings_of(result: RunResult) -> str:
    """In what a run departs from its spec, in words; empty where in nothing."""
    parts = [] if result.track == "fixed" else [f"track {result.track}"]
    parts += [] if result.limit is None else [f"limit {result.limit}"]
    parts += [] if result.split == "test" else ["no test"]
    from biobench.schema.protocols import FROZEN, protocol_named_by

    named = protocol_named_by(result.overrides)
    if named is not None:
        return ", ".join([*parts, f"{named} protocol"])
    return ", ".join([*parts, *(text for text in result.overrides if result.track != "frozen" or text not in FROZEN)])


def seeds_in_words(seeds: Sequence[int]) -> str:
    """``42-46`` for a run of numbers, else with commas: ``42, 44-46``."""
    parts: list[list[int]] = []
    for seed in sorted(set(seeds)):
        if parts and seed == parts[-1][-1] + 1:
            parts[-1].append(seed)
        else:
            parts.append([seed])
    return ", ".join(str(part[0]) if len(part) == 1 else f"{part[0]}-{part[-1]}" for part in parts)


def _steps(members: Sequence[RunResult]) -> str:
    known = {r.steps_expected for r in members if r.steps_expected is not None}
    return "–" if not known else f"{max(known):,}"


def _tokens(members: Sequence[RunResult]) -> str:
    """Two digits, in thousands or millions."""
    known = max((r.tokens_expected for r in members if r.tokens_expected is not None), default=None)
    if known is None:
        return "–"
    for size, letter in ((1e9, "B"), (1e6, "M"), (1e3, "k")):
        if known >= size:
            number = known / size
            return f"{number:.1f} {letter}" if number < 10 else f"{number:.0f} {letter}"
    return str(known)


def _time(members: Sequence[RunResult]) -> str:
    from biobench.core.progress import in_words

    known = [r.seconds_expected for r in members if r.seconds_expected is not None]
    return in_words(sum(known)) if known and len(known) == len(members) else "–"


def end_of_run(results: Sequence[RunResult], results_dir: str) -> Iterator[str]:
    """The lines below the table, none where nothing was scored or planned."""
    yield from expected_time(results)
    scored = [r for r in results if r.status in ("done", "skipped") and r.scores]
    if not scored:
        return
    groups: dict[tuple[str, str], list[RunResult]] = {}
    for r in scored:
        groups.setdefault((r.model, r.task), []).append(r)
    for (model, task), members in groups.items():
        if len(members) > 1:
            yield f"{model} on {task}: {_mean(members)}"
    if any(r.truncated_documents for r in scored):
        yield "cut: test documents longer than the model's window; what lies beyond it is not read"
    if any(r.lost_gold for r in scored):
        yield "lost: gold beyond the window; it counts as missed"
    folder = "" if results_dir == "results" else f" --results-dir {shlex.quote(results_dir)}"
    models = list(dict.fromkeys(r.model for r in scored))
    following = f"biobench report{folder}"
    if len(models) > 1:
        following += f"`, `biobench compare {' '.join(map(shlex.quote, models[:2]))}{folder}"
    yield f"Results: {results_dir}. Next: `{following}`"


def expected_time(results: Sequence[RunResult]) -> Iterator[str]:
    """The line of a dry run on how long it would take, one run after the other."""
    from biobench.core.progress import in_words

    planned = [r for r in results if r.status == "planned"]
    if not planned:
        return
    for task in dict.fromkeys(r.task for r in planned if r.fold is not None):
        splits = len({r.fold for r in results if r.task == task})
        yield f"{task}: {splits} splits of one corpus, a training each, which together are one result of a model"
    disk = max((r.disk_expected or 0 for r in planned), default=0)
    if disk:
        yield f"disk: up to {_bytes(disk)} for the state of a run of over 5 min, removed at its end"
    known = [r.seconds_expected for r in planned if r.seconds_expected is not None]
    if not known:
        yield f"{len(planned)} runs to make; no timings on this device yet"
        return
    rest = len(planned) - len(known)
    more = f", {rest} more of unknown length" if rest else ""
    yield f"{len(planned)} runs to make: about {in_words(sum(known))}, judged by stored runs on this device{more}"


def _bytes(number: int) -> str:
    return f"{number / 1e9:.1f} GB" if number >= 1e9 else f"{max(1, round(number / 1e6))} MB"


def _mean(members: Sequence[RunResult]) -> str:
    """The primary score's mean over seeds, with half its 95% t interval where the seeds differ."""
    from biobench.stats import seed_interval

    metric = members[0].primary
    if members[0].fold is not None:
        mean = sum(r.scores[metric] for r in members) / len(members)
        return f"{metric} {percent(mean)} over {len(members)} splits; `biobench report` has its interval"
    summary = seed_interval([r.scores[metric] for r in members])
    margin = "" if summary.interval is None else f" ± {percent(float(summary.interval.high) - summary.mean)}"
    return f"{metric} {percent(summary.mean)}{margin} over {len(members)} seeds"
