"""The needle grid of stored runs: accuracy by length, position and template with intervals, as text or data."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from biobench.errors import UsageError
from biobench.report.rescore import run_documents
from biobench.schema.record import RunRecord
from biobench.score.needle import Key, Share, grid, name_of
from biobench.store import Store

_SHADES = " ░▒▓█"
"""From chance (50%) to all right; a cell is marked twice as wide as its shade."""
NOT_READ = "n/a"
"""What stands where a model's window does not reach: nothing was scored there."""


@dataclass(frozen=True)
class NeedleGrid:
    """One model on one needle task over its seeds.

    lengths: all of the task's; those without a share were beyond the model's window. majority: accuracy of the
    most frequent answer on the documents read.
    """

    model: str
    task: str
    variant: str
    seeds: tuple[int, ...]
    lengths: tuple[int, ...]
    window: int
    majority: float
    shares: dict[Key, Share]

    @property
    def positions(self) -> tuple[str, ...]:
        """Position names in reading order."""
        return tuple(dict.fromkeys(k[1] for k in sorted(self.shares, key=_place) if k[1] is not None))

    @property
    def title(self) -> str:
        """Model, task and what was changed."""
        return f"{self.model} · {self.task}" + (f" ({self.variant})" if self.variant else "")

    def as_json(self) -> dict[str, Any]:
        """Plain data: fractions; a length beyond the window is null."""
        cells = {name_of(key): vars_of(share) for key, share in self.shares.items()}
        for length in self.lengths:
            cells.setdefault(f"accuracy.{length}", None)
        return {
            "model": self.model,
            "task": self.task,
            "variant": self.variant,
            "seeds": list(self.seeds),
            "window": self.window,
            "majority": self.majority,
            "cells": cells,
        }


def vars_of(share: Share) -> dict[str, float | int] | None:
    """The fields of a share."""
    return {name: getattr(share, name) for name in Share.__dataclass_fields__}


def needle_grids(
    results_dir: str | Path, tasks: Collection[str] | None = None, models: Collection[str] | None = None
) -> list[NeedleGrid]:
    """The grids of all stored needle runs (of these tasks and models), one for each set of equal decisions.

    Computed from stored predictions alone. Raises StoreError where these are damaged.
    """
    store = Store(results_dir)
    groups: dict[tuple[str, ...], list[RunRecord]] = defaultdict(list)
    for record in store.records():
        task = record.task
        if task.type != "needle" or (tasks is not None and task.id not in tasks):
            continue
        if models is not None and record.model.id not in models:
            continue
        variant = ", ".join((*record.overrides, *([f"limit {record.limit}"] if record.limit else [])))
        precision = record.training.precision
        key = (task.id, record.model.id, record.model.hash, task.hash, task.data_hash, variant, precision)
        groups[key].append(record)
    return [_grid(store, sorted(own, key=lambda r: r.seed), key[5]) for key, own in sorted(groups.items())]


@dataclass(frozen=True, slots=True)
class NeedleRow:
    """One cell of a grid as a line of a tidy table.

    length, position: None for all of them. score, low, high: accuracy over the seeds and its 95% interval, 0-1;
    all three None where the length is beyond the model's window (n/a, nothing was scored). documents: test
    examples scored; groups: pairs that share a haystack. majority: accuracy of the most frequent answer on the
    documents read.
    """

    task: str
    model: str
    variant: str
    seeds: int
    window: int
    length: int | None
    position: str | None
    score: float | None
    low: float | None
    high: float | None
    documents: int
    groups: int
    majority: float


def needle_grid(
    results_dir: str | Path, tasks: Collection[str] | None = None, models: Collection[str] | None = None
) -> list[NeedleRow]:
    """Length x position of all stored needle runs, tidy: a row for each cell and margin of each grid.

    Rows of one grid stand together, lengths rising (None, all lengths, last), positions in reading order (None,
    all positions, last). Raises StoreError where stored predictions are damaged.
    """
    return [row for held in needle_grids(results_dir, tasks, models) for row in grid_rows(held)]


