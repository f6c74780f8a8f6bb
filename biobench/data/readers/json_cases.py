"""JSON: one list of objects, or one object a line, with a text and a label field."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

from biobench.data.readers.base import ReaderOptions, Request, at, missing, parse_json, read_lines, read_text, reader
from biobench.schema.document import Document
from biobench.schema.source import later

Layouts = Literal["list", "lines", "keyed"]
KEY = "#key"
"""Field under which an object of a keyed file has its key."""


class JsonOptions(ReaderOptions):
    """Options of format `json`."""

    format: Literal["json"]
    layout: Literal["list", "lines", "keyed"]
    """list: one list of objects. lines: one object a line. keyed: one object of objects by their ids."""
    text: str
    """Field with a text, or with a list of texts, which are joined by blanks."""
    label: str
    """Field with one label, or with a list of them."""
    id: str | None = None
    group: str | None = later(None)
    """Field that says what belongs together (a patient, an article); default: each object alone."""
    first: str | None = later(None)
    """Of a pair of texts the one that goes in before `text`."""
    label_key: Literal["whole", "first_word"] = "whole"
    """first_word: what stands before the first blank of the label text."""
    label_map: dict[str, str | None] = {}
    """Label in the file to label of the task; null means none. Unnamed labels stay."""
    drop_containing: list[str] = []
    """Objects whose label text holds one of these are left out."""
    blank_text: Literal["refused", "kept"] = later("refused")
    """kept: a blank text stands as it is beside the first text (a question without its passage)."""
    drop_missing: bool = False
    """Leave out objects without a label (null or NaN) or with a blank text; otherwise they are refused."""


@reader(JsonOptions)
def read_json(request: Request) -> Iterator[Document]:
    """Objects with a text and one or several labels. In a list, positions in messages are object numbers.

    Order: that of the objects.
    """
    options = request.options
    assert isinstance(options, JsonOptions)
    for place in json_objects(request, options.layout):
        document = _document(request, options, *place)
        if document is not None:
            yield document


def json_objects(request: Request, layout: Layouts) -> Iterator[tuple[dict[str, Any], str, str, Path, int]]:
    """(object, its number in the split as an id, split, file, line or number in a list) of all files.

    Raises DataFormatError for what is no JSON object.
    """
    numbers: Counter[str] = Counter()
    for split, path in request.only_splits("train", "validation", "test", "all"):
        prefix = split or path.stem
        for line, item in _objects(request, layout, path):
            numbers[prefix] += 1
            yield item, f"{prefix}-{numbers[prefix]}", split, path, line


def need_fields(request: Request, item: dict[str, Any], names: Sequence[str | None], path: Path, line: int) -> None:
    """Raise DataFormatError where the object lacks one of these fields, or has null there. None names no field."""
    for name in filter(None, names):
        if name not in item:
            raise request.bad(f"the object has no field '{name}'", request.nearest(name, list(item)), path, line)
        if missing(item[name]):
            raise request.bad(f"field '{name}' is null", "fill it in or remove the object", path, line)


def _objects(request: Request, layout: Layouts, path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """(line, or number in a list; object). Raises DataFormatError for what is no JSON object."""
    if layout == "lines":
        for line, text in read_lines(request, path):
            if text.strip():
                yield line, _object(request, path, line, text)
        return
    pairs = _Pairs if layout == "keyed" else None
    items = parse_json(request, path, read_text(request, path), "repair the file", pairs=pairs)
    if layout == "keyed":
        if not isinstance(items, _Pairs) or not all(isinstance(value, _Pairs) for _, value in items):
            raise request.bad("is not an object of objects", "set `layout: list` for a list", path, 1)
        yield from enumerate(({**dict(value), KEY: key} for key, value in items), start=1)
        return
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        raise request.bad("is not a list of objects", "set `layout: lines` for one object a line", path, 1)
    yield from enumerate(items, start=1)


class _Pairs(list[tuple[str, Any]]):
    """An object's fields as they stand, a key that stands twice included."""


def _object(request: Request, path: Path, line: int, text: str) -> dict[str, Any]:
    item = parse_json(request, path, text, "one object a line", line)
    if not isinstance(item, dict):
        raise request.bad("is not an object: {}", "one object a line", path, line, text)
    return item


def _document(
    request: Request, options: JsonOptions, item: dict[str, Any], document_id: str, split: str, path: Path, line: int
) -> Document | None:
    for name in filter(None, (options.text, options.label, options.id, options.group, options.first)):
        if name not in item:
            raise request.bad(f"the object has no field '{name}'", request.nearest(name, list(item)), path, line)
    raw = item[options.label]
    values = raw if isinstance(raw, list) else [raw]
    text = item[options.text]
    if isinstance(text, list) and all(isinstance(part, str) for part in text):
        text = " ".join(part.strip() for part in text)
    blank = not isinstance(text, str) or (options.blank_text == "refused" and not text.strip())
    if blank or missing(raw):
        if options.drop_missing:
            return None
        raise request.bad("the object has no text or no label", "set `drop_missing: true`", path, line)
    if any(missing(value) for value in values):
        hint = f"take it out of the list in field '{options.label}', or remove the object"
        raise request.bad("a null stands among the object's labels", hint, path, line)
    for what, field in (("id", options.id), ("group", options.group), ("first text", options.first)):
        if field and missing(item[field]):
            hint = f"field '{field}' is null there: fill it in or remove the object"
            raise request.bad(f"the object has no {what}", hint, path, line)
    labels: list[str] = []
    for value in values:
        name = str(value)
        if any(part in name for part in options.drop_containing):
            return None
        if options.label_key == "first_word":
            name = name.strip().split(" ", 1)[0]
        mapped = options.label_map.get(name, name)
        if mapped is not None:
            labels.append(request.check_label(mapped, path, line))
    document_id = str(item[options.id]) if options.id else str(item.get(KEY, document_id))
    return Document(
        id=document_id,
        group=str(item[options.group]) if options.group else document_id,
        text=text.strip(),
        query=str(item[options.first]).strip() if options.first else "",
        split=split,
        labels=tuple(dict.fromkeys(labels)),
        origin=at(path, line),
    )
