"""One token a line, with a tag: separators, columns, markers and comments."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from biobench.data.readers.tokens import SEPARATORS
from biobench.data.sniff.base import DataFiles, Options, Proposal, Wanted, common_width, lines_of
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
        columns = [f"skip{number}" for number in range(self.width)]
        columns[self.token], columns[self.tag] = "token", "tag"
        return columns

    def cells(self, line: str) -> list[str] | None:
        """The line's cells; None where it is no row."""
        cells = line.split(SEPARATORS[self.separator])
        return cells if len(cells) == self.width else None


def token_lines(corpus: DataFiles, wanted: Wanted) -> list[Proposal]:
    """Token files with tags of any spelling, under each scheme that they may have."""
    lines: list[str] = []
    for path in corpus.paths:
        lines += [*lines_of(path), ""]  # a file ends a sentence
    layout = _layout([line for line in lines if not _parts_sentences(line)])
    if layout is None:
        return []
    schemes, seen = scheme_options(layout.spelling, _sequences(layout, lines))
    reader: Options = {"format": "iob", "columns": layout.columns, "separator": layout.separator}
    for line in lines:
        if line.startswith("#") and not _parts_sentences(line) and layout.cells(line) is None:
            reader["comments"] = "hash"
    proposals: list[Proposal] = []
    for scheme in schemes:
        options = {**reader, **scheme}
        tags = [f"tags: {seen}"]
        proposals.append(Proposal("token_ner", options, columns=layout.columns, seen=tags))
    return proposals


def _parts_sentences(line: str) -> bool:
    """Whether a line is blank or marks a document."""
    return not line.strip() or line.startswith(_MARKERS)


def _layout(rows: list[str]) -> _Layout | None:
    """How most of the rows are cut; None where they are no tokens with tags."""
    for separator, sign in SEPARATORS.items():
        fields = [row.split(sign) for row in rows]
        width, share = common_width(cells for cells in fields if not cells[0].startswith("#"))
        if width < 2 or share < _MOST:
            continue
        columns = list(zip(*(cells for cells in fields if len(cells) == width), strict=True))
        numbered = width > 2 and all(map(str.isdecimal, columns[0]))
        token = int(numbered)  # the column before it holds numbers
        tagged = _tag_column(columns, token)
        if tagged is not None and not _are_texts(columns[token]):
            return _Layout(separator, width, token, *tagged)
    return None


def _are_texts(cells: tuple[str, ...]) -> bool:
    """Whether cells hold blanks: rows of texts may have labels that look like tags."""
    blanks = sum(" " in cell.strip() for cell in cells)
    return blanks >= (1 - _MOST) * len(cells)


def _tag_column(columns: list[tuple[str, ...]], token: int) -> tuple[int, Spelling] | None:
    """(number, spelling) of the last column of tags behind the tokens; None where there is none."""
    for number in range(len(columns) - 1, token, -1):
        spelling = spelling_of(Counter(columns[number]))
        if spelling is not None:
            return number, spelling
    return None


def _sequences(layout: _Layout, lines: list[str]) -> Iterator[list[str]]:
    """The tags of each sentence."""
    tags: list[str] = []
    for line in lines:
        cells = layout.cells(line)
        if _parts_sentences(line):
            yield tags
            tags = []
        elif cells is not None:
            tags.append(cells[layout.tag])
