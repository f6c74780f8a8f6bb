"""Predictions that were made elsewhere, read from a file in the documented format and checked against the task.

The format (docs/predictions.md): JSON Lines, one object a test document, in any order; or the parquet file that a run
stores. Nothing is filled in or dropped: what does not fit the task is refused with its line.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from biobench.errors import DataFormatError
from biobench.kinds import Kind, get_kind
from biobench.kinds.token_ner import spans_of_tags, tag_set
from biobench.schema.document import Document, Prediction, Span
from biobench.schema.strict import suggest
from biobench.store.tables import from_parquet

FORMAT = 'one JSON object a line: {"document": ID, "labels": [...]} or {"document": ID, "spans": [{"start": 0, ...}]}'


class Expected:
    """What the predictions must fit.

    documents: the split that is scored. decode: how tags become spans. scale: ends of a number's scale.
    redact: no message names a document or quotes its text (data under an agreement).
    """

    def __init__(
        self,
        kind: str,
        labels: Sequence[str],
        documents: Sequence[Document],
        decode: Any,
        *,
        redact: bool,
        scale: tuple[float, float] | None = None,
    ) -> None:
        self.kind: Kind = get_kind(kind)
        self.labels, self.decode, self.redact, self.scale = tuple(labels), decode, redact, scale
        self.documents = {d.id: d for d in documents}


def read_predictions(path: Path, expected: Expected) -> list[Prediction]:
    """One prediction for each expected document, in their order. Raises DataFormatError with file and line."""
    try:
        content = path.read_bytes()
    except OSError as error:
        what = f"cannot be read: {error.strerror or error}"
        raise DataFormatError(what, hint="give a file of predictions with --predictions", file=path) from error
    rows = _stored(content, path) if content.startswith(b"PAR1") else _lines(content, path)
    known: dict[str, tuple[int, Prediction]] = {}
    for line, prediction in (
        (line, row if isinstance(row, Prediction) else _prediction(row, expected, path, line)) for line, row in rows
    ):
        name = prediction.document
        if name not in expected.documents:
            raise _wrong(
                path,
                line,
                f"document '{name}' is not one of the test split",
                "use the ids that `biobench score --task T --documents FILE` writes"
                if expected.redact
                else suggest(name, list(expected.documents)[:2000])[:300],
            )
        if name in known:
            what = f"document '{name}' was predicted before, on line {known[name][0]}"
            raise _wrong(path, line, what, "keep one line a document")
        _check(prediction, expected, path, line)
        known[name] = (line, prediction)
    missing = [name for name in expected.documents if name not in known]
    if missing:
        which = "" if expected.redact else f", such as '{missing[0]}'"
        raise DataFormatError(
            f"{len(missing)} of {len(expected.documents)} test documents have no prediction{which}",
            hint="give a line for every document, with an empty list where nothing is predicted",
            file=path,
        )
    return [known[name][1] for name in expected.documents]


def documents_for_prediction(documents: Sequence[Document]) -> Iterator[str]:
    """JSON lines of what a system may see of each document: id, text, the query before it, its tokens; no gold."""
    for d in documents:
        row: dict[str, Any] = {"document": d.id, "text": d.text}
        if d.query:
            row["query"] = d.query
        if d.tokens:
            row["tokens"] = [list(token) for token in d.tokens]
        yield json.dumps(row, ensure_ascii=False)


def _stored(content: bytes, path: Path) -> Iterator[tuple[int, Prediction]]:
    """Rows of a run's own file, numbered from 1."""
    return iter(list(enumerate(from_parquet(content, path)[1], start=1)))


