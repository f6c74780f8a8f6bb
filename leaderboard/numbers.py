"""Numbers as tables show them: each sorts by what it is, whatever text stands for it."""

from __future__ import annotations

from biobench.reporting.row import Row
from leaderboard.lines import score


class ShownNumber(float):
    """A number by which a table sorts, and the text that it shows: 70.1 as ``70.1 ±0.4``."""

    shown: str

    def __new__(cls, number: float, shown: str) -> ShownNumber:
        """With two digits: more would be read aloud, and tell nothing."""
        self = super().__new__(cls, round(number, 2))
        self.shown = shown
        return self

    def __str__(self) -> str:
        """As it is shown."""
        return self.shown


def score_cell(row: Row) -> ShownNumber:
    """The score of a row in a table, in percent."""
    return ShownNumber(100 * row.mean, score(row))


def percent_cell(share: float) -> ShownNumber:
    """A share in a table, in percent."""
    return ShownNumber(100 * share, f"{100 * share:.1f}")


def millions(parameters: int) -> str:
    """``149 M``."""
    return f"{parameters / 1e6:,.0f} M" if parameters >= 1e6 else f"{parameters / 1e6:.2g} M"


def cell_text(cell: object) -> str:
    """As a table shows it."""
    if isinstance(cell, ShownNumber) or not isinstance(cell, float):
        return str(cell)
    return f"{cell:,.0f}" if cell > 100 else f"{cell:.1f}"
