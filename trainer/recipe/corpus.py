"""What a recipe says of its text: sources, what is excluded from them, and windows."""

from __future__ import annotations

import math
from typing import Literal

from pydantic import Field, model_validator

from biobench.schema.source import Below, fail, later
from biobench.schema.strict import Strict
from trainer.recipe.fields import FileName, Growing, Tokens


class EmbeddedText(Strict):
    """The synthetic bilingual clinical sentences that come with the package."""

    documents: int = Field(ge=10)
    seed: int = 7
    languages: Literal["both", "en", "fr"] = "both"


class CorpusSource(Growing):
    """One part of the mixture. Exactly one of embedded, path and hub says where its text is."""

    id: FileName
    embedded: EmbeddedText | None = None
    path: Below | None = None
    """File, folder or glob below corpus.root."""
    hub: str | None = None
    """Dataset repository on the model hub, with `revision` and `split`."""
    name: str | None = later(None)
    """Configuration of that dataset, a language say."""
    revision: str | None = None
    """Commit, tag or branch; the commit that it stands for is kept in the manifest and the ledger.
    """
    split: str = "train"
    format: Literal["auto", "text", "lines", "jsonl", "csv", "tsv", "parquet", "arrow"] = "auto"
    """text: a file is a document; lines: a line is one; auto: by the file's ending (.txt is text),
    before .gz or .zst where the file is compressed.
    """
    field: str = "text"
    """Column or key that holds the text (jsonl, csv, tsv, parquet, arrow, hub)."""
    share: float | None = Field(None, gt=0, le=1)
    """Part of the corpus's tokens; met by repeating documents of all sources but the most plentiful
    one.
    """
    repeat: float | None = Field(None, gt=0)
    """How often each document is read; 2.5 reads half of them a third time. Default 1."""

    @model_validator(mode="after")
    def _one(self) -> CorpusSource:
        if [self.embedded, self.path, self.hub].count(None) != 2:
            raise fail(
                f"source '{self.id}' needs exactly one of embedded, path and hub",
                "say where its text is",
            )
        if self.share is not None and self.repeat is not None:
            raise fail(f"source '{self.id}' has a share and a repeat", "keep one of the two")
        return self


class Exclusion(Strict):
    """Documents that must not be trained on: the benchmark's own."""

    files: list[Below] = []
    """Text files or JSON lines (key `text`) below corpus.root whose documents are excluded."""
    ngram: int = Field(13, ge=5, le=50)
    """A document that shares a run of this many words with an excluded one is excluded too."""


class NearDuplicates(Strict):
    """Documents that share most of their runs of words with an earlier one, by MinHash."""

    similarity: float = Field(0.8, gt=0, lt=1)
    """Jaccard similarity of the sets of word runs from which on a document is more likely to go
    than to stay.
    """
    ngram: int = Field(5, ge=1, le=20)
    permutations: int = Field(128, ge=16, le=512)


class Cleaning(Strict):
    """Duplicates that go; the benchmark's documents are excluded before."""

    exact_duplicates: bool = False
    """Whether a document goes whose words an earlier one of any source has in the same order."""
    near_duplicates: NearDuplicates | None = None


class CorpusSpec(Growing):
    """Text to shards: tokenise, end each document, shuffle documents, join, cut into windows."""

    sources: list[CorpusSource]
    sequence_length: int = Field(ge=16)
    """Tokens per window."""
    root: str = "."
    """Folder that relative paths of sources and excluded files start from."""
    cache: str | None = None
    """Folder of built corpora, from root; default: `corpora` next to the runs. Agreement-bound text
    stays with it.
    """
    seed: int = 42
    """Shuffles the documents."""
    start_token: Literal["none"] = "none"
    """No token stands before a document; the word is part of the hashes of recipes and corpora."""
    held_out: float = Field(0.01, ge=0, lt=0.5)
    """Part of the documents kept for validation loss."""
    shard_tokens: Tokens = 500_000_000
    exclude: Exclusion = Exclusion()
    clean: Cleaning | None = later(None)
    """Which duplicates are excluded."""

    @model_validator(mode="after")
    def _sources(self) -> CorpusSpec:
        if not self.sources:
            raise fail("the corpus has no sources", "list at least one")
        ids = [s.id for s in self.sources]
        if len(set(ids)) < len(ids):
            raise fail(
                f"two corpus sources have the id '{max(ids, key=ids.count)}'",
                "give each its own id",
            )
        shares = [s.share for s in self.sources if s.share is not None]
        if shares and (len(shares) < len(ids) or not math.isclose(sum(shares), 1.0, abs_tol=1e-6)):
            raise fail(
                "the shares of the corpus sources do not sum to 1",
                "give every source a share, or none",
            )
        return self
