"""JSON with words and their tags, as hubs of datasets serve them: a list of objects, or one object a line."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

from biobench.data.formats.tagged import Scheme, prefix_and_type, tagged_document
from biobench.data.readers.base import ReaderOptions, Request, at, reader
from biobench.data.readers.json_cases import json_objects, need_fields
from biobench.schema.document import Document
from biobench.schema.tags import Mode


class JsonTokensOptions(ReaderOptions):
    """Options of format `json_tokens`."""

    format: Literal["json_tokens"]
    layout: Literal["list", "lines"] = "lines"
    tokens: str = "tokens"
    """Field with the list of words."""
    tags: str = "tags"
    """Field with as many tags, texts or numbers."""
    names: list[str] = []
    """What the numbers stand for; empty where the tags are texts."""
    id: str | None = None
    group: str | None = None
    """Field that says what belongs together (a patient, an article); default: each object alone."""
    scheme: Scheme = "IOB2"
    decode: Mode = "strict"
    types: dict[str, str | None] = {}
    """Entity type in the file to label of the task, many to one; null drops the type. Unnamed types stay."""


@reader(JsonTokensOptions)
def read_json_tokens(request: Request) -> Iterator[Document]:
    """Each object is a document of its own: its words joined by single blanks. Order: that of the objects."""
    options = request.options
    assert isinstance(options, JsonTokensOptions)
    for place in json_objects(request, options.layout):
        yield _document(request, options, *place)


def _document(
    request: Request,
    options: JsonTokensOptions,
    item: dict[str, Any],
    document_id: str,
    split: str,
    path: Path,
    line: int,
) -> Document:
    need_fields(request, item, (options.tokens, options.tags, options.id, options.group), path, line)
    words, tags = item[options.tokens], item[options.tags]
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        raise request.bad(f"'{options.tokens}' is not a list of texts", "check `tokens`", path, line)
    if not isinstance(tags, list) or len(tags) != len(words):
        actual = f"{len(tags)} tags" if isinstance(tags, list) else "no list of tags"
        raise request.bad(f"the object has {len(words)} tokens and {actual}", "repair the object", path, line)
    document_id = document_id if options.id is None else str(item[options.id])
    return tagged_document(
        words,
        [_tag(request, options, tag, path, line) for tag in tags],
        options.scheme,
        options.decode,
        id=document_id,
        group=document_id if options.group is None else str(item[options.group]),
        split=split,
        origin=at(path, line),
        types=options.types,
    )


def _tag(request: Request, options: JsonTokensOptions, tag: Any, path: Path, line: int) -> str:
    """The tag with the letters B, I and O and the file's type. Raises DataFormatError."""
    if isinstance(tag, int) and not isinstance(tag, bool) and options.names:
        if not 0 <= tag < len(options.names):
            what = f"{{}} is not an index into the {len(options.names)} names"
            raise request.bad(what, "check `names`", path, line, str(tag))
        tag = options.names[tag]
    try:
        prefix, kind = prefix_and_type(str(tag), options.scheme)
    except ValueError as known:
        hint = "name what the numbers stand for in `names`" if isinstance(tag, int) else "check `tags` and `scheme`"
        raise request.bad(f"tag {{}} is not {known}", hint, path, line, str(tag)) from None
    if prefix == "O":
        return prefix
    label = options.types.get(kind, kind)
    if label is not None:
        request.check_label(label, path, line)
    return f"{prefix}-{kind}"
