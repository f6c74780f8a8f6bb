"""Sentences to compare (CLISTER, DEFT 2020) and questions with options, as pairs of a query and its
texts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from string import ascii_lowercase
from typing import Any, Literal, NamedTuple
from xml.etree.ElementTree import Element

from biobench.data.readers.base import DocumentNames, FileLine, Ids, ReaderOptions, Request, reader
from biobench.data.readers.files import (
    DataRow,
    Separator,
    items_of,
    json_rows,
    missing,
    parse_json,
    parse_xml,
    read_text,
    table,
)
from biobench.errors import DataFormatError
from biobench.schema.document import Document
from biobench.schema.strict import suggest


class ScoredPairsOptions(ReaderOptions):
    """Options of format `scored_pairs`: each split names its table of pairs, then its JSON of
    sentences.
    """

    format: Literal["scored_pairs"]
    separator: Separator = "tab"
    first: str
    second: str
    value: str
    """Columns with the ids of the two sentences and with the number."""
    id_parts: int | None = None
    """A sentence's key is so many parts of its id, parted by `_`; null: the whole id."""


@reader(ScoredPairsOptions)
def read_scored_pairs(request: Request[ScoredPairsOptions]) -> Iterator[Document]:
    """Pairs by the ids of their sentences. A pair's id is ``<split>/<first>|<second>``. Order: that
    of the rows.
    """
    options = request.options
    for split, paths in request.files.items():
        if len(paths) != 2:
            raise DataFormatError(
                f"files.{split} names {len(paths)} files", hint="the pairs, then the sentences"
            )
        pairs, texts = (FileLine(request, split, path) for path in paths)
        sentences = _sentences(texts)
        columns = [options.first, options.second, options.value]
        for location, row in table(pairs, options.separator, columns):
            first_id, second_id, value = (row[column].strip() for column in columns)
            pair = []
            for sentence_id in (first_id, second_id):
                key = "_".join(sentence_id.split("_")[: options.id_parts])
                if key not in sentences:
                    hint = f"{texts.path.name} has no such key"
                    raise location.bad("sentence {} is not there", hint, sentence_id)
                pair.append(sentences[key].strip())
            group = f"{first_id}|{second_id}"
            query, text = pair
            yield location.document(f"{split}/{group}", text, group, query=query, labels=(value,))


def _sentences(location: FileLine) -> dict[str, str]:
    """Id to text. Raises DataFormatError."""
    sentences = parse_json(location, read_text(location.path), "repair the file")
    if isinstance(sentences, dict) and all(isinstance(text, str) for text in sentences.values()):
        return sentences
    raise location.bad("is not an object of texts by id", "check `files`")


class DeftOptions(ReaderOptions):
    """Options of format `deft2020`."""

    format: Literal["deft2020"]
    task: Literal[1, 2]
    """1: `paire` elements with `moy`, the mean score. 2: `ensemble` elements with the number of the
    right `cible`.
    """


class _Form(NamedTuple):
    """The elements of a task: their name, their attribute with the answer, how many `cible` each
    has.
    """

    element: str
    answer: str
    targets: int


_FORMS = {1: _Form("paire", "moy", 1), 2: _Form("ensemble", "cible", 3)}


@reader(DeftOptions)
def read_deft2020(request: Request[DeftOptions]) -> Iterator[Document]:
    """Pairs, or a sentence with its three candidates as pieces. Ids are the file's; those of -1 and
    below are skipped.

    Order: that of the elements.
    """
    form = _FORMS[request.options.task]
    for location in request.places():
        elements = list(parse_xml(location).iter(form.element))
        if not elements:
            message = f"has no element '{form.element}'"
            raise location.bad(message, "check reader.task and `files`")
        for element in elements:
            number = (element.get("id") or "").strip()
            try:
                skipped = int(number) <= -1
            except ValueError:
                message = "id {} is not a number"
                raise location.at(None).bad(message, "repair the element", number) from None
            if not skipped:
                yield _deft_document(location, form, element, number)


def _deft_document(location: FileLine, form: _Form, element: Element, number: str) -> Document:
    """Raises DataFormatError for an element without its texts or its answer."""
    nowhere = location.at(None)
    targets = [" ".join((target.text or "").split()) for target in element.findall("cible")]
    source = " ".join((element.findtext("source") or "").split())
    if not source or len(targets) != form.targets or not all(targets):
        message = f"element {{}} has not one source and {form.targets} cible with text"
        raise nowhere.bad(message, "repair the element", number)
    answer = element.get(form.answer)
    if answer is None:
        raise nowhere.bad(
            f"element {{}} has no {form.answer}", "take the files with answers", number
        )
    answer, document_id = answer.strip(), f"{location.prefix}-{number}"
    if form.targets == 1:
        return location.document(document_id, targets[0], query=source, labels=(answer,))
    labels = (location.label(answer),)
    text, pieces = joined([f"({i}) {target}" for i, target in enumerate(targets, start=1)])
    return location.document(document_id, text, query=source, pieces=pieces, labels=labels)


