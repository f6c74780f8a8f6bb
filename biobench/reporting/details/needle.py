"""The needle grid of stored runs: accuracy by length, position and template with intervals, as
text, data or HTML.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from biobench.reporting.escape import for_html, words
from biobench.reporting.groups import RunGroup, Source
from biobench.reporting.printers import grid as text_table
from biobench.reporting.rescore import run_documents
from biobench.reporting.results import load
from biobench.reporting.row import in_percent
from biobench.reporting.tasks import NEEDLE
from biobench.schema.needle import Key
from biobench.score.needle import Share, grid

_SHADES = " ░▒▓█"
"""From chance (50%) to all right; a cell is marked twice as wide as its shade."""
NOT_READ = "n/a"
"""What stands where a model's window does not reach: nothing was scored there."""
CHANCE = 0.5
"""Accuracy of guessing between the two answers."""
NO_EXAMPLE = "–"
"""What stands where the test split holds no example."""
POSITIONS = ("start", "middle", "end")
_HOW_TO_READ = (
    "[low, high] and ±: 95% intervals for other examples of the same kind (Wilson, pairs that "
    "share a haystack\ncount together), of the cells all together, and of the templates; n: "
    "examples. Shades: 50 to 100.\n"
)


@dataclass(frozen=True)
class NeedleGrid:
    """One model on one needle task over its seeds.

    lengths: all of the task's, in `unit`s; those without a share were beyond the model's window.
    majority: accuracy of the most frequent answer on the documents read.
    """

    model: str
    task: str
    variant: str
    source: Source
    seeds: tuple[int, ...]
    lengths: tuple[int, ...]
    unit: str
    window: int
    majority: float
    shares: dict[Key, Share]

    @property
    def positions(self) -> tuple[str, ...]:
        """Position names in reading order."""
        scored = {position for _, position, _ in self.shares}
        return tuple(position for position in POSITIONS if position in scored)

    @property
    def over_all_lengths(self) -> float:
        """Mean over all lengths of the task, each counted once; a length beyond the window counts
        as guessing.

        A mean over the lengths read alone would put a model that reads a page before one that reads
        a book.
        """
        accuracies = []
        for length in self.lengths:
            share = self.share(length)
            accuracies.append(share.mean if share else CHANCE)
        return fmean(accuracies)

    @property
    def reads_up_to(self) -> int | None:
        """The last length, from the shortest on, at which the whole interval is above guessing;
        None where none is.
        """
        longest = None
        for length in self.lengths:
            share = self.share(length)
            if share is None or share.low <= CHANCE:
                break
            longest = length
        return longest

    @property
    def title(self) -> str:
        """Model, task and what was changed."""
        title = f"{self.model} · {self.task}"
        if self.variant:
            title += f" ({self.variant})"
        return title

    @property
    def facts(self) -> str:
        """On how many runs it rests, and what a constant answer scores."""
        seeds = f"{len(self.seeds)} seeds"
        if len(self.seeds) == 1:
            seeds = "1 seed"
        answer = f"most frequent answer {in_percent(self.majority)}"
        return f"{seeds}, window {self.window}, {answer}"

    def share(
        self, length: int | None = None, position: str | None = None, template: str | None = None
    ) -> Share | None:
        """The share of a slice, None where nothing was scored."""
        return self.shares.get((length, position, template))

    def empty(self, length: int | None) -> str:
        """What stands in a cell of this length without a share."""
        if self.share(length) is None:
            return NOT_READ
        return NO_EXAMPLE


def needle_grids(results_dir: str | Path) -> list[NeedleGrid]:
    """The grids of all stored needle runs, one for each set of equal decisions.

    Computed from stored predictions alone. Runs that the gate refuses have none. Raises StoreError
    where predictions are damaged, DataUnavailableError where a redacted run's data is not
    available.
    """
    results = load(results_dir)
    grids = []
    for group in results.groups:
        if results.infos[group.task].type == NEEDLE:
            grids.append(grid_of(group))
    return grids


