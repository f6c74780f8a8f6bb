"""BRAT: texts with an .ann beside them."""

from __future__ import annotations

from collections import Counter

from biobench.data.readers.brat import parse_brat
from biobench.data.readers.standoff import merge_fragments
from biobench.data.sniff.base import DataFiles, Options, Proposal, Wanted, not_read


def brat_texts(corpus: DataFiles, wanted: Wanted) -> list[Proposal]:
    """Mentions of every type. Raises DataFormatError for a bad line."""
    texts = [path for path in corpus.paths if path.suffix == ".txt"]
    if not any(path.with_suffix(".ann").is_file() for path in texts):
        return []
    alone = mentions = in_pieces = repeated = 0
    unread: Counter[str] = Counter()
    for location in corpus.places():
        raw = parse_brat(location, "skip")
        if raw is None:
            alone += 1
            continue
        distinct = set[tuple[int, int, str]]()
        for mention in raw.mentions:
            distinct.add((mention.start, mention.end, mention.label))
            in_pieces += len(merge_fragments(mention.fragments, raw.text)) > 1
        mentions += len(raw.mentions)
        unread.update(raw.unread)
        repeated += len(raw.mentions) - len(distinct)
    reader: Options = {"format": "brat"}
    seen: list[str] = []
    if alone:
        reader["missing_ann"] = "skip"
        seen.append(f"texts: {alone} of {len(corpus.paths)} have no .ann and are left out")
    of_mentions = f"of {mentions} stand"
    if in_pieces:
        reader["discontinuous"] = "hull"
        hull = "in several pieces and are read from their first to their last character"
        seen.append(f"mentions: {in_pieces} {of_mentions} {hull}")
    if repeated:
        once = "where another of their type does, and count once"
        seen.append(f"mentions: {repeated} {of_mentions} {once}")
    seen += not_read(unread)
    return [Proposal("span_ner", reader, unit="document", seen=seen)]
