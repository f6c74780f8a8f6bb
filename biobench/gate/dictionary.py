"""The training dictionary for entity tasks: every surface that was a mention in training is one in the test."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

from biobench.gate.policy import Played
from biobench.gate.words import Place, Words
from biobench.schema.document import Prediction, TaskData
from biobench.schema.tags import spans_to_tags


class Dictionary:
    """Surfaces (sequences of words as written) to the label that most of their training mentions have."""

    def __init__(self, train: Iterable[tuple[Words, Sequence[Place]]], labels: Sequence[str]) -> None:
        """train: each document's words and mentions; labels: in the task's order, by which ties are broken."""
        surfaces: dict[tuple[str, ...], Counter[str]] = defaultdict(Counter)
        for words, places in train:
            for begin, end, label in places:
                surfaces[words.surfaces[begin:end]][label] += 1
        order = {label: i for i, label in enumerate(labels)}
        self.labels = {
            surface: min(seen, key=lambda label: (-seen[label], order[label])) for surface, seen in surfaces.items()
        }
        lengths: dict[str, set[int]] = defaultdict(set)
        for surface in self.labels:
            lengths[surface[0]].add(len(surface))
        self.lengths = {first: sorted(known, reverse=True) for first, known in lengths.items()}

    @classmethod
    def of(cls, data: TaskData) -> Dictionary:
        """Of the training split as annotated."""
        read = ((Words.of(d), d.spans) for d in data.train)
        return cls(((words, words.places(spans)) for words, spans in read), data.labels)

    def places(self, words: Words) -> list[Place]:
        """From left to right the longest surface that begins at each word; matches do not overlap."""
        matches: list[Place] = []
        at = 0
        while at < len(words):
            for length in self.lengths.get(words.surfaces[at], ()):
                # Near the end a slice is shorter than asked for and would be another surface.
                label = self.labels.get(words.surfaces[at : at + length]) if at + length <= len(words) else None
                if label is not None:
                    matches.append((at, at + length, label))
                    at += length
                    break
            else:
                at += 1
        return matches


def dictionary(data: TaskData) -> Played:
    """Longest match of training mentions on the corpus's own tokens, else on words; case counts."""
    known = Dictionary.of(data)
    predictions = []
    for d in data.test:
        words = Words.of(d)
        spans = tuple(words.span(place) for place in known.places(words))
        tags = tuple(spans_to_tags(spans, d.tokens)) if d.tokens else ()
        predictions.append(Prediction(document=d.id, spans=spans, tags=tags))
    return Played(
        "training dictionary", f"longest match of the {len(known.labels)} surfaces that are mentions in training",
        [predictions], blind=False,
    )  # fmt: skip
