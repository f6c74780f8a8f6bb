"""The protocol of a kind of task, with what most kinds share."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import attrgetter
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, cast

import numpy as np

from biobench.core.arrays import Array
from biobench.encode.pairs import encode_pairs
from biobench.encode.tokens import Encoded, encode_documents, encode_windows
from biobench.errors import StoreError, TrainingError
from biobench.schema.document import Document, Prediction, TaskData
from biobench.schema.kind import KINDS, PLUGIN_METRICS, Traits, get_metric, leading_metrics
from biobench.schema.metric import Metric
from biobench.schema.source import fail
from biobench.schema.strict import suggest
from biobench.schema.tags import Mode
from biobench.schema.task import TaskSpec
from biobench.schema.training import Head

if TYPE_CHECKING:
    from torch import Tensor, nn
    from transformers import PreTrainedTokenizerBase as Tokenizer

    from biobench.models.loading import Checkpoint


Documents = Sequence[Document]
Windows = Sequence[Encoded]
Targets = Sequence[Array]
"""Per window what the kind's `target` gives."""
Answers = Sequence[Array]
"""Per window an array in the form of the kind, from its `answers` to its `predict`."""
Problem = tuple[str, str, str | None]
"""What is wrong with a document (`{}` for the value), what helps, and the value."""
Items = set[tuple[str, int, int]]
"""(label, start, end) of what is counted as right or wrong."""
Share = tuple[int, int]
"""(reached, reachable) of one document."""
Cut = tuple[Documents, Documents, list[Encoded], list[int]]
"""Documents that are kept, these with their units as tokens, their windows, and each window's
document.
"""
Ceiling = tuple[int, list[Prediction] | None]
"""Gold that no model can reach under the protocol, and the best predictions; None where these are
not known.
"""

CURVE = ("macro_f1", "micro_f1", "weighted_f1")
"""Scores of a validation that records keep, of kinds with F1."""


@dataclass(frozen=True, slots=True)
class Split:
    """One split, ready to be batched. What is batched are windows: one a document, or several with
    stride.

    units: the documents, for span tasks with the head's units as their tokens. encoded, targets,
    lengths: per window; a target is what the kind's `target` gives. windows: per document, the
    places of its windows. outputs: how many labels or tags there are.
    """

    documents: Documents
    units: Documents
    encoded: Windows
    targets: Targets
    lengths: Sequence[int]
    windows: Sequence[Sequence[int]]
    outputs: int = 0


@dataclass(frozen=True, slots=True)
class Answered:
    """What is scored. predictions: by document; one may be missing. partial: gives F1 with overlap
    alone.
    """

    labels: Sequence[str]
    gold: Documents
    predictions: Mapping[str, Prediction]
    partial: Callable[[], dict[str, float]]
    scale: tuple[float, float] | None = None


@dataclass(frozen=True)
class Task:
    """A spec with its data. outputs: what the head's outputs mean (tags, or labels)."""

    spec: TaskSpec
    data: TaskData
    outputs: tuple[str, ...]

    @property
    def kind(self) -> Kind:
        """The task's kind."""
        return get_kind(self.spec.type)

    @cached_property
    def index(self) -> dict[str, int]:
        """Output to its place."""
        return {name: number for number, name in enumerate(self.outputs)}

    @property
    def decode(self) -> Mode:
        """The reader's tag decoding."""
        return cast(Mode, self.data.decode)


_METRIC_FIELDS = ("primary", "paper", "selection")
_NOT_OF_ALL = {
    "scale": None,
    "protocol.pairs": "shorten_longer",
    "protocol.long_documents": "truncate",
    "head.choice": "sets",
    "head.threshold": 0.5,
    "head.fallback": "none",
    "training.positive_weights": "none",
}
"""Fields of a spec that some kinds have (`Traits.fields`), and their defaults, at which they stay
elsewhere.
"""


