"""Documents as sequences of words."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from biobench.schema.document import Document, Span

_WORD = re.compile(r"\w+|[^\w\s]")

Place = tuple[int, int, str]
"""Words [first, past the last) and the label."""


@dataclass(frozen=True, slots=True)
class Words:
    """offsets: characters [start, end) of each word, ascending. surfaces: their texts."""

    offsets: tuple[tuple[int, int], ...]
    surfaces: tuple[str, ...]

    @classmethod
    def of(cls, document: Document) -> Words:
        """The document's tokens; without any, runs of letters and digits, and each other sign
        alone.
        """
        offsets = document.tokens or tuple(m.span() for m in _WORD.finditer(document.text))
        return cls(offsets, tuple(document.text[a:b] for a, b in offsets))

    def __len__(self) -> int:
        """How many words."""
        return len(self.offsets)

    def places(self, spans: Iterable[Span], step: int = 0) -> list[Place]:
        """The spans that begin and end with a word, as word positions, moved by `step` words; the
        others, and those that would leave the document, are skipped.
        """
        begins = {start: i + step for i, (start, _) in enumerate(self.offsets)}
        ends = {end: i + 1 + step for i, (_, end) in enumerate(self.offsets)}
        on_words = [s for s in spans if s.start in begins and s.end in ends]
        moved = [(begins[s.start], ends[s.end], s.label) for s in on_words]
        return [
            (begin, end, label) for begin, end, label in moved if begin >= 0 and end <= len(self)
        ]

    def span(self, place: Place) -> Span:
        """Back to characters."""
        begin, end, label = place
        return Span(self.offsets[begin][0], self.offsets[end - 1][1], label)
