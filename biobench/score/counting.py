"""True positives, false positives and false negatives of predictions, per group of documents and
label.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal

import numpy as np
import scipy
from numpy.typing import NDArray

from biobench.errors import BioBenchError
from biobench.kinds import Kind, get_kind
from biobench.schema.document import Document, Prediction
from biobench.schema.kind import number_of
from biobench.schema.strict import suggest

IntArray = NDArray[np.int64]
Match = Literal["exact", "partial"]
Offsets = tuple[int, int]
"""Characters [start, end)."""
Item = tuple[str, int, int]
"""What is right or wrong: label, start, end; see `kinds.base.Kind.items`."""


class ScoreError(BioBenchError):
    """Gold and predictions do not fit together: unknown or repeated documents, labels outside the
    set.
    """


@dataclass(frozen=True, slots=True)
class GroupCounts:
    """Counts of one run. tp, fp, fn: (groups, labels); `groups` and `labels` name the rows and
    columns.
    """

    groups: tuple[str, ...]
    labels: tuple[str, ...]
    tp: IntArray
    fp: IntArray
    fn: IntArray

    @property
    def totals(self) -> tuple[IntArray, IntArray, IntArray]:
        """tp, fp and fn over all groups, each (labels,)."""
        return self.tp.sum(axis=0), self.fp.sum(axis=0), self.fn.sum(axis=0)


def counts(
    *,
    type: str,
    labels: Sequence[str],
    gold: Sequence[Document],
    predictions: Sequence[Prediction],
    match: Match = "exact",
    holds: Callable[[Document, Item], bool] | None = None,
) -> GroupCounts:
    """Counts per group of documents, rows sorted by id, columns in the order of `labels`.

    NER: gold and predicted spans are sets; `partial` wants the same label and any overlap, each
    span matched at most once. Classification: a label is what is counted. A document without a
    prediction has all its gold missed. holds: which items of a document are counted at all; None:
    every one. Raises ScoreError where the two sides do not fit together.
    """
    kind = get_kind(type)
    prediction_of = fit_together(kind, gold, predictions, labels)
    counted = _empty(gold, labels)
    row_of = {name: i for i, name in enumerate(counted.groups)}
    column = {label: i for i, label in enumerate(labels)}
    for document in gold:
        row = row_of[document.group]
        prediction = prediction_of.get(document.id, Prediction(document.id))
        if kind.spans and match == "partial":
            _count_partial(document, prediction, column, counted, row)
            continue
        true = kind.items(document)
        predicted = kind.items(prediction)
        if holds is not None:
            true = {item for item in true if holds(document, item)}
            predicted = {item for item in predicted if holds(document, item)}
        for table, items in (
            (counted.tp, true & predicted),
            (counted.fp, predicted - true),
            (counted.fn, true - predicted),
        ):
            for label, _, _ in items:
                table[row, column[label]] += 1
    return counted


def _empty(gold: Sequence[Document], labels: Sequence[str]) -> GroupCounts:
    """Zeros, to be counted up."""
    groups = tuple(sorted({document.group for document in gold}))
    tp, fp, fn = np.zeros((3, len(groups), len(labels)), dtype=np.int64)
    return GroupCounts(groups, tuple(labels), tp, fp, fn)


def oracle(gold: Sequence[Document]) -> list[Prediction]:
    """The predictions that repeat the gold."""
    return [Prediction(document=d.id, spans=d.spans, labels=d.labels, tags=d.tags) for d in gold]


def _count_partial(
    document: Document,
    prediction: Prediction,
    column: Mapping[str, int],
    counted: GroupCounts,
    row: int,
) -> None:
    """Adds the document's counts with overlap to the row of its group."""
    offsets: dict[str, tuple[list[Offsets], list[Offsets]]] = defaultdict(lambda: ([], []))
    for side, spans in enumerate((document.spans, prediction.spans)):
        for start, end, label in set(spans):
            offsets[label][side].append((start, end))
    for label, (gold, predicted) in offsets.items():
        matched = overlap_matches(gold, predicted)
        cell = row, column[label]
        counted.tp[cell] += matched
        counted.fp[cell] += len(predicted) - matched
        counted.fn[cell] += len(gold) - matched


def shares(
    *,
    type: str,
    metric: str,
    labels: Sequence[str],
    gold: Sequence[Document],
    predictions: Sequence[Prediction],
) -> GroupCounts | None:
    """A mean over documents (`Kind.share`) as counts of one column, whose micro F1 it is; None
    where it is none.

    What a document reaches is tp; what it misses stands in fp and fn, so that its gold is the same
    in every run.
    """
    kind = get_kind(type)
    prediction_of = fit_together(kind, gold, predictions, labels)
    counted = _empty(gold, [metric])
    row_of = {name: i for i, name in enumerate(counted.groups)}
    for document in gold:
        share = kind.share(metric, document, prediction_of.get(document.id))
        if share is None:
            return None
        reached, reachable = share
        row = row_of[document.group]
        counted.tp[row] += reached
        counted.fp[row] += reachable - reached
        counted.fn[row] += reachable - reached
    return counted


