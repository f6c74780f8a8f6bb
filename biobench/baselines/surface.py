"""Whether mentions stand where they belong: a move that makes them fit better shows that they do
not.

The check compares the corpus with itself, so it needs no word list and no threshold of a language.
"""

from __future__ import annotations

from collections.abc import Sequence

from biobench.baselines.words import Words
from biobench.schema.baseline import GateCheck
from biobench.schema.document import Document

HALF, POINTS = 0.5, 0.03
"""A move must at least halve the share of bad edges and lower it by 3 points. On the corpora
measured the share is 0.0 to 2.8 percent as annotated, no move lowers it, and at least 95 percent
after a shift by one character; after a shift by one token it is 8 to 41 percent on all but one.
"""


def surface(documents: Sequence[Document]) -> GateCheck:
    """Edges of mentions inside a word (a letter or digit on both sides) or on a blank or
    punctuation sign.

    All mentions are moved by up to three characters, and by a token where the corpus has tokens.
    Offsets are shifted where the best move is better by both thresholds.
    """

    def share(step: int, *, tokens: bool) -> tuple[float, int]:
        """Bad edges of the mentions that can be moved by `step`, 0-1, and how many those are."""
        bad = count = 0
        for d in documents:
            moved = [(s.start + step, s.end + step) for s in set(d.spans)]
            if tokens:
                words = Words.of(d)
                moved = [
                    words.span(place)[:2]
                    for place in words.places(set(d.spans) if d.tokens else (), step)
                ]
            for start, end in moved:
                if 0 <= start < end <= len(d.text):
                    count += 1
                    bad += not d.text[start].isalnum() or (
                        start > 0 and d.text[start - 1].isalnum()
                    )
                    bad += not d.text[end - 1].isalnum() or (
                        end < len(d.text) and d.text[end].isalnum()
                    )
        return (bad / (2 * count) if count else 0.0), count

    annotated, mentions = share(0, tokens=False)
    moves = []
    for step, unit in [(n, "character") for n in (-3, -2, -1, 1, 2, 3)] + [
        (-1, "token"),
        (1, "token"),
    ]:
        moved, count = share(step, tokens=unit == "token")
        # Mentions at the ends cannot be moved; a move that leaves few of them behind says nothing.
        if count >= mentions / 2 and count:
            moves.append(
                (
                    moved,
                    f"{abs(step)} {unit}{'s' * (abs(step) > 1)} to the "
                    f"{'right' if step > 0 else 'left'}",
                )
            )
    words = (
        f"{100 * annotated:.1f} % of the edges of {mentions} mentions lie inside words or on "
        f"punctuation"
    )
    if not moves:
        return GateCheck(name="surface", passed=True, words=words)
    best, move = min(moves)
    shifted = best <= HALF * annotated and annotated - best >= POINTS
    words += (
        f", {'only ' * shifted}{100 * best:.1f} % if all were moved "
        f"{move}{': offsets are shifted' * shifted}"
    )
    return GateCheck(name="surface", passed=not shifted, words=words)
