"""Pictures of the static site: the shared charts as SVG in both languages, and strips small enough for a table."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from statistics import quantiles
from typing import Any

from biobench.report import charts
from biobench.report.escape import html_sentence
from biobench.site.words import ENGLISH, FRENCH

STEPS = 60
"""Places of a strip, over the range of its scores."""
MOST_MARKS = 12
"""With more other models a strip shows the middle half of them as one band."""
_INK = "#010203"
"""Stands for the colour of the page's text, which is known in the browser alone."""
_TAG = re.compile(r'<(?:[^<>"]|"[^"]*")*>')
_QUIET = re.compile(
    r' (?:aria-[a-z]+|role|class|pointer-events|xmlns(?::xlink)?|version|font-family)="[^"]*"| opacity="1"'
)
"""Attributes that say nothing here: the picture has one text of its own, and the page's font."""
_NOTHING = re.compile(r'<path d="(?:M0,0h0v0h0Z)?"[^>]*/>|<path d="M0,0h[\d.]+v[\d.]+h-[\d.]+Z"/>')
_CIRCLE = re.compile(r'<path([^>]*) d="M([\d.]+),0A[^"]*"([^>]*)/>')
_TITLE = re.compile(r'(<text[^>]* font-weight="bold"[^>]*)>([^<]*)</text>')
_LONG = re.compile(r"-?\d+\.\d{2,}")
_EMPTY = re.compile(r"<g[^>]*></g>")


def figure(draw: Callable[[Mapping[str, str], str], Any], alt: tuple[str, str], width: int = 420) -> str:
    """A chart whose texts read in both languages; its numbers are the page's script's to write.

    draw: (words, colour of texts) -> chart; alt: what it shows, English and French; width in pixels, without labels.
    """
    svg = _compact(charts.svg(draw(ENGLISH, _INK), width, ink=_INK))
    french = {html_sentence(text): html_sentence(FRENCH[key]) for key, text in ENGLISH.items()}
    svg = _TITLE.sub(lambda m: f'{m[1]} data-fr="{french.get(m[2], m[2])}">{m[2]}</text>', svg)
    named = f'aria-label="{html_sentence(alt[0])}" data-fr-label="{html_sentence(alt[1])}"'
    return f'<figure tabindex="0">{svg.replace("<svg", f"<svg role=img {named}", 1)}</figure>'


def _compact(svg: str) -> str:
    """One picture with one text to whoever cannot see it, to a tenth of a pixel; fonts and inks come from the page."""
    svg = _TAG.sub(lambda m: _shorter(m[0]), svg)
    svg = _CIRCLE.sub(r"<circle\1 r=\2\3/>", _NOTHING.sub("", svg))
    before = ""
    while before != svg:
        before, svg = svg, _EMPTY.sub("", svg)
    return svg


def _shorter(tag: str) -> str:
    tag = _LONG.sub(lambda m: f"{float(m[0]):.1f}".removesuffix(".0"), _QUIET.sub("", tag))
    return tag.replace(f' fill="{_INK}"', "") if tag.startswith("<text") else tag.replace(_INK, "currentColor")


def strip(score: float, others: Sequence[float], floor: float | None) -> str:
    """One score among others, in percent: their places, a bar, and a triangle for the floor. The table has numbers."""
    every = [score, *others, *([] if floor is None else [floor])]
    low, high = min(every), max(every)

    def at(value: float) -> int:
        return round((STEPS - 1) * (value - low) / (high - low)) if high > low else STEPS // 2

    places = [(at(value), 1) for value in others]
    if len(others) > MOST_MARKS:
        first, _, third = quantiles(others, n=4)
        places = [(at(first), at(third) - at(first) + 1)]
    marks = "".join(f"M{x} 1h{width}v4H{x}z" for x, width in sorted(set(places)))
    parts = [f'<path d="{marks}"/>' if marks else ""]
    if floor is not None:
        parts.append(f'<path class=f d="M{at(floor)} 6l1-2 1 2z"/>')
    parts.append(f'<path class=b d="M{at(score)} 0h1v6h-1z"/>')
    return f'<svg class=s viewBox="0 0 {STEPS + 2} 6">{"".join(parts)}</svg>'
