"""Labels of a whole document, a pair of texts or a relation: one, or several decided one by one by
a threshold.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from biobench.core.arrays import Floats, Ints, ints
from biobench.encode.evidence import shown_labels
from biobench.encode.merge import merge_labels
from biobench.encode.tokens import Encoded
from biobench.kinds.base import (
    Answered,
    Answers,
    Ceiling,
    Kind,
    Problem,
    Split,
    Targets,
    Task,
    Windows,
    register,
)
from biobench.schema.document import Document, Prediction
from biobench.schema.metric import Metric
from biobench.schema.task import TaskSpec
from biobench.schema.training import Head

if TYPE_CHECKING:
    from torch import Tensor, nn
    from transformers import PreTrainedTokenizerBase as Tokenizer

    from biobench.models.loading import Checkpoint


class LabelKind(Kind):
    """A kind whose truth is labels of the document; a window's answer is (labels,)
    probabilities."""

    label_rules = True

    def build_head(self, head: Head, checkpoint: Checkpoint, width: int, outputs: int) -> nn.Module:
        """Pooling, dropout and a linear layer."""
        from biobench.models.heads import LinearHead

        return LinearHead(width, outputs, head.dropout, checkpoint.initial_std, head.pooling)

    def decided(self, spec: TaskSpec, chances: Floats, threshold: float) -> Sequence[int]:
        """Places of the labels that a document is given. chances: (labels,)."""
        return (int(chances.argmax()),)

    def merged(self, spec: TaskSpec, answers: Answers) -> Floats:
        """(labels,) probabilities of a document from those of its windows."""
        return merge_labels(answers, spec.protocol.merge)

    def predict(
        self, task: Task, document: Document, seen: Windows, answers: Answers, threshold: float
    ) -> Prediction:
        """The decided labels, and the probabilities of all."""
        chances = self.merged(task.spec, answers)
        places = self.decided(task.spec, chances, threshold)
        scores = np.round(chances.astype(np.float64), 6)
        return Prediction(
            document=document.id,
            labels=tuple(task.outputs[place] for place in places),
            label_scores=tuple(scores.tolist()),
        )


def labels_of(prediction: Prediction | None) -> set[str]:
    """The predicted labels; none where there is no prediction."""
    if prediction is None:
        return set()
    return set(prediction.labels)


def is_right(document: Document, predictions: Mapping[str, Prediction]) -> bool:
    """Whether the document's prediction names its labels; one without a prediction is wrong."""
    prediction = predictions.get(document.id)
    return prediction is not None and prediction.labels == document.labels


ACCURACY = Metric("accuracy", "accuracy", average="micro")


def binary_cross_entropy(logits: Tensor, gold: Floats, weights: Tensor | None = None) -> Tensor:
    """Sum over rows of the mean over labels. gold: (rows, labels), 0 or 1; weights: (labels,) of
    the ones.
    """
    from torch.nn.functional import binary_cross_entropy_with_logits

    from biobench.core.machine import to_device

    wanted = to_device(gold, logits.device)
    total = binary_cross_entropy_with_logits(logits, wanted, pos_weight=weights, reduction="sum")
    return total / logits.shape[1]


class TextLabels(LabelKind):
    """Labels that mentions in the text stand for, where the corpus has mentions."""

    def ceiling(self, task: Task, test: Split, tokenizer: Tokenizer, window: int) -> Ceiling:
        """Where documents are cut, labels without a mention in the window are lost, if the corpus
        has mentions.
        """
        cut = any(test.encoded[windows[0]].truncated for windows in test.windows)
        if not cut or task.spec.protocol.long_documents == "stride":
            return 0, None
        lost = 0
        best = []
        visible = shown_labels(test.documents, tokenizer, window)
        for document, labels in zip(test.documents, visible, strict=True):
            if labels is None:
                return 0, None
            lost += len(document.labels) - len(labels)
            best.append(Prediction(document=document.id, labels=labels))
        return lost, best


