"""A document's text with its mentions coloured, by how they were judged or as the gold has them;
all escaped.
"""

from __future__ import annotations

import html
from collections.abc import Sequence
from itertools import pairwise

from biobench.reporting.details.mistakes import NAMES, JudgedDocument, Kind, Mark, only_labels
from biobench.reporting.escape import plain
from biobench.schema.document import Span

COLOURS: dict[Kind, str] = {
    "right": "0, 158, 115",
    "missed": "213, 94, 0",
    "spurious": "204, 121, 167",
    "label": "0, 114, 178",
    "boundary": "230, 159, 0",
    "both": "86, 180, 233",
}
"""Okabe-Ito hues; the kind is written beside each mention too, so colour is never alone."""
_BLOCK = (
    "border: 1px solid rgba(128,128,128,.35); border-radius: .4rem; padding: .6rem .8rem; "
    "margin: 0 0 .7rem"
)


def to_html(judged: JudgedDocument, text: str) -> str:
    """The document as one block: text with marks where it has text, the marks as a list below."""
    marks = [mark for mark in judged.marks if mark.kind != "right" or not text]
    labels = only_labels(judged)
    if labels is not None and labels[0] != labels[1]:
        # a label that is missed and another that is false are one mistake
        marks = [Mark("label", Span(0, 0, labels[0]), Span(0, 0, labels[1]))]
    lines = "".join(f"<li>{_line(mark, text)}</li>" for mark in marks)
    return (
        f'<div style="{_BLOCK}"><small>{html.escape(judged.document.id)}</small>'
        f'<p style="white-space: pre-wrap; overflow-wrap: '
        f'anywhere">{_coloured(text, judged.marks)}</p>'
        f'<ul style="margin: 0; font-size: .9rem">{lines}</ul></div>'
    )


Side = tuple[Span, Mark]
"""One side of a mark, and the mark."""


def _coloured(text: str, marks: Sequence[Mark]) -> str:
    """Text cut at every end of a mention; each piece has the colour of what lies over it."""
    mentions: list[Side] = []
    cuts = {0, len(text)}
    for mark in marks:
        for span in mark.sides.values():
            if span.end:
                mentions.append((span, mark))
                cuts |= {min(span.start, len(text)), min(span.end, len(text))}
    coloured = ""
    for start, end in pairwise(sorted(cuts)):
        sides_here = []
        for span, mark in mentions:
            if span.start <= start and end <= span.end:
                sides_here.append((span, mark))
        coloured += _piece(text[start:end], sides_here)
    return coloured


def _piece(text: str, over: Sequence[Side]) -> str:
    """In the colour of the first of these marks that is a mistake, with a solid line under gold."""
    piece = html.escape(text)
    if not over:
        return piece
    _, mark = min(over, key=lambda side: side[1].kind == "right")
    line = "dashed"
    if any(span is mark.gold for span, mark in over):
        line = "solid"
    colour = COLOURS[mark.kind]
    style = f"background: rgba({colour}, .3); border-bottom: 2px {line} rgb({colour})"
    title = html.escape(f"{mark.label}: {mark.kind}")
    return f'<span style="{style}" title="{title}">{piece}</span>'


def _line(mark: Mark, text: str) -> str:
    sides = []
    for name, span in mark.sides.items():
        side = f"{name}: {span.label}"
        if text and span.end:
            side += f" “{plain(text[span.start : span.end])}”"
        sides.append(side)
    colour = f"border-bottom: 3px solid rgb({COLOURS[mark.kind]})"
    return f'<b style="{colour}">{NAMES[mark.kind]}</b> · {html.escape(" · ".join(sides))}'
