"""Names of concepts: which known name means the same as one that was never seen."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Literal, TypeVar

import numpy as np

from biobench.encode.tokens import Encoded, Ints
from biobench.kinds.base import (
    Answered,
    Answers,
    Documents,
    Task,
    Windows,
    register,
)
from biobench.kinds.labels import LabelKind
from biobench.schema.document import Document, Prediction
from biobench.schema.metric import Metric
from biobench.schema.source import fail
from biobench.schema.task import TaskSpec
from biobench.schema.training import Probe

if TYPE_CHECKING:
    pass

Concept = TypeVar("Concept", str, int)

DEPTH = 20
"""Concepts of a ranking that count: the reciprocal rank of a concept below them is 0. Up to here
all reciprocal ranks are whole parts of one number that int64 holds, so that statistics count them
without rounding.
"""
_PARTS = math.lcm(*range(1, DEPTH + 1))


@register
class Synonyms(LabelKind):
    """A mention's surface is asked for its concept among the surfaces of training; nothing is
    trained.

    As read, a document is a text whose spans are labelled with concept ids. What is asked are
    surfaces: candidates are the distinct ones of the training documents, each with its concepts;
    queries those of validation and test that are no candidate but have a concept of one. A target
    is the (concepts,) places of a surface's concepts. A prediction's labels are concepts in order,
    the likeliest first.
    """

    name, single, counted, trains, ranked = "synonyms", False, False, False, True
    metrics = (
        Metric("accuracy_at_1", "accuracy of the first answer", average="micro", share=True),
        Metric(
            "accuracy_at_5", "share with a right answer among five", average="micro", share=True
        ),
        Metric("mrr", "mean reciprocal rank", average="micro", share=True),
    )
    fields = ()

    def check_probe(self, spec: TaskSpec, probe: Probe | Literal["none"] | None) -> None:
        """Nothing is trained."""
        if not (isinstance(probe, Probe) and probe.kind == "similarity"):
            raise fail(
                f"type '{spec.type}' trains nothing",
                "write `training: {encoder: frozen, ...}` and `probe: {kind: similarity, "
                "pooling: mean}`",
            )

    def labelled(self, document: Document) -> Document:
        """With the concepts of its mentions as labels, so that a rule may collect them."""
        return replace(document, labels=tuple(sorted({s.label for s in document.spans})))

    def arranged(self, documents: Mapping[str, Documents]) -> dict[str, list[Document]]:
        """Candidates in the place of the training documents, queries in that of the others."""
        candidates = surfaces_of(documents["train"])
        of_candidates = set().union(*(concepts for _, concepts, _ in candidates.values()))
        result: dict[str, list[Document]] = {}
        for split, of_split in documents.items():
            result[split] = []
            for key, (text, concepts, origin) in surfaces_of(of_split).items():
                answers = tuple(sorted(concepts & of_candidates))
                name = group = f"{split}/{key}"
                if split != "train":
                    if key in candidates or not answers:
                        continue
                    # surfaces of one concept are no independent questions
                    group = f"{split}/{'+'.join(answers)}"
                question = Document(name, group, text, split, labels=answers, origin=origin)
                result[split].append(question)
        return result

    def target(self, task: Task, document: Document, encoded: Encoded) -> Ints:
        """The concepts' places, in order."""
        return np.asarray(sorted(task.index[label] for label in document.labels), dtype=np.int64)

    def predict(
        self, task: Task, document: Document, seen: Windows, answers: Answers, threshold: float
    ) -> Prediction:
        """The concepts that the answer, (concepts,) places, names in its order."""
        return Prediction(
            document.id, labels=tuple(task.outputs[index] for index in answers[0].tolist())
        )

    def share(
        self, metric: str, document: Document, prediction: Prediction | None
    ) -> tuple[int, int] | None:
        """One or none of one for the accuracies; for mrr 1 / rank in whole parts."""
        rank = None if prediction is None else rank_of(document, prediction)
        if metric == "mrr":
            return 0 if rank is None else _PARTS // rank, _PARTS
        depth = {"accuracy_at_1": 1, "accuracy_at_5": 5}.get(metric)
        return None if depth is None else (int(rank is not None and rank <= depth), 1)

    def extra_scores(self, run: Answered) -> dict[str, float]:
        """accuracy_at_1, accuracy_at_5, mrr: means over queries. A query without a prediction
        scores 0.
        """
        return self.mean_shares(run)


def surfaces_of(documents: Documents) -> dict[str, tuple[str, set[str], str]]:
    """Case-folded surface to (surface as it first stands, its concepts, where it first stands).

    Runs of white space are one blank. Concepts that a label rule dropped are skipped, and surfaces
    without any other.
    """
    result: dict[str, tuple[str, set[str], str]] = {}
    for document in documents:
        for span in document.spans:
            text = " ".join(document.text[span.start : span.end].split())
            if text and span.label in document.labels:
                result.setdefault(text.casefold(), (text, set(), document.origin))[1].add(
                    span.label
                )
    return result


def rank_of(document: Document, prediction: Prediction) -> int | None:
    """Place (from 1) of the first right concept among the first `DEPTH`; None where none is
    there."""
    for rank, label in enumerate(prediction.labels[:DEPTH], 1):
        if label in document.labels:
            return rank
    return None


def first_concepts(order: Iterable[int], concepts: Sequence[Iterable[Concept]]) -> list[Concept]:
    """The first `DEPTH` different concepts of the candidates in this order. concepts: those of each
    candidate.
    """
    result: dict[Concept, None] = {}
    for candidate in order:
        result.update(dict.fromkeys(concepts[candidate]))
        if len(result) >= DEPTH:
            break
    return list(result)[:DEPTH]
