"""Labels of a whole document, a pair of texts or a relation: one, or several decided one by one by
a threshold.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from biobench.encode.evidence import shown_labels
from biobench.encode.merge import merge_labels
from biobench.encode.tokens import Encoded, Ints
from biobench.kinds.base import (
    Answered,
    Answers,
    Ceiling,
    Kind,
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

    def decided(
        self, spec: TaskSpec, chances: NDArray[np.float32], threshold: float
    ) -> Sequence[int]:
        """Places of the labels that a document is given. chances: (labels,)."""
        return (int(chances.argmax()),)

    def merged(self, spec: TaskSpec, answers: Answers) -> NDArray[np.float32]:
        """(labels,) probabilities of a document from those of its windows."""
        return merge_labels(answers, spec.protocol.merge)

    def predict(
        self, task: Task, document: Document, seen: Windows, answers: Answers, threshold: float
    ) -> Prediction:
        """The decided labels, and the probabilities of all."""
        chances = self.merged(task.spec, answers)
        labels = tuple(task.outputs[i] for i in self.decided(task.spec, chances, threshold))
        scores = np.round(chances.astype(np.float64), 6).tolist()
        return Prediction(document=document.id, labels=labels, label_scores=tuple(scores))


def labels_of(prediction: Prediction | None) -> set[str]:
    """The predicted labels; none where there is no prediction."""
    return set() if prediction is None else set(prediction.labels)


ACCURACY = Metric("accuracy", "accuracy", average="micro")


def cross_entropy(logits: Tensor, outputs: Sequence[NDArray[Any]]) -> Tensor:
    """Sum over rows. outputs: of each window the right one, or those of its words end to end."""
    import torch

    from biobench.core.machine import to_device

    wanted = to_device(np.hstack(outputs), logits.device)
    return torch.nn.functional.cross_entropy(logits, wanted, reduction="sum")


class TextLabels(LabelKind):
    """Labels that mentions in the text stand for, where the corpus has mentions."""

    def ceiling(self, task: Task, test: Split, tokenizer: Tokenizer, window: int) -> Ceiling:
        """Where documents are cut, labels without a mention in the window are lost, if the corpus
        has mentions.
        """
        cut = any(test.encoded[windows[0]].truncated for windows in test.windows)
        if not cut or task.spec.protocol.long_documents == "stride":
            return 0, None
        lost, best = 0, []
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
        return np.asarray(task.index[document.labels[0]], dtype=np.int64)

    def loss(
        self, spec: TaskSpec, logits: Tensor, targets: Targets, weights: Tensor | None
    ) -> Tensor:
        """Cross-entropy."""
        return cross_entropy(logits, targets)

    def merged(self, spec: TaskSpec, answers: Answers) -> NDArray[np.float32]:
        """As of any kind, with the sum 1."""
        chances = super().merged(spec, answers)
        return chances / chances.sum() if len(answers) > 1 else chances

    def extra_scores(self, run: Answered) -> dict[str, float]:
        """accuracy; a document without a prediction is wrong."""
        right = sum(
            d.id in run.predictions and run.predictions[d.id].labels == d.labels for d in run.gold
        )
        return {"accuracy": right / len(run.gold)}


@register
class MultiLabel(TextLabels):
    """Any number of labels a document. A target is the (own labels,) places."""

    name, single, thresholds = "multi_label", False, True
    metrics = (Metric("example_f1", "example-based F1"),)
    fields = (
        "protocol.long_documents",
        "head.threshold",
        "head.fallback",
        "training.positive_weights",
    )

    def target(self, task: Task, document: Document, encoded: Encoded) -> Ints:
        """The labels' places, in order."""
        return np.asarray(sorted({task.index[label] for label in document.labels}), dtype=np.int64)

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
        return torch.from_numpy((len(train.windows) - positives) / np.maximum(positives, 1)).float()

    def loss(
        self, spec: TaskSpec, logits: Tensor, targets: Targets, weights: Tensor | None
    ) -> Tensor:
        """Binary cross-entropy, of a document the mean over labels."""
        import torch

        from biobench.core.machine import to_device

        labels = logits.shape[1]
        # for a micro-batch only: label sets may be large
        wanted = torch.zeros(len(targets), labels)
        rows = np.repeat(np.arange(len(targets)), [len(t) for t in targets])
        wanted[torch.from_numpy(rows), torch.from_numpy(np.concatenate(targets))] = 1.0
        wanted = to_device(wanted, logits.device)
        binary = torch.nn.functional.binary_cross_entropy_with_logits
        return binary(logits, wanted, pos_weight=weights, reduction="sum") / labels

    def probabilities(self, logits: Tensor) -> Tensor:
        """(rows, labels), each label on its own."""
        return logits.sigmoid()

    def decided(
        self, spec: TaskSpec, chances: NDArray[np.float32], threshold: float
    ) -> Sequence[int]:
        """Labels above the threshold; with `fallback: top1` the highest one where none is."""
        passed = np.flatnonzero(chances > threshold)
        if len(passed) == 0 and spec.head.fallback == "top1":
            passed = np.asarray([chances.argmax()])
        return passed.tolist()

    def extra_scores(self, run: Answered) -> dict[str, float]:
        """example_f1; a document without gold and without prediction counts 1."""
        total = 0.0
        for document in run.gold:
            true, labels = set(document.labels), labels_of(run.predictions.get(document.id))
            if true or labels:
                total += 2 * len(true & labels) / (len(true) + len(labels))
            else:
                total += 1.0
        return {"example_f1": total / len(run.gold)}


@register
class TextPair(SingleLabel):
    """One label for two texts: two sentences, or a question with the passage that answers it, which
    may be empty.
    """

    name, label_rules, pairs = "text_pair", False, True
    fields = ("protocol.long_documents", "protocol.pairs")

    def problem(self, spec: TaskSpec, document: Document) -> tuple[str, str, str | None] | None:
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

    name, label_rules = "relation", False
