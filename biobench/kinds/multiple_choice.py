"""Questions with options of which one or several are right."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations, compress
from typing import TYPE_CHECKING

import numpy as np

from biobench.core.arrays import Array, Floats, Ints, ints
from biobench.encode.tokens import Encoded
from biobench.kinds.base import Answers, Problem, Share, Targets, Task, Windows, register
from biobench.kinds.labels import LabelKind, binary_cross_entropy, labels_of
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
    (options,) right ones, each decided on its own. A question without a prediction scores 0.
    """

    name = "multiple_choice"
    label_rules = False
    counted = False
    single = False
    pairs = True
    metrics = (
        Metric("exact_match", "exact match", average="micro", share=True),
        Metric("hamming", "Hamming score", average="micro", share=True),
    )
    options = True
    fields = ("protocol.long_documents", "protocol.pairs", "head.choice")

    def problem(self, spec: TaskSpec, document: Document) -> Problem | None:
        """No question, no right option, other options than labels, or a right one that is not
        there.
        """
        assert isinstance(spec.labels, list), "labels by rule do not fit this kind"
        labels = len(spec.labels)
        options = len(document.pieces)
        if labels > MOST_OPTIONS:
            message = f"{labels} options a question are more than {MOST_OPTIONS}"
            return message, "make it a task of pairs", None
        if not document.query.strip():
            return "question {} has no text", "fill it in, or remove the question", document.id
        if options != labels:
            message = f"{options} options where the task has {labels} labels"
            hint = "`labels` names the options; a shorter question leaves its last ones empty"
            return message, hint, None
        if not document.labels:
            hint = "fill the answers in, or remove the question"
            return "question {} has no right option", hint, document.id
        present = options_of(document, spec.labels)
        for label in document.labels:
            if label not in present:
                hint = "check the options, or remove the question"
                return "the right option {} has no text", hint, label
        return None

    def head_outputs(self, spec: TaskSpec, labels: Sequence[str]) -> tuple[str, ...]:
        """The sets of options, as their names with `+` between; or the options."""
        if spec.head.choice == "options":
            return tuple(labels)
        return tuple(map("+".join, answer_sets(labels)))

    def target(self, task: Task, document: Document, encoded: Encoded) -> Ints | Floats:
        """The set's place, or a 1 for each right option."""
        labels = task.data.labels
        is_right = [label in document.labels for label in labels]
        if task.spec.head.choice == "options":
            return np.asarray(is_right, dtype=np.float32)
        return ints(task.index["+".join(compress(labels, is_right))])

    def loss(
        self, spec: TaskSpec, logits: Tensor, targets: Targets, weights: Tensor | None
    ) -> Tensor:
        """Cross-entropy over sets, or the mean of the options' binary ones."""
        if spec.head.choice == "sets":
            return super().loss(spec, logits, targets, weights)
        return binary_cross_entropy(logits, np.stack(targets))

    def probabilities(self, logits: Tensor) -> Tensor:
        """The outputs themselves: what they become depends on the spec."""
        return logits

    def predict(
        self, task: Task, document: Document, seen: Windows, answers: Answers, threshold: float
    ) -> Prediction:
        """The decided options, and each option's probability; those that the question lacks have
        0."""
        labels = task.data.labels
        logits = np.mean(np.stack(answers), axis=0).astype(np.float64)
        present = options_of(document, labels)
        if task.spec.head.choice == "options":
            chosen, chances = _one_by_one(logits, labels, present)
        else:
            chosen, chances = _likeliest_set(logits, labels, present)
        scores = tuple(round(min(chance, 1.0), 6) for chance in chances)
        return Prediction(document.id, labels=chosen, label_scores=scores)

    def share(self, metric: str, document: Document, prediction: Prediction | None) -> Share | None:
        """One or none of one for exact_match; for hamming |both| / |either| in whole parts."""
        right = set(document.labels)
        predicted = labels_of(prediction)
        if metric == "exact_match":
            return int(right == predicted), 1
        if metric == "hamming":
            both = len(right & predicted)
            either = len(right | predicted)
            return _PARTS * both // either, _PARTS
        return None


def _one_by_one(
    logits: Array, labels: Sequence[str], present: set[str]
) -> tuple[tuple[str, ...], list[float]]:
    """The options above one half, or else the likeliest one; and the chance of each."""
    is_present = [label in present for label in labels]
    sigmoid = 1 / (1 + np.exp(-logits))
    chances = np.where(is_present, sigmoid, 0.0)
    is_chosen = chances > 0.5
    if not is_chosen.any():
        is_chosen[chances.argmax()] = True
    return tuple(compress(labels, is_chosen)), chances.tolist()


def _likeliest_set(
    logits: Array, labels: Sequence[str], present: set[str]
) -> tuple[tuple[str, ...], list[float]]:
    """The likeliest set of options that are present; and the chance of each option, which is that
    of all sets with it.
    """
    sets = answer_sets(labels)
    is_possible = [set(options) <= present for options in sets]
    weights = is_possible * np.exp(logits - logits.max())
    weights /= weights.sum()
    chances: list[float] = []
    for label in labels:
        holds_label = [label in options for options in sets]
        chances.append(math.fsum(weights[holds_label]))
    return sets[int(weights.argmax())], chances


def answer_sets(labels: Sequence[str]) -> list[tuple[str, ...]]:
    """Every set of options but the empty one: single options first, in the order of the labels."""
    sets: list[tuple[str, ...]] = []
    for size in range(1, len(labels) + 1):
        sets += combinations(labels, size)
    return sets


def options_of(document: Document, labels: Sequence[str]) -> set[str]:
    """The options that the question has a text for. Documents read back from a store have no text,
    and so all.
    """
    if not document.pieces:
        return set(labels)
    options: set[str] = set()
    for label, (start, end) in zip(labels, document.pieces, strict=False):
        if start < end:
            options.add(label)
    return options
