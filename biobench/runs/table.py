"""The results of `run` in print: a row a model and task, or what a dry run costs; reasons, and what
to do next.
"""

from __future__ import annotations

import os
import re
import shlex
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from operator import attrgetter, itemgetter
from typing import TYPE_CHECKING, Any

from biobench.core.progress import about, in_words
from biobench.core.text import plural
from biobench.runs.result import RunResult

if TYPE_CHECKING:
    from rich.console import Console, JustifyMethod

_DASH = "–"
_FILE_WIDTH = 140
"""Columns of the table where no terminal sets them."""
_ADDRESSES = re.compile(r" \(from https?://[^)]*\)")
_TEXTS = ("model", "task", "seeds", "status", "settings")
"""Columns that are broken between words; the others are numbers."""
_FOLDED = {"settings": 11, "model": 13}
"""Columns whose words may be broken too, after so many signs."""
_MINOR = ("micro", "seconds")
"""Columns that are left out before a name is broken, the first first."""
_GIVING_WAY = (*_MINOR, "lost", "cut", "tokens", "steps")
"""Columns that are left out of a narrow table, the first first; all without a value always."""
Columns = Mapping[str, Sequence[str]]
"""Heading to cells."""


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

        table = pd.DataFrame(cells_of(self)).to_html(index=False)
        lines = (*reasons(self), *notes(self))
        paragraphs = "".join(f"<p>{escape(line)}</p>" for line in lines)
        return table + paragraphs


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
    rows = cells_of(results)
    if rows:
        _print_table(rows, console)
    for line in reasons(results):
        console.print(line, markup=False, highlight=False, soft_wrap=True)


def _print_table(rows: Sequence[dict[str, str]], console: Console) -> None:
    """The table in the console's width: no heading, status or number is broken."""
    from rich.table import Table
    from rich.text import Text

    columns = _columns_to_show(rows)
    widths = {name: _least(name, cells) for name, cells in columns.items()}
    left_out = _take_out(_MINOR, widths, console.width)
    for name, width in _FOLDED.items():
        if name in widths and _sum_of(widths) > console.width:
            widths[name] = min(widths[name], width)
    left_out += _take_out(_GIVING_WAY, widths, console.width)
    console.width = max(console.width, _sum_of(widths))
    _widen(widths, columns, console.width)
    table = Table(box=None, pad_edge=False)
    for name, width in widths.items():
        justify: JustifyMethod = "left" if name in _TEXTS else "right"
        table.add_column(name, overflow="fold", justify=justify, width=width)
    shown = itemgetter(*widths)
    for row in rows:
        table.add_row(*map(Text, shown(row)))
    console.print(table)
    if left_out:
        note = f"{', '.join(left_out)}: in a wider terminal, or with --json"
        console.print(note, markup=False, highlight=False, soft_wrap=True)


def _columns_to_show(rows: Sequence[dict[str, str]]) -> dict[str, list[str]]:
    """Heading to cells, without columns that hold no value, or again what `score` says."""
    columns: dict[str, list[str]] = {}
    for name in rows[0]:
        cells = list(map(itemgetter(name), rows))
        is_empty = name in _GIVING_WAY and set(cells) == {_DASH}
        is_said = name == "macro" and all(row["score"].startswith("macro_f1") for row in rows)
        if not (is_empty or is_said):
            columns[name] = cells
    return columns


def _take_out(optional: Sequence[str], widths: dict[str, int], width: int) -> list[str]:
    """Take out the widths of optional columns until the table has room; their names."""
    left_out = []
    for name in optional:
        if name in widths and _sum_of(widths) > width:
            del widths[name]
            left_out.append(name)
    return left_out


def _sum_of(widths: Mapping[str, int]) -> int:
    """Width of a table of these columns, with two signs between them."""
    return sum(widths.values()) + 2 * (len(widths) - 1)


def _least(name: str, cells: Sequence[str]) -> int:
    """The least width of a column whose words stay whole."""
    parts = " ".join(cells).split() if name in _TEXTS else cells
    return max(map(len, (name, *parts)))


def _widen(widths: dict[str, int], columns: Columns, width: int) -> None:
    """Give what the table's least width leaves over to texts, the shortest first."""
    left = width - _sum_of(widths)
    wanted = {name: max(map(len, columns[name])) - least for name, least in widths.items()}
    for name in sorted(wanted, key=wanted.__getitem__):
        more = max(0, min(wanted[name], left))
        widths[name] += more
        left -= more


