"""Small records beside the runs, `<results>/<room>/<task>/<32 hex digits>.json`: how all are written and read."""

from __future__ import annotations

import codecs
import json
import math
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from biobench.core.files import read_regular, write_atomic
from biobench.errors import StoreError
from biobench.store.keys import is_task_id

R = TypeVar("R", bound=BaseModel)

DEEPEST = 50
"""Lists and objects that lie in one another in a record; ours have under ten."""


def task_folder(results_dir: str | Path, room: str, task: str) -> Path:
    """Where the room keeps the records of a task. Raises StoreError for what is no task id."""
    if not is_task_id(task):
        raise StoreError(f"'{task[:40]}' is not a task id", hint="lower-case letters, digits and underscores")
    return Path(results_dir) / room / task


def write_record(path: Path, record: BaseModel) -> None:
    """Write the record, atomically, over an older one. Raises StoreError."""
    write_atomic(path, to_bytes(record))


def parsed(content: bytes, path: Path, again: str) -> dict[str, Any]:
    """The JSON object in a record's file. again: the hint on how to remake the record.

    Raises StoreError for what is no JSON object in UTF-8, and for what Python's reader takes but no other file of ours
    can hold: numbers that are not finite or over 64 bits, a name that stands twice in one object (readers differ in
    which value they keep), a byte-order mark, halves of surrogate pairs, and objects in objects without end.
    """
    try:
        data: Any = json.loads(
            content.decode(),  # bytes would be taken in UTF-16 and with a byte-order mark as well
            object_pairs_hook=_names_once,
            parse_constant=_refuse,
            parse_float=_finite,
            parse_int=_within_64_bits,
        )
        if content.count(b"[") + content.count(b"{") > DEEPEST and _depth(data) > DEEPEST:
            raise _JsonError(f"more than {DEEPEST} lists and objects lie in one another")
        if b"\\ud" in content.lower():
            json.dumps(data, ensure_ascii=False).encode()
    except (ValueError, RecursionError) as error:
        what = f"is not JSON: {error}" if isinstance(error, _JsonError) else "is not JSON"
        if isinstance(error, UnicodeEncodeError):
            what = "holds text that is not Unicode (half of a surrogate pair)"
        if isinstance(error, UnicodeDecodeError):
            what = "is not JSON: the file is not UTF-8"
        if content.startswith(codecs.BOM_UTF8):
            what = "is not JSON: it begins with a byte-order mark"
        raise StoreError(what, hint=again, file=path, line=getattr(error, "lineno", None)) from error
    if not isinstance(data, dict):
        raise StoreError("does not hold a record", hint=again, file=path)
    return data


def canonical_json(data: Any) -> bytes:
    """The one text in which records stand: UTF-8, one blank a level, names in the order of `data`.

    Halves of surrogate pairs (names of files in other encodings) become U+FFFD. Raises ValueError where a number is
    not finite.
    """
    text = json.dumps(data, indent=1, ensure_ascii=False, allow_nan=False)
    return (text + "\n").encode("utf-8", "surrogatepass").decode("utf-8", "replace").encode()


def _depth(data: Any) -> int:
    """How many lists and objects lie in one another; counted without recursion."""
    depth, level = 0, [data]
    while level:
        inner = (value for one in level for value in (one.values() if isinstance(one, dict) else one))
        level = [value for value in inner if isinstance(value, dict | list)]
        depth += 1
    return depth


class _JsonError(ValueError):
    """What records do not hold though Python reads it; its text is ours."""


def _names_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        raise _JsonError("an object holds one name twice")
    return fields


def _refuse(name: str) -> float:
    raise _JsonError(f"{name[:20]} is not a finite number")


def _finite(text: str) -> float:
    value = float(text)
    return value if math.isfinite(value) else _refuse(text)


def _within_64_bits(text: str) -> int:
    if len(text) > 20 or not -(2**63) <= int(text) < 2**63:
        raise _JsonError("a number has more than 64 bits")
    return int(text)


def to_bytes(record: BaseModel) -> bytes:
    """The record as `canonical_json`. Raises ValueError where a number is not finite."""
    return canonical_json(record.model_dump(mode="json"))


def read_record(path: Path, kind: type[R], version: tuple[str, int], again: str) -> R | None:
    """The record; None for one of another version, which counts as not made.

    version: the field that holds it and the value that is read; again: the hint on how to remake the record.
    Raises StoreError for a file that cannot be read or is damaged.
    """
    data = parsed(read_regular(path), path, again)
    name, wanted = version
    return validated(data, kind, path, again) if data.get(name) == wanted else None


def validated(data: dict[str, Any], kind: type[R], path: Path, again: str) -> R:
    """The record that `data` is. Raises StoreError naming the file and the first field that does not fit."""
    try:
        return kind.model_validate(data)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(step) for step in first["loc"]) or "the record"
        raise StoreError(f"damaged record: {where}: {first['msg']}", hint=again, file=path) from error
