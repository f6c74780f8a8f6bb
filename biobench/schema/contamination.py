"""What of a task's validation and test text stands in a model's training text; and what was
excluded from it.

Counts and hashes alone: no text and no document ids, so it may be kept for agreement-bound data
too.
"""

from __future__ import annotations

from biobench.schema.strict import Count, Line, Strict, Text

OVERLAP_VERSION = 2
"""Bumped by hand when what is counted changes; older measurements are made anew."""

EXCLUSION_FILE = "exclusion.json"
"""Name of the `Exclusions` that lies with a pretraining run's ledger."""


class SplitOverlap(Strict):
    """One split against one training text."""

    documents: Count
    exact: Count
    """Documents whose whole text stands in the training text as one record."""
    touched: Count
    """Documents that share a run of 13 words with it."""
    ngrams: Count
    ngrams_seen: Count
    short: Count
    """Documents of fewer than 13 words, which can only be found exactly."""
    seen: Count
    """Documents found either way."""


class Contamination(Strict):
    """What is known of a model's training text and one task. Without `test` nothing was counted."""

    corpus: Text
    """Name of the training text: a folder, a file or a pretraining run."""
    corpus_hash: Line
    """Of the texts read, or of the corpus manifest that the ledger names."""
    base: Text | None = None
    """What training started from, where a ledger tells; of its own training text nothing is said.
    """
    excluded: bool = False
    """All validation and test documents stood on the list of texts that training text may not share
    13 words with.
    """
    validation: SplitOverlap | None = None
    test: SplitOverlap | None = None

    @property
    def seen(self) -> int:
        """Test documents that were found, exactly or by a run of words; 0 where nothing was
        counted.
        """
        return 0 if self.test is None else self.test.seen


class OverlapRecord(Strict):
    """A measurement kept with the results, for one model on one state of a task's data."""

    overlap_version: int = OVERLAP_VERSION
    task: str
    data_hash: str
    model: str
    model_hash: str
    contamination: Contamination
    biobench: str
    made: str
    """ISO 8601, UTC."""


class ExcludedTask(Strict):
    """One task whose validation and test documents were excluded."""

    data_hash: str
    documents: Count
    removed: Count | None = None
    """Documents of the training text that were excluded because of it; null where they were not
    counted by task.
    """


class Exclusions(Strict):
    """Which tasks' documents a pretraining run was asked to exclude; written with its ledger."""

    version: int = 1
    exclusion_hash: str
    """As in the ledger: the list belongs to that run and no other."""
    ngram: int
    tasks: dict[str, ExcludedTask]
    not_guarded: tuple[str, ...] = ()
    """Tasks whose documents were not at hand, so that nothing excluded them."""
