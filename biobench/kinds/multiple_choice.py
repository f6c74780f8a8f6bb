"""Questions with options of which one or several are right."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from biobench.encode.tokens import Encoded, Ints
from biobench.kinds.base import (
    Answered,
    Answers,
    Targets,
    Task,
    Windows,
    register,
)
from biobench.kinds.labels import LabelKind, cross_entropy, labels_of
from biobench.schema.document import Document, Prediction
from biobench.schema.metric import Metric
from biobench.schema.task import TaskSpec

if TYPE_CHECKING:
    from torch import Tensor

MOST_OPTIONS = 8
"""Options of a question at most: every set of right ones has an output of its own."""
_PARTS = math.lcm(*range(1, MOST_OPTIONS + 1))
"""Of which a share is a whole number, whatever number of options it is a share of."""


@register
class MultipleChoice(LabelKind):
    """Labels are the options' names, in the order of the text's pieces; a document's labels are the
    right ones.

    head.choice sets: a target is the place of the right set among all sets but the empty one, and
    the likeliest set of options that the question has is predicted. options: a target is the
    (options,) right ones, each decided on its own.
    """

    name, label_rules, counted, single, pairs = "multiple_choice", False, False, False, True
    metrics = (
        Metric("exact_match", "exact match", average="micro", share=True),
        Metric("hamming", "Hamming score", average="micro", share=True),
    )
    options, fields = True, ("protocol.long_documents", "protocol.pairs", "head.choice")

    def problem(self, spec: TaskSpec, document: Document) -> tuple[str, str, str | None] | None:
        """No question, no right option, other options than labels, or a right one that is not
        there.
        """
        labels = spec.labels if isinstance(spec.labels, list) else []
        if len(labels) > MOST_OPTIONS:
            return (
                f"{len(labels)} options a question are more than {MOST_OPTIONS}",
                "make it a task of pairs",
                None,
            )
        if not document.query.strip():
            return "question {} has no text", "fill it in, or remove the question", document.id
        if len(document.pieces) != len(labels):
            return (
                f"{len(document.pieces)} options where the task has {len(labels)} labels",
                "`labels` names the options; a shorter question leaves its last ones empty",
                None,
            )
        if not document.labels:
            return (
                "question {} has no right option",
                "fill the answers in, or remove the question",
                document.id,
            )
        there = options_of(document, labels)
        gone = [label for label in document.labels if label not in there]
        if gone:
            return (
                "the right option {} has no text",
                "check the options, or remove the question",
                gone[0],
            )
        return None

    def head_outputs(self, spec: TaskSpec, labels: Sequence[str]) -> tuple[str, ...]:
        """The sets of options, as their names with `+` between; or the options."""
        if spec.head.choice == "options":
            return tuple(labels)
        return tuple("+".join(options) for options in answer_sets(labels))

    def target(
        self, task: Task, document: Document, encoded: Encoded
    ) -> Ints | NDArray[np.float32]:
        """The set's place, or a 1 for each right option."""
        if task.spec.head.choice == "options":
            return np.asarray(
                [label in document.labels for label in task.outputs], dtype=np.float32
            )
        order = [label for label in task.data.labels if label in document.labels]
        return np.asarray(task.index["+".join(order)], dtype=np.int64)

    def loss(
        self, spec: TaskSpec, logits: Tensor, targets: Targets, weights: Tensor | None
    ) -> Tensor:
        """Cross-entropy over sets, or the mean of the options' binary ones."""
        if spec.head.choice == "sets":
            return cross_entropy(logits, targets)
        from torch.nn.functional import binary_cross_entropy_with_logits

        from biobench.core.machine import to_device

        wanted = to_device(np.stack(targets), logits.device)
        return binary_cross_entropy_with_logits(logits, wanted, reduction="sum") / logits.shape[1]

    def probabilities(self, logits: Tensor) -> Tensor:
        """The outputs themselves: what they become depends on the spec."""
        return logits

    def predict(
        self, task: Task, document: Document, seen: Windows, answers: Answers, threshold: float
    ) -> Prediction:
        """The decided options, and each option's probability; those that the question lacks have
        0."""
        labels, logits = task.data.labels, np.mean(np.stack(answers), axis=0).astype(np.float64)
        there = options_of(document, labels)
        chances: list[float] = []
        if task.spec.head.choice == "options":
            present = [label in there for label in labels]
            chances = np.where(present, 1 / (1 + np.exp(-logits)), 0.0).tolist()
            chosen = tuple(labels[i] for i in np.flatnonzero(np.greater(chances, 0.5)))
            chosen = chosen or (labels[int(np.argmax(chances))],)
        else:
            sets = answer_sets(labels)
            weights = [set(options) <= there for options in sets] * np.exp(logits - logits.max())
            weights /= weights.sum()
            chosen = sets[int(weights.argmax())]
            for label in labels:
                chances.append(math.fsum(weights[[label in options for options in sets]]))
        scores = tuple(round(min(chance, 1.0), 6) for chance in chances)
        return Prediction(document.id, labels=chosen, label_scores=scores)

    def share(
        self, metric: str, document: Document, prediction: Prediction | None
    ) -> tuple[int, int] | None:
        """One or none of one for exact_match; for hamming |both| / |either| in whole parts."""
        true, predicted = set(document.labels), labels_of(prediction)
        if metric == "exact_match":
            return int(true == predicted), 1
        if metric == "hamming":
            return _PARTS * len(true & predicted) // len(true | predicted), _PARTS
        return None

    def extra_scores(self, run: Answered) -> dict[str, float]:
        """exact_match; hamming, the mean of |both| / |either|. A question without a prediction
        scores 0.
        """
        return self.mean_shares(run)


def answer_sets(labels: Sequence[str]) -> list[tuple[str, ...]]:
    """Every set of options but the empty one: single options first, in the order of the labels."""
    sizes = range(1, len(labels) + 1)
    return [options for size in sizes for options in itertools.combinations(labels, size)]


def options_of(document: Document, labels: Sequence[str]) -> set[str]:
    """The options that the question has a text for. Documents read back from a store have no text,
    and so all.
    """
    if not document.pieces:
        return set(labels)
    return {
        label for label, (start, end) in zip(labels, document.pieces, strict=False) if start < end
    }
