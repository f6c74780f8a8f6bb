"""One token a line, with a tag: separators, columns, markers and comments."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from biobench.data.readers.base import FileLine
from biobench.data.readers.files import read_lines
from biobench.data.readers.tokens import SEPARATORS
from biobench.data.sniff.base import DataFiles, Options, Proposal, Wanted
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
    lines = [
        (location, [line for _, line in read_lines(location.path)]) for location in corpus.places()
    ]
    every = [line for _, of_file in lines for line in of_file]
    layout = _layout([line for line in every if line.strip() and not line.startswith(_MARKERS)])
    if layout is None:
        return []
    options, seen = scheme_options(layout.spelling, _sequences(layout, lines))
    reader: Options = {
        "format": "iob",
        "columns": layout.columns,
        "separator": layout.separator,
    }
    comments = [line for line in every if line.startswith("#") and not _is_row(layout, line)]
    if any(not line.startswith(_MARKERS) for line in comments):
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
        widths = Counter(len(cells) for cells in fields if not cells[0].startswith("#"))
        width, number = widths.most_common(1)[0] if widths else (0, 0)
        if width < 2 or number < _MOST * widths.total():
            continue
        columns = list(zip(*(cells for cells in fields if len(cells) == width), strict=True))
        token = _token_column(columns)
        # Rows of texts may have labels that look like tags; their texts hold blanks.
        blanks = sum(" " in cell.strip() for cell in columns[token])
        if blanks >= (1 - _MOST) * number:
            continue
        tagged = _tag_column(columns, token)
        if tagged is not None:
            return _Layout(separator, width, token, *tagged)
    return None


def _token_column(columns: list[tuple[str, ...]]) -> int:
    """The first, or the second of more where the first numbers the tokens."""
    numbered = len(columns) > 2 and all(cell.isdecimal() for cell in columns[0])
    return 1 if numbered else 0


def _tag_column(columns: list[tuple[str, ...]], token: int) -> tuple[int, Spelling] | None:
    """(number, spelling) of the last column of tags behind the tokens; None where there is none."""
    for number in range(len(columns) - 1, token, -1):
        spelling = spelling_of(Counter(columns[number]))
        if spelling is not None:
            return number, spelling
    return None


def _sequences(layout: _Layout, lines: list[tuple[FileLine, list[str]]]) -> Iterator[list[str]]:
    """The tags of each sentence."""
    for _, of_file in lines:
        tags: list[str] = []
        for line in of_file:
            if not line.strip() or line.startswith(_MARKERS):
                yield tags
                tags = []
            elif _is_row(layout, line):
                tags.append(line.split(SEPARATORS[layout.separator])[layout.tag])
        yield tags
