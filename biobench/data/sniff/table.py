"""Rows with named cells, whatever file they stand in, and which cells are there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, filterfalse
from operator import attrgetter
from pathlib import Path
from typing import Any, Literal

from biobench.data.readers.base import FileLine
from biobench.data.readers.files import DataRow, items_of, missing
from biobench.data.sniff.base import Options, types_of

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
        rows = list(map(attrgetter("values"), self.rows))
        self.columns = list(dict.fromkeys(chain.from_iterable(rows)))
        self.filled = {}
        for name in self.columns:
            cells = [row.get(name) for row in rows]
            values = list(filterfalse(missing, cells))
            if 2 * len(values) > len(rows):
                self.filled[name] = values
        self.texts = self._filled_with(str)
        self.lists = self._filled_with(list)

    def _filled_with(self, kind: type) -> dict[str, list[Any]]:
        """Columns whose values are all of this type."""
        filled = self.filled.items()
        return {name: values for name, values in filled if types_of(values) == {kind}}

    @property
    def longest_text(self) -> str | None:
        """Of the columns of texts the one that holds most."""
        lengths = {name: sum(map(len, texts)) for name, texts in self.texts.items()}
        return max(lengths, key=lengths.__getitem__, default=None)

    @property
    def sizes(self) -> dict[str, list[int]]:
        """Column of lists to how many items each has."""
        return {name: list(map(len, lists)) for name, lists in self.lists.items()}

    def items(self, column: str) -> list[Any]:
        """What the column's cells hold: the items of lists, and what is no list."""
        return list(chain.from_iterable(map(items_of, self.filled[column])))

    def named_in(self, column: str) -> list[str] | Literal["file"] | None:
        """What the column's integers stand for, as the reader's `names`; None where no file says
        it, or not every one.
        """
        of_files = [names.get(column, []) for names in self.names.values()]
        fewest = min(map(len, of_files), default=0)
        if fewest == 0:
            return None
        names_of_first = of_files[0]
        are_equal = of_files.count(names_of_first) == len(of_files)
        return names_of_first if are_equal else "file"

    def named_differently(self, column: str) -> list[str]:
        """What the user should know where files number the classes of a column differently."""
        if self.named_in(column) != "file":
            return []
        numbers = "the files number their classes differently, each is read by its own names"
        return [f"column {column}: {numbers}"]

    def row_with(self, name: str, value: Any) -> DataRow:
        """The first row that has this value there."""
        return next(row for row in self.rows if row.values.get(name) is value)