def grid_of(group: RunGroup) -> NeedleGrid:
    """The grid of one group of runs. Raises as `needle_grids`."""
    runs = []
    for record in group.records:
        documents = run_documents(record, None) if record.redacted else None
        gold, predictions = group.store.load_predictions(record, documents)
        runs.append(predictions)
    shares, _ = grid(gold, runs)
    answers = Counter(document.labels[0] for document in gold)
    record = group.records[0]
    reader: dict[str, Any] = record.protocol.get("reader", {})
    scored = {length for length, _, _ in shares if length is not None}
    return NeedleGrid(
        model=group.model,
        task=group.task,
        variant=group.variant,
        source=group.source,
        seeds=group.seeds,
        lengths=tuple(sorted(scored.union(reader.get("lengths", ())))),
        unit=str(reader.get("fit", "tokens")),
        window=record.windows.max_length,
        majority=max(answers.values()) / len(gold),
        shares=shares,
    )


def render_grid(grid: NeedleGrid) -> str:
    """The heat map (length x position), then the templates, with 95% intervals, in percent."""
    head = [grid.unit, *grid.positions, "all positions", "n"]
    rows = []
    read = []
    for length in grid.lengths:
        rows.append(_row(grid, length))
        if grid.share(length):
            read.append(str(length))
    rows.append(_row(grid, None))
    of_templates = []
    for template in sorted({template for _, _, template in grid.shares if template}):
        of_templates.append([template, _interval(grid.share(template=template))])
    sections = [
        f"{grid.title}: accuracy in %, {grid.facts}",
        text_table(head, rows),
        text_table(["template", "all lengths"], of_templates),
        "",
    ]
    text = "\n\n".join(sections)
    if len(read) < len(grid.lengths):
        beyond = f"{NOT_READ}: beyond the window, nothing was scored"
        text += f"all: of the lengths, {', '.join(read)} only; {beyond}.\n"
    return text + _HOW_TO_READ


def _row(grid: NeedleGrid, length: int | None) -> list[str]:
    """The line of a length, or that of all of them."""
    share = grid.share(length)
    examples = 0
    if share is not None:
        examples = share.documents
    shades = [_shaded(grid, length, position) for position in grid.positions]
    return [str(length or "all"), *shades, _interval(share), str(examples)]


def _shaded(grid: NeedleGrid, length: int | None, position: str) -> str:
    """``██ 100.0 ±2.4``"""
    share = grid.share(length, position)
    if share is None:
        return grid.empty(length)
    level = int((share.mean - CHANCE) / (1 - CHANCE) * len(_SHADES))
    shade = _SHADES[min(max(level, 0), len(_SHADES) - 1)]
    return f"{2 * shade} {in_percent(share.mean)} ±{in_percent((share.high - share.low) / 2)}"


def _interval(share: Share | None) -> str:
    """``66.7 [60.1, 72.9]``"""
    if share is None:
        return NOT_READ
    return f"{in_percent(share.mean)} [{in_percent(share.low)}, {in_percent(share.high)}]"


def map_html(grid: NeedleGrid, name: str) -> str:
    """The map of one model as an HTML table: lengths down, positions across, margins last; tinted
    by accuracy.
    """
    positions = (*grid.positions, None)
    head = ""
    for heading in (grid.unit, *grid.positions, "all"):
        head += f'<th scope="col">{for_html(heading)}</th>'
    body = ""
    for length in (*grid.lengths, None):
        cells = "".join(_tinted(grid, length, position) for position in positions)
        heading = "all"
        if length is not None:
            heading = f"{length:,}"
        body += f'<tr><th scope="row">{heading}</th>{cells}</tr>\n'
    return (
        '<table style="border-spacing: 2px; border-collapse: separate; width: 100%">\n'
        f"<caption>{words(name, for_html)} <small>{for_html(grid.facts)}</small></caption>\n"
        f"<thead><tr>{head}</tr></thead>\n<tbody>\n{body}</tbody>\n</table>"
    )


def _tinted(grid: NeedleGrid, length: int | None, position: str | None) -> str:
    share = grid.share(length, position)
    if share is None:
        return f'<td style="text-align: center">{grid.empty(length)}</td>'
    tint = 0.04 + 0.46 * min(max(2 * share.mean - 1, 0.0), 1.0)
    return (
        f'<td style="text-align: center; padding: .3rem; background: rgba(0, 114, 178, '
        f'{tint:.2f})" '
        f'title="{share.documents} documents, {share.groups} pairs that share a haystack">'
        f"{in_percent(share.mean)}<br>"
        f"<small>{in_percent(share.low)}–{in_percent(share.high)}</small></td>"
    )