@register
class SingleLabel(TextLabels):
    """One label a document. A target is its place, 0-dimensional."""

    name = "single_label"
    metrics: ClassVar[tuple[Metric, ...]] = (
        ACCURACY,
        Metric(
            "micro_f1_positive",
            "micro F1 without the negative label",
            average="micro",
            positive=True,
        ),
    )

    def target(self, task: Task, document: Document, encoded: Encoded) -> Ints:
        """The label's place."""
        return ints(task.index[document.labels[0]])

    def merged(self, spec: TaskSpec, answers: Answers) -> Floats:
        """As of any kind, with the sum 1."""
        chances = super().merged(spec, answers)
        if len(answers) > 1:
            chances = chances / chances.sum()
        return chances

    def extra_scores(self, run: Answered) -> dict[str, float]:
        """accuracy; a document without a prediction is wrong."""
        right = sum(is_right(document, run.predictions) for document in run.gold)
        return {"accuracy": right / len(run.gold)}


@register
class MultiLabel(TextLabels):
    """Any number of labels a document. A target is the (own labels,) places."""

    name = "multi_label"
    single = False
    thresholds = True
    metrics = (Metric("example_f1", "example-based F1"),)
    fields = (
        "protocol.long_documents",
        "head.threshold",
        "head.fallback",
        "training.positive_weights",
    )

    def target(self, task: Task, document: Document, encoded: Encoded) -> Ints:
        """The labels' places, in order."""
        return np.unique(ints([task.index[label] for label in document.labels]))

    def weights(self, spec: TaskSpec, train: Split) -> Tensor | None:
        """(labels,) weights of the positives, or None.

        ratio: training documents without the label / max(those with it, 1), as in the author's
        configs.
        """
        import torch

        if spec.training.positive_weights == "none":
            return None
        # A document in several windows counts once.
        positives = np.zeros(train.outputs, dtype=np.int64)
        for windows in train.windows:
            positives[train.targets[windows[0]]] += 1
        ratios = (len(train.windows) - positives) / np.maximum(positives, 1)
        return torch.from_numpy(ratios).float()

    def loss(
        self, spec: TaskSpec, logits: Tensor, targets: Targets, weights: Tensor | None
    ) -> Tensor:
        """Binary cross-entropy, of a document the mean over labels."""
        # for a micro-batch only: label sets may be large
        gold = np.zeros(logits.shape, dtype=np.float32)
        for row, positives in zip(gold, targets, strict=True):
            row[positives] = 1.0
        return binary_cross_entropy(logits, gold, weights)

    def probabilities(self, logits: Tensor) -> Tensor:
        """(rows, labels), each label on its own."""
        return logits.sigmoid()

    def decided(self, spec: TaskSpec, chances: Floats, threshold: float) -> Sequence[int]:
        """Labels above the threshold; with `fallback: top1` the highest one where none is."""
        passed = np.flatnonzero(chances > threshold)
        if len(passed) == 0 and spec.head.fallback == "top1":
            return super().decided(spec, chances, threshold)
        return passed.tolist()

    def extra_scores(self, run: Answered) -> dict[str, float]:
        """example_f1; a document without gold and without prediction counts 1."""
        total = 0.0
        for document in run.gold:
            gold = set(document.labels)
            predicted = labels_of(run.predictions.get(document.id))
            if gold or predicted:
                total += 2 * len(gold & predicted) / (len(gold) + len(predicted))
            else:
                total += 1.0
        return {"example_f1": total / len(run.gold)}


@register
class TextPair(SingleLabel):
    """One label for two texts: two sentences, or a question with the passage that answers it, which
    may be empty.
    """

    name = "text_pair"
    label_rules = False
    pairs = True
    fields = ("protocol.long_documents", "protocol.pairs")

    def problem(self, spec: TaskSpec, document: Document) -> Problem | None:
        """No first text."""
        if document.query.strip():
            return None
        return (
            "document {} has no first text",
            "name its column or field as `first`, or remove the row",
            document.id,
        )


@register
class Relation(SingleLabel):
    """The relation between two mentions that the text marks; with a negative label that does not
    count.
    """

    name = "relation"
    label_rules = False
