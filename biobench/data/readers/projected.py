"""Token files that get their document ids, and if wanted their entity types, from the original
release.

Tokenising changes white space and nothing else, so the two releases agree on their non-space
characters: each document is found as one run of whole sentences, and each mention by its non-space
extent. What does not agree is refused, never guessed.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import replace
from itertools import accumulate
from typing import Literal

from biobench.data.readers.base import FileLine, LabelMap, ReaderOptions, Request, reader
from biobench.data.readers.brat import parse_brat
from biobench.data.readers.pubtator import parse_pubtator
from biobench.data.readers.standoff import Mention, RawDocument, squeezed
from biobench.data.readers.tokens import IobOptions, mention_tags, read_iob
from biobench.errors import DataFormatError
from biobench.schema.document import Document
from biobench.schema.tags import Mode, decode_tags, tags_to_spans


class ProjectedOptions(ReaderOptions):
    """Options of format `projected`: those of `iob`, and what the original release is and gives."""

    format: Literal["projected"]
    columns: list[str] = ["token", "tag"]
    separator: Literal["tab", "space", "whitespace"] = "tab"
    scheme: Literal["IOB1", "IOB2"] = "IOB2"
    decode: Mode = "strict"
    original: Literal["pubtator", "brat"]
    take: Literal["ids", "ids_and_types"]
    types: LabelMap = {}
    """Type in the original to label of the task (ids_and_types), or in the token file (ids)."""


@reader(ProjectedOptions)
def read_projected(request: Request[ProjectedOptions]) -> Iterator[Document]:
    """Sentences of token files with ids ``<document>/<sentence>`` and groups from the original
    release.

    Order: that of the token files' lines; the order of the original release does not matter.

    Raises DataFormatError when a document of the original is not found as a run of sentences, when
    one is left over, or (ids_and_types) when a tagged entity has no mention at its place.
    """
    options = request.options
    if not request.original:
        raise DataFormatError(
            "format 'projected' needs the source's `original`", hint="name folder and files there"
        )
    # with types to come, those of the token files are not looked at
    typed = options.take == "ids_and_types"
    shared = options.model_dump(include={"columns", "separator", "scheme", "decode"})
    tokens = IobOptions(format="iob", types={} if typed else options.types, **shared)
    for split, path in request.only_splits("train", "validation", "test"):
        if split not in request.original:
            raise DataFormatError(
                f"original.files has no '{split}'", hint="name one file per split"
            )
        split_request = Request(
            tokens, {split: request.files[split]}, request.spec, request.redact, any_label=typed
        )
        originals: list[RawDocument] = []
        for file in request.original[split]:
            location = FileLine(request, split, file)
            if options.original == "pubtator":
                originals += parse_pubtator(location)
            elif (raw := parse_brat(location)) is not None:
                originals.append(raw)
        yield from _project(
            options, list(read_iob(split_request)), originals, FileLine(request, split, path, None)
        )


def _project(
    options: ProjectedOptions,
    sentences: list[Document],
    originals: list[RawDocument],
    location: FileLine,
) -> Iterator[Document]:
    compact = [squeezed(s.text) for s in sentences]
    stream = "".join(compact)
    # where a sentence begins, in non-space characters, to its number; the last one ends the stream
    first_at: dict[int, int] = {}
    for index, begin in enumerate(accumulate(map(len, compact), initial=0)):
        first_at[begin] = index
    waiting = {id(raw): (raw, text) for raw in originals if (text := squeezed(raw.text))}
    position = 0
    while position < len(stream):
        # Of several that begin here and end with a sentence, the longest.
        fits = [
            (len(text), key)
            for key, (_, text) in waiting.items()
            if position + len(text) in first_at and stream.startswith(text, position)
        ]
        if not fits:
            sentence = sentences[first_at[position]]
            message, hint = (
                "no document of the original release begins here: {}",
                "the two releases must be one version",
            )
            raise location.at(_line(sentence)).bad(message, hint, sentence.text)
        length, key = max(fits, key=lambda fit: fit[0])
        raw, _ = waiting.pop(key)
        yield from _document(
            options, raw, sentences[first_at[position] : first_at[position + length]], location
        )
        position += length
    for raw, _ in waiting.values():
        raise location.bad(
            "document {} of the original release is not in the token files", "complete them", raw.id
        )


def _document(
    options: ProjectedOptions, raw: RawDocument, run: list[Document], location: FileLine
) -> Iterator[Document]:
    """The sentences of one document, with its id and, where wanted, the types of its mentions."""
    # where each token of each sentence begins, in non-space characters of the document; and where
    # the last one ends
    sizes = [[len(squeezed(s.text[a:b])) for a, b in s.tokens] for s in run]
    borders = list(accumulate((size for sentence in sizes for size in sentence), initial=0))
    extents = _extents(raw, borders)
    types = {}
    if options.take == "ids_and_types":
        types = _types(options, raw, extents, location)
    identifiers: dict[tuple[int, int], list[str]] = {}
    for mention, extent in extents:
        identifiers.setdefault(extent, []).extend(mention.identifiers)
    first = 0
    for number, sentence in enumerate(run, start=1):
        concepts = [
            (sentence.tokens[i][0], sentence.tokens[j - 1][1], identifier)
            for i, j, _ in decode_tags(sentence.tags, options.decode)
            for identifier in identifiers.get((borders[first + i], borders[first + j]), ())
        ]
        named = replace(sentence, id=f"{raw.id}/{number}", group=raw.id, concepts=tuple(concepts))
        if options.take == "ids_and_types":
            tags = ["O"] * len(sentence.tags)
            for i, j, _ in decode_tags(sentence.tags, options.decode):
                label = types.get((borders[first + i], borders[first + j]))
                if label is None:
                    entity = sentence.text[sentence.tokens[i][0] : sentence.tokens[j - 1][1]]
                    message = "entity {} has no mention at its place in the original release"
                    raise location.at(_line(sentence)).bad(
                        message, "the two releases must be one version", entity
                    )
                tags[i:j] = mention_tags(label, j - i)
            named = replace(
                named, tags=tuple(tags), spans=tags_to_spans(tags, sentence.tokens, options.decode)
            )
        yield named
        first += len(sentence.tokens)


def _extents(raw: RawDocument, borders: list[int]) -> list[tuple[Mention, tuple[int, int]]]:
    """Each mention with its non-space extent. One that begins or ends inside a token
    (`anti|cancer`) takes the whole token, as the token files do.
    """
    offsets = [i for i, c in enumerate(raw.text) if not c.isspace()]
    extents = []
    for mention in raw.mentions:
        begin, end = bisect_left(offsets, mention.start), bisect_left(offsets, mention.end)
        extent = borders[bisect_right(borders, begin) - 1], borders[bisect_left(borders, end)]
        extents.append((mention, extent))
    return extents


def _types(
    options: ProjectedOptions,
    raw: RawDocument,
    extents: list[tuple[Mention, tuple[int, int]]],
    location: FileLine,
) -> dict[tuple[int, int], str]:
    """Label by non-space extent."""
    types: dict[tuple[int, int], str] = {}
    for mention, extent in extents:
        at = replace(location, path=raw.path, line=mention.line)
        label = at.mapped(mention.label, options.types)
        if label is not None and types.setdefault(extent, label) != label:
            message = "mention {} shares its tokens with one of another type"
            raise at.bad(message, "map one of the types", mention.surface)
    return types


def _line(document: Document) -> int:
    return int(document.origin.rpartition(":")[2])