class Kind(Traits):
    """One kind of task. What is left to a subclass: `target`, `build_head`, `predict` and, where it
    is known, `ceiling`.

    A document is answered through windows of tokens (`Encoded`), which are merged in `predict`.
    """

    words: ClassVar[bool] = False
    """Windows keep the places of words; every visible one has a row of logits, else every window.
    """

    def check(self, spec: TaskSpec) -> None:
        """What the kind does not have stays at its default, and what it needs is there."""
        if spec.head.kind != self.head:
            message = f"head.kind '{spec.head.kind}' does not fit type '{spec.type}'"
            raise fail(message, f"use `kind: {self.head}`")
        self._check_metrics(spec)
        self.check_probe(spec)
        for field, default in _NOT_OF_ALL.items():
            value = attrgetter(field)(spec)
            if value != default and field not in self.fields:
                quoted = f" '{value}'" if isinstance(value, str) else ""
                raise fail(f"{field}{quoted} does not fit type '{spec.type}'", "leave it out")
        self._check_labels(spec)

    def _check_metrics(self, spec: TaskSpec) -> None:
        """The scores that a spec names are those of the kind, and rise."""
        leading = leading_metrics(self)
        hint = f"use {next(iter(leading), 'a metric of the kind')}"
        for field in _METRIC_FIELDS:
            name = getattr(spec.metric, field)
            if name is None:
                continue
            metric = get_metric(name)
            if metric.falls:
                raise fail(f"metric.{field} '{name}' falls as predictions get better", hint)
            if name not in (*leading, *PLUGIN_METRICS):
                raise fail(f"metric.{field} '{name}' is not defined for type '{spec.type}'", hint)
            if metric.positive and not spec.metric.negative_label:
                raise fail(
                    f"metric.negative_label is missing, {name} needs it",
                    "name the label that does not count",
                )

    def _check_labels(self, spec: TaskSpec) -> None:
        """Labels are listed where the kind needs a list, and enough of them."""
        labels = spec.labels
        negative = spec.metric.negative_label
        if not isinstance(labels, list):
            if not self.label_rules:
                raise fail(f"labels by rule do not fit type '{spec.type}'", "list the labels")
        elif not (self.spans or self.numeric or self.thresholds) and len(labels) < 2:
            raise fail("labels of a classification must be at least two", "list them all")
        elif negative is not None and negative not in labels:
            message = f"metric.negative_label '{negative}' is not a label"
            raise fail(message, suggest(negative, labels))

    def check_probe(self, spec: TaskSpec) -> None:
        """Raise FieldError where the probe of a frozen encoder does not fit the kind."""
        if spec.training.encoder != "frozen":
            return
        if spec.probe is None:
            raise fail("a frozen encoder needs a probe", "add `probe: {}`")
        if spec.probe.kind == "similarity":
            message = f"probe.kind 'similarity' does not fit type '{spec.type}'"
            raise fail(message, "use `kind: linear`")
        if not self.probes:
            message = f"training.encoder 'frozen' does not fit type '{spec.type}' here"
            raise fail(message, "use `encoder: trained`")

    def outputs(self, labels: Sequence[str]) -> tuple[str, ...]:
        """What the head's outputs mean."""
        return tuple(labels)

    def head_outputs(self, spec: TaskSpec, labels: Sequence[str]) -> tuple[str, ...]:
        """As `outputs`, where the spec says how answers are expressed."""
        return self.outputs(labels)

    def problem(self, spec: TaskSpec, document: Document) -> Problem | None:
        """What is wrong with a document as read; None for nothing."""
        return None

    def labelled(self, document: Document) -> Document:
        """A document as read with the labels that the kind takes from its mentions."""
        return document

    def arranged(self, documents: Mapping[str, Documents]) -> dict[str, list[Document]]:
        """What is asked, by split, made of the documents as read and split."""
        return {name: list(part) for name, part in documents.items()}

    def units(self, spec: TaskSpec, documents: Documents, tokenizer: Tokenizer) -> Documents:
        """The documents with the units that are answered as their tokens."""
        return documents

    def cut(self, spec: TaskSpec, documents: Documents, tokenizer: Tokenizer, window: int) -> Cut:
        """The documents cut into windows of `window` tokens.

        Raises TrainingError where nothing is kept, or the protocol does not fit.
        """
        units = self.units(spec, documents, tokenizer)
        strided = spec.protocol.long_documents == "stride"
        paired = any(document.query for document in documents)
        if paired and strided:
            raise TrainingError(
                "protocol.long_documents 'stride' does not fit pairs of texts",
                hint="use long_documents=truncate",
            )
        if strided:
            stride = spec.protocol.stride
            windows, owners = encode_windows(units, tokenizer, window, stride, words=self.words)
            return documents, units, windows, owners
        if paired:
            encoded = encode_pairs(documents, tokenizer, window, shorten=spec.protocol.pairs)
        else:
            encoded = encode_documents(units, tokenizer, window, words=self.words)
        return documents, units, encoded, list(range(len(encoded)))

    def target(self, task: Task, document: Document, encoded: Encoded) -> Array:
        """What a window is trained on. document: with its units."""
        raise NotImplementedError

    def ceiling(self, task: Task, test: Split, tokenizer: Tokenizer, window: int) -> Ceiling:
        """What the protocol keeps from every model in the test split; by itself not known."""
        return 0, None

    def build_head(self, head: Head, checkpoint: Checkpoint, width: int, outputs: int) -> nn.Module:
        """A fresh head, (hidden (tokens, width), `models.heads.Units`) to logits; random weights
        from torch's state.
        """
        raise NotImplementedError

    def weights(self, spec: TaskSpec, train: Split) -> Tensor | None:
        """(outputs,) weights of the loss from the training split, or None."""
        return None

    def terms(self, spec: TaskSpec, targets: Targets, words: Sequence[int]) -> int:
        """How many terms the mean loss of a batch has. words: visible units of each window."""
        return len(targets)

    def loss(self, spec: TaskSpec, logits: Any, targets: Targets, weights: Tensor | None) -> Tensor:
        """Sum of the loss terms of one micro-batch, by itself the cross-entropy of the right output
        of each row; divided by `terms` of the whole batch it is the mean.
        """
        from torch.nn.functional import cross_entropy

        from biobench.core.machine import to_device

        wanted = to_device(np.hstack(targets), logits.device)
        return cross_entropy(logits, wanted, reduction="sum")

    def probabilities(self, logits: Tensor) -> Tensor:
        """(rows, outputs) of the same."""
        import torch

        return torch.softmax(logits, -1)

    def answers(self, task: Task, logits: Any, encoded: Windows) -> list[Array]:
        """Per window its rows of probabilities: (visible words, outputs) or (outputs,)."""
        rows = self.probabilities(logits).float().cpu().numpy()
        if not self.words:
            return list(rows)
        ends = np.cumsum([len(window.words) for window in encoded])
        return np.split(rows, ends[:-1])

    def predict(
        self, task: Task, document: Document, seen: Windows, answers: Answers, threshold: float
    ) -> Prediction:
        """The prediction for a document (with its units) from the answers of its windows."""
        raise NotImplementedError

    def items(self, truth: Document | Prediction) -> Items:
        """What is counted as right or wrong; labels of a whole document at 0, 0."""
        return {(label, 0, 0) for label in truth.labels}

    def recorded_threshold(self, threshold: float) -> float | None:
        """The threshold as a record keeps it; None where nothing is decided by one."""
        return threshold if self.thresholds else None

    def curve(self, scores: Mapping[str, float]) -> dict[str, float]:
        """The scores of a validation that a record keeps."""
        names = CURVE if self.counted else [metric.name for metric in self.metrics]
        return {name: scores[name] for name in names}

    def share(self, metric: str, document: Document, prediction: Prediction | None) -> Share | None:
        """What a document adds to `metric` where that is the mean of documents' shares, else None.

        reachable is the same for every document of a task.
        """
        return None

    def drawn(self, part: bool) -> dict[str, str] | None:
        """What the run's key says of how documents are drawn. part: of a run on some training
        documents only.
        """
        return None

    def extra_scores(self, run: Answered) -> dict[str, float]:
        """Scores besides the F1 averages: those of `metrics` that are means of shares."""
        names = [metric.name for metric in self.metrics if metric.share]
        return {name: self._mean_share(name, run) for name in names}

    def _mean_share(self, metric: str, run: Answered) -> float:
        """The mean of the documents' shares of a score."""
        shares: list[float] = []
        for document in run.gold:
            prediction = run.predictions.get(document.id)
            reached, reachable = self.share(metric, document, prediction) or (0, 1)
            shares.append(reached / reachable)
        return math.fsum(shares) / len(shares)


