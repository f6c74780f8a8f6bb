"""Whether mentions stand where they belong: a move that makes them fit better shows that they do
not, and so does a great share of edges inside words.

The check compares the corpus with itself (`biobench.data.checks.edges`), so it needs no word list.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from biobench.baselines.words import Words
from biobench.data.checks import edges
from biobench.schema.baseline import GateCheck
from biobench.schema.document import Document

MOST = 0.1
"""BadEdges of mentions with an edge inside a word or on white space from which the answer is no,
whatever the cause: 2.8 percent of edges are bad on the corpora measured, at most.
"""


def surface(documents: Sequence[Document]) -> GateCheck:
    """Edges of mentions inside a word (a letter or digit on both sides) or on a blank or
    punctuation sign.

    All mentions are moved by up to three characters, by a token where the corpus has tokens, and as
    offsets are counted elsewhere. Offsets are shifted where the best move explains it
    (`edges.explains`).
    """
    share = edges.annotated(documents)
    share = edges.annotated(documents)
    bad = f"{100 * share.bad:.1f} %"
    words = f"{bad} of the edges of {share.mentions} mentions lie inside words or on punctuation"
    moved, name = _best_move(documents, share)
    shifted = edges.explains(share, moved)
    if shifted:
        words += f", only {100 * moved.bad:.1f} % if all were moved {name}: offsets are shifted"
    elif name:
        words += f", {100 * moved.bad:.1f} % if all were moved {name}"
    meant = edges.cause(documents)
    if meant is not None:
        words += f"; {meant}"
    unreachable = sum(len(places) for d in documents for places in edges.unreachable(d))
    far = unreachable > 0 and unreachable >= MOST * share.mentions
    if far:
        words += f"; {unreachable} mentions begin or end inside a word or with white space"
    return GateCheck(name="surface", passed=not (shifted or meant or far), words=words)


def _best_move(
    documents: Sequence[Document], annotated: edges.BadEdges
) -> tuple[edges.BadEdges, str]:
    """The fewest bad edges after a move, and the move; as annotated and "" where no move leaves
    half of the mentions: those at the ends cannot be moved, and a few of them say nothing.
    """
    moves = []
    for name, moved in _moves(documents).items():
        if 0 < moved.mentions >= annotated.mentions / 2:
            moves.append((moved, name))
    return min(moves, key=lambda move: (move[0].bad, move[1]), default=(annotated, ""))


def dropped_gold(documents: Sequence[Document]) -> list[GateCheck]:
    """Whether decoding drops mentions; nothing is asked where it drops none."""
    dropped = sum(remark.finding == "dropped" for d in documents for remark in d.remarks)
    if not dropped:
        return []
    mentions = dropped + sum(len(d.spans) for d in documents)
    words = f"{dropped} of {mentions} mentions begin with I-, and their decoding drops them"
    passed = dropped < MOST * mentions
    return [GateCheck(name="dropped", passed=passed, words=words, flagged=passed)]


def _moves(documents: Sequence[Document]) -> dict[str, edges.BadEdges]:
    """Bad edges after each move by characters and by tokens."""
    moves: dict[str, edges.BadEdges] = {}
    for sign, side in ((-1, "left"), (1, "right")):
        for number, noun in ((1, "character"), (2, "characters"), (3, "characters")):
            step = sign * number
            shift = edges.shifted(step, step)
            moves[f"{number} {noun} to the {side}"] = edges.moved(documents, shift)
        moves[f"1 token to the {side}"] = edges.share_of(_by_tokens(documents, sign))
    return moves


def _by_tokens(documents: Sequence[Document], step: int) -> Iterator[tuple[str, edges.Place]]:
    """Where mentions of token formats would stand."""
    for document in documents:
        if document.tokens:
            words = Words.of(document)
            for moved in map(words.span, words.places(set(document.spans), step)):
                yield document.text, (moved.start, moved.end)