def grid_rows(held: NeedleGrid) -> list[NeedleRow]:
    """The rows of one grid; every length has all positions, those beyond the window without a score."""
    rows = []
    for length in (*held.lengths, None):
        for position in (*held.positions, None):
            share = held.shares.get((length, position, None))
            rows.append(
                NeedleRow(
                    held.task,
                    held.model,
                    held.variant,
                    len(held.seeds),
                    held.window,
                    length,
                    position,
                    None if share is None else share.mean,
                    None if share is None else share.low,
                    None if share is None else share.high,
                    0 if share is None else share.documents,
                    0 if share is None else share.groups,
                    held.majority,
                )
            )
    return rows


def _grid(store: Store, records: list[RunRecord], variant: str) -> NeedleGrid:
    loaded = [store.load_predictions(r, run_documents(r, None) if r.redacted else None) for r in records]
    gold = loaded[0][0]
    shares, _ = grid(gold, [predictions for _, predictions in loaded])
    counted: dict[str, int] = defaultdict(int)
    for document in gold:
        counted[document.labels[0]] += 1
    first = records[0]
    reader = first.protocol.get("reader", {})
    lengths = {key[0] for key in shares if key[0] is not None} | set(reader.get("lengths", ()))
    return NeedleGrid(
        first.model.id,
        first.task.id,
        variant,
        tuple(r.seed for r in records),
        tuple(sorted(lengths)),
        first.windows.max_length,
        max(counted.values()) / len(gold),
        shares,
    )


def render_grid(held: NeedleGrid) -> str:
    """The heat map (length x position), then the margins with 95% intervals, in percent."""
    positions = held.positions
    templates = sorted({k[2] for k in held.shares if k[2] is not None})
    seeds = f"{len(held.seeds)} seed{'s' if len(held.seeds) > 1 else ''}"
    lines = [f"{held.title}: accuracy in %, {seeds}, window {held.window}", ""]
    lines.append("length   " + "".join(f"{p:>16}" for p in positions) + f"{'all positions':>24}")
    for length in held.lengths:
        cells = "".join(f"{_cell(held.shares.get((length, p, None))):>16}" for p in positions)
        lines.append(f"{length:<9}{cells}{_whole(held.shares.get((length, None, None))):>24}")
    lines.append(
        "all      "
        + "".join(f"{_cell(held.shares.get((None, p, None))):>16}" for p in positions)
        + f"{_whole(held.shares.get((None, None, None))):>24}"
    )
    lines.append("")
    lines += [f"{t:<12}{_whole(held.shares.get((None, None, t)))}" for t in templates]
    lines += [
        "",
        f"most frequent answer: {100 * held.majority:.1f}",
        "Brackets: 95% intervals for other examples of the same kind (Wilson, pairs that share a haystack count "
        "together). Shades: from 50 to 100. n/a: beyond the model's window, nothing was scored.",
    ]
    return "\n".join(lines) + "\n"


def _place(key: Key) -> tuple[int, str]:
    order = {"start": 0, "middle": 1, "end": 2}
    return order.get(key[1] or "", 3), key[1] or ""


def _cell(share: Share | None) -> str:
    if share is None:
        return NOT_READ
    shade = _SHADES[min(len(_SHADES) - 1, max(0, int((share.mean - 0.5) * 2 * len(_SHADES))))]
    return f"{2 * shade} {100 * share.mean:.1f} ±{50 * (share.high - share.low):.1f}"


def _whole(share: Share | None) -> str:
    if share is None:
        return NOT_READ
    return f"{100 * share.mean:.1f} [{100 * share.low:.1f}, {100 * share.high:.1f}]"


def require_grids(results_dir: str | Path, tasks: Collection[str] | None, models: Collection[str] | None) -> str:
    """All grids as text. Raises UsageError where there is none."""
    found = needle_grids(results_dir, tasks, models)
    if not found:
        raise UsageError(f"no needle run is stored in {results_dir}", hint="make one with `biobench needle MODEL`")
    return "\n".join(render_grid(g) for g in found)
