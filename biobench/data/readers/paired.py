"""Sentence files paired with label files of the same name (Hallmarks of Cancer)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from biobench.data.readers.base import ReaderOptions, Request, at, read_lines, read_text, reader
from biobench.errors import DataFormatError
from biobench.schema.document import Document
from biobench.schema.source import later


class PairedOptions(ReaderOptions):
    """Options of format `paired`: `files` names `texts` and `labels`."""

    format: Literal["paired"]
    segment: str = "<"
    """Begins each sentence's part of the label line; whatever stands before the first is dropped."""
    joined_by: str = " AND"
    """Stands between several labels of one sentence."""
    level: str = "--"
    """Stands between the levels of one label; the first level is kept."""
    nothing: list[str] = ["NULL"]
    """Written for 'no label' beside the usual empty part."""
    lower: bool = True
    unit: Literal["sentence", "file"] = later("sentence")
    """file: all sentences of a file as one text, with the labels of all of them."""


@reader(PairedOptions)
def read_paired(request: Request) -> Iterator[Document]:
    """One sentence per line in `texts`; one line of labels for the whole file in `labels`.

    Sentence ids are ``<file stem>_<number from 0>``; the group is the file stem. Order: text files by name, then
    their lines.
    """
    options = request.options
    assert isinstance(options, PairedOptions)
    if set(request.files) != {"texts", "labels"}:
        raise DataFormatError(
            "format 'paired' needs files.texts and files.labels", hint="for example `texts: text/*.txt`"
        )
    labels = {path.stem: path for path in request.files["labels"]}
    for path in request.files["texts"]:
        partner = labels.pop(path.stem, None)
        if partner is None:
            raise request.bad("has no label file of the same name", "complete the labels folder", path)
        sentences = _pair(request, options, path, partner)
        if options.unit == "sentence":
            yield from sentences
        else:
            yield _whole(list(sentences), path)
    for path in labels.values():
        raise request.bad("has no text file of the same name", "complete the text folder", path)


def _pair(request: Request, options: PairedOptions, path: Path, partner: Path) -> Iterator[Document]:
    sentences = [(number, line) for number, line in read_lines(request, path) if line.strip()]
    segments = read_text(request, partner).split(options.segment)[1:]
    if len(segments) != len(sentences):
        raise request.bad(
            f"labels {len(segments)} sentences, the text has {len(sentences)}", "the pair must agree", partner, 1
        )
    for index, ((number, line), segment) in enumerate(zip(sentences, segments, strict=True)):
        found: list[str] = []
        for part in segment.strip().split(options.joined_by):
            name = part.split(options.level, 1)[0].strip()
            if name and name not in options.nothing:
                found.append(request.check_label(name.lower() if options.lower else name, partner, 1))
        known = dict.fromkeys(found)
        yield Document(
            id=f"{path.stem}_{index}",
            group=path.stem,
            text=line.strip(),
            split="",
            labels=tuple(known),
            origin=at(path, number),
        )


def _whole(sentences: list[Document], path: Path) -> Document:
    """The file's sentences as one document."""
    return Document(
        id=path.stem,
        group=path.stem,
        text=" ".join(d.text for d in sentences),
        split="",
        labels=tuple(dict.fromkeys(label for d in sentences for label in d.labels)),
        origin=at(path, 1),
    )
