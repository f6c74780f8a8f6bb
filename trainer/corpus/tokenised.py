"""The documents of all sources as tokens end to end in one file, which a build that is started
again continues.

Documents are handled in batches; a batch counts once its line stands in the journal, which is
written last. A large source has its batches made by as many processes as there are cores: excluding
the benchmark's documents costs Python time, which threads would not share.
"""

from __future__ import annotations

import itertools
import json
import os
import signal
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from transformers import PreTrainedTokenizerBase

from biobench.errors import TrainingError
from trainer.corpus.cleaning import Columns, Excluded, Fingerprints
from trainer.corpus.shards import encode
from trainer.corpus.sources import ReadMeter
from trainer.disk import writing

DOCUMENTS = 2000
"""Most in a batch."""
CHARACTERS = 1 << 25
"""A batch ends with the document that reaches them, so that books do not fill the memory."""
ALONE = 4
"""Batches of a source that are made by this process alone; a source with more is worth starting
others.
"""
REASONS = ("same", "overlap")
"""Why a document is excluded: it is the benchmark's, or shares a run of words with it."""
StageReport = Callable[[str, float], None]
"""Called with what is being done and which fraction of it is done (nan: unknown)."""


@dataclass(frozen=True)
class Tokenised:
    """All documents that stay. file: their tokens end to end; lengths: (documents,) tokens of each.

    counts: of each source, documents under ``documents``, ``tokens``, each of `REASONS` and ``task
    NAME``. hashes: (documents, columns) what duplicates are recognised by, where they are looked
    for.
    """

    file: Path
    lengths: NDArray[np.int64]
    counts: dict[str, Counter[str]]
    hashes: Columns | None


class EncodedBatch(NamedTuple):
    """Tokens, lengths and hashes of the documents of a batch that stay, as bytes; and its
    counts."""

    tokens: bytes
    lengths: bytes
    hashes: bytes
    counts: Counter[str]


@dataclass(frozen=True)
class Encoding:
    """How documents become tokens: the id after each, the type of ids on disk, what is excluded."""

    tokenizer: PreTrainedTokenizerBase
    end: int
    dtype: str
    excluded: Excluded
    fingerprints: Fingerprints | None = None

    def make(self, texts: Sequence[str]) -> EncodedBatch:
        """The batch of these documents."""
        counts: Counter[str] = Counter()
        allowed = []
        for text in texts:
            if (why := self.excluded.why(text)) is None:
                allowed.append(text)
            else:
                counts.update((why, *(f"task {name}" for name in self.excluded.tasks_of(text))))
        rows = [
            np.array([*ids, self.end], dtype=self.dtype) for ids in encode(allowed, self.tokenizer)
        ]
        lengths = np.array([len(row) for row in rows], dtype=np.int64)
        counts.update(documents=len(rows), tokens=int(lengths.sum()))
        hashes = b"" if self.fingerprints is None else self.fingerprints.of(allowed).tobytes()
        return EncodedBatch(
            b"".join(row.tobytes() for row in rows), lengths.tobytes(), hashes, counts
        )


