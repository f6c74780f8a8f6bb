"""Tokenised documents on disk, mapped into the memory of every process that needs them.

The windows of a large split are kept below the results folder, as one array of 64-bit integers, for whoever needs the
same: equal documents, tokenizer, window and protocol. Processes of one machine share its pages. Who comes second waits
for the first and reads. Text under an agreement is never kept: its caches would leave the data folder.
"""

from __future__ import annotations

import hashlib
import io
import json
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from filelock import FileLock

from biobench.core.files import remove_stale, write_atomic
from biobench.encode.tokens import Encoded
from biobench.errors import StoreError
from biobench.kinds.base import Cut, Kind
from biobench.schema.document import Document
from biobench.schema.task import TaskSpec

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

FOLDER = Path("cache") / "tokens"
"""Below a results folder."""
WORTH_CHARACTERS = 500_000
"""A split with fewer is tokenised about as soon as it is looked for, and is not kept."""
PATIENCE_SECONDS = 600.0
"""How long one process waits for another that tokenises the same; then it does so itself."""
_FORMAT = 2
_ARRAYS = ("ids", "first", "words", "stop", "types")
_FLAGS = ("truncated", "cut_left", "cut_right")

KeptWindows = tuple[list[Encoded], list[int]]
"""Windows, and the document of each."""


@dataclass(slots=True)
class TokenCache:
    """A folder of tokenised documents. read, written: splits that were found there, and that were not.

    least: characters of a split that is kept.
    """

    folder: Path
    least: int = field(default_factory=lambda: WORTH_CHARACTERS)
    read: int = 0
    written: int = 0

    def keeps(self, kind: Kind, documents: Sequence[Document]) -> bool:
        """Whether these documents are kept: there are many, and the kind cuts them as most kinds do."""
        return type(kind).cut is Kind.cut and sum(len(d.text) + len(d.query) for d in documents) >= self.least

    def cut(
        self, kind: Kind, spec: TaskSpec, documents: Sequence[Document], tokenizer: PreTrainedTokenizerBase, window: int
    ) -> Cut:
        """As `kind.cut`; what the folder `keeps` is read from it, or tokenised and written.

        Tokenizers that cannot be written down go without.
        """
        path = _path(self.folder, kind, spec, documents, tokenizer, window) if self.keeps(kind, documents) else None
        if path is None:
            return kind.cut(spec, documents, tokenizer, window)
        windows = _read(path)
        if windows is None:
            with _turn(path):
                windows = _read(path)
                if windows is None:
                    self.written += 1
                    return _kept(path, kind.cut(spec, documents, tokenizer, window))
        self.read += 1
        return documents, kind.units(spec, documents, tokenizer), *windows


@contextmanager
def _turn(path: Path) -> Iterator[None]:
    """One process at a time; without locks, or after `PATIENCE_SECONDS`, several do the same work."""
    lock = FileLock(path.with_suffix(".lock"))
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        lock.acquire(timeout=PATIENCE_SECONDS)
    except (OSError, NotImplementedError):
        yield
        return
    try:
        yield
    finally:
        with suppress(OSError):  # who waits for the removed file finds the windows
            Path(lock.lock_file).unlink()
        lock.release()


def _kept(path: Path, result: Cut) -> Cut:
    """The same, its windows in the file; where that cannot be written, as they were."""
    documents, units, encoded, owner = result
    with suppress(StoreError):  # a cache that cannot be written costs time alone
        remove_stale(path.parent)
        write_atomic(path, _packed(encoded, owner))
        with suppress(OSError):
            path.chmod(0o444)  # what processes have mapped is to be replaced or removed, never written to
        return documents, units, *(_read(path) or (encoded, owner))
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
        row = json.dumps([d.id, d.text, d.query, d.pieces, d.tokens, d.spans], ensure_ascii=False)
        digest.update(b"\n" + row.encode("utf-8", "surrogatepass"))
    return folder / f"{digest.hexdigest()[:32]}.npy"


def _packed(encoded: Sequence[Encoded], owner: Sequence[int]) -> bytes:
    """One array: checksum of the rest, number of windows, their documents, flags and lengths, then all arrays."""
    rows = [getattr(e, name) for name in _ARRAYS for e in encoded]
    flags = [[getattr(e, name) for e in encoded] for name in _FLAGS]
    parts = [[len(encoded)], owner, *flags, [len(row) for row in rows], *rows]
    content = np.concatenate([np.asarray(part, dtype=np.int64) for part in parts])
    sink = io.BytesIO()
    np.save(sink, np.concatenate([[zlib.crc32(content.data)], content]))
    return sink.getvalue()


def _read(path: Path) -> KeptWindows | None:
    """What `_packed` was given, its arrays read-only views of the mapped file.

    None where there is no such file, or it is damaged (it is then made again).
    """
    try:
        content = np.load(path, mmap_mode="r", allow_pickle=False).view(np.ndarray)
    except (OSError, ValueError, EOFError):
        return None
    if content.dtype != np.int64 or content.ndim != 1 or len(content) < 2 or content[0] != zlib.crc32(content[1:].data):
        return None
    count = int(content[1])
    heads, sizes, rows = np.split(content[2:], [count * (1 + len(_FLAGS)), count * (1 + len(_FLAGS) + len(_ARRAYS))])
    owner, *flags = heads.reshape(-1, count).tolist() if count else [[], [], [], []]
    pieces = np.split(rows, np.cumsum(sizes)[:-1])
    windows: list[Encoded] = []
    for i in range(count):
        fields: dict[str, Any] = {name: pieces[place * count + i] for place, name in enumerate(_ARRAYS)}
        fields |= {name: bool(flags[place][i]) for place, name in enumerate(_FLAGS)}
        windows.append(Encoded(**fields))
    return windows, owner
