"""Slices and calibration as text."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence

from rich import box
from rich.console import Console
from rich.table import Table

from biobench.report.details.slices import SliceRow
from biobench.report.entrants import line_name
from biobench.report.escape import for_csv, plain
from biobench.report.terminal import FILE_WIDTH
from biobench.score.probabilistic import MEASURES

_COUNTED = ("precision", "recall", "f1")
NOTHING = "No runs with predictions to slice.\n"


def as_csv(rows: Sequence[SliceRow]) -> str:
    """A row a measure and slice, as `SliceRow` names them."""
    stream = io.StringIO()
    if rows:
        writer = csv.DictWriter(stream, list(rows[0].as_json()), lineterminator="\n")
        writer.writeheader()
        for row in rows:
            writer.writerow({k: for_csv(v) if isinstance(v, str) else v for k, v in row.as_json().items()})
    return stream.getvalue()


def as_table(rows: Sequence[SliceRow], width: int = FILE_WIDTH) -> str:
    """Calibration, then the slices: a line a slice, in percent (ECE and Brier as fractions)."""
    if not rows:
        return NOTHING
    stream = io.StringIO()
    console = Console(file=stream, width=width, color_system=None)
    for measures, title in ((MEASURES, "Probabilities"), (_COUNTED, "Slices, over the items of each")):
        part = [row for row in rows if (row.dimension == "all") == (measures is MEASURES)]
        if part:
            console.print(_table(part, measures, title))
    return "".join(f"{line.rstrip()}\n" for line in stream.getvalue().splitlines())


def _table(rows: Sequence[SliceRow], measures: Sequence[str], title: str) -> Table:
    sliced = measures is not MEASURES
    table = Table(box=box.SIMPLE, title=title, title_justify="left")
    for name in ("task", "model", *(("items by", "slice") if sliced else ())):
        table.add_column(name, overflow="fold")
    for name in (*(("gold",) if sliced else ()), *measures):
        table.add_column(name, justify="right", no_wrap=True)
    for first, values in _lines(rows):
        cells = [first.task, plain(line_name(first.model, first.variant))]
        cells += [first.dimension, first.slice, str(first.gold)] if sliced else []
        table.add_row(*cells, *(_shown(name, values.get(name)) for name in measures))
    return table


def _lines(rows: Sequence[SliceRow]) -> Iterator[tuple[SliceRow, dict[str, float]]]:
    lines: dict[tuple[str, ...], tuple[SliceRow, dict[str, float]]] = {}
    for row in rows:
        key = (row.task, row.model, row.variant, row.source, row.dimension, row.slice)
        lines.setdefault(key, (row, {}))[1][row.metric] = row.mean
    yield from lines.values()


def _shown(metric: str, value: float | None) -> str:
    if value is None:
        return "–"
    return f"{value:.3f}" if metric in ("ece", "brier") else f"{100 * value:.1f}"
