"""Whether labels stand on their own row: the check against a column that slipped by one.

Neighbouring sentences of an article, or pairs of one sentence, share labels. Where every label stands one row too
low or too high, the text beside it still says something, and the tests against dealt predictions pass. So the
reader is trained and asked twice more, with the labels of each group moved round by one row.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace

from biobench.gate.bag import bag_of_words
from biobench.gate.permutation import UNITS, Tested, beats
from biobench.gate.policy import Played
from biobench.schema.document import Document, TaskData
from biobench.schema.task import TaskSpec
from biobench.score import GroupCounts, counts
from biobench.stats.types import BoolArray

MOVES = {-1: "up", 1: "down"}
FACTOR = 1.2
"""A move must raise macro F1 by a fifth. On the corpora measured (docs/floors.md) it divides it by 1.28 or more, and
the way back after a slip by one row multiplies it by 1.27 or more."""


@dataclass(frozen=True, slots=True)
class Rows:
    """tested: the better move against none (observed: macro F1 moved, other: as annotated); move: up or down."""

    tested: Tested
    move: str

    @property
    def slipped(self) -> bool:
        """Whether the better move is better than none, by the factor and by the test."""
        return self.tested.significant and self.tested.observed >= FACTOR * self.tested.other


def rows(spec: TaskSpec, data: TaskData, reader: Played, evaluated: BoolArray, seed: int) -> Rows | None:
    """The reader as annotated and with all labels moved by a row inside their groups.

    reader: the bag of words on the data as annotated. None where fewer than half of the test documents have a
    neighbour in their group, or there are fewer groups than a test needs.
    """
    sizes = Counter(d.group for d in data.test)
    if len(sizes) < UNITS or 2 * sum(n for n in sizes.values() if n > 1) < len(data.test):
        return None
    annotated = _counted(spec, data, reader)
    moves = []
    for step, way in MOVES.items():
        moved = replace(data, documents={name: _moved(part, step) for name, part in data.documents.items()})
        played = bag_of_words(moved, seed, single=spec.type != "multi_label")
        # Moving round leaves each group its labels, so both sides have the same gold counts.
        moves.append(Rows(beats(_counted(spec, moved, played), annotated, evaluated, seed), way))
    return max(moves, key=lambda r: r.tested.observed)


def _moved(documents: Sequence[Document], step: int) -> list[Document]:
    """Each document with the labels of the one `step` rows above it in its group, the first with the last's."""
    places: dict[str, list[int]] = defaultdict(list)
    for i, d in enumerate(documents):
        places[d.group].append(i)
    result = list(documents)
    for members in places.values():
        for k, i in enumerate(members):
            result[i] = replace(documents[i], labels=documents[members[(k - step) % len(members)]].labels)
    return result


def _counted(spec: TaskSpec, data: TaskData, played: Played) -> GroupCounts:
    return counts(type=spec.type, labels=data.labels, gold=data.test, predictions=played.draws[0])
