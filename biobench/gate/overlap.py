"""Which test documents training knows already: the same texts, nearly the same ones, and other documents of a group."""

from __future__ import annotations

from dataclasses import dataclass, replace

from biobench.data.verify import near, same
from biobench.schema.document import TaskData


@dataclass(frozen=True, slots=True)
class Overlap:
    """Places in the test split. copies: of documents that stand verbatim in training; near: of others that share four
    fifths of their words with a training text; groups: of those whose group (patient, article) training has too."""

    copies: frozenset[int]
    near: frozenset[int]
    groups: frozenset[int]

    @property
    def words(self) -> str:
        """``3 stand verbatim in training, 5 are of groups that training has too``; empty where there is none."""
        parts = [
            f"{len(self.copies)} stand verbatim in training" if self.copies else "",
            f"{len(self.near)} are near-copies of training texts (four fifths of the words)" if self.near else "",
            f"{len(self.groups)} are of groups (patients, articles) that training has too" if self.groups else "",
        ]
        return ", ".join(part for part in parts if part)


def overlap(data: TaskData) -> Overlap:
    """Looks for the test documents in training."""
    train, test = [d.reading for d in data.train], [d.reading for d in data.test]
    copies = frozenset(place for place, _ in same(test, train))
    groups = {d.group for d in data.train}
    shared = frozenset(place for place, d in enumerate(data.test) if d.group in groups)
    return Overlap(copies, frozenset(place for place, _ in near(test, train)) - copies, shared)


def without(data: TaskData, places: frozenset[int]) -> TaskData:
    """The data without the test documents at these places; labels with gold stay those of the whole split."""
    rest = [d for place, d in enumerate(data.test) if place not in places]
    return replace(data, documents=data.documents | {"test": rest})
