"""Relation corpora as one row for each pair of mentions of a sentence: ChemProt (BioCreative VI)
and DDI 2013.

Both show the two mentions to the encoder by one rule (`masked`).
"""

from __future__ import annotations

import itertools
import re
import xml.etree.ElementTree as ET
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from biobench.data.readers.base import FileLine, ReaderOptions, Request, reader
from biobench.data.readers.files import delimited, xml_files
from biobench.data.readers.standoff import check_surface, squeezed
from biobench.schema.document import Document


class Replacement(NamedTuple):
    """Characters [start, end) of the text, and what replaces them."""

    start: int
    end: int
    mask: str


def masked(text: str, mention: Replacement, partner: Replacement, both: str) -> str:
    """The text with the two mentions replaced by their masks; of two that overlap by one mask for
    both, `both`.
    """
    earlier, later = sorted((mention, partner), key=lambda m: (m.start, m.end))
    head = text[: earlier.start]
    if later.start < earlier.end:
        end = max(earlier.end, later.end)
        return head + both + text[end:]
    between = text[earlier.end : later.start]
    tail = text[later.end :]
    return head + earlier.mask + between + later.mask + tail


class ChemprotOptions(ReaderOptions):
    """Options of format `chemprot`: each split names its abstracts, entities and gold standard, in
    this order.
    """

    format: Literal["chemprot"]
    negative: str = "false"
    """Label of a pair without a gold relation."""
    chemical: str = "@CHEMICAL$"
    gene: str = "@GENE$"
    both: str = "@CHEM-GENE$"
    """What the mentions are replaced by; `both` where the two overlap."""


_NO_FIT = "the tables do not fit"


class _Entity(NamedTuple):
    """A mention. start, end: characters of the abstract."""

    id: str
    is_chemical: bool
    start: int
    end: int


@dataclass(slots=True)
class _Abstract:
    pmid: str
    title_end: int
    text: str
    location: FileLine
    entities: dict[str, _Entity] = field(default_factory=dict)
    """By id, in the order of their table."""
    gold: dict[tuple[str, str], dict[str, str]] = field(default_factory=dict)
    """Ids of a chemical and a gene to their groups, each with the ending of its row's id."""


@reader(ChemprotOptions)
def read_chemprot(request: Request[ChemprotOptions]) -> Iterator[Document]:
    """Every chemical x gene pair inside one sentence, the two mentions replaced by masks.

    The label is the pair's gold group, else `negative`; a pair with two groups gives two rows.
    Sentences are cut by rules that never cut inside a mention; the title is a sentence of its own.
    Ids are
    ``<pmid>.<chemical>.<gene>`` (with the group for positive rows); the group is the abstract.
    Order: abstracts as in their table, sentences as in the text, in each the chemicals and for each
    the genes as in the entities' table.
    """
    for split in ("train", "validation", "test"):
        tables = request.tables_of(split, "abstracts, entities, gold standard")
        for abstract in _abstracts(*tables):
            yield from _pairs(request.options, abstract)


def _abstracts(texts: FileLine, entities: FileLine, gold: FileLine) -> Iterable[_Abstract]:
    abstracts: dict[str, _Abstract] = {}
    for location, (pmid, title, body) in _rows(texts, 3):
        text = f"{title} {body}"
        abstracts[pmid] = _Abstract(pmid, len(title) + 1, text, location)
    for location, (pmid, id, kind, begin, stop, surface) in _rows(entities, 6):
        location.require(pmid in abstracts, "abstract {} is not there", _NO_FIT, pmid)
        abstract = abstracts[pmid]
        start, end = location.number(begin), location.number(stop)
        check_surface(location, abstract.text, [(start, end)], surface)
        abstract.entities[id] = _Entity(id, kind == "CHEMICAL", start, end)
    for location, (pmid, group, chemical, gene) in _rows(gold, 4):
        location.require(pmid in abstracts, "abstract {} is not there", _NO_FIT, pmid)
        abstract = abstracts[pmid]
        pair = (chemical.removeprefix("Arg1:"), gene.removeprefix("Arg2:"))
        location.require(
            abstract.entities.keys() >= set(pair),
            "relation {} names no entity",
            _NO_FIT,
            f"{chemical} {gene}",
        )
        label = location.label(group.strip())
        abstract.gold.setdefault(pair, {})[label] = f".{label}"
    return abstracts.values()


def _rows(start: FileLine, width: int) -> Iterator[tuple[FileLine, list[str]]]:
    for location, fields in delimited(start, "tab", quoting="none"):
        location.check_width(fields, width)
        yield location, fields


_END = re.compile(r"[.?!][)\]\"']*\s+(?=[A-Z0-9(\[\"'<])")
_ABBREVIATION = re.compile(
    r"(?:\b(?:e\.g|i\.e|vs|cf|al|Figs?|Nos?|Dr|St|ca|approx|resp|spp?|subsp|var|min|max|Inc|Ltd|Co"
    r"|i\.p|i\.v|s\.c|p\.o|i\.c\.v)|\b[A-Z])\.$"
)


