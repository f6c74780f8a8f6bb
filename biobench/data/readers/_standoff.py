"""What standoff formats share: raw documents with mentions, discontinuous spans, tokenisers, projection to tags."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from biobench.schema.document import Document, Span
from biobench.schema.tags import Mode, tags_to_spans

Fragments = tuple[tuple[int, int], ...]
Discontinuous = Literal["error", "hull", "first", "drop"]
Tokeniser = Literal["whitespace", "words"]
Overlap = Literal["error", "last", "longest"]


@dataclass(slots=True)
class Mention:
    """A text-bound annotation as the file has it."""

    id: str
    label: str
    fragments: Fragments
    line: int
    surface: str = ""
    codes: list[tuple[str, str]] = field(default_factory=list)
    """(note type, note text), in the file's order."""

    @property
    def start(self) -> int:
        """First character."""
        return self.fragments[0][0]

    @property
    def end(self) -> int:
        """Past the last character."""
        return self.fragments[-1][1]


@dataclass(slots=True)
class RawDocument:
    """A text with its mentions, before any task's choice of labels, units and tokens."""

    id: str
    text: str
    mentions: list[Mention]
    path: Path
    line: int = 1


def merge_fragments(fragments: Sequence[tuple[int, int]], text: str) -> Fragments:
    """Fragments in order of position; neighbours with nothing but white space between them become one."""
    merged: list[tuple[int, int]] = []
    for start, end in sorted(fragments):
        if merged and not text[merged[-1][1] : start].strip():
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return tuple(merged)


def flatten(fragments: Fragments, policy: Discontinuous) -> tuple[int, int] | None:
    """One (start, end) for merged fragments: hull is first start to last end; None where it is dropped.

    Raises ValueError for several fragments under policy error.
    """
    if len(fragments) == 1 or policy == "first":
        return fragments[0]
    if policy == "hull":
        return fragments[0][0], fragments[-1][1]
    if policy == "drop":
        return None
    raise ValueError("the mention is discontinuous")


_WORDS = re.compile(r"\w+|[^\w\s]")
_RUNS = re.compile(r"\S+")


def tokenise(text: str, how: Tokeniser) -> tuple[tuple[int, int], ...]:
    """Character offsets of tokens: runs of non-space, or runs of word characters and single other signs."""
    pattern = _RUNS if how == "whitespace" else _WORDS
    return tuple((m.start(), m.end()) for m in pattern.finditer(text))


def mentions_to_tags(
    spans: Sequence[Span], tokens: Sequence[tuple[int, int]], overlap: Overlap
) -> tuple[list[str], int]:
    """(tags, number of mentions without a whole token): a mention takes the tokens that lie entirely in it.

    Mentions are taken in order of start (file order among equals). overlap: ``last`` lets a later mention
    overwrite tags (which can leave an I- without its B-), ``longest`` gives contested tokens to the longer
    mention, ``error`` raises ValueError.
    """
    tags = ["O"] * len(tokens)
    lost = 0
    ordered = sorted(spans, key=lambda s: s.start)
    if overlap == "longest":
        ordered.sort(key=lambda s: (s.start - s.end, s.start))
    for span in ordered:
        inside = [k for k, (start, end) in enumerate(tokens) if start >= span.start and end <= span.end]
        if not inside:
            lost += 1
            continue
        if any(tags[k] != "O" for k in inside):
            if overlap == "error":
                raise ValueError(f"span {span.start}-{span.end} overlaps another mention")
            if overlap == "longest":
                lost += 1
                continue
        for n, k in enumerate(inside):
            tags[k] = f"{'B' if n == 0 else 'I'}-{span.label}"
    return tags, lost


def with_tags(document: Document, how: Tokeniser, overlap: Overlap, decode: Mode) -> Document:
    """The document with tokens, tags and what its mentions become on them. Raises ValueError for overlap ``error``."""
    tokens = tokenise(document.text, how)
    tags, _ = mentions_to_tags(document.spans, tokens, overlap)
    return replace(document, spans=tags_to_spans(tags, tokens, decode), tokens=tokens, tags=tuple(tags))


def line_units(text: str) -> Iterator[tuple[int, int, int]]:
    """(start, end, number from 1) of every line that holds more than white space, ends trimmed."""
    position = 0
    for number, line in enumerate(text.split("\n"), start=1):
        stripped = line.strip()
        if stripped:
            start = position + len(line) - len(line.lstrip())
            yield start, start + len(stripped), number
        position += len(line) + 1
