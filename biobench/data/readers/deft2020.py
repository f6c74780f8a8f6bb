"""DEFT 2020 sentence similarity: XML with pairs and their mean score, or sets of three sentences to choose from."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from biobench.data.readers.base import ReaderOptions, Request, at, read_text, reader
from biobench.schema.document import Document


class DeftOptions(ReaderOptions):
    """Options of format `deft2020`."""

    format: Literal["deft2020"]
    task: Literal[1, 2]
    """1: `paire` elements with `moy`, the mean score. 2: `ensemble` elements with the number of the right `cible`."""


@reader(DeftOptions)
def read_deft2020(request: Request) -> Iterator[Document]:
    """Pairs, or a sentence with its three candidates as pieces. Ids are the file's; those of -1 and below are skipped.

    Order: that of the elements.
    """
    options = request.options
    assert isinstance(options, DeftOptions)
    for split, path in request.only_splits("train", "validation", "test", "all"):
        for element in _elements(request, path, "paire" if options.task == 1 else "ensemble"):
            number = (element.get("id") or "").strip()
            try:
                if int(number) <= -1:
                    continue
            except ValueError:
                raise request.bad("id {} is not a number", "repair the element", path, None, number) from None
            document_id = f"{split or path.stem}-{number}"
            targets = [" ".join((t.text or "").split()) for t in element.findall("cible")]
            source = " ".join((element.findtext("source") or "").split())
            wanted = 1 if options.task == 1 else 3
            if not source or len(targets) != wanted or not all(targets):
                what = f"element {{}} has not one source and {wanted} cible with text"
                raise request.bad(what, "repair the element", path, None, number)
            answer = element.get("moy" if options.task == 1 else "cible")
            if answer is None:
                name = "moy" if options.task == 1 else "cible"
                raise request.bad(f"element {{}} has no {name}", "take the files with answers", path, None, number)
            if options.task == 2:
                answer = request.check_label(answer.strip(), path, 1)
                targets = [f"({place}) {text}" for place, text in enumerate(targets, start=1)]
            pieces: list[tuple[int, int]] = []
            for text in targets:
                start = pieces[-1][1] + 1 if pieces else 0
                pieces.append((start, start + len(text)))
            yield Document(
                id=document_id,
                group=document_id,
                text="\n".join(targets),
                query=source,
                pieces=tuple(pieces) if options.task == 2 else (),
                split=split,
                labels=(answer.strip(),),
                origin=at(path, 1),
            )


def _elements(request: Request, path: Path, tag: str) -> list[ElementTree.Element]:
    try:
        root = ElementTree.fromstring(read_text(request, path))
    except ElementTree.ParseError as error:
        raise request.bad(f"not valid XML: {error}", "repair the file", path, error.position[0]) from None
    elements = list(root.iter(tag))
    if not elements:
        raise request.bad(f"has no element '{tag}'", "check reader.task and `files`", path, 1)
    return elements
