"""Token files that get their document ids, and if wanted their entity types, from the original
release.

Tokenising changes white space and nothing else, so the two releases agree on their non-space
characters: each document is found as one run of whole sentences, and each mention by its non-space
extent. What does not agree is refused, never guessed.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from itertools import accumulate
from typing import Literal

from biobench.data.readers.base import FileLine, Request, reader
from biobench.data.readers.brat import parse_brat
from biobench.data.readers.pubtator import parse_pubtator
from biobench.data.readers.standoff import Mention, RawDocument, squeezed
from biobench.data.readers.tokens import IobOptions, TokenFileOptions, mention_tags, read_iob
from biobench.errors import DataFormatError
from biobench.schema.document import Document
from biobench.schema.tags import decode_tags, tags_to_spans

Extent = tuple[int, int]
"""Non-space characters [start, end) of a document."""


class ProjectedOptions(TokenFileOptions):
    """Options of format `projected`: what the token files hold, and what the original release is
    and gives.
    """

    format: Literal["projected"]
    original: Literal["pubtator", "brat"]
    take: Literal["ids", "ids_and_types"]
    """With types to come, those of the token files are not looked at, and `types` is of the
    original release.
    """


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
        hint = "name folder and files there"
        raise DataFormatError("format 'projected' needs the source's `original`", hint=hint)
    typed = options.take == "ids_and_types"
    elsewhere = {"format", "original", "take"}
    if typed:
        elsewhere.add("types")
    token_options = IobOptions(format="iob", **options.model_dump(exclude=elsewhere))
    for split, path in request.only_splits("train", "validation", "test"):
        if split not in request.original:
            message = f"original.files has no '{split}'"
            raise DataFormatError(message, hint="name one file per split")
        files = {split: request.files[split]}
        tokens = Request(token_options, files, request.spec, request.redact, any_label=typed)
        originals: list[RawDocument] = []
        for file in request.original[split]:
            location = FileLine(request, split, file)
            if options.original == "pubtator":
                originals += parse_pubtator(location)
            elif (raw := parse_brat(location)) is not None:
                originals.append(raw)
        start = FileLine(request, split, path, None)
        for raw, sentences in _aligned(list(read_iob(tokens)), originals, start):
            yield from _document(options, raw, sentences, start)


def _aligned(
    sentences: list[Document], originals: list[RawDocument], location: FileLine
) -> Iterator[tuple[RawDocument, list[Document]]]:
    """Each document of the original release with its run of sentences."""
    compact = [squeezed(s.text) for s in sentences]
    stream = "".join(compact)
    # Where a sentence begins, in non-space characters, to its number; the last one ends the stream.
    numbers = {begin: n for n, begin in enumerate(accumulate(map(len, compact), initial=0))}
    waiting = {id(raw): (raw, text) for raw in originals if (text := squeezed(raw.text))}
    position = 0
    while position < len(stream):
        # Of several that begin here and end with a sentence, the longest.
        length, fitting = 0, None
        for key, (_, text) in waiting.items():
            fits = position + len(text) in numbers and stream.startswith(text, position)
            if fits and len(text) > length:
                length, fitting = len(text), key
        if fitting is None:
            sentence = sentences[numbers[position]]
            message = "no document of the original release begins here: {}"
            hint = "the two releases must be one version"
            raise location.at(_line(sentence)).bad(message, hint, sentence.text)
        raw, _ = waiting.pop(fitting)
        yield raw, sentences[numbers[position] : numbers[position + length]]
        position += length
    for raw, _ in waiting.values():
        message = "document {} of the original release is not in the token files"
        raise location.bad(message, "complete them", raw.id)


def _document(
    options: ProjectedOptions, raw: RawDocument, run: list[Document], location: FileLine
) -> Iterator[Document]:
    """The sentences of one document, with its id and, where wanted, the types of its mentions."""
    # Where each token begins, in non-space characters of the document, and where the last one ends.
    sizes = [len(squeezed(s.text[a:b])) for s in run for a, b in s.tokens]
    borders = list(accumulate(sizes, initial=0))
    extents = _extents(raw, borders)
    types: dict[Extent, str] = {}
    typed = options.take == "ids_and_types"
    if typed:
        types = _types(options, extents)
    identifiers: dict[Extent, list[str]] = defaultdict(list)
    for mention, extent in extents:
        identifiers[extent] += mention.identifiers
    token_count = 0
    for number, sentence in enumerate(run, start=1):
        concepts: list[tuple[int, int, str]] = []
        tags = list(sentence.tags)
        if typed:
            tags = ["O"] * len(tags)
        for i, j, _ in decode_tags(sentence.tags, options.decode):
            extent = (borders[token_count + i], borders[token_count + j])
            start, end = sentence.tokens[i][0], sentence.tokens[j - 1][1]
            concepts += [(start, end, identifier) for identifier in identifiers.get(extent, ())]
            if typed:
                if extent not in types:
                    message = "entity {} has no mention at its place in the original release"
                    hint = "the two releases must be one version"
                    at = location.at(_line(sentence))
                    raise at.bad(message, hint, sentence.text[start:end])
                tags[i:j] = mention_tags(types[extent], j - i)
        token_count += len(sentence.tokens)
        yield replace(
            sentence,
            id=f"{raw.id}/{number}",
            group=raw.id,
            concepts=tuple(concepts),
            tags=tuple(tags),
            spans=tags_to_spans(tags, sentence.tokens, options.decode),
        )


def _extents(raw: RawDocument, borders: list[int]) -> list[tuple[Mention, Extent]]:
    """Each mention with its non-space extent. One that begins or ends inside a token
    (`anti|cancer`) takes the whole token, as the token files do.
    """
    offsets = [i for i, c in enumerate(raw.text) if not c.isspace()]
    extents: list[tuple[Mention, Extent]] = []
    for mention in raw.mentions:
        begin, end = bisect_left(offsets, mention.start), bisect_left(offsets, mention.end)
        extent = borders[bisect_right(borders, begin) - 1], borders[bisect_left(borders, end)]
        extents.append((mention, extent))
    return extents


def _types(options: ProjectedOptions, extents: list[tuple[Mention, Extent]]) -> dict[Extent, str]:
    """Label by non-space extent."""
    types: dict[Extent, str] = {}
    for mention, extent in extents:
        at = mention.location
        label = at.mapped(mention.label, options.types)
        if label is not None and types.setdefault(extent, label) != label:
            message = "mention {} shares its tokens with one of another type"
            raise at.bad(message, "map one of the types", mention.surface)
    return types


def _line(document: Document) -> int:
    return int(document.origin.rpartition(":")[2])
