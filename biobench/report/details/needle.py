"""The needle grid of stored runs: accuracy by length, position and template with intervals, as
text, data or HTML.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from biobench.report.escape import for_html, words
from biobench.report.groups import RunGroup, Source
from biobench.report.rescore import run_documents
from biobench.report.results import Results, load
from biobench.report.tasks import NEEDLE
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
        order = {"start": 0, "middle": 1, "end": 2}
        return tuple(
            sorted(
                {k[1] for k in self.shares if k[1] is not None}, key=lambda p: (order.get(p, 3), p)
            )
        )

    @property
    def over_all_lengths(self) -> float:
        """Mean over all lengths of the task, each counted once; a length beyond the window counts
        as guessing.

        A mean over the lengths read alone would put a model that reads a page before one that reads
        a book.
        """
        shares = [self.share(n) for n in self.lengths]
        return sum(CHANCE if share is None else share.mean for share in shares) / len(shares)

    @property
    def reads_up_to(self) -> int | None:
        """The last length, from the shortest on, at which the whole interval is above guessing;
        None where none is.
        """
        last = None
        for length in self.lengths:
            share = self.share(length)
            if share is None or share.low <= CHANCE:
                break
            last = length
        return last

    @property
    def title(self) -> str:
        """Model, task and what was changed."""
        return f"{self.model} · {self.task}" + (f" ({self.variant})" if self.variant else "")

    def share(
        self, length: int | None = None, position: str | None = None, template: str | None = None
    ) -> Share | None:
        """The share of a slice, None where nothing was scored."""
        return self.shares.get((length, position, template))


def needle_grids(
    results: str | Path | Results,
    tasks: Collection[str] | None = None,
    models: Collection[str] | None = None,
) -> list[NeedleGrid]:
    """The grids of all stored needle runs (of these tasks and models), one for each set of equal
    decisions.

    Computed from stored predictions alone. Runs that the gate refuses have none. Raises StoreError
    where predictions are damaged, DataUnavailableError where a redacted run's data is not
    available.
    """
    loaded = results if isinstance(results, Results) else load(results)
    return [
        grid_of(group)
        for group in loaded.groups
        if loaded.infos[group.task].type == NEEDLE
        and (tasks is None or group.task in tasks)
        and (models is None or group.model in models or group.records[0].model.id in models)
    ]


def grid_of(group: RunGroup) -> NeedleGrid:
    """The grid of one group of runs. Raises as `needle_grids`."""
    records = group.records
    loaded = [
        group.store.load_predictions(r, run_documents(r, None) if r.redacted else None)
        for r in records
    ]
    gold = loaded[0][0]
    shares, _ = grid(gold, [predictions for _, predictions in loaded])
    counted = Counter(document.labels[0] for document in gold)
    first = records[0]
    reader: dict[str, Any] = first.protocol.get("reader", {})
    lengths = {key[0] for key in shares if key[0] is not None} | set(reader.get("lengths", ()))
    return NeedleGrid(
        group.model,
        group.task,
        group.variant,
        group.source,
        group.seeds,
        tuple(sorted(lengths)),
        str(reader.get("fit", "tokens")),
        first.windows.max_length,
        max(counted.values()) / len(gold),
        shares,
    )


def render_grid(grid: NeedleGrid) -> str:
    """The heat map (length x position), then the margins with 95% intervals, in percent."""

    def cell(length: int | None, position: str) -> str:
        share = grid.share(length, position)
        if share is None:
            return NOT_READ if grid.share(length) is None else NO_EXAMPLE
        shade = _SHADES[min(len(_SHADES) - 1, max(0, int((share.mean - 0.5) * 2 * len(_SHADES))))]
        return f"{2 * shade} {100 * share.mean:.1f} ±{50 * (share.high - share.low):.1f}"

    def interval(share: Share | None) -> str:
        if share is None:
            return NOT_READ
        return f"{100 * share.mean:.1f} [{100 * share.low:.1f}, {100 * share.high:.1f}]"

    lines = [f"{grid.title}: accuracy in %, {_seeds(grid)}, window {grid.window}", ""]
    lines.append(
        f"{grid.unit:<9}"
        + "".join(f"{p:>16}" for p in grid.positions)
        + f"{'all positions':>24}{'n':>7}"
    )
    for length in (*grid.lengths, None):
        cells = "".join(f"{cell(length, p):>16}" for p in grid.positions)
        share = grid.share(length)
        name, documents = length or "all", share.documents if share else 0
        lines.append(f"{name:<9}{cells}{interval(share):>24}{documents:>7}")
    templates = sorted({k[2] for k in grid.shares if k[2] is not None})
    width = max(map(len, templates), default=0) + 2
    pairs = [f"{t:<{width}}{interval(grid.share(template=t)):<20}" for t in templates]
    lines += ["", *("    ".join(pairs[i : i + 2]).rstrip() for i in range(0, len(pairs), 2))]
    lines += ["", f"most frequent answer: {100 * grid.majority:.1f}"]
    read = [n for n in grid.lengths if grid.share(n) is not None]
    if read and read[-1] != grid.lengths[-1]:
        only = ", ".join(map(str, read))
        lines.append(
            f"all: of the lengths, {only} only; the others are beyond the window, nothing was "
            f"scored (n/a)."
        )
    lines.append(
        "[low, high] and ±: 95% intervals for other examples of the same kind (Wilson, pairs that "
        "share a haystack\n"
        "count together), of the cells all together, and of the templates; n: examples. Shades: "
        "50 to 100."
    )
    return "\n".join(lines) + "\n"


def _seeds(grid: NeedleGrid) -> str:
    return f"{len(grid.seeds)} seed{'s' if len(grid.seeds) > 1 else ''}"


def map_html(grid: NeedleGrid, name: str) -> str:
    """The map of one model as an HTML table: lengths down, positions across, margins last; tinted
    by accuracy.
    """

    def cell(length: int | None, position: str | None) -> str:
        share = grid.share(length, position)
        if share is None:
            return (
                f'<td style="text-align: '
                f'center">{NOT_READ if grid.share(length) is None else NO_EXAMPLE}</td>'
            )
        tint = 0.04 + 0.46 * min(max(2 * share.mean - 1, 0.0), 1.0)
        mean, low, high = (f"{100 * x:.1f}" for x in (share.mean, share.low, share.high))
        return (
            f'<td style="text-align: center; padding: .3rem; background: rgba(0, 114, 178, '
            f'{tint:.2f})" '
            f'title="{share.documents} documents, {share.groups} pairs that share a haystack">'
            f"{mean}<br><small>{low}–{high}</small></td>"
        )

    positions = (*grid.positions, None)
    head = "".join(f'<th scope="col">{for_html(p or "all")}</th>' for p in positions)
    body = "".join(
        f'<tr><th scope="row">{"all" if n is None else f"{n:,}"}</th>'
        f"{''.join(cell(n, p) for p in positions)}</tr>\n"
        for n in (*grid.lengths, None)
    )
    facts = (
        f"{_seeds(grid)}, window {grid.window:,} tokens, most frequent answer "
        f"{100 * grid.majority:.1f}"
    )
    return (
        '<table style="border-spacing: 2px; border-collapse: separate; width: 100%">\n'
        f"<caption>{words(name, for_html)} <small>{for_html(facts)}</small></caption>\n"
        f"<thead><tr><th "
        f'scope="col">{for_html(grid.unit)}</th>{head}</tr></thead>\n<tbody>\n{body}</tbody>\n</table>'
    )
