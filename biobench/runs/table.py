"""The results of `run` in print: the table of runs, or of a dry run, with means, reasons, and what
to do next.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from html import escape
from typing import TYPE_CHECKING

from biobench.core.progress import in_words
from biobench.runs.result import RunResult

if TYPE_CHECKING:
    from rich.console import Console

_DASH = "–"
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

        paragraphs = "".join(f"<p>{escape(line)}</p>" for line in (*reasons(self), *notes(self)))
        return pd.DataFrame(cells_of(self)).to_html(index=False) + paragraphs


def percent(value: float | None) -> str:
    """A fraction as percent with two decimals; a dash where there is none."""
    return _DASH if value is None else f"{100 * value:.2f}"


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

    rows = cells_of(results)
    table = Table(box=None, pad_edge=False)
    for name in rows[0] if rows else ():
        if name in _TEXTS:
            table.add_column(name, overflow="fold")
        else:
            table.add_column(name, overflow="fold", justify="right", no_wrap=True)
    for row in rows:
        table.add_row(*map(Text, row.values()))
    console.print(table)
    for line in reasons(results):
        console.print(line, markup=False, highlight=False, soft_wrap=True)


def cells_of(results: Sequence[RunResult]) -> list[dict[str, str]]:
    """The rows of the table, cells by column."""
    if any(r.status == "planned" for r in results):
        return _plan_cells(results)
    has_settings = len({settings_of(result) for result in results}) > 1
    # macro F1 has a column of its own
    has_score = any(result.headline != "macro_f1" for result in results if result.is_scored)
    rows = []
    for result in results:
        scores, seconds = result.scores, result.seconds
        row = {
            "model": result.model,
            "task": result.task,
            "seed": "" if result.seed is None else str(result.seed),
        }
        if has_settings:
            row["settings"] = settings_of(result)
        row["status"] = result.status
        if has_score:
            row["score"] = _DASH
            if scores:
                row["score"] = f"{result.headline} {percent(scores.get(result.headline))}"
        row["macro"] = percent(scores.get("macro_f1"))
        row["micro"] = percent(scores.get("micro_f1"))
        row["seconds"] = _DASH if seconds is None else f"{seconds:.1f}"
        row["cut"] = str(result.truncated_documents or _DASH)
        row["lost"] = str(result.lost_gold or _DASH)
        rows.append(row)
    return rows


def _plan_cells(results: Sequence[RunResult]) -> list[dict[str, str]]:
    """Steps and tokens of a run and time of all that are still to be made; settings where they are
    not the spec's.
    """
    groups: dict[tuple[str, str, str, str], list[RunResult]] = {}
    for r in results:
        groups.setdefault((r.model, r.task, r.status, settings_of(r)), []).append(r)
    has_settings = any(settings for *_, settings in groups)
    rows = []
    for (model, task, status, settings), runs in groups.items():
        row = {
            "model": model,
            "task": task,
            "seeds": _seeds_in_words(runs),
            "status": status,
            "steps": _most(r.steps_expected for r in runs),
            "tokens": _most(r.tokens_expected for r in runs),
            "time": _time_of(runs),
        }
        if has_settings:
            row["settings"] = settings
        rows.append(row)
    return rows


def _most(numbers: Iterable[int | None]) -> str:
    counts = [number for number in numbers if number is not None]
    return f"{max(counts):,}" if counts else _DASH


def _time_of(runs: Sequence[RunResult]) -> str:
    """How long the runs take together, where that is known of all."""
    seconds = [r.seconds_expected for r in runs if r.seconds_expected is not None]
    return in_words(sum(seconds)) if len(seconds) == len(runs) else _DASH


def reasons(results: Sequence[RunResult]) -> list[str]:
    """Why runs failed or were not possible, without files' addresses; of several seeds alike
    once."""
    lines: dict[str, None] = {}
    for r in results:
        if r.status in ("failed", "unavailable"):
            lines[_ADDRESSES.sub("", f"{r.task}: {r.status}: {r.reason}")] = None
    return list(lines)


def settings_of(result: RunResult) -> str:
    """In what a run departs from its spec, in words; empty where in nothing."""
    from biobench.schema.protocols import FROZEN, protocol_named_by

    settings = []
    if result.track != "fixed":
        settings.append(f"track {result.track}")
    if result.limit is not None:
        settings.append(f"limit {result.limit}")
    if result.split != "test":
        settings.append("no test")
    protocol = protocol_named_by(result.overrides)
    if protocol is not None:
        settings.append(f"{protocol} protocol")
    else:
        implied = FROZEN if result.track == "frozen" else ()
        for text in result.overrides:
            if text not in implied:
                settings.append(text.replace("training.train_fraction=", "fraction "))
    return ", ".join(settings)


def _seeds_in_words(runs: Sequence[RunResult]) -> str:
    """``42-46`` where no number is left out, else ``42, 44``."""
    seeds = sorted({r.seed for r in runs if r.seed is not None})
    if len(seeds) > 1 and seeds[-1] - seeds[0] == len(seeds) - 1:
        return f"{seeds[0]}-{seeds[-1]}"
    return ", ".join(map(str, seeds))


def notes(results: Sequence[RunResult]) -> Iterator[str]:
    """The lines below the table: what a dry run would take, means over seeds, scores below a
    baseline, signs.
    """
    yield from _expected_time(results)
    for model, folder in dict.fromkeys((r.model, r.folder) for r in results):
        if folder is not None:
            yield f"{model}: {folder}"
    scored = [r for r in results if r.is_scored]
    yield from _means(scored)
    if any(r.limit is not None for r in scored):
        yield "limit: no baseline is compared, because baselines learn from all documents"
    if any(r.truncated_documents for r in scored):
        yield "cut: test documents longer than the model's window; the rest of them is not read"
    if any(r.lost_gold for r in scored):
        yield (
            "lost: gold beyond the window, or with edges that no model predicts (`edges` of "
            "`biobench data verify`); it counts as missed"
        )


def _means(scored: Sequence[RunResult]) -> Iterator[str]:
    """A line for each model, task and settings with several runs, or with one below a baseline."""
    groups: dict[tuple[str, str, str, str], list[RunResult]] = {}
    for r in scored:
        groups.setdefault((r.weights, r.model, r.task, settings_of(r)), []).append(r)
    for (_, model, task, settings), runs in groups.items():
        baseline = _below_baseline(runs)
        if len(runs) > 1 or baseline:
            about = f"{task} ({settings})" if settings else task
            yield f"{model} on {about}: {_mean(runs)}{baseline}"


def _below_baseline(runs: Sequence[RunResult]) -> str:
    """The end of a line on how many of these runs are below the baseline; empty for none."""
    baselines = [r.baseline for r in runs if r.baseline is not None]
    if not baselines:
        return ""
    name, score = baselines[0]
    share = "" if len(baselines) == len(runs) else f"{len(baselines)} of {len(runs)} runs "
    return f", {share}below the baseline {percent(score)} ({name})"


def folder_option(results_dir: str) -> str:
    """What names the results folder in a command; nothing for the default one."""
    return "" if results_dir == "results" else f" --results-dir {shlex.quote(results_dir)}"


def end_of_run(results: Sequence[RunResult], results_dir: str) -> Iterator[str]:
    """The lines below the table, with the next command where something was scored."""
    yield from notes(results)
    models = list(dict.fromkeys(r.folder or r.model for r in results if r.is_scored))
    if models:
        folder = folder_option(results_dir)
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
    seconds = [r.seconds_expected for r in planned if r.seconds_expected is not None]
    time = "no timings on this device yet"
    if seconds:
        time = f"about {in_words(sum(seconds))}, judged by stored runs on this device"
        if len(seconds) < len(planned):
            time += f", {len(planned) - len(seconds)} more of unknown length"
    yield f"{len(planned)} runs to make: {time}"


def _mean(members: Sequence[RunResult]) -> str:
    """The published average's mean over seeds, with half its 95% t interval where the seeds differ,
    and macro F1 where it is another.
    """
    from statistics import mean

    metric = members[0].headline
    scores = [r.scores[metric] for r in members]
    text = f"{metric} {percent(mean(scores))}"
    if members[0].fold is not None and len(scores) > 1:
        text += f" over {len(scores)} splits; `biobench report` has its interval"
    elif len(scores) > 1:
        from biobench.stats import seed_interval

        interval = seed_interval(scores).interval
        if interval is not None:
            text += f" ± {percent(float(interval.high) - mean(scores))}"
        text += f" over {len(scores)} seeds"
    macro = [r.scores["macro_f1"] for r in members if "macro_f1" in r.scores]
    if metric != "macro_f1" and macro:
        text += f"; macro_f1 {percent(mean(macro))}"
    return text
