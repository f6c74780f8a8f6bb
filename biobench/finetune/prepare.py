"""A task's documents encoded once for one tokenizer and window, and shared by all seeds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from biobench.encode.tags import Decode, tag_set, tag_targets, window_oracle
from biobench.encode.tokens import Encoded, encode_documents
from biobench.schema.document import Document, Prediction, TaskData
from biobench.schema.record import Windows
from biobench.schema.task import TaskSpec
from biobench.score.averages import Scores
from biobench.score.compute import compute

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase


@dataclass(frozen=True, slots=True)
class Split:
    """One split, ready to be batched.

    targets: per document, the visible words' tag ids (token tasks), or a 0-dimensional class id, or a
    (labels,) 0/1 vector (multi-label).
    """

    documents: Sequence[Document]
    encoded: Sequence[Encoded]
    targets: Sequence[NDArray[Any]]
    lengths: Sequence[int]


@dataclass(frozen=True, slots=True)
class Prepared:
    """Everything about (task, data, tokenizer, window) that no seed changes."""

    spec: TaskSpec
    data: TaskData
    outputs: tuple[str, ...]
    """What the head's outputs mean: tags, or labels."""
    train: Split
    validation: Split
    test: Split
    windows: Windows

    @property
    def decode(self) -> Decode:
        """The reader's tag decoding."""
        return cast(Decode, self.data.decode)

    def score(self, documents: Sequence[Document], predictions: Sequence[Prediction]) -> Scores:
        """All averages of these predictions; the one path by which this task is scored."""
        return compute(
            type=self.spec.type,
            labels=self.data.labels,
            gold_labels=self.data.gold_labels,
            gold=documents,
            predictions=predictions,
            negative_label=self.spec.metric.negative_label,
        )


def prepare(spec: TaskSpec, data: TaskData, tokenizer: PreTrainedTokenizerBase, window: int) -> Prepared:
    """Encode all splits into `window` tokens and measure what the window cuts off in test."""
    token_task = spec.type == "token_ner"
    outputs = tuple(tag_set(data.labels)) if token_task else data.labels
    index = {name: i for i, name in enumerate(outputs)}

    def split(documents: Sequence[Document]) -> Split:
        encoded = encode_documents(documents, tokenizer, window, words=token_task)
        targets = [_target(spec, d, e, index) for d, e in zip(documents, encoded, strict=True)]
        return Split(documents, encoded, targets, [len(e) for e in encoded])

    train, validation, test = split(data.train), split(data.validation), split(data.test)
    prepared = Prepared(
        spec, data, outputs, train, validation, test, Windows(max_length=window, truncated_documents=0, lost_gold=0)
    )
    return Prepared(spec, data, outputs, train, validation, test, _windows(prepared, window))


def _target(spec: TaskSpec, document: Document, encoded: Encoded, index: dict[str, int]) -> NDArray[Any]:
    if spec.type == "token_ner":
        return tag_targets(document, encoded, index)
    if spec.type == "multi_label":
        vector = np.zeros(len(index), dtype=np.float32)
        vector[[index[label] for label in document.labels]] = 1.0
        return vector
    return np.asarray(index[document.labels[0]], dtype=np.int64)


def _windows(prepared: Prepared, window: int) -> Windows:
    """Truncation of the test split: documents cut, gold spans lost, and the oracle's scores after the cut."""
    test = prepared.test
    cut = sum(e.truncated for e in test.encoded)
    if not prepared.spec.is_ner:
        return Windows(max_length=window, truncated_documents=cut, lost_gold=0)
    oracle = [window_oracle(d, e, prepared.decode) for d, e in zip(test.documents, test.encoded, strict=True)]
    lost = sum(len(set(d.spans) - set(o.spans)) for d, o in zip(test.documents, oracle, strict=True))
    ceiling = prepared.score(test.documents, oracle).values
    return Windows(max_length=window, truncated_documents=cut, lost_gold=lost, ceiling=ceiling)
