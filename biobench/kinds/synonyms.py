"""Names of concepts: which known name means the same as one that was never seen."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple, TypeVar

from biobench.core.arrays import Ints, ints
from biobench.encode.tokens import Encoded
from biobench.kinds.base import Answers, Documents, Share, Task, Windows, register
from biobench.kinds.labels import LabelKind
from biobench.schema.document import Document, Prediction
from biobench.schema.metric import Metric
from biobench.schema.source import fail
from biobench.schema.task import TaskSpec

Concept = TypeVar("Concept", str, int)

DEPTH = 20
"""Concepts of a ranking that count: the reciprocal rank of a concept below them is 0. Up to here
all reciprocal ranks are whole parts of one number that int64 holds, so that statistics count them
without rounding.
"""
_PARTS = math.lcm(*range(1, DEPTH + 1))
_DEPTHS = {"accuracy_at_1": 1, "accuracy_at_5": 5}


class Surface(NamedTuple):
    """A name in the text: as it first stands, its concepts, and where it first stands."""

    text: str
    concepts: set[str]
    origin: str


@register
class Synonyms(LabelKind):
    """A mention's surface is asked for its concept among the surfaces of training; nothing is
    trained.

    As read, a document is a text whose spans are labelled with concept ids. What is asked are
    surfaces: candidates are the distinct ones of the training documents, each with its concepts;
    queries those of validation and test that are no candidate but have a concept of one. A target
    is the (concepts,) places of a surface's concepts. A prediction's labels are concepts in order,
    the likeliest first; a query without a prediction scores 0.
    """

    name = "synonyms"
    single = False
    counted = False
    trains = False
    ranked = True
    metrics = (
        Metric("accuracy_at_1", "accuracy of the first answer", average="micro", share=True),
        Metric(
            "accuracy_at_5", "share with a right answer among five", average="micro", share=True
        ),
        Metric("mrr", "mean reciprocal rank", average="micro", share=True),
    )
    fields = ()

    def check_probe(self, spec: TaskSpec) -> None:
        """Nothing is trained."""
        is_frozen = spec.training.encoder == "frozen"
        if not is_frozen or spec.probe is None or spec.probe.kind != "similarity":
            raise fail(
                f"type '{spec.type}' trains nothing",
                "write `training: {encoder: frozen, ...}` and `probe: {kind: similarity, "
                "pooling: mean}`",
            )

    def labelled(self, document: Document) -> Document:
        """With the concepts of its mentions as labels, so that a rule may collect them."""
        concepts = {span.label for span in document.spans}
        return replace(document, labels=tuple(sorted(concepts)))

    def arranged(self, documents: Mapping[str, Documents]) -> dict[str, list[Document]]:
        """Candidates in the place of the training documents, queries in that of the others."""
        candidates = surfaces_of(documents["train"])
        reachable: set[str] = set()
        for surface in candidates.values():
            reachable |= surface.concepts
        arranged: dict[str, list[Document]] = {}
        for split, of_split in documents.items():
            arranged[split] = []
            for key, surface in surfaces_of(of_split).items():
                concepts = tuple(sorted(surface.concepts & reachable))
                is_candidate = split == "train"
                if not is_candidate and (not concepts or key in candidates):
                    continue
                # surfaces of one concept are no independent questions
                group = key if is_candidate else "+".join(concepts)
                asked = Document(
                    id=f"{split}/{key}",
                    group=f"{split}/{group}",
                    text=surface.text,
                    split=split,
                    labels=concepts,
                    origin=surface.origin,
                )
                arranged[split].append(asked)
        return arranged

    def target(self, task: Task, document: Document, encoded: Encoded) -> Ints:
        """The concepts' places, in order."""
        return ints(sorted(task.index[label] for label in document.labels))

    def predict(
        self, task: Task, document: Document, seen: Windows, answers: Answers, threshold: float
    ) -> Prediction:
        """The concepts that the answer, (concepts,) places, names in its order."""
        (places,) = answers
        return Prediction(document.id, labels=tuple(task.outputs[place] for place in places))

    def share(self, metric: str, document: Document, prediction: Prediction | None) -> Share | None:
        """One or none of one for the accuracies; for mrr 1 / rank in whole parts."""
        rank = rank_of(document, prediction)
        if metric in _DEPTHS:
            return int(rank <= _DEPTHS[metric]), 1
        if metric == "mrr":
            return int(_PARTS // rank), _PARTS
        return None


def surfaces_of(documents: Documents) -> dict[str, Surface]:
    """The surfaces, case-folded, of the mentions in these documents.

    Runs of white space are one blank. Concepts that a label rule dropped are skipped, and surfaces
    without any other.
    """
    surfaces: dict[str, Surface] = {}
    for document in documents:
        for span in document.spans:
            text = " ".join(document.text[span.start : span.end].split())
            if text and span.label in document.labels:
                new = Surface(text, set(), document.origin)
                surfaces.setdefault(text.casefold(), new).concepts.add(span.label)
    return surfaces


def rank_of(document: Document, prediction: Prediction | None) -> float:
    """Place (from 1) of the first right concept among the first `DEPTH`; infinite where none is
    there, and without a prediction.
    """
    if prediction is not None:
        for rank, label in enumerate(prediction.labels[:DEPTH], 1):
            if label in document.labels:
                return rank
    return math.inf


def first_concepts(order: Iterable[int], concepts: Sequence[Iterable[Concept]]) -> list[Concept]:
    """The first `DEPTH` different concepts of the candidates in this order. concepts: those of each
    candidate.
    """
    found: dict[Concept, None] = {}
    for candidate in order:
        found |= dict.fromkeys(concepts[candidate])
        if len(found) >= DEPTH:
            break
    return list(found)[:DEPTH]
