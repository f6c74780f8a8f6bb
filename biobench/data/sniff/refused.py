"""Shapes of text that no reader reads, refused by their name."""

from __future__ import annotations

from biobench.data.sniff.base import DataFiles, Proposal, Wanted, lines_of

_FASTTEXT = "__label__"


def unread_lines(corpus: DataFiles, wanted: Wanted) -> list[Proposal]:
    """No proposal. Raises DataFormatError for an empty file, for fastText's labelled lines, and for
    lines of `label|text`.
    """
    for location in corpus.places():
        lines = list(filter(str.strip, lines_of(location.path)))
        if not lines:
            raise location.bad("is empty", "put the data of the split there, or remove the file")
        remedy = "write each row as label, tab, text, below a header `label`, tab, `text`"
        if all(line.startswith(_FASTTEXT) for line in lines):
            raise location.bad("is text in fastText's format (`__label__NAME text`)", remedy)
        if all(line.count("|") == 1 and "\t" not in line for line in lines):
            raise location.bad("holds rows that `|` cuts in two", remedy)
    return []
