"""The documents of a source as tokens: made in parts that are whole or not there, joined into one file as they come.

A large source has its parts made by as many processes as there are cores: keeping the benchmark's documents out
costs Python time, which threads would not share. Whole parts are appended in order to two files, the tokens and the
lengths of the documents, whose `Record` says how far they reach; a build that is started again cuts both there,
takes over the parts that lie beside them, and makes what is missing. However large a source is, it takes one
descriptor, and in memory eight bytes a document.
"""

from __future__ import annotations

import io
import itertools
import os
import shutil
import signal
from collections import Counter, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import loky
import numpy as np
from numpy.typing import NDArray
from transformers import PreTrainedTokenizerBase

from biobench.errors import StoreError, TrainingError
from biobench.schema.strict import Strict
from trainer.corpus.cleaning import Cleaner, Columns, Excluded
from trainer.corpus.shards import encode
from trainer.corpus.sources import ReadMeter
from trainer.disk import write_json, writing
from trainer.recipe.corpus import CorpusSource

DOCUMENTS = 2000
"""Most in a part."""
CHARACTERS = 1 << 25
"""A part ends with the document that reaches them, so that books do not fill the memory."""
ALONE = 4
"""Parts of a source that are made by this process alone; a source with more is worth starting others."""
JOURNAL = 64
"""Parts that are appended between two records on disk."""
StageReport = Callable[[str, float], None]
"""Told what is being done and which fraction of it is done (nan: unknown)."""
Make = Callable[[Path, list[str] | None], None]


class Record(Strict):
    """How far the files of a source reach: parts, tokens, documents in them and left out; whole: all of it."""

    parts: int = 0
    documents: int = 0
    tokens: int = 0
    same: int = 0
    overlap: int = 0
    quality: int = 0
    language: int = 0
    tasks: dict[str, int] = {}
    """Documents left out because of each benchmark task; one may count for several."""
    whole: bool = False


@dataclass(frozen=True)
class Tokenised:
    """The tokenised documents of one source. file: their tokens end to end; ends: (documents + 1,) where each begins.

    The last of `ends` is the number of tokens. excluded: how many were kept out and why.
    """

    spec: CorpusSource
    file: Path
    ends: NDArray[np.int64]
    excluded: dict[str, int]
    cleaned: dict[str, int] = field(default_factory=dict)
    """How many were left out by a declared step."""
    tasks: dict[str, int] = field(default_factory=dict)
    """How many were left out because of each benchmark task."""
    hashes: Columns | None = None
    """(documents, columns) what duplicates are recognised by, where they are looked for."""

    @property
    def documents(self) -> int:
        return len(self.ends) - 1

    @property
    def tokens(self) -> int:
        return int(self.ends[-1])


@dataclass(frozen=True)
class Encoding:
    """How documents become tokens: ids before and after each, their type on disk, what is kept out."""

    tokenizer: PreTrainedTokenizerBase
    start: tuple[int, ...]
    end: int
    dtype: str
    excluded: Excluded
    cleaner: Cleaner | None = None

    @property
    def columns(self) -> int:
        """Hashes that each document leaves, for duplicates to be recognised by."""
        return 0 if self.cleaner is None else self.cleaner.columns

    def make(self, part: Path, texts: list[str]) -> None:
        """Write a part: its tokens (`part`), then what proves that it is whole (`_proof`). Raises StoreError."""
        reasons = [self._why(text) for text in texts]
        allowed = [text for text, reason in zip(texts, reasons, strict=True) if reason is None]
        rows = [np.array([*self.start, *ids, self.end], dtype=self.dtype) for ids in encode(allowed, self.tokenizer)]
        about = io.BytesIO()
        lengths = np.array([len(r) for r in rows], dtype=np.int64)
        counts = {reason: reasons.count(reason) for reason in REASONS}
        if self.excluded.tasks:
            kept_out = [text for text, why in zip(texts, reasons, strict=True) if why in ("same", "overlap")]
            counted = Counter(itertools.chain.from_iterable(map(self.excluded.tasks_of, kept_out)))
            counts |= {f"{_TASK}{name}": count for name, count in counted.items()}
        if self.cleaner is not None and self.columns:
            hashes = part.with_suffix(".hashes")
            with writing(hashes):
                write_tokens(hashes, self.cleaner.hashes(allowed))
        arrays: dict[str, Any] = {"lengths": lengths, **counts}
        np.savez(about, **arrays)
        with writing(part):
            write_tokens(part, np.concatenate(rows) if rows else np.zeros(0, dtype=self.dtype))
            temporary = part.with_suffix(".tmp")
            temporary.write_bytes(about.getvalue())
            temporary.replace(_proof(part))

    def _why(self, text: str) -> str | None:
        """One of `REASONS` to leave a document out."""
        why = self.excluded.why(text)
        return self.cleaner.why(text) if why is None and self.cleaner is not None else why