def tokenise(
    sources: Iterable[tuple[str, Iterator[str], ReadMeter]],
    encoding: Encoding,
    work: Path,
    say: StageReport,
) -> Tokenised:
    """All documents below the folder `work`. Raises StoreError, TrainingError and what reading a
    source raises.

    sources: id, texts, and how much of the source has been read as its texts go on.
    """
    files = [work / f"documents.{kind}" for kind in ("tokens", "lengths", "hashes")]
    journal = work / "journal.jsonl"
    lines = _written(journal, files)
    counts: dict[str, Counter[str]] = {}
    with writing(work):  # what a kill cut off in the middle goes
        journal.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
        for file, size in zip(files, lines[-1]["sizes"] if lines else [0, 0, 0], strict=True):
            with file.open("ab") as handle:
                if handle.tell() > size:
                    handle.truncate(size)
    for source, texts, meter in sources:
        mine = [line for line in lines if line["source"] == source]
        counts[source] = sum((Counter(line["counts"]) for line in mine), Counter())
        if mine and mine[-1]["whole"]:
            continue
        batches = itertools.islice(_batches(source, texts, meter, say), len(mine), None)
        for batch in itertools.chain(
            _encoded(batches, encoding), [EncodedBatch(b"", b"", b"", Counter())]
        ):
            counts[source].update(batch.counts)
            sizes = []
            with writing(work):
                for file, content in zip(files, batch[:3], strict=True):
                    with file.open("ab") as handle:
                        handle.write(content)
                        sizes.append(handle.tell())
                line = {
                    "source": source,
                    "sizes": sizes,
                    "counts": batch.counts,
                    "whole": not batch.counts,
                }
                with journal.open("a", encoding="utf-8") as log:
                    log.write(json.dumps(line) + "\n")
    lengths = np.fromfile(files[1], dtype=np.int64)
    hashes: Columns | None = None
    if encoding.fingerprints is not None and encoding.fingerprints.columns and len(lengths):
        hashes = np.memmap(
            files[2], dtype="<u8", mode="r", shape=(len(lengths), encoding.fingerprints.columns)
        )
    return Tokenised(files[0], lengths, counts, hashes)


def _written(journal: Path, files: list[Path]) -> list[dict[str, Any]]:
    """The lines of an earlier start's journal whose batches are there; none of one that is
    damaged."""
    lines: list[dict[str, Any]] = []
    try:
        for text in journal.read_text(encoding="utf-8").splitlines(keepends=True):
            if text.endswith("\n"):
                lines.append(json.loads(text))
        there = all(
            f.stat().st_size >= size for f, size in zip(files, lines[-1]["sizes"], strict=True)
        )
    except (OSError, ValueError, LookupError):
        return []
    return lines if there else []


def _batches(
    source: str, texts: Iterator[str], meter: ReadMeter, say: StageReport
) -> Iterator[list[str]]:
    """The texts in lists of `DOCUMENTS`, shorter ones where documents are long."""
    batch: list[str] = []
    characters = read = 0
    for text in itertools.chain(texts, [None]):
        if text is not None:
            batch.append(text)
            characters += len(text)
        if batch and (text is None or len(batch) == DOCUMENTS or characters >= CHARACTERS):
            read += len(batch)
            say(f"tokenising {source}: {read:,} documents", meter.fraction)
            yield batch
            batch, characters = [], 0


def _encoded(batches: Iterator[list[str]], encoding: Encoding) -> Iterator[EncodedBatch]:
    """The batches in their order, after the first few by other processes. Raises TrainingError
    where one was killed.
    """
    yield from map(encoding.make, itertools.islice(batches, ALONE))
    first = next(batches, None)
    if first is None:
        return
    import loky  # only a large source needs it

    count = loky.cpu_count()
    pool = loky.ProcessPoolExecutor(max_workers=count, initializer=_begin, initargs=(encoding,))
    running: deque[Any] = deque()
    try:
        for batch in itertools.chain([first], batches):
            running.append(pool.submit(_make, batch))
            if len(running) > 2 * count:
                yield running.popleft().result()
        yield from (future.result() for future in running)
    except loky.process_executor.BrokenProcessPool as error:
        hint = (
            "free memory, or set LOKY_MAX_CPU_COUNT to fewer processes, and start again: what "
            "was done is kept"
        )
        raise TrainingError("a process that tokenised the corpus was killed", hint=hint) from error
    finally:
        pool.shutdown(wait=True, kill_workers=True)


_encoding: Encoding


def _begin(encoding: Encoding) -> None:
    """In a new process: the signal to stop is the first process's business, and one thread is its
    share.
    """
    global _encoding
    _encoding = encoding
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)


def _make(texts: list[str]) -> EncodedBatch:
    return _encoding.make(texts)