class SpanKind(Kind):
    """A kind whose truth is spans."""

    spans = True
    words = True
    single = False
    metrics = (
        Metric("partial_micro_f1", "partial micro F1", average="micro", match="partial"),
        Metric("partial_macro_f1", "partial macro F1", average="macro", match="partial"),
    )

    def oracle(self, task: Task, document: Document, encoded: Windows) -> Prediction:
        """The best that any model could say of a document (with its units) through these
        windows."""
        raise NotImplementedError

    def ceiling(self, task: Task, test: Split, tokenizer: Tokenizer, window: int) -> Ceiling:
        """Mentions that the windows hide or the head cannot express are lost."""
        best = []
        missed = 0
        for truth, document, places in zip(test.documents, test.units, test.windows, strict=True):
            windows = [test.encoded[place] for place in places]
            oracle = self.oracle(task, document, windows)
            best.append(oracle)
            missed += len(set(truth.spans) - set(oracle.spans))
        return missed, best

    def items(self, truth: Document | Prediction) -> Items:
        """Spans with their labels."""
        return {(s.label, s.start, s.end) for s in truth.spans}

    def extra_scores(self, run: Answered) -> dict[str, float]:
        """partial_micro_f1, partial_macro_f1 and partial_weighted_f1."""
        loose = run.partial()
        return {f"partial_{name}": loose[name] for name in ("micro_f1", "macro_f1", "weighted_f1")}


K = TypeVar("K", bound=Kind)


def register(kind: type[K]) -> type[K]:
    """Make the decorated kind known under its name."""
    if kind.name in KINDS:
        raise ValueError(f"two kinds of task are called '{kind.name}'")
    KINDS[kind.name] = kind()
    return kind


def get_kind(name: str) -> Kind:
    """The kind of task that a spec's `type` names. Raises StoreError for one that a record of
    elsewhere names and that is not known here.
    """
    kind = KINDS.get(name)
    if kind is None:
        raise StoreError(
            f"'{name[:80]}' is no kind of task that is known here",
            hint="upgrade BioBench, or install the package that brings this kind",
        )
    assert isinstance(kind, Kind)
    return kind
