"""Token files that get their document ids, and if wanted their entity types, from the original release.

Tokenising changes white space and nothing else, so the two releases agree on their non-space characters:
each document is found as one run of whole sentences, and each mention by its non-space extent. What does
not agree is refused, never guessed.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from biobench.data.formats.standoff import RawDocument
from biobench.data.readers.base import ReaderOptions, Request, reader
from biobench.data.readers.brat import parse_brat
from biobench.data.readers.iob import IobOptions, read_iob
from biobench.data.readers.pubtator import parse_pubtator
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
    types: dict[str, str | None] = {}
    """Type in the original to label of the task (ids_and_types), or in the token file (ids)."""


@dataclass(frozen=True, slots=True)
class _Compact:
    """A text without white space, and where each of its characters stood."""

    text: str
    offsets: array[int]

    @staticmethod
    def of(text: str) -> _Compact:
        return _Compact(_squeezed(text), array("q", (i for i, c in enumerate(text) if not c.isspace())))


def _squeezed(text: str) -> str:
    """The text without white space."""
    return "".join(text.split())


@reader(ProjectedOptions)
def read_projected(request: Request) -> Iterator[Document]:
    """Sentences of token files with ids ``<document>/<sentence>`` and groups from the original release.

    Order: that of the token files' lines; the order of the original release does not matter.

    Raises DataFormatError when a document of the original is not found as a run of sentences, when one is
    left over, or (ids_and_types) when a tagged entity has no mention at its place.
    """
    options = request.options
    assert isinstance(options, ProjectedOptions)
    if not request.original:
        raise DataFormatError("format 'projected' needs the source's `original`", hint="name folder and files there")
    plain = _token_request(request, options)
    for split, _ in request.only_splits("train", "validation", "test"):
        if split not in request.original:
            raise DataFormatError(f"original.files has no '{split}'", hint="name one file per split")
        part = replace(plain, files={split: request.files[split]})
        sentences = list(read_iob(part))
        originals = list(_originals(request, options, request.original[split]))
        yield from _project(request, options, sentences, originals, request.files[split][0])


def _token_request(request: Request, options: ProjectedOptions) -> Request:
    """The request of the token files alone; with types to come, its own are not looked at."""
    take_types = options.take == "ids_and_types"
    tokens = IobOptions(
        format="iob",
        columns=options.columns,
        separator=options.separator,
        scheme=options.scheme,
        decode=options.decode,
        types={} if take_types else options.types,
    )
    return replace(request, options=tokens, any_label=take_types, original={})


def _originals(request: Request, options: ProjectedOptions, paths: list[Path]) -> Iterator[RawDocument]:
    for path in paths:
        if options.original == "pubtator":
            yield from parse_pubtator(request, path)
        else:
            raw = parse_brat(request, path)
            assert raw is not None
            yield raw


def _project(
    request: Request, options: ProjectedOptions, sentences: list[Document], originals: list[RawDocument], path: Path
) -> Iterator[Document]:
    compact = [_squeezed(s.text) for s in sentences]
    stream = "".join(compact)
    first_at: dict[int, int] = {}
    position = 0
    for index, characters in enumerate(compact):
        first_at[position] = index
        position += len(characters)
    first_at[position] = len(sentences)
    waiting = _Waiting(originals)
    position = 0
    while position < len(stream):
        match = waiting.take(stream, position, first_at)
        if match is None:
            raise request.bad(
                "no document of the original release begins here: {}",
                "the two releases must be of the same version",
                path,
                _line(sentences[first_at[position]]),
                sentences[first_at[position]].text,
            )
        raw, text = match
        run = sentences[first_at[position] : first_at[position + len(text.text)]]
        yield from _document(request, options, raw, text, run, path)
        position += len(text.text)
    left = waiting.left()
    if left is not None:
        raise request.bad(
            "document {} of the original release is not in the token files", "complete them", path, None, left.id
        )


class _Waiting:
    """Original documents not yet found, by how they begin."""

    PREFIX = 16

    def __init__(self, originals: list[RawDocument]) -> None:
        self.by_start: dict[str, list[tuple[RawDocument, _Compact]]] = {}
        for raw in originals:
            text = _Compact.of(raw.text)
            if text.text:
                self.by_start.setdefault(text.text[: self.PREFIX], []).append((raw, text))
        self.lengths = sorted({len(key) for key in self.by_start}, reverse=True)

    def take(self, stream: str, position: int, ends: dict[int, int]) -> tuple[RawDocument, _Compact] | None:
        """The longest waiting document that begins at `position` and ends with a sentence."""
        best: tuple[RawDocument, _Compact] | None = None
        for length in self.lengths:
            for item in self.by_start.get(stream[position : position + length], []):
                text = item[1].text
                fits = position + len(text) in ends and stream.startswith(text, position)
                if fits and (best is None or len(text) > len(best[1].text)):
                    best = item
        if best is not None:
            key = best[1].text[: self.PREFIX]
            self.by_start[key] = [item for item in self.by_start[key] if item is not best]
        return best

    def left(self) -> RawDocument | None:
        """Any document that was never found."""
        return next((raw for items in self.by_start.values() for raw, _ in items), None)


def _document(
    request: Request,
    options: ProjectedOptions,
    raw: RawDocument,
    text: _Compact,
    run: list[Document],
    path: Path,
) -> Iterator[Document]:
    types = _types(request, options, raw, text, run) if options.take == "ids_and_types" else {}
    position = 0
    for number, sentence in enumerate(run, start=1):
        document_id = f"{raw.id}/{number}"
        if options.take == "ids":
            yield replace(sentence, id=document_id, group=raw.id)
        else:
            tags = _typed(request, options, sentence, position, types, path)
            spans = tags_to_spans(tags, sentence.tokens, options.decode)
            yield replace(sentence, id=document_id, group=raw.id, tags=tuple(tags), spans=spans)
        position += len(_squeezed(sentence.text))


def _types(
    request: Request, options: ProjectedOptions, raw: RawDocument, text: _Compact, run: list[Document]
) -> dict[tuple[int, int], str]:
    """Label by non-space extent. A mention that begins or ends inside a token (`anti|cancer`) takes the whole
    token, as the token files do."""
    borders = [0]
    for sentence in run:
        for length in _lengths(sentence):
            borders.append(borders[-1] + length)
    types: dict[tuple[int, int], str] = {}
    for mention in raw.mentions:
        label = options.types.get(mention.label, mention.label)
        if label is None:
            continue
        label = request.check_label(label, raw.path, mention.line)
        begin, end = (bisect_left(text.offsets, place) for place in (mention.start, mention.end))
        first = borders[bisect_right(borders, begin) - 1]
        last = borders[bisect_left(borders, end)]
        if types.setdefault((first, last), label) != label:
            raise request.bad(
                "mention {} shares its tokens with one of another type",
                "map one of the types",
                raw.path,
                mention.line,
                mention.surface,
            )
    return types


def _lengths(sentence: Document) -> list[int]:
    """Non-space characters of each token."""
    return [len(_squeezed(sentence.text[a:b])) for a, b in sentence.tokens]


def _typed(
    request: Request,
    options: ProjectedOptions,
    sentence: Document,
    begin: int,
    types: dict[tuple[int, int], str],
    path: Path,
) -> list[str]:
    """The sentence's tags with each entity's type looked up by its non-space extent in the document."""
    lengths = _lengths(sentence)
    starts = [begin + sum(lengths[:k]) for k in range(len(lengths) + 1)]
    tags = ["O"] * len(sentence.tags)
    for i, j, _ in decode_tags(sentence.tags, options.decode):
        label = types.get((starts[i], starts[j]))
        if label is None:
            raise request.bad(
                "entity {} has no mention at its place in the original release",
                "the two releases must be of the same version",
                path,
                _line(sentence),
                sentence.text[sentence.tokens[i][0] : sentence.tokens[j - 1][1]],
            )
        tags[i:j] = [f"B-{label}", *[f"I-{label}"] * (j - i - 1)]
    return tags


def _line(document: Document) -> int:
    return int(document.origin.rpartition(":")[2])
