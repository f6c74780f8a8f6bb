"""Keys of runs, and records as JSON files and back, with every kind of damage said in one line.

Runs lie in `<results>/runs`; small records in `<results>/<folder>/<task>/<32 hex digits>.json`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from biobench.core.files import canonical, read_regular, sha256_of, write_atomic
from biobench.errors import StoreError
from biobench.schema.record import ENGINE_VERSION, RECORD_VERSION, RunRecord

R = TypeVar("R", bound=BaseModel)

REMOVED = {"cost": ("prepared_ahead",)}
"""Fields that earlier versions wrote in a part of a run's record and that are passed over. What
else changes its name or shape in records is migrated here.
"""
_AGAIN = "delete the file and repeat the run"
_KEY = re.compile(r"[0-9a-f]{32}")
_TASK = re.compile(r"[a-z0-9_]+")


def run_key(
    *,
    model_hash: str,
    task_hash: str,
    data_hash: str,
    seed: int,
    precision: str,
    track: str = "fixed",
    limit: int | None = None,
    protocol: Mapping[str, Any] | None = None,
    engine_version: int = ENGINE_VERSION,
) -> str:
    """32 hex digits of the SHA-256 over the canonical JSON of everything that decides a run's
    result.

    task_hash covers the spec with its overrides; `protocol` adds resolved fields that it does not
    cover. Raises ValueError where `protocol` holds something that is not JSON, or a number that is
    not finite.
    """
    decided = {
        "model": model_hash,
        "task": task_hash,
        "data": data_hash,
        "seed": seed,
        "precision": precision,
        "track": track,
        "limit": limit,
        "protocol": None if protocol is None else dict(protocol),
        "engine": engine_version,
    }
    return sha256_of(canonical(decided).encode())[:32]


def is_key(text: str) -> bool:
    """Whether `text` can be a run's key; anything else must never become a path."""
    return _KEY.fullmatch(text) is not None


def is_task_id(text: str) -> bool:
    """Whether `text` can be a task's id (and so a folder's name)."""
    return _TASK.fullmatch(text) is not None


def to_json(record: BaseModel, path: Path) -> bytes:
    """Readable JSON. Raises StoreError where a number is not finite: such a run has no valid
    result.
    """
    try:
        return canonical_json(record.model_dump(mode="json"))
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
            f"was written by a newer BioBench (record version {version}, this one reads "
            f"{RECORD_VERSION})",
            hint="upgrade BioBench",
            file=path,
        )
    for section, names in REMOVED.items():
        for name in names:
            if isinstance(data.get(section), dict):
                data[section].pop(name, None)
    return _validated(data, RunRecord, path, _AGAIN)


def small_record(results_dir: str | Path, folder: str, task: str, *decided: str) -> Path:
    """`<results>/<folder>/<task>/<32 hex digits>.json`, the digits of the SHA-256 over what the
    record is of.

    Raises StoreError for what is no task id.
    """
    if not is_task_id(task):
        raise StoreError(
            f"'{task[:40]}' is not a task id", hint="lower-case letters, digits and underscores"
        )
    digits = sha256_of("\n".join(decided).encode())[:32]
    return Path(results_dir) / folder / task / f"{digits}.json"


def write_record(path: Path, record: BaseModel) -> None:
    """Write a small record, atomically, over an older one. Raises StoreError."""
    write_atomic(path, to_json(record, path))


def read_record(path: Path, kind: type[R], version: tuple[str, int], again: str) -> R | None:
    """A small record; None for one of another version, which counts as not made.

    version: the field that holds it and the value that is read; again: the hint on how to remake
    the record. Raises StoreError for a file that cannot be read or is damaged.
    """
    data = parsed(read_regular(path), path, again)
    name, wanted = version
    return _validated(data, kind, path, again) if data.get(name) == wanted else None


def canonical_json(data: Any) -> bytes:
    """The one text of a record: UTF-8, one blank a level, names in the order of `data`.

    Halves of surrogate pairs (names of files in other encodings) become U+FFFD. Raises ValueError
    where a number is not finite.
    """
    text = json.dumps(data, indent=1, ensure_ascii=False, allow_nan=False)
    return (text + "\n").encode("utf-8", "surrogatepass").decode("utf-8", "replace").encode()


def parsed(content: bytes, path: Path, again: str) -> dict[str, Any]:
    """The JSON object in a record's file. again: the hint on how to remake the record.

    Raises StoreError for what is no JSON object in UTF-8, for numbers that are not finite, for one
    name twice in an object (readers differ in which value they keep) and for halves of surrogate
    pairs, which no terminal prints.
    """

    def refuse(name: str) -> None:
        raise ValueError(f"{name} is not a finite number")

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        fields = dict(pairs)
        if len(fields) < len(pairs):
            raise ValueError("one name twice in an object")
        return fields

    try:
        data: Any = json.loads(content.decode(), parse_constant=refuse, object_pairs_hook=once)
        if b"\\ud" in content.lower():
            json.dumps(data, ensure_ascii=False).encode()
    except (ValueError, RecursionError) as error:
        reason = f": {error}" if type(error) is ValueError else ""
        line = getattr(error, "lineno", None)
        raise StoreError(f"is not JSON{reason}", hint=again, file=path, line=line) from error
    if not isinstance(data, dict):
        raise StoreError("does not hold a record", hint=again, file=path)
    return data


def _validated(data: dict[str, Any], kind: type[R], path: Path, again: str) -> R:
    """The record that `data` is. Raises StoreError naming the file and the first field that does
    not fit.
    """
    try:
        return kind.model_validate(data)
    except ValidationError as error:
        problem = error.errors(include_url=False, include_input=False)[0]
        field = ".".join(map(str, problem["loc"])) or "the record"
        message = f"{field}: {problem['msg']}"
        raise StoreError(f"damaged record: {message}", hint=again, file=path) from error
    except RecursionError as error:
        message = "damaged record: it is nested too deeply"
        raise StoreError(message, hint=again, file=path) from error
