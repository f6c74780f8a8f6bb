"""Predictions that were made elsewhere, read from a file in the documented format and checked against the task.

The format (docs/running.md): JSON Lines, one object a test document, in any order; or the parquet file that a run
stores. Nothing is filled in or dropped: what does not fit the task is refused with its line.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

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
    known: dict[str, tuple[int, Prediction]] = {}
    stored = content.startswith(b"PAR1")
    rows: Sequence[Any] = from_parquet(content, path)[1] if stored else content.split(b"\n")
    for number, row in enumerate(rows, start=1):
        if not stored and not row.strip():
            continue
        line = _Line(path, number, expected)
        prediction = row if stored else line.prediction(row)
        name = prediction.document
        if name in known:
            line.refuse(f"document '{name}' was predicted before, on line {known[name][0]}", "keep one line a document")
        line.check(prediction)
        known[name] = (line.number, prediction)
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


class _Line:
    """One line of the file: reads it, and refuses what does not fit the task with file and line."""

    def __init__(self, path: Path, number: int, expected: Expected) -> None:
        self.path, self.number, self.expected = path, number, expected

    def refuse(self, what: str, hint: str) -> NoReturn:
        raise DataFormatError(what, hint=hint, file=self.path, line=self.number)

    def prediction(self, text: bytes) -> Prediction:
        """Of a line of JSON."""
        try:
            row = json.loads(text.decode("utf-8-sig" if self.number == 1 else "utf-8"))
        except (ValueError, RecursionError):
            row = None
        if not isinstance(row, dict):
            self.refuse("is not a JSON object in UTF-8", FORMAT)
        kind = self.expected.kind
        fields = ("document", "spans", "tags") if kind.tagged else ("document", "spans")
        if not kind.spans:
            fields = ("document", "value") if kind.numeric else ("document", "labels", "label_scores")
        for name in row:
            if name not in fields:
                self.refuse(f"'{name}' is not a field of a {kind.name} prediction", suggest(name, fields))
        document = row.get("document")
        if not isinstance(document, str):
            self.refuse("has no 'document' (a text)", FORMAT)
        self.check_document(document)
        if kind.numeric:
            return Prediction(document, label_scores=(self.value(row.get("value")),))
        if not kind.spans:
            return Prediction(document, labels=self.texts(row, "labels"), label_scores=self.label_scores(row))
        if "tags" in row:
            if "spans" in row:
                self.refuse("gives both spans and tags", "give one of them")
            return self.tagged(document, self.texts(row, "tags"))
        return self.with_spans(document, row.get("spans"))

    def value(self, value: Any) -> float:
        """A number on the task's scale."""
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            self.refuse(f"its 'value' is {value!r}, no finite number", 'write {"document": ID, "value": 2.5}')
        scale = self.expected.scale
        if scale is not None and not scale[0] <= value <= scale[1]:
            hint = f"the task's scale is {scale[0]:g} to {scale[1]:g}"
            self.refuse(f"value {value:g} lies outside the scale", hint)
        return float(value)

    def texts(self, row: Mapping[str, Any], name: str) -> tuple[str, ...]:
        values = row.get(name)
        if not isinstance(values, list) or not all(isinstance(v, str) for v in values):
            self.refuse(f"has no list of texts '{name}'", FORMAT)
        return tuple(values)

    def score(self, value: Any, what: str) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
            self.refuse(f"the score of {what} is {value!r}", "scores are probabilities from 0 to 1")
        return float(value)

    def label_scores(self, row: Mapping[str, Any]) -> tuple[float, ...]:
        """In the order of the task's labels; none where the row has none."""
        values, labels = row.get("label_scores"), self.expected.labels
        if values is None:
            return ()
        if not isinstance(values, dict):
            self.refuse("'label_scores' is not an object of label to score", 'write {"label_scores": {"A": 0.9}}')
        for label in values:
            self.check_label(label)
        absent = [label for label in labels if label not in values]
        if absent:
            what = f"'label_scores' lacks {len(absent)} of {len(labels)} labels, such as '{absent[0]}'"
            self.refuse(what, "score every label, or leave 'label_scores' out")
        return tuple(self.score(values[label], f"'{label}'") for label in labels)

    def tagged(self, document: str, tags: tuple[str, ...]) -> Prediction:
        """From a tag for each token of the corpus."""
        known, allowed = self.expected.documents[document], tag_set(self.expected.labels)
        for tag in tags:
            if tag not in allowed:
                self.refuse(f"tag '{tag}' is not one of the task's", suggest(tag, allowed))
        if len(tags) != len(known.tokens):
            what = f"gives {len(tags)} tags to {len(known.tokens)} tokens"
            self.refuse(what, "give one tag a token of the corpus, or spans")
        spans = tuple(span for span, _, _ in spans_of_tags(known, tags, self.expected.decode))
        return Prediction(document, spans=spans, tags=tags)

    def with_spans(self, document: str, values: Any) -> Prediction:
        """From spans, each once; all of them have a score, or none has."""
        if not isinstance(values, list):
            self.refuse("has no list 'spans'", FORMAT)
        spans: dict[Span, float | None] = {}
        for value in values:
            names = {"start", "end", "label"}
            if not isinstance(value, dict) or not names <= value.keys() <= {*names, "score"}:
                hint = 'write {"start": 0, "end": 5, "label": "Disease"}, with "score" where there is one'
                self.refuse("a span is not an object of start, end and label", hint)
            start, end, label, score = value["start"], value["end"], value["label"], value.get("score")
            if type(start) is not int or type(end) is not int or not isinstance(label, str):
                hint = "offsets are characters of the document's text, [start, end)"
                self.refuse(f"span {start!r}-{end!r} {label!r}: start and end are whole numbers", hint)
            spans.setdefault(Span(start, end, label), None if score is None else self.score(score, "a span"))
        scores = tuple(score for score in spans.values() if score is not None)
        if scores and len(scores) < len(spans):
            self.refuse("gives a score to some of its spans only", "give every span a score, or none")
        return Prediction(document, spans=tuple(spans), span_scores=scores)

    def check(self, prediction: Prediction) -> None:
        """Whether document, labels and offsets are those of the task."""
        self.check_document(prediction.document)
        kind, length = self.expected.kind, len(self.expected.documents[prediction.document].text)
        for span in prediction.spans:
            self.check_label(span.label)
            if not 0 <= span.start < span.end <= length:
                what = f"span {span.start}-{span.end} leaves the text of {length} characters"
                self.refuse(what, "offsets are characters of the document's text, [start, end)")
        for label in prediction.labels:
            self.check_label(label)
        if len(set(prediction.labels)) < len(prediction.labels):
            self.refuse("names a label twice", "name each label once")
        if kind.single and not kind.spans and not kind.numeric and len(prediction.labels) != 1:
            what = f"gives {len(prediction.labels)} labels in a task of one label a document"
            self.refuse(what, "give exactly one label")

    def check_document(self, name: str) -> None:
        """Whether it is one of the split; the ids of redacted data are not suggested."""
        if name not in self.expected.documents:
            hint = "use the ids that `biobench score --task T --documents FILE` writes"
            if not self.expected.redact:
                hint = suggest(name, list(self.expected.documents)[:2000])[:300]
            self.refuse(f"document '{name}' is not one of the test split", hint)

    def check_label(self, label: str) -> None:
        if label not in self.expected.labels:
            self.refuse(f"'{label}' is not a label of the task", suggest(label, self.expected.labels))
