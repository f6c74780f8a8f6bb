"""Rows with named cells, whatever file they stand in, and which cells are there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from biobench.data.readers.base import FileLine
from biobench.data.readers.files import DataRow, items_of, missing
from biobench.data.sniff.base import Options

Names = Mapping[str, list[str]]
"""Column to what its integers stand for."""


@dataclass(slots=True)
class Table:
    """start: of the first file. reader: format and layout. names: of each file, in their order."""

    start: FileLine
    reader: Options
    rows: Sequence[DataRow]
    names: Mapping[Path, Names] = field(default_factory=dict)
    numbered: bool = False
    """Columns have numbers instead of names."""
    seen: list[str] = field(default_factory=list)
    """What the user should know of how the rows were cut."""
    columns: list[str] = field(init=False)
    filled: dict[str, list[Any]] = field(init=False)
    """Column that most rows fill to its values, without those that are missing."""
    texts: dict[str, list[str]] = field(init=False)
    """Columns of texts."""
    lists: dict[str, list[list[Any]]] = field(init=False)
    """Columns of lists."""

    def __post_init__(self) -> None:
        every: dict[str, list[Any]] = {}
        for row in self.rows:
            for name, value in row.values.items():
                values = every.setdefault(name, [])
                if not missing(value):
                    values.append(value)
        self.columns = list(every)
        self.filled, self.texts, self.lists = {}, {}, {}
        for name, values in every.items():
            if 2 * len(values) <= len(self.rows):
                continue
            self.filled[name] = values
            types = set(map(type, values))
            if types == {str}:
                self.texts[name] = values
            elif types == {list}:
                self.lists[name] = values

    @property
    def longest_text(self) -> str | None:
        """Of the columns of texts the one that holds most."""
        lengths = {name: sum(map(len, texts)) for name, texts in self.texts.items()}
        return max(lengths, key=lengths.__getitem__, default=None)

    def items(self, column: str) -> list[Any]:
        """What the column's cells hold: the items of lists, and what is no list."""
        items: list[Any] = []
        for cell in self.filled[column]:
            items += items_of(cell)
        return items

    def named_in(self, column: str) -> list[str] | Literal["file"] | None:
        """What the column's integers stand for, as the reader's `names`; None where no file says
        it, or not every one.
        """
        of_files = [names.get(column) for names in self.names.values()]
        if not of_files or not all(of_files):
            return None
        return of_files[0] if of_files.count(of_files[0]) == len(of_files) else "file"

    def named_differently(self, column: str) -> list[str]:
        """What the user should know where files number the classes of a column differently."""
        if self.named_in(column) != "file":
            return []
        numbers = "the files number their classes differently, each is read by its own names"
        return [f"column {column}: {numbers}"]

    def row_with(self, name: str, value: Any) -> DataRow:
        """The first row that has this value there."""
        return next(row for row in self.rows if row.values.get(name) is value)
