"""Questions with options, as JSON objects: which options are right, or how many."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

from biobench.data.readers.base import DocumentNames, Ids, ReaderOptions, Request, at, missing, reader
from biobench.data.readers.json_cases import json_objects
from biobench.schema.document import Document
from biobench.schema.strict import suggest


class ChoicesOptions(ReaderOptions):
    """Options of format `choices`. The task's labels name the options, in order."""

    format: Literal["choices"]
    layout: Literal["list", "lines"]
    question: str
    options: str | list[str]
    """Field with a mapping of option names to texts, or with a list of texts; or one field for each option."""
    right: str
    """Field with what is right: one value, or a list of them."""
    right_is: Literal["name", "from_zero", "from_one", "text"] = "name"
    """What such a value is: the option's name (in any case), its number, or its text."""
    target: Literal["options", "count"] = "options"
    """options: the right ones are the labels. count: their number is the label, and options are named a, b, c..."""
    id: str | None = None
    ids: Ids = "repeated"
    """A question's id: see `base.Ids`."""


@reader(ChoicesOptions)
def read_choices(request: Request) -> Iterator[Document]:
    """The question as the first text, its options as the pieces of the second. Other fields are not read.

    A missing or empty option has an empty piece. Order: that of the objects.
    """
    options = request.options
    assert isinstance(options, ChoicesOptions)
    names = DocumentNames(options.ids)
    for item, number, split, path, line in json_objects(request, options.layout):
        fields = [options.question, options.right, *([options.id] if options.id else [])]
        fields += [options.options] if isinstance(options.options, str) else []
        for field in fields:
            if field not in item:
                raise request.bad(f"the object has no field '{field}'", request.nearest(field, list(item)), path, line)
        if options.id is None:
            question_id = group = number
        else:
            question_id, group = names.of(split, str(item[options.id]))
        texts = _texts(request, options, item, path, line)
        right = _right(request, options, item[options.right], texts, path, line)
        if options.target == "count":
            right = [request.check_label(str(len(right)), path, line)] if right else []
        text, pieces = _joined(list(texts.values()))
        question = item[options.question]
        yield Document(
            id=question_id,
            group=group,
            text=text,
            query="" if missing(question) else str(question).strip(),
            pieces=pieces,
            split=split,
            labels=tuple(right),
            origin=at(path, line),
        )


def _texts(request: Request, options: ChoicesOptions, item: dict[str, Any], path: Path, line: int) -> dict[str, str]:
    """Option name to text, in the order of the task's labels."""
    labels = request.spec.labels
    named = options.target == "options" and isinstance(labels, list)
    names = list(labels) if named and isinstance(labels, list) else [chr(ord("a") + i) for i in range(26)]
    if isinstance(options.options, list):
        content: Any = [item.get(field) for field in options.options]
    else:
        content = item[options.options]
    if isinstance(content, dict):
        spelled = {str(name).casefold(): value for name, value in content.items()}
        known = {name.casefold() for name in names}
        for name in spelled:
            if name not in known:
                raise request.bad("option {} is not a label of the task", suggest(name, names), path, line, name)
        pairs = [(name, spelled.get(name.casefold())) for name in names if named or name in spelled]
    elif isinstance(content, list):
        if len(content) > len(names):
            raise request.bad(
                f"{len(content)} options where the task has {len(names)} labels", "add labels", path, line
            )
        pairs = list(zip(names, [*content, *[None] * (len(names) - len(content) if named else 0)], strict=False))
    else:
        raise request.bad(f"field '{options.options}' holds no options", "a mapping or a list of texts", path, line)
    return {name: "" if missing(value) else str(value).strip() for name, value in pairs}


def _right(
    request: Request, options: ChoicesOptions, value: Any, texts: dict[str, str], path: Path, line: int
) -> list[str]:
    """Names of the right options, in the order of the options. Raises DataFormatError for what names none."""
    values = value if isinstance(value, list) else [] if missing(value) else [value]
    names = list(texts)
    right = set()
    for one in values:
        name = str(one).strip()
        if options.right_is == "name":
            place = next((n for n in names if n.casefold() == name.casefold()), None)
        elif options.right_is == "text":
            place = next((n for n, text in texts.items() if text == name), None)
        else:
            shift = int(options.right_is == "from_one")
            number = int(name) - shift if re.fullmatch(r"\d{1,9}", name) else -1
            place = names[number] if 0 <= number < len(names) else None
        if place is None:
            hint = "check `right_is`, or repair the answer"
            raise request.bad("the answer {} is none of the options", hint, path, line, name)
        right.add(place)
    return [name for name in names if name in right]


def _joined(texts: list[str]) -> tuple[str, tuple[tuple[int, int], ...]]:
    """The options' texts on a line each, and where each stands."""
    pieces: list[tuple[int, int]] = []
    start = 0
    for text in texts:
        pieces.append((start, start + len(text)))
        start += len(text) + 1
    return "\n".join(texts), tuple(pieces)
