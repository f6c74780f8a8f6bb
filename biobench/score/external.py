"""Predictions that were made elsewhere, read from a file in the documented format and checked
against the task.

The format (docs/running.md): JSON Lines, one object a test document, in any order; or the parquet
file that a run stores. Nothing is filled in or dropped: what does not fit the task is refused with
its line.
"""

from __future__ import annotations

import codecs
import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from biobench.errors import DataFormatError, withholding
from biobench.kinds import Kind, get_kind
from biobench.kinds.token_ner import spans_of_tags
from biobench.schema.document import Document, Prediction, Span
from biobench.schema.strict import FieldError, Fraction, Strict, suggest
from biobench.schema.tags import Tagging
from biobench.store.tables import from_parquet

FORMAT = (
    'one JSON object a line: {"document": ID, "labels": [...]} or {"document": ID, "spans": '
    '[{"start": 0, ...}]}'
)


class Expected:
    """What the predictions must fit.

    documents: the split that is scored. tagging: how the corpus writes its tags, and so how
    predicted tags are read. scale: ends of a number's scale.
    redact: no message names a document or quotes its text (data under an agreement).
    """

    def __init__(
        self,
        kind: str,
        labels: Sequence[str],
        documents: Sequence[Document],
        tagging: Tagging,
        *,
        redact: bool,
        scale: tuple[float, float] | None = None,
    ) -> None:
        self.kind: Kind = get_kind(kind)
        self.labels = tuple(labels)
        self.redact = redact
        self.scale = scale
        # A label of the task stands for itself, whatever type of the corpus is written alike.
        types = {**tagging.types, **{label: label for label in labels}}
        self.tagging = replace(tagging, types=types)
        self.documents = {d.id: d for d in documents}


class _Mention(Strict):
    start: int
    end: int
    label: str
    score: Fraction | None = None


class _Mentions(Strict):
    """A line of a kind whose truth is spans."""

    document: str
    spans: list[_Mention] | None = None
    tags: list[str] | None = None

    def prediction(self, expected: Expected) -> Prediction:
        """Raises FieldError."""
        tagged = expected.kind.tagged
        if self.spans is not None and self.tags is None:
            return self._of_spans(self.spans)
        if self.tags is not None and self.spans is None and tagged:
            return _tagged(_document(self.document, expected), tuple(self.tags), expected)
        tags = " or a list 'tags', one of the two" if tagged else ""
        raise FieldError(f"needs a list 'spans'{tags}", FORMAT)

    def _of_spans(self, mentions: Sequence[_Mention]) -> Prediction:
        """Each span once, with the score that stands first."""
        spans: dict[Span, float | None] = {}
        for mention in mentions:
            spans.setdefault(Span(mention.start, mention.end, mention.label), mention.score)
        scores = tuple(score for score in spans.values() if score is not None)
        if scores and len(scores) < len(spans):
            message = "gives a score to some of its spans only"
            raise FieldError(message, "give every span a score, or none")
        return Prediction(self.document, spans=tuple(spans), span_scores=scores)


class _Labels(Strict):
    """A line of a kind whose truth is labels of the document."""

    document: str
    labels: list[str]
    label_scores: dict[str, Fraction] | None = None

    def prediction(self, expected: Expected) -> Prediction:
        """The scores in the order of the task's labels. Raises FieldError."""
        labels = tuple(self.labels)
        if not self.label_scores:
            return Prediction(self.document, labels=labels)
        different = sorted(self.label_scores.keys() ^ set(expected.labels))
        if different:
            message = "'label_scores' and the task's labels differ, in {}"
            raise FieldError(
                message, "score every label, or leave 'label_scores' out", different[0]
            )
        scores = tuple(self.label_scores[label] for label in expected.labels)
        return Prediction(self.document, labels=labels, label_scores=scores)


class _Value(Strict):
    """A line of a kind whose truth is a number."""

    document: str
    value: float

    def prediction(self, expected: Expected) -> Prediction:
        """Raises FieldError."""
        low, high = expected.scale or (self.value, self.value)
        if not low <= self.value <= high:
            hint = f"the task's scale is {low:g} to {high:g}"
            raise FieldError(f"value {self.value:g} is outside the scale", hint)
        return Prediction(self.document, label_scores=(self.value,))


_FIELDS = {name for model in (_Mention, _Mentions, _Labels, _Value) for name in model.model_fields}


def read_predictions(path: Path, expected: Expected) -> list[Prediction]:
    """One prediction for each expected document, in their order. Raises DataFormatError with file
    and line.
    """
    predictions: dict[str, Prediction] = {}
    line_of: dict[str, int] = {}
    with withholding(expected.redact):
        for number, row in _rows(path):
            try:
                prediction = row if isinstance(row, Prediction) else _parsed(row, expected)
                _check(prediction, expected)
                name = prediction.document
                if name in predictions:
                    message = f"document {{}} was predicted before, on line {line_of[name]}"
                    raise FieldError(message, "keep one line a document", name)
            except FieldError as error:
                raise DataFormatError(
                    error.what, hint=error.hint, file=path, line=number, value=error.value
                ) from None
            predictions[name] = prediction
            line_of[name] = number
        missing = [name for name in expected.documents if name not in predictions]
        if missing:
            raise DataFormatError(
                f"{len(missing)} of {len(expected.documents)} test documents have no prediction, "
                f"such as {{}}",
                hint="give a line for every document, with an empty list where nothing is "
                "predicted",
                file=path,
                value=missing[0],
            )
    return [predictions[name] for name in expected.documents]


