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
from biobench.schema.task import SPLITS

Extent = tuple[int, int]
"""Non-space characters [start, end) of a document."""
_ONE_VERSION = "the two releases must be one version"


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
        raise DataFormatError(
            "format 'projected' needs the source's `original`", hint="name folder and files there"
        )
    typed = options.take == "ids_and_types"
    elsewhere = {"format", "original", "take"}
    if typed:
        elsewhere.add("types")
    token_options = IobOptions(format="iob", **options.model_dump(exclude=elsewhere))
    for start in request.places(SPLITS):
        split, location = start.split, start.at(None)
        if split not in request.original:
            raise DataFormatError(
                f"original.files has no '{split}'", hint="name one file per split"
            )
        files = {split: request.files[split]}
        tokens = Request(token_options, files, request.spec, request.redact, any_label=typed)
        originals = _originals(request, split)
        for raw, sentences in _aligned(list(read_iob(tokens)), originals, location):
            yield from _document(options, raw, sentences, location)


def _originals(request: Request[ProjectedOptions], split: str) -> list[RawDocument]:
    """The documents of the original release. Raises DataFormatError."""
    originals: list[RawDocument] = []
    for path in request.original[split]:
        location = FileLine(request, split, path)
        if request.options.original == "pubtator":
            originals += parse_pubtator(location)
        else:
            originals += filter(None, [parse_brat(location)])
    return originals


def _aligned(
    sentences: list[Document], originals: list[RawDocument], location: FileLine
) -> Iterator[tuple[RawDocument, list[Document]]]:
    """Each document of the original release with its run of sentences."""
    compact = [squeezed(sentence.text) for sentence in sentences]
    stream = "".join(compact)
    # Where a sentence begins, in non-space characters, to its number; the last one ends the stream.
    begins = accumulate(map(len, compact), initial=0)
    numbers = {begin: number for number, begin in enumerate(begins)}
    waiting = [(squeezed(raw.text), raw) for raw in originals]
    position = 0
    while position < len(stream):
        fitting: list[tuple[str, RawDocument]] = []
        for text, raw in waiting:
            if text and position + len(text) in numbers and stream.startswith(text, position):
                fitting.append((text, raw))
        sentence = sentences[numbers[position]]
        location.at(_line(sentence)).require(
            fitting,
            "no document of the original release begins here: {}",
            _ONE_VERSION,
            sentence.text,
        )
        longest = max(fitting, key=lambda pair: len(pair[0]))
        waiting.remove(longest)
        text, raw = longest
        end = position + len(text)
        yield raw, sentences[numbers[position] : numbers[end]]
        position = end
    for text, raw in waiting:
        location.require(
            not text,
            "document {} of the original release is not in the token files",
            "complete them",
            raw.id,
        )


def _document(
    options: ProjectedOptions, raw: RawDocument, run: list[Document], location: FileLine
) -> Iterator[Document]:
    """The sentences of one document, with its id and, where wanted, the types of its mentions."""
    typed = options.take == "ids_and_types"
    borders = _borders(run)
    extents = _extents(raw, borders)
    types: dict[Extent, str] = {}
    if typed:
        types = _types(options, extents)
    identifiers: dict[Extent, list[str]] = defaultdict(list)
    for mention, extent in extents:
        identifiers[extent] += mention.identifiers
    token_count = 0
    for number, sentence in enumerate(run, start=1):
        line = location.at(_line(sentence))
        concepts: list[tuple[int, int, str]] = []
        tags = list(sentence.tags)
        if typed:
            tags = ["O"] * len(tags)
        for i, j, _ in decode_tags(sentence.tags, options.decode):
            extent = (borders[token_count + i], borders[token_count + j])
            start, _ = sentence.tokens[i]
            _, end = sentence.tokens[j - 1]
            concepts += [(start, end, identifier) for identifier in identifiers[extent]]
            if typed:
                line.require(
                    extent in types,
                    "entity {} has no mention at its place in the original release",
                    _ONE_VERSION,
                    sentence.text[start:end],
                )
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


def _borders(run: list[Document]) -> list[int]:
    """Where each token begins, in non-space characters of the document, and where the last one
    ends.
    """
    borders = [0]
    for sentence in run:
        for start, end in sentence.tokens:
            characters = squeezed(sentence.text[start:end])
            borders.append(borders[-1] + len(characters))
    return borders


def _extents(raw: RawDocument, borders: list[int]) -> list[tuple[Mention, Extent]]:
    """Each mention with its non-space extent. One that begins or ends inside a token
    (`anti|cancer`) takes the whole token, as the token files do.
    """
    extents: list[tuple[Mention, Extent]] = []
    for mention in raw.mentions:
        begin = len(squeezed(raw.text[: mention.start]))
        end = len(squeezed(raw.text[: mention.end]))
        first_token = bisect_right(borders, begin) - 1
        past_last = bisect_left(borders, end)
        extent = borders[first_token], borders[past_last]
        extents.append((mention, extent))
    return extents


def _types(options: ProjectedOptions, extents: list[tuple[Mention, Extent]]) -> dict[Extent, str]:
    """Label by non-space extent."""
    types: dict[Extent, str] = {}
    for mention, extent in extents:
        at = mention.location
        label = at.mapped(mention.label, options.types)
        if label is not None:
            at.require(
                types.setdefault(extent, label) == label,
                "mention {} shares its tokens with one of another type",
                "map one of the types",
                mention.surface,
            )
    return types


def _line(document: Document) -> int:
    return int(document.origin.rpartition(":")[2])