def _sentences(abstract: _Abstract) -> Iterator[tuple[int, int]]:
    """(start, end) of the title and of the abstract's sentences; no cut lies inside a mention."""
    text = abstract.text
    cuts = {0, abstract.title_end, len(text)}
    for match in _END.finditer(text):
        stop, cut = match.span()
        longest_start = max(0, stop - 12)
        abbreviated = _ABBREVIATION.search(text, longest_start, stop + 1)
        inside = any(entity.start < cut < entity.end for entity in abstract.entities.values())
        if not abbreviated and not inside:
            cuts.add(cut)
    return itertools.pairwise(sorted(cuts))


def _pairs(options: ChemprotOptions, abstract: _Abstract) -> Iterator[Document]:
    for start, end in _sentences(abstract):
        sentence = abstract.text[start:end]
        chemicals: dict[str, Replacement] = {}
        genes: dict[str, Replacement] = {}
        for entity in abstract.entities.values():
            if start <= entity.start and entity.end <= end:
                kind, mask = genes, options.gene
                if entity.is_chemical:
                    kind, mask = chemicals, options.chemical
                kind[entity.id] = Replacement(entity.start - start, entity.end - start, mask)
        for chemical, gene in itertools.product(chemicals, genes):
            text = masked(sentence, chemicals[chemical], genes[gene], options.both).strip()
            groups = abstract.gold.get((chemical, gene), {options.negative: ""})
            for label, ending in groups.items():
                yield abstract.location.document(
                    f"{abstract.pmid}.{chemical}.{gene}{ending}",
                    text,
                    abstract.pmid,
                    labels=(label,),
                )


class DdiOptions(ReaderOptions):
    """Options of format `ddi`: files name the XML files of a split."""

    format: Literal["ddi"]
    negative: str = "false"
    """Label of a pair without an interaction."""
    untyped: str | None = None
    """Label of an interaction without a type; null leaves such a pair out."""
    style: Literal["mask"] = "mask"
    """The two drugs are replaced by masks, as BLURB's data are made."""
    mask: str = "@DRUG$"
    both: str = "@DRUG-DRUG$"
    """What stands for the mentions; `both` where the two overlap."""
    group: Literal["document", "file"] = "document"
    """What belongs together: the document's id in the XML, or the file's name without its ending.
    """


@reader(DdiOptions)
def read_ddi(request: Request[DdiOptions]) -> Iterator[Document]:
    """Every `pair` of a sentence with its two drugs replaced by masks.

    The end of `charOffset` is inclusive. A name in several pieces (`a-b;c-d`) is taken from its
    first to its last character. Line breaks and tabs become blanks. Ids are those of the pairs;
    order: files by name, pairs as in them.
    """
    options = request.options
    for location, root in xml_files(request):
        group = root.get("id")
        location.require(
            root.tag == "document" and group,
            "is not a document of the DDI corpus: its first element is {}",
            "check `files`",
            root.tag,
        )
        if options.group == "file":
            group = location.path.stem
        for sentence in root.iter("sentence"):
            text = sentence.get("text", "")
            drugs: dict[str, Replacement] = {}
            for entity in sentence.iter("entity"):
                drugs[entity.get("id", "")] = _drug(location, options.mask, entity, text)
            plain = re.sub(r"[\n\t\r]", " ", text)
            for pair in sentence.iter("pair"):
                label = _interaction(location, options, pair)
                if label is None:
                    continue
                pair_id = pair.get("id", "")
                drug, partner = pair.get("e1", ""), pair.get("e2", "")
                location.require(
                    drug in drugs and partner in drugs,
                    "pair {} names no entity of its sentence",
                    "repair the file",
                    pair_id,
                )
                yield location.document(
                    pair_id,
                    masked(plain, drugs[drug], drugs[partner], options.both).strip(),
                    group,
                    labels=(label,),
                )


def _drug(location: FileLine, mask: str, entity: ET.Element, text: str) -> Replacement:
    offsets = entity.get("charOffset", "")
    location.require(
        re.fullmatch(r"\d+-\d+(;\d+-\d+)*", offsets),
        "charOffset {} is not `start-end`",
        "repair the entity",
        offsets,
    )
    numbers = [location.number(n) for n in re.findall(r"\d+", offsets)]
    location.require(
        numbers[0] <= numbers[-1] < len(text),
        "charOffset {} leaves the sentence",
        f"offsets count characters of the sentence, which has {len(text)}",
        offsets,
    )
    fragments = zip(numbers[::2], numbers[1::2], strict=True)
    pieces = [text[first : last + 1] for first, last in fragments]
    covered = squeezed("".join(pieces))
    surface = squeezed(entity.get("text", covered))
    # One name of the corpus is a letter longer than its place.
    location.require(
        covered.startswith(surface) or surface.startswith(covered),
        f"characters {offsets} are not {{}}",
        "offsets count characters (code points) of the sentence; the end is its last",
        surface,
    )
    return Replacement(numbers[0], numbers[-1] + 1, mask)


def _interaction(location: FileLine, options: DdiOptions, pair: ET.Element) -> str | None:
    """The pair's label; None where it is skipped."""
    interacts, kind = pair.get("ddi"), pair.get("type")
    location.require(
        interacts in ("true", "false"),
        "pair {} does not say whether it interacts",
        "`ddi` is true or false",
        pair.get("id", ""),
    )
    if interacts == "false":
        return options.negative
    if kind:
        return location.label(kind)
    return options.untyped
