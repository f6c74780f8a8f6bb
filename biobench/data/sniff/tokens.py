"""One token a line, with a tag: separators, columns, markers and comments."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import filterfalse

from biobench.data.readers.tokens import SEPARATORS
from biobench.data.sniff.base import DataFiles, Options, Proposal, Wanted, common_width, lines_of
from biobench.data.sniff.tags import Spelling, scheme_options, spelling_of

Column = tuple[str, ...]
"""The cells of all rows."""
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
    for location in corpus.places():
        lines += [*lines_of(location), ""]  # a file ends a sentence
    rows = list(filterfalse(_parts_sentences, lines))
    layout = _layout(rows)
    if layout is None:
        return []
    schemes, seen = scheme_options(layout.spelling, _sequences(layout, lines))
    reader: Options = {"format": "iob", "columns": layout.columns, "separator": layout.separator}
    if any(row.startswith("#") and layout.cells(row) is None for row in rows):
        reader["comments"] = "hash"
    proposals: list[Proposal] = []
    for scheme in schemes:
        proposal = Proposal("token_ner", reader | scheme, seen=[f"tags: {seen}"])
        proposal.columns = proposal.read = layout.columns
        proposals.append(proposal)
    return proposals


def _parts_sentences(line: str) -> bool:
    """Whether a line is blank or marks a document."""
    return not line.strip() or line.startswith(_MARKERS)


def _layout(rows: list[str]) -> _Layout | None:
    """How most of the rows are cut; None where they are no tokens with tags."""
    layouts = map(partial(_cut_by, rows), SEPARATORS)
    return next(filter(None, layouts), None)


def _cut_by(rows: list[str], separator: str) -> _Layout | None:
    """The rows cut at this separator; None where most of them are no token with a tag."""
    fields = [row.split(SEPARATORS[separator]) for row in rows]
    without_comments = [cells for cells in fields if not cells[0].startswith("#")]
    width, share = common_width(without_comments)
    if width < 2 or share < _MOST:
        return None
    usual = [cells for cells in fields if len(cells) == width]
    columns = list(zip(*usual, strict=True))
    has_numbers = width > 2 and all(map(str.isdecimal, columns[0]))
    token = int(has_numbers)  # the column before it holds numbers
    return _with_tags(columns, token, separator)


def _with_tags(columns: list[Column], token: int, separator: str) -> _Layout | None:
    """The tokens with the last column of tags behind them; None where there is none, or where texts
    stand in place of the tokens.
    """
    if _are_texts(columns[token]):
        return None
    for tag in range(len(columns) - 1, token, -1):
        spelling = spelling_of(Counter(columns[tag]))
        if spelling is not None:
            return _Layout(
                separator=separator,
                width=len(columns),
                token=token,
                tag=tag,
                spelling=spelling,
            )
    return None


def _are_texts(cells: Column) -> bool:
    """Whether cells hold blanks: rows of texts may have labels that look like tags."""
    blanks = sum(" " in cell.strip() for cell in cells)
    return blanks >= (1 - _MOST) * len(cells)


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