def fit_together(
    kind: Kind, gold: Sequence[Document], predictions: Sequence[Prediction], labels: Sequence[str]
) -> dict[str, Prediction]:
    """Predictions by document id. Raises ScoreError where gold and predictions do not fit
    together."""
    label_set = dict.fromkeys(labels)
    ids: set[str] = set()
    for document in gold:
        if document.id in ids:
            hint = "document ids are unique in a task"
            raise ScoreError("gold holds document {} twice", hint=hint, value=document.id)
        ids.add(document.id)
        _check_gold(kind, document, label_set)
    prediction_of: dict[str, Prediction] = {}
    for prediction in predictions:
        name = prediction.document
        if name not in ids:
            message = "a prediction names document {}, which the gold does not have"
            hint = "score predictions against the data they were made on"
            raise ScoreError(message, hint=hint, value=name)
        if name in prediction_of:
            raise ScoreError(
                "document {} is predicted twice", hint="keep one prediction a document", value=name
            )
        _check_prediction(kind, prediction, label_set)
        prediction_of[name] = prediction
    return prediction_of


def _check_gold(kind: Kind, document: Document, labels: Collection[str]) -> None:
    """Raises ScoreError where the gold is not of the kind and of its labels."""
    if not kind.numeric:
        _check_labels("gold", document, labels)
    if kind.single and len(document.labels) != 1:
        message = f"document {{}} has {len(document.labels)} gold labels in a single-label task"
        raise ScoreError(message, hint="each document needs exactly one", value=document.id)


def _check_prediction(kind: Kind, prediction: Prediction, labels: Collection[str]) -> None:
    """Raises ScoreError where an answer is not of the kind and of its labels."""
    name = prediction.document
    if kind.numeric:
        _check_number(prediction)
    else:
        _check_labels("predicted", prediction, labels)
    if kind.single and len(prediction.labels) > 1:
        message = f"document {{}} is given {len(prediction.labels)} labels in a single-label task"
        raise ScoreError(message, hint="predict one label", value=name)
    for span in prediction.spans:
        if not 0 <= span.start < span.end:
            message = f"document {{}}: predicted span {span.start}-{span.end} holds no character"
            hint = "spans are characters [start, end) with start < end"
            raise ScoreError(message, hint=hint, value=name)


def _check_number(prediction: Prediction) -> None:
    """Raises ScoreError where a prediction of a numeric kind is not one finite number."""
    if len(prediction.label_scores) + len(prediction.labels) == 1:
        with suppress(ValueError):
            if np.isfinite(number_of(prediction)):
                return
    raise ScoreError(
        "document {} is not predicted by one finite number",
        hint="give one score a document",
        value=prediction.document,
    )


def _check_labels(side: str, answer: Document | Prediction, labels: Collection[str]) -> None:
    for label in (*answer.labels, *(span.label for span in answer.spans)):
        if label not in labels:
            message = f"a document's {side} label {{}} is not one of the task's"
            raise ScoreError(message, hint=suggest(label, list(labels)), value=label)


def overlap_matches(gold: Sequence[Offsets], predicted: Sequence[Offsets]) -> int:
    """Size of a maximum matching between two span sets, an edge being at least one shared
    character.

    Maximum, not first come first served: with nested or long spans the order in which a greedy
    pairing looks at them changes its result, and a score must not depend on order. Hopcroft-Karp
    (scipy).
    """
    if not gold or not predicted:
        return 0
    if len(gold) == 1 or len(predicted) == 1:
        # most documents: a graph would take longer than their score
        return int(any(a < d and c < b for a, b in gold for c, d in predicted))
    begins, ends = np.array(gold).T[:, :, None]
    other_begins, other_ends = np.array(predicted).T
    touches = (begins < other_ends) & (other_begins < ends)
    if touches.sum(axis=0).max() <= 1 and touches.sum(axis=1).max() <= 1:
        return int(touches.sum())
    # named in full: most scores need no such graph, and importing this part of scipy takes longer
    # than they do
    edges = scipy.sparse.csr_matrix(touches.astype(np.int8))
    matching = scipy.sparse.csgraph.maximum_bipartite_matching(edges, perm_type="column")
    return int((matching >= 0).sum())
