"""One token a line, with a tag: separators, columns, markers and comments."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain

from biobench.data.readers.files import read_lines
from biobench.data.readers.tokens import SEPARATORS
from biobench.data.sniff.base import DataFiles, Options, Proposal, Wanted, common_width
from biobench.data.sniff.tags import Spelling, scheme_options, spelling_of

_MARKERS = ("-DOCSTART-", "###MEDLINE:")
_MOST = 0.9
"""Share of the lines that must have one shape; the reader names the others."""


@dataclass(frozen=True, slots=True)
class _Layout:
    """How the lines are cut. token, tag: numbers of their columns, from 0."""

    separator: str
    width: int
    token: int
    tag: int
    spelling: Spelling

    @property
    def columns(self) -> list[str]:
        """As the reader wants them."""
        named = {self.token: "token", self.tag: "tag"}
        return [named.get(number, f"skip{number}") for number in range(self.width)]


def token_lines(corpus: DataFiles, wanted: Wanted) -> list[Proposal]:
    """Token files with tags of any spelling, under each scheme that they may have."""
    files = [[line for _, line in read_lines(path)] for path in corpus.paths]
    every = list(chain.from_iterable(files))
    layout = _layout([line for line in every if line.strip() and not line.startswith(_MARKERS)])
    if layout is None:
        return []
    options, seen = scheme_options(layout.spelling, _sequences(layout, files))
    reader: Options = {"format": "iob", "columns": layout.columns, "separator": layout.separator}
    for line in every:
        if line.startswith("#") and not line.startswith(_MARKERS) and not _is_row(layout, line):
            reader["comments"] = "hash"
    return [
        Proposal("token_ner", {**reader, **scheme}, columns=layout.columns, seen=[f"tags: {seen}"])
        for scheme in options
    ]


def _is_row(layout: _Layout, line: str) -> bool:
    return len(line.split(SEPARATORS[layout.separator])) == layout.width


def _layout(rows: list[str]) -> _Layout | None:
    """How most of the rows are cut; None where they are no tokens with tags."""
    for separator, sign in SEPARATORS.items():
        fields = [row.split(sign) for row in rows]
        width, share = common_width(cells for cells in fields if not cells[0].startswith("#"))
        if width < 2 or share < _MOST:
            continue
        columns = list(zip(*(cells for cells in fields if len(cells) == width), strict=True))
        numbered = width > 2 and all(cell.isdecimal() for cell in columns[0])
        token = 1 if numbered else 0
        # Rows of texts may have labels that look like tags; their texts hold blanks.
        blanks = sum(" " in cell.strip() for cell in columns[token])
        if blanks >= (1 - _MOST) * len(columns[token]):
            continue
        tagged = _tag_column(columns, token)
        if tagged is not None:
            return _Layout(separator, width, token, *tagged)
    return None


def _tag_column(columns: list[tuple[str, ...]], token: int) -> tuple[int, Spelling] | None:
    """(number, spelling) of the last column of tags behind the tokens; None where there is none."""
    for number in range(len(columns) - 1, token, -1):
        spelling = spelling_of(Counter(columns[number]))
        if spelling is not None:
            return number, spelling
    return None


def _sequences(layout: _Layout, files: list[list[str]]) -> Iterator[list[str]]:
    """The tags of each sentence."""
    for lines in files:
        tags: list[str] = []
        for line in lines:
            if not line.strip() or line.startswith(_MARKERS):
                yield tags
                tags = []
            elif _is_row(layout, line):
                tags.append(line.split(SEPARATORS[layout.separator])[layout.tag])
        yield tags
