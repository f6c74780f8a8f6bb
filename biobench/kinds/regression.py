"""A number for a text or a pair of texts, such as how alike two sentences are."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from biobench.core.arrays import Floats
from biobench.encode.tokens import Encoded
from biobench.kinds.base import Answered, Answers, Problem, Targets, Task, Windows, register
from biobench.kinds.labels import LabelKind
from biobench.schema.document import Document, Prediction
from biobench.schema.kind import number_of
from biobench.schema.metric import Metric
from biobench.schema.source import fail
from biobench.schema.task import TaskSpec

if TYPE_CHECKING:
    from torch import Tensor

    from biobench.stats.correlation import Numbers


def _pearson(gold: Numbers, predicted: Numbers) -> float:
    from biobench.stats.correlation import pearson  # with scipy, which a list of tasks needs not

    return pearson(gold, predicted)


def _spearman(gold: Numbers, predicted: Numbers) -> float:
    from biobench.stats.correlation import spearman

    return spearman(gold, predicted)


@register
class Regression(LabelKind):
    """A linear output, trained by the squared error on the scale brought to 0-1, and cut to the
    scale.

    A target is the number on 0-1, 0-dimensional. A document without a prediction counts as if the
    end of the scale that is farther from its gold had been predicted.
    """

    name = "regression"
    label_rules = False
    counted = False
    numeric = True
    pairs = True
    metrics = (
        Metric("pearson", "Pearson correlation", lowest=-1.0, measure=_pearson),
        Metric("spearman", "Spearman correlation", lowest=-1.0, measure=_spearman),
        Metric("edrm", "EDRM (1 - relative distance)"),
        Metric("mse", "mean squared error", falls=True),
    )
    fields = ("protocol.long_documents", "protocol.pairs", "scale")

    def check(self, spec: TaskSpec) -> None:
        """A scale, and one number a document."""
        if spec.scale is None:
            raise fail(f"scale is missing for type '{spec.type}'", "add `scale: [0, 5]`")
        if isinstance(spec.labels, list) and len(spec.labels) > 1:
            raise fail(
                f"{len(spec.labels)} labels for one number a document",
                "name the number, as `[similarity]`",
            )
        super().check(spec)

    def check_probe(self, spec: TaskSpec) -> None:
        """Also the cosine of a pair's states, which learns nothing."""
        if spec.probe is None or spec.probe.kind != "similarity":
            super().check_probe(spec)

    def problem(self, spec: TaskSpec, document: Document) -> Problem | None:
        """Not one finite number inside the scale."""
        low, high = limits(spec)
        text = document.labels[0]
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if math.isnan(value):
            hint = "give each row a number with a decimal point; remove rows without one"
            return "{} is not a number", hint, text
        if not low <= value <= high:
            hint = f"`scale` is [{low:g}, {high:g}]: check the column, or the scale"
            return "{} is outside the scale", hint, text
        return None

    def target(self, task: Task, document: Document, encoded: Encoded) -> Floats:
        """The number, 0 at the lowest end of the scale and 1 at the highest."""
        low, high = limits(task.spec)
        number = float(document.labels[0])
        return np.asarray((number - low) / (high - low), dtype=np.float32)

    def loss(
        self, spec: TaskSpec, logits: Tensor, targets: Targets, weights: Tensor | None
    ) -> Tensor:
        """Squared error."""
        from biobench.core.machine import to_device

        wanted = to_device(np.stack(targets), logits.device)
        return ((logits[:, 0] - wanted) ** 2).sum()

    def probabilities(self, logits: Tensor) -> Tensor:
        """The output itself."""
        return logits

    def predict(
        self, task: Task, document: Document, seen: Windows, answers: Answers, threshold: float
    ) -> Prediction:
        """The mean over the windows, on the corpus's scale."""
        low, high = limits(task.spec)
        mean = float(np.mean(np.stack(answers)))
        number = min(max(low + (high - low) * mean, low), high)
        return Prediction(document=document.id, label_scores=(round(number, 6),))

    def extra_scores(self, run: Answered) -> dict[str, float]:
        """pearson, spearman (0 where undefined), edrm, and mse on the corpus's own scale."""
        from biobench.stats.correlation import edrm

        gold = np.array([float(d.labels[0]) for d in run.gold])
        assert run.scale is not None
        low, high = run.scale
        # where nothing is predicted, the farther end of the scale
        numbers = np.where(gold - low > high - gold, float(low), float(high))
        for row, document in enumerate(run.gold):
            if document.id in run.predictions:
                numbers[row] = number_of(run.predictions[document.id])
        return {
            "pearson": _pearson(gold, numbers),
            "spearman": _spearman(gold, numbers),
            "edrm": edrm(gold, numbers, low, high),
            "mse": float(((gold - numbers) ** 2).mean()),
        }


def limits(spec: TaskSpec) -> tuple[float, float]:
    """Lowest and highest number of the scale."""
    assert spec.scale is not None
    return spec.scale
