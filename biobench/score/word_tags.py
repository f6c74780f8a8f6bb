"""F1 as seqeval computes it from tags, which is what most papers on tagging print."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from biobench.kinds.base import get_kind
from biobench.kinds.token_ner import tag_set
from biobench.schema.document import Document, Prediction
from biobench.schema.record import RunRecord

SEQEVAL = {"seqeval_micro_f1": "micro", "seqeval_macro_f1": "macro"}
"""Name of a score -> seqeval's average."""
TagRows = list[list[str]]
"""Documents of tags."""


def seqeval_scores(
    record: RunRecord, gold: Sequence[Document], predictions: Sequence[Prediction]
) -> dict[str, float]:
    """seqeval's own micro and macro F1, in the task's decoding, on the words that the window shows.

    Empty where there are no tags to compare. Where seqeval is not installed, the record's own
    figures stay.
    """
    rows = _shown_tags(record, gold, predictions)
    if rows is None:
        return {}
    try:
        from seqeval.metrics import f1_score
        from seqeval.scheme import IOB2
    except ModuleNotFoundError:
        return {name: record.scores[name] for name in SEQEVAL if name in record.scores}
    mode: dict[str, Any] = {}
    if record.task.decode == "strict":
        mode = {"mode": "strict", "scheme": IOB2}
    scores = {}
    for name, average in SEQEVAL.items():
        score = float(f1_score(*rows, average=average, zero_division=0, **mode))
        if math.isfinite(score):  # a macro over no label is none
            scores[name] = score
    return scores


def _shown_tags(
    record: RunRecord, gold: Sequence[Document], predictions: Sequence[Prediction]
) -> tuple[TagRows, TagRows] | None:
    """Gold and predicted tags of the words that the window shows.

    None for other kinds of tasks, for answers that have spans alone, and for cut documents of a
    record that does not say where they were cut.
    """
    windows = record.windows
    task = record.task
    if not get_kind(task.type).tagged or len(windows.shown_words) != windows.truncated_documents:
        return None
    tags_of = {prediction.document: prediction.tags for prediction in predictions}
    allowed = set(tag_set(task.labels))
    true: TagRows = []
    predicted: TagRows = []
    for document in gold:
        words = len(document.tokens)
        answer = tags_of.get(document.id, ("O",) * words)
        if not len(document.tags) == len(answer) == words:
            return None
        if not allowed.issuperset(document.tags) or not allowed.issuperset(answer):
            return None
        shown = windows.shown_words.get(document.id, words)
        true.append(list(document.tags[:shown]))
        predicted.append(list(answer[:shown]))
    return true, predicted
