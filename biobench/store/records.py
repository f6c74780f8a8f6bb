"""One run's record as JSON bytes, and back, with every kind of damage said in one line."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

from biobench.errors import StoreError
from biobench.schema.record import RECORD_VERSION, RunRecord
from biobench.store.side_records import validated

_AGAIN = "delete the file and repeat the run"


def to_json(record: RunRecord, path: Path) -> bytes:
    """Readable JSON. Raises StoreError where a number is not finite: such a run has no valid result."""
    try:
        text = json.dumps(record.model_dump(mode="json"), indent=1, ensure_ascii=False, allow_nan=False)
    except ValueError as error:
        raise StoreError(
            f"the record holds a value that JSON cannot: {error}",
            hint="a loss or score is not finite; repeat the run with a lower learning rate",
            file=path,
        ) from error
    return (text + "\n").encode("utf-8", "backslashreplace")


def _refuse(name: str) -> float:
    raise ValueError(f"{name} is not a number of JSON")


def _finite(text: str) -> float:
    value = float(text)
    return value if math.isfinite(value) else _refuse(text)


def from_json(content: bytes, path: Path) -> RunRecord:
    """The record. Raises StoreError naming the file."""
    try:
        data: Any = json.loads(content, parse_constant=_refuse, parse_float=_finite)
    except (ValueError, RecursionError) as error:
        line = getattr(error, "lineno", None)
        raise StoreError("is not JSON", hint=_AGAIN, file=path, line=line) from error
    if not isinstance(data, dict):
        raise StoreError("does not hold a record", hint=_AGAIN, file=path)
    version = data.get("record_version")
    if isinstance(version, int) and version > RECORD_VERSION:
        raise StoreError(
            f"was written by a newer BioBench (record version {version}, this one reads {RECORD_VERSION})",
            hint="upgrade BioBench",
            file=path,
        )
    return validated(data, RunRecord, path, _AGAIN)
