"""Sentences to compare (CLISTER, DEFT 2020) and questions with options, as pairs of a query and its
texts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
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
    read_text,
    table,
    xml_files,
)
from biobench.data.readers.tokens import placed
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
    columns = [options.first, options.second, options.value]
    for split in request.files:
        pairs, texts = request.tables_of(split, "pairs, sentences")
        sentences = _sentences(texts)
        for location, row in table([pairs], options.separator, columns):
            query_id, text_id, value = (row[column].strip() for column in columns)
            pair: list[str] = []
            for sentence_id in (query_id, text_id):
                key = "_".join(sentence_id.split("_")[: options.id_parts])
                location.require(
                    key in sentences,
                    "sentence {} is not there",
                    f"{texts.path.name} has no such key",
                    key,
                )
                pair.append(sentences[key].strip())
            query, text = pair
            group = f"{query_id}|{text_id}"
            yield location.document(f"{split}/{group}", text, group, query=query, labels=(value,))


def _sentences(location: FileLine) -> dict[str, str]:
    """Id to text. Raises DataFormatError."""
    sentences = parse_json(location, read_text(location), "repair the file")
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
    for location, root in xml_files(request):
        elements = list(root.iter(form.element))
        location.require(
            elements, f"has no element '{form.element}'", "check reader.task and `files`"
        )
        for element in elements:
            number = element.get("id", "").strip()
            location.require(
                re.fullmatch(r"-?\d+", number),
                "id {} is not a number",
                "repair the element",
                number,
            )
            if not number.startswith("-"):
                yield _deft_document(location, form, element, number)


def _deft_document(location: FileLine, form: _Form, element: Element, number: str) -> Document:
    """Raises DataFormatError for an element without its texts or its answer."""
    targets = [" ".join((target.text or "").split()) for target in element.findall("cible")]
    source = " ".join(element.findtext("source", "").split())
    location.require(
        len(targets) == form.targets and all((source, *targets)),
        f"element {{}} has not one source and {form.targets} cible with text",
        "repair the element",
        number,
    )
    location.require(
        form.answer in element.attrib,
        f"element {{}} has no {form.answer}",
        "take the files with answers",
        number,
    )
    answer = element.attrib[form.answer].strip()
    pieces: tuple[tuple[int, int], ...] = ()
    if form.targets > 1:
        location.label(answer)
        targets = [f"({i}) {target}" for i, target in enumerate(targets, start=1)]
        pieces = placed(targets)
    return location.document(
        f"{location.prefix}-{number}",
        "\n".join(targets),
        query=source,
        pieces=pieces,
        labels=(answer,),
    )


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
        right = _right(options, row, list(texts))
        labels = tuple(name for name in texts if name in right)
        if labels and options.target == "count":
            labels = (location.label(str(len(labels))),)
        pieces = list(texts.values())
        yield location.document(
            question_id,
            "\n".join(pieces),
            group,
            query=_text(row.values[options.question]),
            pieces=placed(pieces),
            labels=labels,
        )


def _text(value: Any) -> str:
    """The value as text, without blanks around it; empty where it is missing."""
    if missing(value):
        return ""
    return str(value).strip()


def _texts(options: ChoicesOptions, row: DataRow) -> dict[str, str]:
    """Option name to text, in the order of the task's labels, else (counted) of the names."""
    names: list[str] = []
    if options.target == "options":
        names = row.location.request.known_labels or []
    if isinstance(options.options, list):
        values = map(_text, map(row.values.get, options.options))
        return dict(zip(names or ascii_lowercase, values, strict=False))
    row.need(options.options)
    content = row.values[options.options]
    row.location.require(
        isinstance(content, dict),
        f"field '{options.options}' holds no options",
        "a mapping of names to texts",
    )
    if not names:
        return {name: _text(content[name]) for name in sorted(content)}
    by_folded = {name.casefold(): name for name in names}
    texts = dict.fromkeys(names, "")
    for option, value in content.items():
        if option.casefold() not in by_folded:
            raise row.bad("option {} is not a label of the task", suggest(option, names), option)
        texts[by_folded[option.casefold()]] = _text(value)
    return texts


def _right(options: ChoicesOptions, row: DataRow, names: list[str]) -> set[str]:
    """Names of the right options. Raises DataFormatError for an answer that means none."""
    answers: list[str] = [name.casefold() for name in names]
    if options.right_is != "name":
        first_number = ["from_zero", "from_one"].index(options.right_is)
        answers = [str(number) for number, _ in enumerate(names, first_number)]
    by_answer = dict(zip(answers, names, strict=True))
    right: set[str] = set()
    value = row.values[options.right]
    if missing(value):
        return right
    for item in items_of(value):
        answer = str(item).strip()
        row.location.require(
            answer.casefold() in by_answer,
            "the answer {} is none of the options",
            "check `reader.right_is`, or repair the answer",
            answer,
        )
        right.add(by_answer[answer.casefold()])
    return right
