"""BRAT: texts with an .ann beside them."""

from __future__ import annotations

from biobench.data.readers.brat import parse_brat
from biobench.data.readers.standoff import merge_fragments
from biobench.data.sniff.base import DataFiles, Options, Proposal, Wanted


def brat_texts(corpus: DataFiles, wanted: Wanted) -> list[Proposal]:
    """Mentions of every type. Raises DataFormatError for a bad line."""
    if not any(
        path.with_suffix(".ann").is_file() for path in corpus.paths if path.suffix == ".txt"
    ):
        return []
    reader: Options = {"format": "brat"}
    alone = mentions = in_pieces = repeated = 0
    for location in corpus.places():
        raw = parse_brat(location, "skip")
        if raw is None:
            alone += 1
            continue
        mentions += len(raw.mentions)
        in_pieces += sum(len(merge_fragments(m.fragments, raw.text)) > 1 for m in raw.mentions)
        distinct = {(mention.start, mention.end, mention.label) for mention in raw.mentions}
        repeated += len(raw.mentions) - len(distinct)
    seen: list[str] = []
    if alone:
        reader["missing_ann"] = "skip"
        seen.append(f"texts: {alone} of {len(corpus.paths)} have no .ann and are left out")
    if in_pieces:
        reader["discontinuous"] = "hull"
        seen.append(
            f"mentions: {in_pieces} of {mentions} stand in several pieces and are read from their "
            f"first to their last character"
        )
    if repeated:
        seen.append(
            f"mentions: {repeated} of {mentions} stand where another of their type does, and count "
            f"once"
        )
    return [Proposal("span_ner", reader, unit="document", seen=seen)]
