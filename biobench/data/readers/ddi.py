"""DDI corpus 2013: XML, one document a file, as one row for each pair of drugs of a sentence."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from biobench.data.formats.marking import Replacement, Style, marked
from biobench.data.readers.base import ReaderOptions, Request, at, read_text, reader
from biobench.schema.document import Document

_OFFSETS = re.compile(r"\d+-\d+(;\d+-\d+)*")


class DdiOptions(ReaderOptions):
    """Options of format `ddi`: files name the XML files of a split."""

    format: Literal["ddi"]
    negative: str = "false"
    """Label of a pair without an interaction."""
    untyped: str | None = None
    """Label of an interaction without a type; null leaves such a pair out."""
    style: Style = "mask"
    mask: str = "@DRUG$"
    both: str = "@DRUG-DRUG$"
    """What stands for the mentions; `both` where the two overlap."""
    group: Literal["document", "file"] = "document"
    """What belongs together: the document's id in the XML, or the file's name without its ending."""


@reader(DdiOptions)
def read_ddi(request: Request) -> Iterator[Document]:
    """Every `pair` of a sentence with its two drugs shown by the declared `style`.

    The end of `charOffset` is inclusive. A name in several pieces (`a-b;c-d`) is taken from its first to its last
    character. Line breaks and tabs become blanks. Ids are those of the pairs; order: files by name, pairs as in them.
    """
    options = request.options
    assert isinstance(options, DdiOptions)
    for split, path in request.only_splits("train", "validation", "test", "all"):
        for sentence, document in _sentences(request, path):
            text = sentence.get("text", "")
            drugs = {e.get("id", ""): _mention(request, options, e, text, path) for e in sentence.iter("entity")}
            for pair in sentence.iter("pair"):
                pair_id = pair.get("id", "")
                label = _label(request, options, pair, path)
                if label is None:
                    continue
                ends = [drugs.get(pair.get(side, "")) for side in ("e1", "e2")]
                if ends[0] is None or ends[1] is None:
                    raise request.bad("pair {} names no entity of its sentence", "repair the file", path, None, pair_id)
                shown = marked(re.sub(r"[\n\t\r]", " ", text), ends[0], ends[1], options.style, options.both)
                group = path.stem if options.group == "file" else document
                yield Document(
                    id=pair_id, group=group, text=shown.strip(), split=split, labels=(label,), origin=at(path, 1)
                )


def _sentences(request: Request, path: Path) -> Iterator[tuple[ElementTree.Element, str]]:
    """(sentence, the document's id) of a file. Raises DataFormatError for what is no such XML."""
    try:
        root = ElementTree.fromstring(read_text(request, path))
    except ElementTree.ParseError as error:
        raise request.bad(f"not valid XML: {error}", "repair the file", path, error.position[0]) from None
    if root.tag != "document" or not root.get("id"):
        raise request.bad("is not a document of the DDI corpus: its first element is {}", "check `files`", path, 1,
                          root.tag)  # fmt: skip
    for sentence in root.iter("sentence"):
        yield sentence, str(root.get("id"))


def _mention(request: Request, options: DdiOptions, entity: ElementTree.Element, text: str, path: Path) -> Replacement:
    offsets = entity.get("charOffset", "")
    if not _OFFSETS.fullmatch(offsets):
        raise request.bad("charOffset {} is not `start-end`", "repair the entity", path, None, offsets)
    numbers = [request.whole_number(n, path) for n in re.findall(r"\d+", offsets)]
    if not numbers[0] <= numbers[-1] < len(text):
        hint = f"offsets count characters of the sentence, which has {len(text)}"
        raise request.bad("charOffset {} leaves the sentence", hint, path, None, offsets)
    covered = "".join("".join(text[a : b + 1].split()) for a, b in zip(numbers[::2], numbers[1::2], strict=True))
    surface = "".join(entity.get("text", covered).split())
    # One name of the corpus is a letter longer than its place.
    if not (covered.startswith(surface) or surface.startswith(covered)):
        hint = "offsets count characters (code points) of the sentence; the end is its last"
        raise request.bad(f"characters {offsets} are not {{}}", hint, path, None, surface)
    return Replacement(numbers[0], numbers[-1] + 1, options.mask)


def _label(request: Request, options: DdiOptions, pair: ElementTree.Element, path: Path) -> str | None:
    """The pair's label; None where it is left out."""
    if pair.get("ddi") not in ("true", "false"):
        hint = "`ddi` is true or false"
        raise request.bad("pair {} does not say whether it interacts", hint, path, None, pair.get("id"))
    if pair.get("ddi") == "false":
        return options.negative
    kind = pair.get("type")
    return options.untyped if not kind else request.check_label(kind, path, 1)