def _lines(content: bytes, path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    for line, text in enumerate(content.split(b"\n"), start=1):
        if not text.strip():
            continue
        try:
            row = json.loads(text.decode("utf-8-sig" if line == 1 else "utf-8"), object_pairs_hook=_once)
        except (ValueError, RecursionError) as error:
            what = str(error) if isinstance(error, _TwiceError) else "is not a JSON object in UTF-8"
            raise _wrong(path, line, what, FORMAT) from error
        if not isinstance(row, dict):
            raise _wrong(path, line, "is not a JSON object", FORMAT)
        yield line, row


class _TwiceError(ValueError):
    """An object names a field twice."""


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    row = dict(pairs)
    if len(row) < len(pairs):
        raise _TwiceError("names a field twice")
    return row


def _prediction(row: Mapping[str, Any], expected: Expected, path: Path, line: int) -> Prediction:
    kind = expected.kind
    fields = ("document", "spans", "tags") if kind.tagged else ("document", "spans")
    if not kind.spans:
        fields = ("document", "value") if kind.numeric else ("document", "labels", "label_scores")
    for name in row:
        if name not in fields:
            raise _wrong(path, line, f"'{name}' is not a field of a {kind.name} prediction", suggest(name, fields))
    document = row.get("document")
    if not isinstance(document, str):
        raise _wrong(path, line, "has no 'document' (a text)", FORMAT)
    if kind.numeric:
        return Prediction(document, label_scores=(_value(row, expected, path, line),))
    if not kind.spans:
        labels = _texts(row, "labels", path, line)
        return Prediction(document, labels=labels, label_scores=_label_scores(row, expected, path, line))
    if "tags" in row:
        if "spans" in row:
            raise _wrong(path, line, "gives both spans and tags", "give one of them")
        return _of_tags(document, _texts(row, "tags", path, line), expected, path, line)
    spans: dict[Span, float | None] = {}
    values = row.get("spans")
    if not isinstance(values, list):
        raise _wrong(path, line, "has no list 'spans'", FORMAT)
    for value in values:
        span, score = _span(value, path, line)
        spans.setdefault(span, score)
    scores = tuple(score for score in spans.values() if score is not None)
    if scores and len(scores) < len(spans):
        raise _wrong(path, line, "gives a score to some of its spans only", "give every span a score, or none")
    return Prediction(document, spans=tuple(spans), span_scores=scores)


def _value(row: Mapping[str, Any], expected: Expected, path: Path, line: int) -> float:
    """A number on the task's scale."""
    value = row.get("value")
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise _wrong(path, line, f"its 'value' is {value!r}, no finite number", 'write {"document": ID, "value": 2.5}')
    if expected.scale is not None and not expected.scale[0] <= value <= expected.scale[1]:
        low, high = expected.scale
        raise _wrong(path, line, f"value {value:g} lies outside the scale", f"the task's scale is {low:g} to {high:g}")
    return float(value)


def _texts(row: Mapping[str, Any], name: str, path: Path, line: int) -> tuple[str, ...]:
    values = row.get(name)
    if not isinstance(values, list) or not all(isinstance(v, str) for v in values):
        raise _wrong(path, line, f"has no list of texts '{name}'", FORMAT)
    return tuple(values)


def _span(value: Any, path: Path, line: int) -> tuple[Span, float | None]:
    if not isinstance(value, dict) or not {"start", "end", "label"} <= value.keys() <= {
        *("start", "end", "label", "score")
    }:
        hint = 'write {"start": 0, "end": 5, "label": "Disease"}, with "score" where there is one'
        raise _wrong(path, line, "a span is not an object of start, end and label", hint)
    start, end, label = value["start"], value["end"], value["label"]
    if type(start) is not int or type(end) is not int or not isinstance(label, str):
        hint = "offsets are characters of the document's text, [start, end)"
        raise _wrong(path, line, f"span {start!r}-{end!r} {label!r}: start and end are whole numbers", hint)
    score = value.get("score")
    return Span(start, end, label), None if score is None else _score(score, "a span", path, line)


def _score(value: Any, what: str, path: Path, line: int) -> float:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not math.isfinite(value) or not 0 <= value <= 1:
        raise _wrong(path, line, f"the score of {what} is {value!r}", "scores are probabilities from 0 to 1")
    return float(value)


def _label_scores(row: Mapping[str, Any], expected: Expected, path: Path, line: int) -> tuple[float, ...]:
    """In the order of the task's labels; none where the row has none."""
    values = row.get("label_scores")
    if values is None:
        return ()
    if not isinstance(values, dict):
        raise _wrong(
            path, line, "'label_scores' is not an object of label to score", 'write {"label_scores": {"A": 0.9}}'
        )
    for label in values:
        _known(label, expected, path, line)
    absent = [label for label in expected.labels if label not in values]
    if absent:
        what = f"'label_scores' lacks {len(absent)} of {len(expected.labels)} labels, such as '{absent[0]}'"
        raise _wrong(path, line, what, "score every label, or leave 'label_scores' out")
    return tuple(_score(values[label], f"'{label}'", path, line) for label in expected.labels)


def _of_tags(document: str, tags: tuple[str, ...], expected: Expected, path: Path, line: int) -> Prediction:
    known = expected.documents.get(document)
    allowed = tag_set(expected.labels)
    for tag in tags:
        if tag not in allowed:
            raise _wrong(path, line, f"tag '{tag}' is not one of the task's", suggest(tag, allowed))
    if known is None:
        return Prediction(document)
    if len(tags) != len(known.tokens):
        what = f"gives {len(tags)} tags to {len(known.tokens)} tokens"
        raise _wrong(path, line, what, "give one tag a token of the corpus, or spans")
    spans = tuple(span for span, _, _ in spans_of_tags(known, tags, expected.decode))
    return Prediction(document, spans=spans, tags=tags)


def _check(prediction: Prediction, expected: Expected, path: Path, line: int) -> None:
    kind, length = expected.kind, len(expected.documents[prediction.document].text)
    for span in prediction.spans:
        _known(span.label, expected, path, line)
        if not 0 <= span.start < span.end <= length:
            what = f"span {span.start}-{span.end} leaves the text of {length} characters"
            raise _wrong(path, line, what, "offsets are characters of the document's text, [start, end)")
    for label in prediction.labels:
        _known(label, expected, path, line)
    if len(set(prediction.labels)) < len(prediction.labels):
        raise _wrong(path, line, "names a label twice", "name each label once")
    if kind.single and not kind.spans and not kind.numeric and len(prediction.labels) != 1:
        what = f"gives {len(prediction.labels)} labels in a task of one label a document"
        raise _wrong(path, line, what, "give exactly one label")


def _known(label: str, expected: Expected, path: Path, line: int) -> None:
    if label not in expected.labels:
        raise _wrong(path, line, f"'{label}' is not a label of the task", suggest(label, expected.labels))


def _wrong(path: Path, line: int, what: str, hint: str) -> DataFormatError:
    return DataFormatError(what, hint=hint, file=path, line=line)
