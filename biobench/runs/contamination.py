"""What is known of a checkpoint's training text and a task's documents when a run is made.

A measurement in the results folder (`biobench data overlap`) comes first. Else the ledger beside a checkpoint
of `biobench pretrain` says which text it was trained on, and the list beside that, whether the task's
documents were kept out of it.
"""

from __future__ import annotations

import json
from pathlib import Path

from pydantic import ValidationError

from biobench.schema.contamination import EXCLUSION_FILE, Contamination, Exclusions
from biobench.store.overlaps import find_overlap

_LEDGER = "ledger.json"
_N = 13
"""Words in a row that count as seen; a list made with a longer run keeps less out."""


def contamination(
    folder: Path, model_hash: str, task: str, data_hash: str, results_dir: str | Path
) -> Contamination | None:
    """For the checkpoint in `folder`; None where nothing is known. Raises StoreError for a damaged measurement."""
    measured = find_overlap(results_dir, task, model_hash, data_hash)
    return measured if measured is not None else _declared(folder, task, data_hash)


def _declared(folder: Path, task: str, data_hash: str) -> Contamination | None:
    """What the files beside the checkpoint tell; a file of that name with other content tells nothing."""
    try:
        ledger = json.loads((folder / _LEDGER).read_bytes())
        known = Contamination(
            corpus=ledger["name"], corpus_hash=ledger["corpus"]["manifest_hash"], base=ledger["base"]["source"]
        )
        exclusion_hash = ledger["corpus"]["exclusion_hash"]
    except (OSError, ValueError, KeyError, TypeError, RecursionError, ValidationError):
        return None
    try:
        kept_out = Exclusions.model_validate_json((folder / EXCLUSION_FILE).read_bytes())
    except (OSError, ValidationError):
        return known
    entry = kept_out.tasks.get(task)
    holds = entry is not None and entry.data_hash == data_hash
    if holds and kept_out.exclusion_hash == exclusion_hash and kept_out.ngram <= _N:
        return known.model_copy(update={"excluded": True})
    return known