def _by_row(results: Iterable[RunResult]) -> dict[tuple[str, str, str], list[RunResult]]:
    """The runs of each row: of one model, task and settings."""
    rows: dict[tuple[str, str, str], list[RunResult]] = defaultdict(list)
    for result in results:
        rows[result.model, result.task, settings_of(result)].append(result)
    return rows


def cells_of(results: Sequence[RunResult]) -> list[dict[str, str]]:
    """The rows of the table, cells by column: one for each model, task and settings."""
    is_plan = "planned" in map(attrgetter("status"), results)
    values = _costs if is_plan else _scores
    groups = _by_row(results)
    has_settings = any(map(itemgetter(2), groups))
    rows = []
    for (model, task, settings), runs in groups.items():
        row = {"model": model, "task": task}
        row |= {"seeds": _seeds_in_words(runs), "status": _status_in_words(runs)}
        row |= values(runs)
        if has_settings:
            row["settings"] = settings
        rows.append(row)
    return rows


def _known(runs: Iterable[RunResult], field: str) -> list[Any]:
    """The numbers of this field, of the runs that have one."""
    return [value for value in map(attrgetter(field), runs) if value is not None]


def _planned(runs: Iterable[RunResult]) -> list[RunResult]:
    return [r for r in runs if r.status == "planned"]


def _scored(runs: Iterable[RunResult]) -> list[RunResult]:
    return list(filter(attrgetter("is_scored"), runs))


def _costs(runs: Sequence[RunResult]) -> dict[str, str]:
    """Steps and tokens of one run that is still to be made, and the time of all."""
    planned = _planned(runs)
    time = _DASH
    seconds = _known(planned, "seconds_expected")
    if 0 < len(seconds) == len(planned):
        time = in_words(sum(seconds))
    return {
        "steps": _most(planned, "steps_expected"),
        "tokens": _most(planned, "tokens_expected"),
        "time": time,
    }


def _scores(runs: Sequence[RunResult]) -> dict[str, str]:
    """Means over the runs that have scores, with half the 95% t interval of the published average;
    seconds of all runs, and what a window cost.
    """
    scored = _scored(runs)
    score = seconds = _DASH
    if scored:
        headline = scored[0].headline
        score = f"{headline} {_mean(scored, headline)}{_margin(scored)}"
    spent = sum(_known(runs, "seconds"))
    if spent:
        seconds = f"{spent:,.1f}"
    return {
        "score": score,
        "macro": _mean(scored, "macro_f1"),
        "micro": _mean(scored, "micro_f1"),
        "seconds": seconds,
        "cut": _most(runs, "truncated_documents"),
        "lost": _most(runs, "lost_gold"),
    }


def _mean(runs: Sequence[RunResult], metric: str) -> str:
    scores = [r.scores[metric] for r in runs if metric in r.scores]
    return percent(sum(scores) / len(scores)) if scores else _DASH


def _margin(runs: Sequence[RunResult]) -> str:
    """Half the interval behind its sign; nothing for one run, equal scores, and the splits of one
    corpus, which are no seeds.
    """
    from biobench.stats import seed_interval

    answer = seed_interval([r.scores[r.headline] for r in runs])
    if answer.interval is None or runs[0].fold is not None:
        return ""
    return f" ± {percent(float(answer.interval.half_width))}"


def _most(runs: Iterable[RunResult], field: str) -> str:
    largest = max(_known(runs, field), default=0)
    return f"{largest:,}" if largest else _DASH


def _status_in_words(runs: Sequence[RunResult]) -> str:
    """``done``, or ``2 done, 1 failed``."""
    counts = Counter(map(attrgetter("status"), runs))
    if len(counts) == 1:
        return runs[0].status
    return ", ".join(f"{count} {status}" for status, count in counts.items())


def reasons(results: Sequence[RunResult]) -> list[str]:
    """Why runs failed or were not possible, without files' addresses; of several seeds alike
    once."""
    lines = []
    for result in results:
        if result.status in ("failed", "unavailable"):
            line = f"{result.task}: {result.status}: {result.reason}"
            lines.append(_ADDRESSES.sub("", line))
    return list(dict.fromkeys(lines))


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
        return ", ".join([*settings, f"{protocol} protocol"])
    implied = FROZEN if result.track == "frozen" else ()
    changes = [
        text.replace("training.train_fraction=", "fraction ")
        for text in result.overrides
        if text not in implied
    ]
    return ", ".join([*settings, *changes])