def _rows(path: Path) -> Iterator[tuple[int, bytes | Prediction]]:
    """Number and content of each line that is not blank; of a run's parquet file its predictions.

    Raises DataFormatError.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        message = f"cannot be read: {error.strerror or error}"
        hint = "give a file of predictions with --predictions"
        raise DataFormatError(message, hint=hint, file=path) from error
    if content.startswith(b"PAR1"):
        yield from enumerate(from_parquet(content, path)[1], start=1)
        return
    lines = content.removeprefix(codecs.BOM_UTF8).split(b"\n")
    for number, line in enumerate(lines, start=1):
        if line.strip():
            yield number, line


def documents_for_prediction(documents: Sequence[Document]) -> Iterator[str]:
    """JSON lines of what a system may see of each document: id, text, the query before it, its
    tokens; no gold.
    """
    for d in documents:
        row: dict[str, Any] = {"document": d.id, "text": d.text}
        if d.query:
            row["query"] = d.query
        if d.tokens:
            row["tokens"] = [list(token) for token in d.tokens]
        yield json.dumps(row, ensure_ascii=False)


def _parsed(line: bytes, expected: Expected) -> Prediction:
    """The prediction of a line of JSON. Raises FieldError."""
    model: type[_Mentions | _Value | _Labels] = _Labels
    if expected.kind.spans:
        model = _Mentions
    elif expected.kind.numeric:
        model = _Value
    try:
        row = model.model_validate_json(line)
    except ValidationError as error:
        raise _complaint(error.errors()[0]) from None
    return row.prediction(expected)


def _complaint(detail: Any) -> FieldError:
    """Pydantic's complaint of a line, without words of the corpus but in `value`."""
    if detail["type"] == "shape":
        return FieldError(detail["ctx"]["what"], detail["ctx"]["hint"])
    if not detail["loc"]:
        return FieldError("is not a JSON object in UTF-8", FORMAT)
    # a key inside, such as a label of `label_scores`, may be of the corpus
    steps = (step for step in detail["loc"] if isinstance(step, int) or step in _FIELDS)
    field = ".".join(map(str, steps))
    content = detail["input"]
    shown = "{}" if isinstance(content, str | list | dict) else repr(content)
    return FieldError(f"{field}: {detail['msg'].lower()}, got {shown}", FORMAT, str(content))


def _tagged(document: Document, tags: tuple[str, ...], expected: Expected) -> Prediction:
    """From a tag for each token of the corpus."""
    tagging = expected.tagging
    for tag in dict.fromkeys(tags):
        try:
            letter, name = tagging.parse(tag)
        except ValueError:
            hint = f"the task's labels are {', '.join(expected.labels)}"
            raise FieldError(f"tag {{}} is not {tagging.shapes}", hint, tag) from None
        if letter != "O" and tagging.label_of(name) not in (None, *expected.labels):
            message = "tag {} is not one of the task's"
            raise FieldError(message, suggest(name, expected.labels), tag)
    if len(tags) != len(document.tokens):
        message = f"gives {len(tags)} tags to {len(document.tokens)} tokens"
        raise FieldError(message, "give one tag a token of the corpus, or spans")
    read = tagging.read(tags).tags
    spans = tuple(span for span, _, _ in spans_of_tags(document, read, tagging.decode))
    return Prediction(document.id, spans=spans, tags=read)


def _document(name: str, expected: Expected) -> Document:
    """The document of the split; the ids of redacted data are not suggested. Raises FieldError."""
    if name in expected.documents:
        return expected.documents[name]
    hint = "use the ids that `biobench score --task T --documents FILE` writes"
    if not expected.redact:
        hint = suggest(name, list(expected.documents)[:2000])[:300]
    raise FieldError("document {} is not one of the test split", hint, name)


def _check(prediction: Prediction, expected: Expected) -> None:
    """Whether document, labels and offsets are those of the task. Raises FieldError."""
    kind = expected.kind
    labels = prediction.labels
    length = len(_document(prediction.document, expected).text)
    if not kind.numeric:
        for label in (*(span.label for span in prediction.spans), *labels):
            if label not in expected.labels:
                hint = suggest(label, expected.labels)
                raise FieldError("{} is not a label of the task", hint, label)
    for span in prediction.spans:
        if not 0 <= span.start < span.end <= length:
            message = f"span {span.start}-{span.end} leaves the text of {length} characters"
            raise FieldError(message, "offsets are characters of the document's text, [start, end)")
    if len(set(labels)) < len(labels):
        raise FieldError("names a label twice", "name each label once")
    if kind.single and not kind.spans and not kind.numeric and len(labels) != 1:
        message = f"gives {len(labels)} labels in a task of one label a document"
        raise FieldError(message, "give exactly one label")
