"""ChemProt as BioCreative released it: abstracts, entities and gold standard of each split."""

from __future__ import annotations

from biobench.data.readers.base import FilesByRole
from biobench.data.sniff.base import DataFiles, Proposal, Wanted

_TABLES = ("abstracts", "entities", "gold_standard")


def chemprot_tables(corpus: DataFiles, wanted: Wanted) -> list[Proposal]:
    """The three tables of each split, by their names."""
    files: FilesByRole = {}
    for split, paths in corpus.files.items():
        tables = [path for table in _TABLES for path in paths if table in path.stem]
        if len(tables) != len(_TABLES):
            return []
        files[split] = tables
    return [Proposal("relation", {"format": "chemprot"}, files=files)]