REASONS = ("same", "overlap", "quality", "language")
"""Why a document is left out while parts are made."""
_TASK = "task "
"""Before a task's name among the counts of a part."""


def tokenise(
    source: CorpusSource, texts: Iterator[str], meter: ReadMeter, encoding: Encoding, work: Path, say: StageReport
) -> Tokenised:
    """The source's documents as one file below `work`. Raises StoreError and TrainingError.

    meter: how much of the source has been read, as `texts` goes on.
    """
    joined = _Joined(work, source, encoding.dtype, encoding.columns)
    if joined.record.whole:
        return joined.open()
    read = 0

    def missing() -> Iterator[tuple[Path, list[str] | None]]:
        """The parts that are not joined yet; without texts where one is whole already."""
        nonlocal read
        for number, batch in enumerate(_batches(texts)):
            read += len(batch)
            say(f"tokenising {source.id}: {read:,} documents", meter.fraction)
            if number >= joined.record.parts:
                part = joined.part(number)
                yield part, None if _about(part, encoding.dtype, encoding.columns) is not None else batch

    with joined:
        waiting = missing()
        alone = 0
        for part, batch in waiting:
            if batch is not None:
                alone += 1
                if alone > ALONE:
                    with _others(encoding, joined.append) as make:
                        make(part, batch)
                        for more in waiting:
                            make(*more)
                    break
                encoding.make(part, batch)
            joined.append(part)
    return joined.open()


def _batches(texts: Iterator[str]) -> Iterator[list[str]]:
    """The texts in lists of `DOCUMENTS`, shorter ones where documents are long."""
    batch: list[str] = []
    characters = 0
    for text in texts:
        batch.append(text)
        characters += len(text)
        if len(batch) == DOCUMENTS or characters >= CHARACTERS:
            yield batch
            batch, characters = [], 0
    if batch:
        yield batch


class _Joined:
    """The growing files of a source and their record; a context that ends with the record of what is whole.

    columns: hashes of a document that a third file holds; without them there are two files.
    """

    def __init__(self, work: Path, source: CorpusSource, dtype: str, columns: int) -> None:
        self.source, self.dtype, self.columns = source, dtype, columns
        self.tokens, self.lengths, self.hashes, self.file = (
            work / f"{source.id}.{kind}" for kind in ("tokens", "lengths", "hashes", "joined.json")
        )
        self.record = self._read()
        self._waiting: list[dict[str, int]] = []
        self._parts: list[Path] = []

    def part(self, number: int) -> Path:
        """Where part `number` is made."""
        return self.tokens.with_name(f"{self.source.id}-{number:06d}.bin")

    @property
    def _files(self) -> list[Path]:
        return [self.tokens, self.lengths, *([self.hashes] if self.columns else [])]

    def _sizes(self) -> list[int]:
        documents = self.record.documents
        sizes = [self.record.tokens * np.dtype(self.dtype).itemsize, documents * 8]
        return [*sizes, *([documents * 8 * self.columns] if self.columns else [])]

    def _read(self) -> Record:
        """The record, unless it is damaged or the files end before it says."""
        try:
            self.record = Record.model_validate_json(self.file.read_bytes())
            sizes = [file.stat().st_size for file in self._files]
        except (OSError, ValueError):
            return Record()
        return self.record if all(a >= b for a, b in zip(sizes, self._sizes(), strict=True)) else Record()

    def __enter__(self) -> _Joined:
        with writing(self.tokens):
            self._handles = [file.open("ab") for file in self._files]
            for handle, size in zip(self._handles, self._sizes(), strict=True):
                handle.truncate(size)
        for left in self.tokens.parent.glob(f"{self.source.id}-??????.bin"):
            if left < self.part(self.record.parts):  # appended, but a kill came before it was taken away
                _remove(left)
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            if kind is None:
                self._keep(whole=True)
        finally:
            for handle in self._handles:
                handle.close()

    def append(self, part: Path) -> None:
        """Put a whole part behind those before it. Raises StoreError when it cannot be read or the disk is full."""
        about = _about(part, self.dtype, self.columns)
        if about is None:
            raise StoreError(
                "a part of the corpus that was just written cannot be read",
                hint="check the disk, then start again: the other parts are kept",
                file=part,
            )
        lengths = about.pop("lengths")
        tokens, sizes = self._handles[:2]
        with writing(self.tokens):
            with part.open("rb") as handle:
                shutil.copyfileobj(handle, tokens, 1 << 20)
            sizes.write(lengths.astype("<i8").data)
            if self.columns:
                self._handles[2].write(part.with_suffix(".hashes").read_bytes())
        counted = {"parts": 1, "documents": len(lengths), "tokens": int(lengths.sum())}
        self._waiting.append(counted | {why: int(count) for why, count in about.items()})
        self._parts.append(part)
        if len(self._parts) >= JOURNAL:
            self._keep()

    def _keep(self, *, whole: bool = False) -> None:
        """Record what has been appended, then take its parts away."""
        with writing(self.tokens):
            for handle in self._handles:
                handle.flush()
                os.fsync(handle.fileno())
        names = ("parts", "documents", "tokens", *REASONS)
        sums = {name: getattr(self.record, name) + sum(w[name] for w in self._waiting) for name in names}
        tasks = Counter(self.record.tasks)
        for counts in self._waiting:
            tasks.update({name.removeprefix(_TASK): n for name, n in counts.items() if name.startswith(_TASK)})
        self.record = Record(**sums, tasks=dict(sorted(tasks.items())), whole=whole)
        write_json(self.file, self.record.model_dump())
        for part in self._parts:
            _remove(part)
        self._waiting, self._parts = [], []

    def open(self) -> Tokenised:
        """The whole source."""
        ends = np.zeros(self.record.documents + 1, dtype=np.int64)
        with self.lengths.open("rb") as lengths:
            lengths.readinto(ends[1:].data.cast("B"))
        np.cumsum(ends, out=ends)
        excluded = {"same": self.record.same, "overlap": self.record.overlap}
        cleaned = {"quality": self.record.quality, "language": self.record.language}
        hashes: Columns | None = None
        if self.columns and self.record.documents:
            shape = (self.record.documents, self.columns)
            hashes = np.memmap(self.hashes, dtype="<u8", mode="r", shape=shape)
        return Tokenised(self.source, self.tokens, ends, excluded, cleaned, self.record.tasks, hashes)


