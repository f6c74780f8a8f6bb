"""A task's documents encoded once for one tokenizer and window, and shared by all seeds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from biobench.data.load import subset
from biobench.encode.evidence import shown_labels
from biobench.encode.merge import merge_spans, merge_words
from biobench.encode.needle import encode_needles
from biobench.encode.pairs import encode_pairs
from biobench.encode.spans import gold_found, predict_spans, span_targets, with_subtokens, with_words
from biobench.encode.tags import Decode, tag_set, tag_targets, window_oracle
from biobench.encode.tokens import Encoded, encode_documents, encode_windows
from biobench.errors import TrainingError
from biobench.schema.document import Document, Prediction, TaskData
from biobench.schema.record import Windows
from biobench.schema.task import TaskSpec
from biobench.score.averages import Scores
from biobench.score.compute import compute

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase


@dataclass(frozen=True, slots=True)
class Split:
    """One split, ready to be batched. What is batched are windows: one a document, or several with stride.

    units: the documents, for span tasks with the head's units as their tokens. encoded, targets, lengths: per
    window; a target is the visible words' tag ids (token tasks), spans as (first, last, type) in places of the
    window's units (span tasks), a 0-dimensional class id, or the (own labels,) places of a document's labels
    (multi-label). windows: per document, the places of its windows. outputs: how many labels or tags there are.
    """

    documents: Sequence[Document]
    units: Sequence[Document]
    encoded: Sequence[Encoded]
    targets: Sequence[NDArray[Any]]
    lengths: Sequence[int]
    windows: Sequence[Sequence[int]]
    outputs: int = 0


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
        if spec.type == "needle":
            return _needles(documents, tokenizer, window, index)
        units = documents
        if spec.type == "span_ner":
            pieces = spec.head.pooling == "none"
            units = with_subtokens(documents, tokenizer) if pieces else with_words(documents)
        if any(d.query for d in documents):
            if spec.protocol.long_documents == "stride":
                raise TrainingError(
                    "protocol.long_documents 'stride' does not fit pairs of texts", hint="use long_documents=truncate"
                )
            encoded, owner = encode_pairs(documents, tokenizer, window), list(range(len(documents)))
        elif spec.protocol.long_documents == "stride":
            encoded, owner = encode_windows(units, tokenizer, window, spec.protocol.stride, words=spec.is_ner)
        else:
            encoded, owner = encode_documents(units, tokenizer, window, words=spec.is_ner), list(range(len(units)))
        windows: list[list[int]] = [[] for _ in documents]
        for place, document in enumerate(owner):
            windows[document].append(place)
        targets = [_target(spec, units[d], e, index) for d, e in zip(owner, encoded, strict=True)]
        return Split(documents, units, encoded, targets, [len(e) for e in encoded], windows, len(outputs))

    train = split(subset(data.train, spec.training.train_fraction))
    validation, test = split(data.validation), split(data.test)
    prepared = Prepared(
        spec, data, outputs, train, validation, test, Windows(max_length=window, truncated_documents=0, lost_gold=0)
    )
    return replace(prepared, windows=_windows(prepared, tokenizer, window))


def _needles(
    documents: Sequence[Document], tokenizer: PreTrainedTokenizerBase, window: int, index: dict[str, int]
) -> Split:
    """The documents whose length the window allows, whole; what does not fit has no prediction and no score."""
    kept, encoded = encode_needles(documents, tokenizer, window)
    if not kept:
        raise TrainingError(
            f"no document of {documents[0].split} fits a window of {window} tokens",
            hint="the model reads none of their lengths; add shorter ones to reader.lengths, or raise --limit if given",
        )
    targets = [np.asarray(index[d.labels[0]], dtype=np.int64) for d in kept]
    return Split(kept, kept, encoded, targets, [len(e) for e in encoded], [[i] for i in range(len(kept))], len(index))


def _target(spec: TaskSpec, document: Document, encoded: Encoded, index: dict[str, int]) -> NDArray[Any]:
    if spec.type == "token_ner":
        return tag_targets(document, encoded, index)
    if spec.type == "span_ner":
        return span_targets(document, encoded, index)
    if spec.type == "multi_label":
        return np.asarray(sorted({index[label] for label in document.labels}), dtype=np.int64)
    return np.asarray(index[document.labels[0]], dtype=np.int64)


def _windows(prepared: Prepared, tokenizer: PreTrainedTokenizerBase, window: int) -> Windows:
    """What the protocol keeps from the head in test: documents cut, gold lost, and the oracle's scores.

    For span heads, gold that the head cannot express (ends inside a unit, too long, filtered) is lost too. For
    classification, labels without a mention in the window are lost; without offsets in the corpus neither
    they nor a ceiling are known.
    """
    test = prepared.test
    strided = prepared.spec.protocol.long_documents == "stride"
    long = sum(test.encoded[places[0]].truncated for places in test.windows)
    cut, several = (0, long) if strided else (long, 0)
    lost, ceiling = 0, dict[str, float]()
    if prepared.spec.is_ner:
        oracle = [_oracle(prepared, place) for place in range(len(test.documents))]
        lost = sum(len(set(d.spans) - set(o.spans)) for d, o in zip(test.documents, oracle, strict=True))
        ceiling = prepared.score(test.documents, oracle).values
    elif cut:
        shown = shown_labels(test.documents, tokenizer, window)
        known = [labels for labels in shown if labels is not None]
        if len(known) == len(shown):
            said = [Prediction(document=d.id, labels=own) for d, own in zip(test.documents, known, strict=True)]
            lost = sum(len(d.labels) - len(own) for d, own in zip(test.documents, known, strict=True))
            ceiling = prepared.score(test.documents, said).values
    return Windows(
        max_length=window, truncated_documents=cut, strided_documents=several, lost_gold=lost, ceiling=ceiling
    )


def _oracle(prepared: Prepared, place: int) -> Prediction:
    """The best that any model could say of one test document under this protocol."""
    test, options = prepared.test, prepared.spec.head.span
    encoded = [test.encoded[w] for w in test.windows[place]]
    document = test.units[place]
    if options is None:
        merged, _ = merge_words(encoded, [np.zeros((len(e.words), 0), dtype=np.float32) for e in encoded])
        return window_oracle(document, merged, prepared.decode)
    index = {name: i for i, name in enumerate(prepared.outputs)}
    tagger = options.variant == "crf_biaffine"
    found = [gold_found(document, e, index, options.max_span, tagger=tagger) for e in encoded]
    return predict_spans(document, merge_spans(encoded, found), prepared.outputs, filtered=options.filters)
