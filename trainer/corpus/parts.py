"""The documents of a source as tokens: made in parts that are whole or not there, then joined into one file.

A large source has its parts made by as many processes as there are cores: keeping the benchmark's documents out
costs Python time, which threads would not share. A build that is started again makes the parts that are missing. The
parts go once they are joined; however large a source is, it takes one descriptor, and in memory eight bytes a document.
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
from trainer.corpus.cleaning import Cleaner, Columns, Excluded
from trainer.corpus.shards import encode
from trainer.corpus.sources import ReadMeter
from trainer.disk import writing
from trainer.recipe.corpus import CorpusSource

DOCUMENTS = 2000
"""Most in a part."""
CHARACTERS = 1 << 25
"""A part ends with the document that reaches them, so that books do not fill the memory."""
ALONE = 4
"""Parts of a source that are made by this process alone; a source with more is worth starting others."""
StageReport = Callable[[str, float], None]
"""Told what is being done and which fraction of it is done (nan: unknown)."""
Make = Callable[[Path, list[str]], None]


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
        """Write a part: its tokens (`part`), then what proves that it is whole. Raises StoreError."""
        reasons = [self._why(text) for text in texts]
        allowed = [text for text, reason in zip(texts, reasons, strict=True) if reason is None]
        rows = [np.array([*self.start, *ids, self.end], dtype=self.dtype) for ids in encode(allowed, self.tokenizer)]
        lengths = np.array([len(r) for r in rows], dtype=np.int64)
        counts = {reason: reasons.count(reason) for reason in REASONS}
        if self.excluded.tasks:
            left_out = [text for text, why in zip(texts, reasons, strict=True) if why in ("same", "overlap")]
            counted = Counter(itertools.chain.from_iterable(map(self.excluded.tasks_of, left_out)))
            counts |= {f"{_TASK}{name}": count for name, count in counted.items()}
        if self.cleaner is not None and self.columns:
            hashes = part.with_suffix(".hashes")
            with writing(hashes):
                write_tokens(hashes, self.cleaner.hashes(allowed))
        with writing(part):
            write_tokens(part, np.concatenate(rows) if rows else np.zeros(0, dtype=self.dtype))
        _write_proof(part.with_suffix(".npz"), {"lengths": lengths, **counts})

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
    tokens, hashes, whole = (work / f"{source.id}.{kind}" for kind in ("tokens", "hashes", "whole.npz"))
    about = _arrays(whole)
    if about is None:
        _join(_parts(source, texts, meter, encoding, work, say), encoding, tokens, hashes, whole)
        about = _arrays(whole)
        assert about is not None
    lengths = about.pop("lengths")
    counts = {name: int(count) for name, count in about.items()}
    columns: Columns | None = None
    if encoding.columns and len(lengths):
        columns = np.memmap(hashes, dtype="<u8", mode="r", shape=(len(lengths), encoding.columns))
    return Tokenised(
        source,
        tokens,
        np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(lengths)]),
        {why: counts[why] for why in REASONS[:2]},
        {why: counts[why] for why in REASONS[2:]},
        {name.removeprefix(_TASK): count for name, count in sorted(counts.items()) if name.startswith(_TASK)},
        columns,
    )


def _parts(
    source: CorpusSource, texts: Iterator[str], meter: ReadMeter, encoding: Encoding, work: Path, say: StageReport
) -> list[Path]:
    """All parts of a source, whole; those that an earlier start made are taken as they are."""
    files: list[Path] = []

    def missing() -> Iterator[tuple[Path, list[str]]]:
        read = 0
        for number, batch in enumerate(_batches(texts)):
            read += len(batch)
            say(f"tokenising {source.id}: {read:,} documents", meter.fraction)
            files.append(work / f"{source.id}-{number:06d}.bin")
            if _about(files[-1], encoding) is None:
                yield files[-1], batch

    waiting = missing()
    for count, (part, batch) in enumerate(waiting):
        if count < ALONE:
            encoding.make(part, batch)
            continue
        with _others(encoding) as make:
            make(part, batch)
            for more in waiting:
                make(*more)
    return files


def _join(parts: list[Path], encoding: Encoding, tokens: Path, hashes: Path, whole: Path) -> None:
    """Put the parts end to end; `whole`, their lengths and counts, is there once all is. Raises StoreError."""
    lengths: list[NDArray[np.int64]] = [np.zeros(0, dtype=np.int64)]
    counts: Counter[str] = Counter(dict.fromkeys(REASONS, 0))
    with writing(tokens), tokens.open("wb") as joined, hashes.open("wb") as columns:
        for part in parts:
            about = _about(part, encoding)
            if about is None:
                raise StoreError(
                    "a part of the corpus that was just written cannot be read",
                    hint="check the disk, then start again: the other parts are kept",
                    file=part,
                )
            lengths.append(about.pop("lengths"))
            counts.update({name: int(count) for name, count in about.items()})
            with part.open("rb") as handle:
                shutil.copyfileobj(handle, joined, 1 << 20)
            if encoding.columns:
                columns.write(part.with_suffix(".hashes").read_bytes())
        for file in (joined, columns):
            file.flush()
            os.fsync(file.fileno())
    arrays: dict[str, Any] = {"lengths": np.concatenate(lengths), **counts}
    _write_proof(whole, arrays)
    with writing(tokens):
        for part in parts:
            for suffix in (".npz", ".hashes", ".bin"):
                part.with_suffix(suffix).unlink(missing_ok=True)


def _write_proof(file: Path, arrays: dict[str, Any]) -> None:
    """Arrays as one file that is whole or not there. Raises StoreError."""
    content = io.BytesIO()
    np.savez(content, **arrays)
    with writing(file):
        temporary = file.with_suffix(".tmp")
        temporary.write_bytes(content.getvalue())
        temporary.replace(file)


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


def _about(part: Path, encoding: Encoding) -> dict[str, NDArray[np.int64]] | None:
    """The lengths of a part's documents and how many were left out for each reason; None unless it is whole."""
    about = _arrays(part.with_suffix(".npz"))
    if about is None:
        return None
    sizes = [(part, about["lengths"].sum() * np.dtype(encoding.dtype).itemsize)]
    if encoding.columns:
        sizes.append((part.with_suffix(".hashes"), len(about["lengths"]) * encoding.columns * 8))
    return about if all(file.is_file() and file.stat().st_size == size for file, size in sizes) else None


def _arrays(file: Path) -> dict[str, NDArray[np.int64]] | None:
    """What `_write_proof` wrote; None where it is not there or damaged."""
    try:
        with np.load(file) as proof:
            arrays = {name: proof[name] for name in proof.files}
    except (OSError, ValueError, KeyError, EOFError, BadZipFile):
        return None
    return arrays if {"lengths", *REASONS} <= set(arrays) else None


@contextmanager
def _others(encoding: Encoding) -> Iterator[Make]:
    """What hands a part to another process, and waits while all have enough to do; at the end, for all.

    Raises what the making of a part raised, and TrainingError where a process was killed.
    """
    count = loky.cpu_count()
    pool = loky.ProcessPoolExecutor(max_workers=count, initializer=_begin, initargs=(encoding,))
    running: deque[Any] = deque()

    def make(part: Path, texts: list[str]) -> None:
        running.append(pool.submit(_make, part, texts))
        if len(running) > 2 * count:
            running.popleft().result()

    try:
        yield make
        while running:
            running.popleft().result()
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