def _remove(part: Path) -> None:
    with writing(part):
        _proof(part).unlink(missing_ok=True)
        part.with_suffix(".hashes").unlink(missing_ok=True)
        part.unlink(missing_ok=True)


def _proof(part: Path) -> Path:
    return part.with_suffix(".npz")


def _about(part: Path, dtype: str, columns: int) -> dict[str, NDArray[np.int64]] | None:
    """The lengths of a part's documents and how many were left out for each reason; None unless it is whole."""
    try:
        with np.load(_proof(part)) as proof:
            about = {name: proof[name] for name in proof.files}
        if not {"lengths", *REASONS} <= set(about):
            return None
        hashes = part.with_suffix(".hashes")
        if columns and hashes.stat().st_size != len(about["lengths"]) * columns * 8:
            return None
        whole = part.stat().st_size == about["lengths"].sum() * np.dtype(dtype).itemsize
    except (OSError, ValueError, KeyError, EOFError, BadZipFile):
        return None
    return about if whole else None


@contextmanager
def _others(encoding: Encoding, done: Callable[[Path], None]) -> Iterator[Make]:
    """What hands a part to another process, and waits while all have enough to do; at the end, for all.

    done: told of every part in the order of the calls once it is whole; parts without texts are whole already.
    Raises what the making of a part raised, and TrainingError where a process was killed.
    """
    count = loky.cpu_count()
    pool = loky.ProcessPoolExecutor(max_workers=count, initializer=_begin, initargs=(encoding,))
    running: deque[tuple[Any, Path]] = deque()

    def settle() -> None:
        future, part = running.popleft()
        if future is not None:
            future.result()
        done(part)

    def make(part: Path, texts: list[str] | None) -> None:
        running.append((None if texts is None else pool.submit(_make, part, texts), part))
        if len(running) > 2 * count:
            settle()

    try:
        yield make
        while running:
            settle()
    except loky.process_executor.BrokenProcessPool as error:
        raise TrainingError(
            "a process that tokenised the corpus was killed",
            hint="free memory, or set LOKY_MAX_CPU_COUNT to fewer processes, and start again: what was done is kept",
        ) from error
    finally:
        pool.shutdown(wait=True, kill_workers=True)


_encoding: Encoding


def _begin(encoding: Encoding) -> None:
    """In a new process: the signal to stop is the first process's business, and one thread is its share."""
    global _encoding
    _encoding = encoding
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)


def _make(part: Path, texts: list[str]) -> None:
    _encoding.make(part, texts)


def write_tokens(file: Path, tokens: NDArray[Any]) -> None:
    """Write an array's bytes. `ndarray.tofile` would hide why a write failed: its OSError has no errno."""
    with file.open("wb") as handle:
        handle.write(tokens.data)