def joined(texts: Sequence[str]) -> tuple[str, tuple[tuple[int, int], ...]]:
    """The texts on a line each, and where each stands."""
    pieces: list[tuple[int, int]] = []
    start = 0
    for text in texts:
        pieces.append((start, start + len(text)))
        start += len(text) + 1
    return "\n".join(texts), tuple(pieces)


class ChoicesOptions(ReaderOptions):
    """Options of format `choices`. The task's labels name the options, in order."""

    format: Literal["choices"]
    layout: Literal["list", "lines"]
    question: str
    options: str | list[str]
    """Field with a mapping of option names to texts; or one field for each option."""
    right: str
    """Field with what is right: one value, or a list of them."""
    right_is: Literal["name", "from_zero", "from_one"] = "name"
    """What such a value is: the option's name (in any case) or its number."""
    target: Literal["options", "count"] = "options"
    """options: the right ones are the labels. count: their number is the label, and options are
    named a, b, c...
    """
    id: str | None = None
    ids: Ids = "repeated"
    """A question's id: see `base.Ids`."""


@reader(ChoicesOptions)
def read_choices(request: Request[ChoicesOptions]) -> Iterator[Document]:
    """The question as the first text, its options as the pieces of the second. Other fields are not
    read.

    A missing or empty option has an empty piece. Order: that of the objects.
    """
    options = request.options
    names = DocumentNames(options.ids)
    for row in json_rows(request, options.layout):
        row.need(options.question, options.right, options.id)
        location, question_id, group = row.location, row.number, row.number
        if options.id is not None:
            question_id, group = names.of(location.split, str(row.values[options.id]))
        texts = _texts(options, row)
        right = _right(options, row, texts)
        if options.target == "count":
            right = [location.label(str(len(right)))] if right else []
        text, pieces = joined(list(texts.values()))
        question = row.values[options.question]
        query = "" if missing(question) else str(question).strip()
        yield location.document(
            question_id, text, group, query=query, pieces=pieces, labels=tuple(right)
        )


def _texts(options: ChoicesOptions, row: DataRow) -> dict[str, str]:
    """Option name to text, in the order of the task's labels."""
    labels = row.location.request.spec.labels
    names, are_labels = list(ascii_lowercase), False
    if options.target == "options" and isinstance(labels, list):
        names, are_labels = labels, True
    if isinstance(options.options, list):
        fields = dict(zip(names, options.options, strict=False))
        values = {name: row.values.get(field) for name, field in fields.items()}
    else:
        values = _named_options(row, options.options, names)
        if are_labels:
            values = dict.fromkeys(names) | values
    return {name: "" if missing(value) else str(value).strip() for name, value in values.items()}


def _named_options(row: DataRow, field: str, names: Sequence[str]) -> dict[str, Any]:
    """Those of the names that the field's mapping has, in any case, with its values. Raises
    DataFormatError for another.
    """
    row.need(field)
    content = row.values[field]
    if not isinstance(content, dict):
        raise row.bad(f"field '{field}' holds no options", "a mapping of names to texts")
    values = {str(name).casefold(): value for name, value in content.items()}
    folded = {name: name.casefold() for name in names}
    for name in values:
        if name not in folded.values():
            raise row.bad("option {} is not a label of the task", suggest(name, names), name)
    return {name: values[key] for name, key in folded.items() if key in values}


def _right(options: ChoicesOptions, row: DataRow, texts: dict[str, str]) -> list[str]:
    """Names of the right options, in the order of the options. Raises DataFormatError for what
    names none.
    """
    value = row.values[options.right]
    answers = [] if missing(value) else items_of(value)
    names, right = list(texts), set()
    for answer in answers:
        name = _option(options, names, str(answer).strip())
        if name is None:
            hint = "check `reader.right_is`, or repair the answer"
            raise row.bad("the answer {} is none of the options", hint, str(answer).strip())
        right.add(name)
    return [name for name in names if name in right]


def _option(options: ChoicesOptions, names: list[str], answer: str) -> str | None:
    """The name of the option that an answer means; None where it means none."""
    if options.right_is == "name":
        return next((name for name in names if name.casefold() == answer.casefold()), None)
    if not re.fullmatch(r"\d{1,9}", answer):
        return None
    number = int(answer)
    if options.right_is == "from_one":
        number -= 1
    return names[number] if 0 <= number < len(names) else None
