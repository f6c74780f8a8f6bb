"""XML: UIMA CAS (XMI) with its layers of mentions, and DDI."""

from __future__ import annotations

import xml.etree.ElementTree as ET

from biobench.data.readers.base import FileLine
from biobench.data.readers.files import parse_xml
from biobench.data.sniff.base import DataFiles, Proposal, Wanted

_NO_MENTIONS = ("Sentence", "Token", "DocumentMetaData", "DocumentAnnotation", "METADATA", "Sofa")
"""Elements with offsets that mark no mentions."""


def xml_documents(corpus: DataFiles, wanted: Wanted) -> list[Proposal]:
    """Raises DataFormatError for XML that no reader knows."""
    location = corpus.places()[0]
    with location.path.open("rb") as stream:
        if not stream.read(64).lstrip(b"\xef\xbb\xbf \r\n\t").startswith(b"<"):
            return []
    root = parse_xml(location)
    name = _local(root)
    if name == "XMI":
        types = sorted({layer for each in corpus.places() for layer in _layers(each)})
        seen = [f"layers: {', '.join(types)}; take out of `types` what is no mention"]
        reader = {"format": "xmi", "types": {layer: layer for layer in types}}
        return [Proposal("span_ner", reader, unit="document", seen=seen)]
    if name == "document" and any(_has_entities(location) for location in corpus.places()):
        untyped = sum(_untyped_pairs(location) for location in corpus.places())
        seen = []
        if untyped:
            seen.append(f"pairs: {untyped} interact without a type and are left out")
        return [Proposal("relation", {"format": "ddi"}, seen=seen)]
    message, hint = (
        "is XML, and no reader knows its first element {}",
        "see the formats in docs/tasks.md",
    )
    raise location.bad(message, hint, name)


def _has_entities(location: FileLine) -> bool:
    return parse_xml(location).find("sentence/entity") is not None


def _untyped_pairs(location: FileLine) -> int:
    pairs = parse_xml(location).iter("pair")
    return sum(pair.get("ddi") == "true" and not pair.get("type") for pair in pairs)


def _layers(location: FileLine) -> set[str]:
    """Names of the elements that cover characters, those of the text's own structure aside."""
    elements = parse_xml(location)
    covering = {_local(e) for e in elements if e.get("begin") != e.get("end")}
    return covering - set(_NO_MENTIONS)


def _local(element: ET.Element) -> str:
    return element.tag.rpartition("}")[2]
