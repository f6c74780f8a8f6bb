"""Hashes that name a task and its data. Equal content gives an equal hash, wherever the files
lie."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from typing import Any

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from biobench.core.files import canonical
from biobench.data.catalog import LoadedTask
from biobench.schema.document import Document
from biobench.schema.source import SplitIds

_NOT_IDENTITY = ("sources", "source", "reader", "splits", "seeds", "corpus")
"""Written back in resolved form below, or (seeds, corpus) without influence on a single run."""


def identity(model: BaseModel) -> dict[str, Any]:
    """The model's fields without the descriptive ones, at every depth, as plain JSON data.

    A field that came later is left out while it has its default: what it stood for then is what it
    stands for now.
    """
    result: dict[str, Any] = {}
    for name, info in type(model).model_fields.items():
        value = getattr(model, name)
        if not _is_left_out(info, value):
            result[name] = _plain(value)
    return result


def _is_left_out(info: FieldInfo, value: Any) -> bool:
    """Whether the field is descriptive, or came later and has its default."""
    marks = info.json_schema_extra
    if not isinstance(marks, dict):
        return False
    if marks.get("later") and value == info.default:
        return True
    return bool(marks.get("descriptive"))


def _plain(value: Any) -> Any:
    if isinstance(value, BaseModel):
        return identity(value)
    if isinstance(value, (list, tuple)):
        return list(map(_plain, value))
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items()}
    return value


def task_identity(task: LoadedTask, source_id: str) -> dict[str, Any]:
    """What makes a run of this task from this source what it is: protocol, labels, reader, splits.

    Folder, address, licence, notes and the like do not enter; reader options do, defaults filled
    in.
    """
    source = task.source(source_id)
    fields = identity(task.spec)
    spec = {name: fields[name] for name in fields if name not in _NOT_IDENTITY}
    spec["source"] = source.id
    options = task.options[source.id]
    spec["reader"] = identity(options) | options.former
    splits = task.spec.splits_of(source)
    spec["splits"] = _plain(splits)
    if isinstance(splits, SplitIds) and splits.former is not None:
        spec["splits"]["ids_file"] = splits.former
    return spec


def task_hash(task: LoadedTask, source_id: str) -> str:
    """SHA-256 (hex) of `task_identity`."""
    return hashlib.sha256(canonical(task_identity(task, source_id)).encode()).hexdigest()


def documents_hash(documents: Iterable[Document], source_id: str) -> str:
    """SHA-256 (hex) of the documents' content and of the source's id; file positions do not
    enter."""
    digest = hashlib.sha256(source_id.encode())
    for d in documents:
        row: list[Any] = [d.id, d.group, d.text, d.split, d.spans, d.labels, d.tokens, d.tags]
        if d.query or d.plan is not None:
            row += [d.query, d.plan]
        if d.pieces:
            row.append(d.pieces)
        line = json.dumps(row, separators=(",", ":"), ensure_ascii=False)
        digest.update(b"\n" + line.encode("utf-8", "surrogatepass"))
    return digest.hexdigest()


def release_of(task: LoadedTask, source: str, data_hash: str) -> str | None:
    """The name of the known release of this source that has this hash; None where there is none."""
    releases = task.source(source).releases
    names = [name for name, digest in releases.items() if digest == data_hash]
    return next(iter(names), None)


def release_problem(task: LoadedTask, source: str, data_hash: str) -> str | None:
    """One line where the spec knows releases of this source and the data are none of them.

    A task with overrides is not judged: a reader or split that was changed gives other documents
    from the same files.
    """
    releases = task.source(source).releases
    if not releases or task.overrides or data_hash in releases.values():
        return None
    names = ", ".join(releases)
    digest = data_hash[:16]
    return f"the documents (hash {digest}) differ from the release that the spec knows ({names})"
