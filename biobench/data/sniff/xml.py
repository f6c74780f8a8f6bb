"""XML: UIMA CAS (XMI) with its layers of mentions, and DDI."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Iterable

from biobench.data.readers.files import parse_xml
from biobench.data.sniff.base import DataFiles, Proposal, Wanted

_NO_MENTIONS = ("Sentence", "Token", "DocumentMetaData", "DocumentAnnotation", "METADATA", "Sofa")
"""Elements with offsets that mark no mentions."""


def xml_documents(corpus: DataFiles, wanted: Wanted) -> list[Proposal]:
    """Raises DataFormatError for XML that no reader knows."""
    start = corpus.places()[0]
    with start.path.open("rb") as stream:
        if not stream.read(64).lstrip(b"\xef\xbb\xbf \r\n\t").startswith(b"<"):
            return []
    name = _local(parse_xml(start))
    roots = map(parse_xml, corpus.places())
    if name == "XMI":
        return [_layers(roots)]
    entities = untyped = 0
    for root in roots:
        entities += len(root.findall("sentence/entity"))
        interacting = root.findall(".//pair[@ddi='true']")
        typed = root.findall(".//pair[@ddi='true'][@type!='']")
        untyped += len(interacting) - len(typed)
    if name != "document" or not entities:
        hint = "see the formats in docs/tasks.md"
        raise start.bad("is XML, and no reader knows its first element {}", hint, name)
    proposal = Proposal("relation", {"format": "ddi"})
    if untyped:
        proposal.seen.append(f"pairs: {untyped} interact without a type and are left out")
    return [proposal]


def _layers(roots: Iterable[ET.Element]) -> Proposal:
    """Mentions of every type that covers characters, the text's own structure aside."""
    names: set[str] = set()
    for root in roots:
        covering = [element for element in root if element.get("begin") != element.get("end")]
        names.update(map(_local, covering))
    types = sorted(names.difference(_NO_MENTIONS))
    seen = [f"layers: {', '.join(types)}; take out of `types` what is no mention"]
    reader = {"format": "xmi", "types": dict(zip(types, types, strict=True))}
    return Proposal("span_ner", reader, unit="document", seen=seen)


def _local(element: ET.Element) -> str:
    return element.tag.rpartition("}")[2]