def _seeds_in_words(runs: Sequence[RunResult]) -> str:
    """``42-46`` where no number is left out, else ``42, 44``."""
    seeds = sorted(set(_known(runs, "seed")))
    if len(seeds) > 1:
        lowest = seeds[0]
        highest = seeds[-1]
        if highest - lowest == len(seeds) - 1:
            return f"{lowest}-{highest}"
    return ", ".join(map(str, seeds))


_SIGNS = {
    "limit": "limit: no baseline is compared, because baselines learn from all documents",
    "truncated_documents": (
        "cut: test documents longer than the model's window; the rest of them is not read"
    ),
    "lost_gold": (
        "lost: gold beyond the window, or with edges that no model predicts (`edges` of "
        "`biobench data verify`); it counts as missed"
    ),
}
"""What is said below the table where a run has such a number."""


def notes(results: Sequence[RunResult]) -> Iterator[str]:
    """The lines below the table: what a dry run would take, scores below a baseline, signs."""
    yield from _expected_time(results)
    for model, folder in dict.fromkeys(map(attrgetter("model", "folder"), results)):
        if folder is not None:
            yield f"{model}: {folder}"
    scored = _scored(results)
    yield from _nothing_right(scored)
    yield from _below_baselines(scored)
    for number, line in _SIGNS.items():
        if any(map(attrgetter(number), scored)):
            yield line


def _nothing_right(scored: Sequence[RunResult]) -> Iterator[str]:
    """A line for each row whose runs have nothing right, where no baseline says it."""
    for row, runs in _by_row(scored).items():
        is_zero = all(run.scores.get(run.paper) == 0 for run in runs)
        if is_zero and not _known(runs, "baseline"):
            yield f"{_row_words(*row)}: nothing is right, as after too short a training"


def _row_words(model: str, task: str, settings: str) -> str:
    """``tiny on gad (limit 40)``."""
    return f"{model} on {task} ({settings})" if settings else f"{model} on {task}"


def _below_baselines(scored: Sequence[RunResult]) -> Iterator[str]:
    """A line for each row of which some runs are below the best baseline."""
    for described, runs in _by_row(scored).items():
        baselines = _known(runs, "baseline")
        if not baselines:
            continue
        row = _row_words(*described)
        share = ""
        if len(baselines) < len(runs):
            share = f"{len(baselines)} of {len(runs)} runs "
        name, score = baselines[0]
        yield f"{row}: {share}below the baseline {percent(score)} ({name})"


def folder_option(results_dir: str) -> str:
    """What names the results folder in a command; nothing for the default one."""
    return "" if results_dir == "results" else f" --results-dir {shlex.quote(results_dir)}"


def end_of_run(results: Sequence[RunResult], results_dir: str) -> Iterator[str]:
    """The lines below the table, with the next command where something was scored."""
    yield from notes(results)
    models = list(dict.fromkeys(r.folder or r.model for r in _scored(results)))
    if models:
        folder = folder_option(results_dir)
        following = f"biobench report{folder}"
        if len(models) > 1:
            following += f"`, `biobench compare {' '.join(map(shlex.quote, models[:2]))}{folder}"
        yield f"Results: {results_dir}. Next: `{following}`"


def _expected_time(results: Sequence[RunResult]) -> Iterator[str]:
    """The lines of a dry run on how long it would take, one run after the other."""
    planned = _planned(results)
    if not planned:
        return
    for task in dict.fromkeys(r.task for r in planned if r.fold is not None):
        splits = len({r.fold for r in results if r.task == task})
        yield (
            f"{task}: {splits} splits of one corpus, a training each, which together are one "
            f"result of a model"
        )
    seconds = _known(planned, "seconds_expected")
    time = (
        "no timings of models of this size on this device yet; `biobench speed MODEL` measures "
        "tokens a second"
    )
    if seconds:
        time = f"{about(sum(seconds))}, judged by stored runs on this device"
    if 0 < len(seconds) < len(planned):
        time += f", {len(planned) - len(seconds)} more of unknown length"
    yield f"{len(planned)} {plural(len(planned), 'run')} to make: {time}"
