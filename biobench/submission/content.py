"""A predictions file of unknown make: bounded before it is decoded, and held against its record."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from biobench.core.files import read_regular
from biobench.errors import StoreError
from biobench.report.tasks import shipped
from biobench.schema.document import Document, Prediction
from biobench.schema.kind import traits_of
from biobench.schema.record import RunRecord
from biobench.schema.tags import decode_tags
from biobench.store.records import is_key
from biobench.store.tables import SCHEMA, TEXTS
from biobench.submission.checks import Check

MOST_BYTES = 2**25
"""Of one file's columns once they are decoded, ten times what the largest shipped run has; they become objects."""
MOST_DOCUMENTS = 50_000
"""Of a task of which the spec does not say how many test documents it has."""
MOST_RANKED = 20
"""Labels of a ranking that a run stores; those below them count nothing."""
ROUNDING = 2e-6
"""Stored scores are rounded to six digits."""


def check_content(path: Path, where: str, record: RunRecord) -> list[Check]:
    """R07 and L03 codes: no parquet file, other columns than ours, or more in it than the task has.

    To be called in a process with limits of memory and time. Texts that stand there many times are held once here.
    """
    info = shipped().get(record.task.id)
    counted = None if info is None or info.spec is None else info.spec.counts.get("test", {}).get("documents")
    # as the spec counts them; another source may be cut differently
    most = MOST_DOCUMENTS if counted is None else max(1_000, 2 * int(counted))
    try:
        content = pa.BufferReader(read_regular(path))
        if not pq.read_schema(content).equals(SCHEMA, check_metadata=False):
            return [Check("R07", "error", where, "does not have the columns of stored predictions")]
        file = pq.ParquetFile(content, read_dictionary=TEXTS, pre_buffer=False)
        if file.metadata.num_rows > most:
            what = f"unpacks to {file.metadata.num_rows} documents, the task has at most {most}"
            return [Check("L03", "error", where, what)]
        table = file.read(use_threads=False)
        table.validate(full=True)
        size = table.nbytes + sum(_text_bytes(chunk) for column in table.columns for chunk in column.chunks)
    except (pa.ArrowException, KeyError, ValueError, OSError, TypeError, UnicodeError, StoreError) as problem:
        what = str(problem).splitlines()[0][:120] if str(problem) else type(problem).__name__
        return [Check("R07", "error", where, f"is no parquet file that can be read: {what}")]
    if size > MOST_BYTES:
        return [Check("L03", "error", where, f"unpacks to {size} bytes, at most {MOST_BYTES} are taken")]
    return []


def _text_bytes(array: Any) -> int:
    """Bytes of all texts, each as often as it stands there."""
    if pa.types.is_list(array.type) or pa.types.is_struct(array.type):
        flat = array.flatten()
        return sum(map(_text_bytes, flat if isinstance(flat, list) else [flat]))
    if pa.types.is_dictionary(array.type):
        return pc.sum(pc.take(pc.binary_length(array.dictionary), array.indices)).as_py() or 0
    return 0


def check_predictions(
    record: RunRecord, where: str, gold: Sequence[Document], predictions: Sequence[Prediction]
) -> list[Check]:
    """P01 codes: what no run of ours stores, whatever the model.

    gold: the documents as the file holds them, before anything of them is replaced.
    """
    problems = ["documents of another split than test"] if any(d.split != "test" for d in gold) else []
    if record.redacted:
        if any(d.spans or d.labels or d.tags or d.tokens for d in gold):
            problems.append("gold of a task whose data is under an agreement")
        if any(not is_key(d.id) or not is_key(d.group) for d in gold):
            problems.append("names of documents of a task whose data is under an agreement")
        if record.task.labels and not _counted_as_claimed(record, predictions):
            problems.append("another number of predictions of a label than the record counts")
    problems += filter(None, (_problem(record, prediction) for prediction in predictions))
    if traits_of(record.task.type).tagged and not record.redacted:
        documents = {d.id: d for d in gold}
        for p in predictions:
            document = documents.get(p.document)
            if p.tags and (document is None or len(p.tags) != len(document.tokens)):
                problems.append("another number of tags than of tokens")
            elif p.tags and document is not None and not _spans_follow(document, p, record.task.decode):
                problems.append("spans that do not follow from their tags")
    return [Check("P01", "error", where, f"holds {what}") for what in dict.fromkeys(problems)]


def _problem(record: RunRecord, p: Prediction) -> str:
    """What is wrong with one prediction of this kind of task; empty where nothing is."""
    task, traits, numbers = record.task, traits_of(record.task.type), p.label_scores
    if traits.numeric:
        low, high = record.scale or (0.0, 0.0)
        fits = len(numbers) == 1 and low <= numbers[0] <= high and not (p.labels or p.spans or p.tags)
        return "" if fits else "something else than one number of the scale"
    if any(not 0 <= s <= 1 for s in (*p.span_scores, *numbers)):  # NaN is not in there either
        return "scores that are no fractions between 0 and 1"
    if traits.spans:
        wrong = {
            "labels of documents in a task of spans": bool(p.labels or numbers),
            "another number of span scores than of spans": len(p.span_scores) not in (0, len(p.spans)),
            "a span twice": len({*p.spans}) < len(p.spans),
            "spans that end before they begin": any(not 0 <= s.start < s.end for s in p.spans),
        }
        return next((what for what, is_so in wrong.items() if is_so), "")
    if p.spans or p.span_scores or p.tags:
        return "spans in a task of document labels"
    if traits.ranked:
        fits = 0 < len({*p.labels}) == len(p.labels) <= MOST_RANKED and not numbers
        return "" if fits else f"something else than one to {MOST_RANKED} different labels in order"
    if len(numbers) != len(task.labels):
        return "another number of label scores than the task has labels"
    if len({*p.labels}) < len(p.labels):
        return "a label twice for one document"
    scores = dict(zip(task.labels, numbers, strict=True))
    chosen = [scores.pop(label) for label in p.labels if label in scores]
    best = bool(chosen) and max(scores.values(), default=0.0) <= max(chosen) + ROUNDING
    if traits.options:
        fits = bool(chosen)  # the likeliest set need not hold the likeliest options
    elif not traits.thresholds:
        fits = best
    else:
        threshold = 0.5 if record.training.threshold is None else record.training.threshold
        passed = all(score >= threshold - ROUNDING for score in chosen)
        fits = all(s <= threshold + ROUNDING for s in scores.values()) and (passed or (best and len(chosen) == 1))
    return "" if fits else "labels that do not follow from their scores"


def _spans_follow(document: Document, prediction: Prediction, decode: str) -> bool:
    try:
        entities = decode_tags(prediction.tags, "lenient" if decode == "lenient" else "strict")
    except ValueError:
        return False
    spans = {(document.tokens[i][0], document.tokens[j - 1][1], label) for i, j, label in entities}
    return spans == set(prediction.spans)


def _counted_as_claimed(record: RunRecord, predictions: Sequence[Prediction]) -> bool:
    counted = Counter[str]()
    for p in predictions:
        counted.update([s.label for s in {*p.spans}] or {*p.labels})
    claimed = {label: row.get("predicted") for label, row in record.per_label.items()}
    return counted.keys() <= {*record.task.labels} and all(claimed.get(n) == counted[n] for n in record.task.labels)
