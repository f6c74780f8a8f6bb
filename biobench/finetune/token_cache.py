"""Tokenised documents on disk, shared by workers and by models of one tokenizer.

What took long to tokenise is kept below the results folder and read by whoever needs the same: equal documents,
tokenizer, window and protocol. Text under an agreement is never kept: its caches would leave the data folder.
"""

from __future__ import annotations

import hashlib
import io
import json
import time
import zipfile
from collections.abc import Sequence
from contextlib import suppress
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from biobench.core.files import write_atomic
from biobench.encode.tokens import Encoded
from biobench.errors import StoreError
from biobench.kinds.base import Cut, Kind
from biobench.schema.document import Document
from biobench.schema.task import TaskSpec

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

FOLDER = Path("cache") / "tokens"
"""Below a results folder."""
WORTH_SECONDS = 2.0
"""What took less is sooner made again than read."""
_FORMAT = 1
_ARRAYS = ("ids", "first", "words", "stop", "types")
_FLAGS = ("truncated", "cut_left", "cut_right")


def cut(
    kind: Kind, spec: TaskSpec, documents: Sequence[Document], tokenizer: PreTrainedTokenizerBase, window: int,
    folder: Path | None,
) -> Cut:  # fmt: skip
    """As `kind.cut`; from the cache where it is there. folder: None keeps and reads nothing.

    Kinds with a cut of their own, and tokenizers that cannot be written down, go without.
    """
    whole = type(kind).cut is Kind.cut
    path = None if folder is None or not whole else _path(folder, kind, spec, documents, tokenizer, window)
    if path is None:
        return kind.cut(spec, documents, tokenizer, window)
    known = _read(path)
    if known is not None:
        encoded, owner = known
        return documents, kind.units(spec, documents, tokenizer), encoded, owner
    began = time.perf_counter()
    result = kind.cut(spec, documents, tokenizer, window)
    if time.perf_counter() - began >= WORTH_SECONDS:
        with suppress(StoreError):  # a cache that cannot be written costs time alone
            write_atomic(path, _packed(result[2], result[3]))
    return result


def _path(
    folder: Path, kind: Kind, spec: TaskSpec, documents: Sequence[Document], tokenizer: Any, window: int
) -> Path | None:
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is None or not hasattr(backend, "to_str"):
        return None
    about = {
        "format": _FORMAT,
        "versions": [metadata.version("tokenizers"), metadata.version("transformers")],
        "class": type(tokenizer).__name__,
        "special": str(sorted(tokenizer.special_tokens_map.items())),
        "limit": str(tokenizer.model_max_length),
        "kind": kind.name,
        "protocol": spec.protocol.model_dump(mode="json"),
        "head": spec.head.model_dump(mode="json"),
        "labels": spec.labels if isinstance(spec.labels, list) else spec.labels.model_dump(mode="json"),
        "window": window,
    }
    digest = hashlib.sha256(json.dumps(about, sort_keys=True).encode())
    digest.update(backend.to_str().encode("utf-8", "surrogatepass"))
    for d in documents:
        row = json.dumps([d.id, d.text, d.query, d.tokens, d.spans], ensure_ascii=False)
        digest.update(b"\n" + row.encode("utf-8", "surrogatepass"))
    return folder / f"{digest.hexdigest()[:32]}.npz"


def _packed(encoded: Sequence[Encoded], owner: Sequence[int]) -> bytes:
    """The arrays of all windows end to end, with the length of each."""
    content: dict[str, Any] = {"owner": np.asarray(owner, dtype=np.int64)}
    for name in _ARRAYS:
        rows = [getattr(e, name) for e in encoded]
        content[name] = np.concatenate([*rows, np.zeros(0, dtype=np.int64)])
        content[f"{name}_sizes"] = np.asarray([len(row) for row in rows], dtype=np.int64)
    for name in _FLAGS:
        content[name] = np.asarray([getattr(e, name) for e in encoded], dtype=bool)
    sink = io.BytesIO()
    np.savez(sink, **content)
    return sink.getvalue()


def _read(path: Path) -> tuple[list[Encoded], list[int]] | None:
    """What `_packed` was given; None where there is no such file, or it is damaged (it is then made again)."""
    try:
        with np.load(path, allow_pickle=False) as content:
            rows = {name: np.split(content[name], np.cumsum(content[f"{name}_sizes"])[:-1]) for name in _ARRAYS}
            flags = {name: content[name].tolist() for name in _FLAGS}
            owner = content["owner"].tolist()
        count = len(owner)
        if any(len(column) != count for column in (*rows.values(), *flags.values())):
            return None
        return [Encoded(**{n: column[i] for n, column in {**rows, **flags}.items()}) for i in range(count)], owner
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
        return None
