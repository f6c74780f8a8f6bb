"""One run's record as JSON bytes, and back, with every kind of damage said in one line."""

from __future__ import annotations

from pathlib import Path

from biobench.errors import StoreError
from biobench.schema.record import RECORD_VERSION, RunRecord
from biobench.store.side_records import parsed, to_bytes, validated

_AGAIN = "delete the file and repeat the run"


def to_json(record: RunRecord, path: Path) -> bytes:
    """Readable JSON. Raises StoreError where a number is not finite: such a run has no valid result."""
    try:
        return to_bytes(record)
    except ValueError as error:
        raise StoreError(
            f"the record holds a value that JSON cannot: {error}",
            hint="a loss or score is not finite; repeat the run with a lower learning rate",
            file=path,
        ) from error


def from_json(content: bytes, path: Path) -> RunRecord:
    """The record. Raises StoreError naming the file."""
    data = parsed(content, path, _AGAIN)
    version = data.get("record_version")
    if isinstance(version, int) and version > RECORD_VERSION:
        raise StoreError(
            f"was written by a newer BioBench (record version {version}, this one reads {RECORD_VERSION})",
            hint="upgrade BioBench",
            file=path,
        )
    return validated(data, RunRecord, path, _AGAIN)
