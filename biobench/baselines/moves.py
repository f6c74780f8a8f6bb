"""Whether mentions stand where they belong: a move that makes them fit better shows that they do not.

Both checks compare the corpus with itself, so they need no word list and no threshold of a language.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from biobench.baselines.permutation import beats
from biobench.baselines.words import Dictionary, Words
from biobench.schema.baseline import GateCheck
from biobench.schema.document import Document, TaskData
from biobench.score import GroupCounts

HALF, POINTS = 0.5, 0.03
"""A move must at least halve the share of bad edges and lower it by 3 points. On the corpora measured
the share is 0.0 to 2.8 percent as annotated, no move lowers it, and at least 95 percent after a
shift by one character; after a shift by one token it is 8 to 41 percent on all but one."""
RECURS = 1.5
"""A move must raise the dictionary's micro F1 by half. On the corpora measured it divides it by 1.7 or more, and the
way back after a shift multiplies it by 1.7 or more."""


def surface(documents: Sequence[Document]) -> GateCheck:
    """Edges of mentions inside a word (a letter or digit on both sides) or on a blank or punctuation sign.

    All mentions are moved by up to three characters, and by a token where the corpus has tokens. Offsets are shifted
    where the best move is better by both thresholds.
    """

    def share(step: int, *, tokens: bool) -> tuple[float, int]:
        """Bad edges of the mentions that can be moved by `step`, 0-1, and how many those are."""
        bad = count = 0
        for d in documents:
            moved = [(s.start + step, s.end + step) for s in set(d.spans)]
            if tokens:
                words = Words.of(d)
                moved = [words.span(place)[:2] for place in words.places(set(d.spans) if d.tokens else (), step)]
            for start, end in moved:
                if 0 <= start < end <= len(d.text):
                    count += 1
                    bad += not d.text[start].isalnum() or (start > 0 and d.text[start - 1].isalnum())
                    bad += not d.text[end - 1].isalnum() or (end < len(d.text) and d.text[end].isalnum())
        return (bad / (2 * count) if count else 0.0), count

    annotated, mentions = share(0, tokens=False)
    moves = []
    for step, unit in [(n, "character") for n in (-3, -2, -1, 1, 2, 3)] + [(-1, "token"), (1, "token")]:
        moved, count = share(step, tokens=unit == "token")
        # Mentions at the ends cannot be moved; a move that leaves few of them behind says nothing.
        if count >= mentions / 2 and count:
            moves.append((moved, f"{abs(step)} {unit}{'s' * (abs(step) > 1)} to the {'right' if step > 0 else 'left'}"))
    words = f"{100 * annotated:.1f} % of the edges of {mentions} mentions lie inside words or on punctuation"
    if not moves:
        return GateCheck(name="surface", passed=True, words=words)
    best, move = min(moves)
    shifted = best <= HALF * annotated and annotated - best >= POINTS
    words += f", {'only ' * shifted}{100 * best:.1f} % if all were moved {move}{': offsets are shifted' * shifted}"
    return GateCheck(name="surface", passed=not shifted, words=words)


def alignment(data: TaskData, seed: int) -> GateCheck:
    """The dictionary as annotated and with all mentions, of both splits, moved one word to either side.

    The surfaces of true mentions recur from training to test. After a shift by one word the mentions are made of what
    stood before or behind them, which recurs less. Mentions are shifted where one move is better than none, by the
    factor and by the test, and than the other: where both are better alike, they are new names among common words.
    """
    train, test = ([(Words.of(d), d.spans) for d in part] for part in (data.train, data.test))
    groups = np.unique([d.group for d in data.test], return_inverse=True)[1].tolist()

    def counted(step: int) -> GroupCounts:
        """All labels together. Mentions that would leave their document are missed."""
        known = Dictionary([(words, words.places(spans, step)) for words, spans in train], data.labels)
        tp, fp, fn = np.zeros((3, max(groups) + 1, 1), dtype=np.int64)
        for group, (words, spans) in zip(groups, test, strict=True):
            predicted, gold = set(known.places(words)), set(words.places(spans, step))
            hits = len(predicted & gold)
            tp[group] += hits
            fp[group] += len(predicted) - hits
            fn[group] += len(set(words.places(spans))) - hits
        return GroupCounts(tuple(map(str, range(len(tp)))), ("mention",), tp, fp, fn)

    annotated, every = counted(0), np.array([True])
    moves = {way: beats(counted(step), annotated, every, seed) for step, way in ((-1, "left"), (1, "right"))}
    way, other = sorted(moves, key=lambda way: -moves[way].observed)
    t = moves[way]
    shifted = t.significant and t.observed >= RECURS * max(t.other, moves[other].observed)
    words = (
        f"the training dictionary has micro F1 {100 * t.other:.1f}, {100 * t.observed:.1f} if all mentions were moved "
        f"1 word to the {way} (p = {t.p:.3f}){': mentions are shifted' * shifted}"
    )
    return GateCheck(name="alignment", passed=not shifted, words=words, p=t.p)
