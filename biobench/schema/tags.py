"""Token tags and spans: decoding by a declared mode, and the way back.

Two readings of the same tags exist and give different scores, so every reader declares one:

* ``strict`` is IOB2 as written: B-X opens an entity, I-X of the same type goes on with it, and
anything
  else ends it. An I-X with nothing open (or with another type open) starts nothing.
* ``lenient`` is what seqeval does in its default mode: an I-X with nothing open, or with another
type
  open, opens an entity.

``O I-X I-X`` holds no entity under strict and one, tokens 1 to 3, under lenient.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from biobench.schema.document import Span

Mode = Literal["strict", "lenient"]
TokenSpan = tuple[int, int, str]
"""Tokens [first, past the last) and the label."""


def split_tag(tag: str) -> tuple[str, str]:
    """``B-Disease`` to (``B``, ``Disease``); ``O`` to (``O``, ````). Raises ValueError on any other
    shape.
    """
    if tag == "O":
        return "O", ""
    prefix, dash, label = tag.partition("-")
    if prefix not in ("B", "I") or not dash or not label:
        raise ValueError(f"'{tag}' is not O, B-<type> or I-<type>")
    return prefix, label


def decode_tags(tags: Sequence[str], mode: Mode) -> list[TokenSpan]:
    """Entities of one tag sequence (O, B-<type>, I-<type>) as token spans, in order of position.

    Raises ValueError when a tag has another shape. Entities never overlap.
    """
    spans: list[TokenSpan] = []
    begin, current = -1, ""
    for i, tag in enumerate(tags):
        prefix, label = split_tag(tag)
        if prefix == "I" and begin >= 0 and label == current:
            continue
        if begin >= 0:
            spans.append((begin, i, current))
            begin = -1
        if prefix == "B" or (prefix == "I" and mode == "lenient"):
            begin, current = i, label
    if begin >= 0:
        spans.append((begin, len(tags), current))
    return spans


def iob1_to_iob2(tags: Sequence[str]) -> list[str]:
    """IOB1 (B- only right after a mention of the same type) to IOB2 (B- on every first token)."""
    result: list[str] = []
    previous = ("O", "")
    for tag in tags:
        prefix, label = split_tag(tag)
        starts = prefix == "I" and (previous[0] == "O" or previous[1] != label)
        result.append(f"B-{label}" if starts else tag)
        previous = (prefix, label)
    return result


def tags_to_spans(
    tags: Sequence[str], tokens: Sequence[tuple[int, int]], mode: Mode
) -> tuple[Span, ...]:
    """Decoded entities in characters; tokens are the character offsets that the tags stand on."""
    if len(tags) != len(tokens):
        raise ValueError(f"{len(tags)} tags do not fit {len(tokens)} tokens")
    return tuple(
        Span(tokens[i][0], tokens[j - 1][1], label) for i, j, label in decode_tags(tags, mode)
    )


def spans_to_tags(spans: Sequence[Span], tokens: Sequence[tuple[int, int]]) -> list[str]:
    """IOB2 tags of `spans` (characters) on `tokens` (character offsets, ascending, not
    overlapping).

    Raises ValueError when a span does not begin and end with a token, or meets another span.
    """
    tags = ["O"] * len(tokens)
    first, last = ({token[side]: k for k, token in enumerate(tokens)} for side in (0, 1))
    for span in spans:
        if span.start not in first or span.end not in last:
            raise ValueError(f"span {span.start}-{span.end} does not begin and end with a token")
        places = range(first[span.start], last[span.end] + 1)
        if any(tags[k] != "O" for k in places):
            raise ValueError(
                f"span {span.start}-{span.end} meets another span; tags hold flat mentions only"
            )
        for k in places:
            tags[k] = f"{'I' if k > places[0] else 'B'}-{span.label}"
    return tags
