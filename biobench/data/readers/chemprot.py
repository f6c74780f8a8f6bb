"""BioCreative VI ChemProt tables, rebuilt as one row per chemical-gene pair of a sentence."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from biobench.data.formats.marking import Replacement, Style, marked
from biobench.data.readers.base import ReaderOptions, Request, at, read_lines, reader
from biobench.errors import DataFormatError
from biobench.schema.document import Document
from biobench.schema.source import later

_END = re.compile(r"[.?!][)\]\"']*\s+(?=[A-Z0-9(\[\"'<])")
_ABBREVIATION = re.compile(
    r"(?:\b(?:e\.g|i\.e|vs|cf|al|Figs?|Nos?|Dr|St|ca|approx|resp|spp?|subsp|var|min|max|Inc|Ltd|Co|i\.p|i\.v|s\.c|p\.o"
    r"|i\.c\.v)|\b[A-Z])\.$"
)


class ChemprotOptions(ReaderOptions):
    """Options of format `chemprot`: each split names its abstracts, entities and gold standard, in this order."""

    format: Literal["chemprot"]
    negative: str = "false"
    """Label of a pair without a gold relation."""
    chemical: str = "@CHEMICAL$"
    gene: str = "@GENE$"
    both: str = "@CHEM-GENE$"
    """What the mentions are replaced by; `both` where the two overlap."""
    style: Style = later("mask")


@dataclass(frozen=True, slots=True)
class _Entity:
    id: str
    chemical: bool
    start: int
    end: int


@dataclass(slots=True)
class _Abstract:
    pmid: str
    title_end: int
    text: str
    line: int
    entities: list[_Entity]
    gold: dict[tuple[str, str], list[str]]


@reader(ChemprotOptions)
def read_chemprot(request: Request) -> Iterator[Document]:
    """Every chemical x gene pair inside one sentence, the two mentions replaced by markers.

    The label is the pair's gold group, else `negative`; a pair with two groups gives two rows. Sentences are
    cut by rules that never cut inside a mention; the title is a sentence of its own. Ids are
    ``<pmid>.<chemical>.<gene>`` (with the group for positive rows); the group is the abstract. Order: abstracts as
    in their table, sentences as in the text, in each the chemicals and for each the genes as in the entities' table.
    """
    options = request.options
    assert isinstance(options, ChemprotOptions)
    for split in ("train", "validation", "test"):
        paths = request.files.get(split, [])
        if len(paths) != 3:
            raise DataFormatError(
                f"files.{split} names {len(paths)} files", hint="abstracts, entities and gold standard, in this order"
            )
        for abstract in _abstracts(request, *paths):
            yield from _rows(options, abstract, split, paths[0])


def _abstracts(request: Request, texts: Path, entities: Path, gold: Path) -> list[_Abstract]:
    abstracts: dict[str, _Abstract] = {}
    for line, (pmid, title, body) in _table(request, texts, 3):
        abstracts[pmid] = _Abstract(pmid, len(title) + 1, f"{title} {body}", line, [], {})
    for line, (pmid, entity_id, kind, start, end, surface) in _table(request, entities, 6):
        abstract = _of(request, abstracts, pmid, entities, line)
        numbers = start.isdecimal() and end.isdecimal()
        begin, stop = (request.whole_number(n, entities, line) if numbers else 0 for n in (start, end))
        if not numbers or abstract.text[begin:stop] != surface:
            raise request.bad(
                f"characters {start}-{end} are not {{}}",
                "offsets count title, one blank, abstract",
                entities,
                line,
                surface,
            )
        abstract.entities.append(_Entity(entity_id, kind == "CHEMICAL", begin, stop))
    for line, (pmid, group, first, second) in _table(request, gold, 4):
        abstract = _of(request, abstracts, pmid, gold, line)
        label = request.check_label(group.strip(), gold, line)
        pair = (first.removeprefix("Arg1:"), second.removeprefix("Arg2:"))
        known = {e.id for e in abstract.entities}
        if not set(pair) <= known:
            raise request.bad("relation {} names no entity", "the tables do not fit", gold, line, f"{first} {second}")
        labels = abstract.gold.setdefault(pair, [])
        if label not in labels:
            labels.append(label)
    return list(abstracts.values())


def _table(request: Request, path: Path, columns: int) -> Iterator[tuple[int, list[str]]]:
    for number, line in read_lines(request, path):
        if line:
            fields = line.split("\t")
            if len(fields) != columns:
                raise request.bad(f"the row has {len(fields)} fields, not {columns}", "repair the row", path, number)
            yield number, fields


def _of(request: Request, abstracts: dict[str, _Abstract], pmid: str, path: Path, line: int) -> _Abstract:
    if pmid not in abstracts:
        raise request.bad("abstract {} is not there", "the tables do not fit", path, line, pmid)
    return abstracts[pmid]


def sentences(text: str, title_end: int, mentions: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """(start, end) of the title and of the abstract's sentences; no cut lies inside a mention."""
    cuts = {0, title_end, len(text)}
    for match in _END.finditer(text):
        abbreviated = _ABBREVIATION.search(text, max(0, match.start() - 12), match.start() + 1)
        if not abbreviated and not any(a < match.end() < b for a, b in mentions):
            cuts.add(match.end())
    ordered = sorted(cuts)
    return list(itertools.pairwise(ordered))


def _rows(options: ChemprotOptions, abstract: _Abstract, split: str, path: Path) -> Iterator[Document]:
    mentions = [(e.start, e.end) for e in abstract.entities]
    for start, end in sentences(abstract.text, abstract.title_end, mentions):
        inside = [e for e in abstract.entities if e.start >= start and e.end <= end]
        for chemical in (e for e in inside if e.chemical):
            for gene in (e for e in inside if not e.chemical):
                text = _marked(options, abstract.text, start, end, chemical, gene)
                pair = f"{abstract.pmid}.{chemical.id}.{gene.id}"
                groups = abstract.gold.get((chemical.id, gene.id), [])
                for label in groups or [options.negative]:
                    yield Document(
                        id=f"{pair}.{label}" if groups else pair,
                        group=abstract.pmid,
                        text=text,
                        split=split,
                        labels=(label,),
                        origin=at(path, abstract.line),
                    )


def _marked(options: ChemprotOptions, text: str, start: int, end: int, chemical: _Entity, gene: _Entity) -> str:
    """The sentence with the two mentions shown by the declared style."""
    mentions = [
        Replacement(e.start - start, e.end - start, options.chemical if e.chemical else options.gene)
        for e in (chemical, gene)
    ]
    return marked(text[start:end], mentions[0], mentions[1], options.style, options.both).strip()
