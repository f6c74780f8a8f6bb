"""How two mentions of a sentence are shown to the encoder, one rule for all relation corpora."""

from __future__ import annotations

from typing import Literal, NamedTuple

Style = Literal["mask", "markers", "mask_markers", "plain"]
"""mask: each mention is replaced by its mask, overlapping ones by one mask for both (as BLURB's data are made).
markers: mentions stay, between `[E1]` and `[/E1]`, `[E2]` and `[/E2]` in the order of the text; two that
overlap stand between one pair. mask_markers: masks between markers. plain: the sentence as it is. Masks and
markers are text to the tokenizer; none gets an entry of its own in its vocabulary."""


class Replacement(NamedTuple):
    """Characters [start, end) of the text, and what replaces them."""

    start: int
    end: int
    mask: str


def marked(text: str, first: Replacement, second: Replacement, style: Style, both: str) -> str:
    """The text with the two mentions shown. both: the mask of two that overlap; those keep one pair of markers."""
    a, b = sorted((first, second), key=lambda m: (m.start, m.end))
    if style == "plain":
        return text
    if b.start < a.end:
        end = max(a.end, b.end)
        inside = both if style in ("mask", "mask_markers") else text[a.start : end]
        return text[: a.start] + (inside if style == "mask" else f"[E1] {inside} [/E1]") + text[end:]
    shown = []
    for number, mention in enumerate((a, b), start=1):
        inside = text[mention.start : mention.end] if style == "markers" else mention.mask
        shown.append(inside if style == "mask" else f"[E{number}] {inside} [/E{number}]")
    return text[: a.start] + shown[0] + text[a.end : b.start] + shown[1] + text[b.end :]
