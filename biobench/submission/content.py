"""A predictions file of unknown make: bounded before it is decoded, and held against its record."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
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
from biobench.store.keys import is_key
from biobench.store.tables import SCHEMA, TEXTS
from biobench.submission.checks import Check

MOST_CHARACTERS = 1_000
"""Of one id, label or tag."""
MOST_TEXT = 2**25
"""Bytes of all texts of one file, each as often as it stands there."""
MOST_VALUES = 5_000_000
"""Numbers and texts in all columns of one file; they become Python objects."""
MOST_DOCUMENTS = 50_000
"""Of a task of which the spec does not say how many test documents it has."""
MOST_RANKED = 20
"""Labels of a ranking that a run stores; those below them count nothing."""
ROUNDING = 2e-6
"""Stored scores are rounded to six digits."""


def check_content(path: Path, where: str, record: RunRecord) -> list[Check]:
    """R07 and L03 codes: no parquet file, other columns than ours, or more in it than the task has.

    To be called under limits of memory and time. Texts that stand there many times are held once here.
    """
    try:
        content = read_regular(path)
        if not pq.ParquetFile(pa.BufferReader(content)).schema_arrow.equals(SCHEMA, check_metadata=False):
            return [Check("R07", "error", where, "does not have the columns of stored predictions")]
        file = pq.ParquetFile(pa.BufferReader(content), read_dictionary=TEXTS, pre_buffer=False)
        most = most_documents(record)
        if file.metadata.num_rows > most:
            what = f"unpacks to {file.metadata.num_rows} documents, the task has at most {most}"
            return [Check("L03", "error", where, what)]
        table = file.read(use_threads=False)
        if table.num_rows != file.metadata.num_rows:
            return [Check("R07", "error", where, "does not hold as many rows as it says")]
        table.validate(full=True)
        values = sum(_values(chunk) for column in table.columns for chunk in column.chunks)
        longest, written = _texts(table)
    except (pa.ArrowException, KeyError, ValueError, OSError, TypeError, UnicodeError, StoreError) as error:
        what = str(error).splitlines()[0][:120] if str(error) else type(error).__name__
        return [Check("R07", "error", where, f"is no parquet file that can be read: {what}")]
    if longest > MOST_CHARACTERS:
        what = f"holds a text of {longest} characters, at most {MOST_CHARACTERS} are taken"
        return [Check("L03", "error", where, what)]
    if values > MOST_VALUES or written > MOST_TEXT:
        return [Check("L03", "error", where, f"unpacks to {values} values with {written} bytes of text")]
    return []


def most_documents(record: RunRecord) -> int:
    """Test documents that a run of this task can have, as the spec counts them; other sources may cut differently."""
    info = shipped().get(record.task.id)
    counted = None if info is None or info.spec is None else info.spec.counts.get("test", {}).get("documents")
    return MOST_DOCUMENTS if counted is None else max(1_000, 2 * int(counted))


def _values(array: Any) -> int:
    if pa.types.is_list(array.type):
        return _values(array.flatten())
    if pa.types.is_struct(array.type):
        return sum(_values(child) for child in array.flatten())
    return len(array)


def _texts(table: pa.Table) -> tuple[int, int]:
    """(characters of the longest text, bytes of all, each as often as it stands there)."""
    longest = written = 0
    for array in (leaf for column in table.columns for chunk in column.chunks for leaf in _leaves(chunk)):
        if pa.types.is_dictionary(array.type):
            longest = max(longest, pc.max(pc.utf8_length(array.dictionary)).as_py() or 0)
            written += pc.sum(pc.take(pc.binary_length(array.dictionary), array.indices)).as_py() or 0
        elif pa.types.is_string(array.type):
            longest = max(longest, pc.max(pc.utf8_length(array)).as_py() or 0)
            written += pc.sum(pc.binary_length(array)).as_py() or 0
    return longest, written


def _leaves(array: Any) -> Iterator[Any]:
    if pa.types.is_list(array.type):
        yield from _leaves(array.flatten())
    elif pa.types.is_struct(array.type):
        for child in array.flatten():
            yield from _leaves(child)
    else:
        yield array


def check_predictions(
    record: RunRecord, where: str, gold: Sequence[Document], predictions: Sequence[Prediction]
) -> list[Check]:
    """P codes: what no run of ours stores, whatever the model.

    gold: the documents as the file holds them, before anything of them is replaced.
    """
    problems = [_redacted(d) for d in gold] if record.redacted else []
    problems += ["documents of another split than test"] if any(d.split != "test" for d in gold) else []
    problems += [p for prediction in predictions if (p := _prediction(record, prediction))]
    if traits_of(record.task.type).tagged and not record.redacted:
        documents = {d.id: d for d in gold}
        tokens = {d.id: len(d.tokens) for d in gold}
        if any(p.tags and len(p.tags) != tokens.get(p.document, -1) for p in predictions):
            problems.append("another number of tags than of tokens")
        elif any(p.tags and not _spans_follow(documents[p.document], p, record.task.decode) for p in predictions):
            problems.append("spans that do not follow from their tags")
    if record.redacted and record.task.labels and not _predicts_as_claimed(record, predictions):
        problems.append("another number of predictions of a label than the record counts")
    return [Check("P01", "error", where, f"holds {what}") for what in dict.fromkeys(filter(None, problems))]


def _redacted(document: Document) -> str:
    if document.spans or document.labels or document.tags or document.tokens:
        return "gold of a task whose data is under an agreement"
    if not is_key(document.id) or not is_key(document.group):
        return "names of documents of a task whose data is under an agreement"
    return ""


def _prediction(record: RunRecord, prediction: Prediction) -> str:
    """What is wrong with the scores of one prediction; empty where nothing is."""
    task, traits = record.task, traits_of(record.task.type)
    if traits.numeric:
        numbers = prediction.label_scores
        low, high = record.scale or (0.0, 0.0)
        fits = (
            len(numbers) == 1
            and low <= numbers[0] <= high
            and not (prediction.labels or prediction.spans or prediction.tags)
        )
        return "" if fits else "something else than one number of the scale"
    if any(not 0 <= s <= 1 for s in (*prediction.span_scores, *prediction.label_scores)):  # NaN is not in there either
        return "scores that are no fractions between 0 and 1"
    if traits.spans:
        if prediction.labels or prediction.label_scores:
            return "labels of documents in a task of spans"
        if len(prediction.span_scores) not in (0, len(prediction.spans)):
            return "another number of span scores than of spans"
        if len(set(prediction.spans)) < len(prediction.spans):
            return "a span twice"
        if any(not 0 <= s.start < s.end for s in prediction.spans):
            return "spans that end before they begin"
        return ""
    if prediction.spans or prediction.span_scores or prediction.tags:
        return "spans in a task of document labels"
    if traits.ranked:
        fits = 0 < len(set(prediction.labels)) == len(prediction.labels) <= MOST_RANKED and not prediction.label_scores
        return "" if fits else f"something else than one to {MOST_RANKED} different labels in order"
    if len(prediction.label_scores) != len(task.labels):
        return "another number of label scores than the task has labels"
    if len(set(prediction.labels)) < len(prediction.labels):
        return "a label twice for one document"
    scores = dict(zip(task.labels, prediction.label_scores, strict=True))
    chosen = {label: score for label, score in scores.items() if label in prediction.labels}
    others = [score for label, score in scores.items() if label not in prediction.labels]
    if traits.options:
        # the likeliest set need not hold the likeliest options
        fits = bool(chosen)
    elif not traits.thresholds:
        fits = bool(chosen) and max(others, default=0.0) <= max(chosen.values()) + ROUNDING
    else:
        threshold = 0.5 if record.training.threshold is None else record.training.threshold
        passed = all(score >= threshold - ROUNDING for score in chosen.values())
        best = len(chosen) == 1 and max(others, default=0.0) <= max(chosen.values()) + ROUNDING
        fits = all(score <= threshold + ROUNDING for score in others) and (passed or best)
    return "" if fits else "labels that do not follow from their scores"


def _spans_follow(document: Document, prediction: Prediction, decode: str) -> bool:
    try:
        entities = decode_tags(prediction.tags, "lenient" if decode == "lenient" else "strict")
    except ValueError:
        return False
    spans = {(document.tokens[i][0], document.tokens[j - 1][1], label) for i, j, label in entities}
    return spans == set(prediction.spans)


def _predicts_as_claimed(record: RunRecord, predictions: Sequence[Prediction]) -> bool:
    counted = dict.fromkeys(record.task.labels, 0)
    for prediction in predictions:
        for label in {(s.label, s.start, s.end) for s in prediction.spans} or {(n, 0, 0) for n in prediction.labels}:
            if label[0] not in counted:
                return False
            counted[label[0]] += 1
    return all(record.per_label.get(label, {}).get("predicted") == n for label, n in counted.items())
