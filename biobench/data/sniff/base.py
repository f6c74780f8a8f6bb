"""What detectors share: a corpus's files, the columns that the user names, and what is proposed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence, Sized
from dataclasses import dataclass, field
from itertools import chain
from operator import itemgetter
from pathlib import Path
from typing import Any, TypeVar, cast

from biobench.data.readers.base import Encoding, FileLine, FilesByRole, ReaderOptions, Request
from biobench.data.readers.files import read_lines
from biobench.schema.task import TaskSpec

FILL_IN = "fill in the labels, remove these rows, or name another column with --label"
Options = dict[str, Any]
"""Of a reader, as a spec writes them."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """The columns, what parts several labels of a cell, and the encoding, as the user named them;
    None: to be detected.
    """

    text: str | None = None
    label: str | None = None
    group: str | None = None
    separator: str | None = None
    encoding: Encoding = "utf-8"


def not_read(annotations: Counter[str]) -> list[str]:
    """A line on annotations that a task of mentions does not hold: kind in words -> how many."""
    counted = [f"{count} {kind}" for kind, count in sorted(annotations.items())]
    return [f"not read: {', '.join(counted)}"] if counted else []


@dataclass(frozen=True, slots=True)
class OpenSpec:
    """Stands for the spec that is yet to be written: any label is one of the task."""

    type: str = "single_label"
    unit: str = "sentence"
    labels: None = None


@dataclass(frozen=True, slots=True)
class DataFiles:
    """The files of each split, or of `all`."""

    files: FilesByRole
    encoding: Encoding = "utf-8"

    @property
    def paths(self) -> list[Path]:
        """Every file, in the order of the splits."""
        return list(chain.from_iterable(self.files.values()))

    def request(
        self, options: ReaderOptions | None = None, spec: OpenSpec = OpenSpec()
    ) -> Request[Any]:
        """What a reader gets that reads the corpus with these options, known or not."""
        options = options or ReaderOptions(format="sniffed", encoding=self.encoding)
        return Request(options, self.files, cast(TaskSpec, spec), any_label=True)

    def places(self) -> list[FileLine]:
        """The beginning of each file."""
        return list(self.request().places())


@dataclass(slots=True)
class Proposal:
    """One way to read a corpus. type: of the task; reader: its options."""

    type: str
    reader: Options
    unit: str = "sentence"
    columns: Sequence[str] = ()
    """Of the files, all of them."""
    read: Collection[str] = ()
    """Those that the reader reads."""
    files: FilesByRole | None = None
    """Of each split those that the reader wants, in its order; None: all."""
    seen: list[str] = field(default_factory=list)
    """What the user should know of the guess, one line each."""

    @property
    def unused(self) -> list[str]:
        """Columns that the reader does not read."""
        return [name for name in self.columns if name not in self.read]


def lines_of(location: FileLine) -> list[str]:
    """The lines of a text without their ends."""
    return [line for _, line in read_lines(location)]


def types_of(values: Iterable[Any]) -> set[type]:
    """The types of the values."""
    return set(map(type, values))


def without_none(values: Mapping[str, Any]) -> Options:
    """Those of the values that are there."""
    return {name: value for name, value in values.items() if value is not None}


def common_width(rows: Iterable[Sized]) -> tuple[int, float]:
    """(how many cells most of the rows have, the share of the rows that have them)."""
    widths = Counter(map(len, rows))
    width, number = max(widths.items(), key=itemgetter(1), default=(0, 0))
    return width, number / max(1, widths.total())


def first_names(names: Iterable[str], most: int) -> list[str]:
    """The first of the names; of more than that a last `…`."""
    shown = list(names)
    if len(shown) > most:
        shown[most:] = ["…"]
    return shown


Content = TypeVar("Content")
Detector = Callable[[Content, Wanted], list[Proposal]]
"""The ways to read files (or a table) of one shape, the likeliest first; none where they are of
another shape.

Raises DataFormatError with the line where files are of the shape and no option reads them.
"""


def first_fitting(
    detectors: Iterable[Detector[Content]], content: Content, wanted: Wanted
) -> list[Proposal]:
    """What the first detector proposes that knows the shape; none where none does."""
    every = (detector(content, wanted) for detector in detectors)
    return next(filter(None, every), [])
