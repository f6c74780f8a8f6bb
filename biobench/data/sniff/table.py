"""Rows with named cells, whatever file they stand in, and which cells are there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from biobench.data.readers.files import DataRow, missing


@dataclass(slots=True)
class Table:
    """reader: format and layout. names: column to what its integers stand for."""

    reader: dict[str, Any]
    rows: Sequence[DataRow]
    names: Mapping[str, Any] = field(default_factory=dict)
    numbered: bool = False
    """Columns have numbers instead of names."""
    seen: list[str] = field(default_factory=list)
    """What the user should know of how the rows were cut."""
    columns: list[str] = field(init=False)
    filled: dict[str, list[Any]] = field(init=False)
    """Column that most rows fill to its values, without those that are missing."""

    def __post_init__(self) -> None:
        every: dict[str, list[Any]] = {}
        for row in self.rows:
            for name, value in row.values.items():
                values = every.setdefault(name, [])
                if not missing(value):
                    values.append(value)
        self.columns = list(every)
        self.filled = {
            name: values for name, values in every.items() if 2 * len(values) > len(self.rows)
        }

    @property
    def texts(self) -> list[str]:
        """Columns of texts."""
        return [
            name
            for name, values in self.filled.items()
            if all(isinstance(value, str) for value in values)
        ]

    @property
    def lists(self) -> dict[str, list[list[Any]]]:
        """Columns of lists."""
        return {
            name: values
            for name, values in self.filled.items()
            if all(isinstance(value, list) for value in values)
        }

    def row_with(self, name: str, value: Any) -> DataRow:
        """The first row that has this value there."""
        return next(row for row in self.rows if row.values.get(name) is value)
