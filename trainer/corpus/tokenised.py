"""The documents of all sources as tokens end to end in one file, which a build that is started
again continues.

Documents are handled in batches; a batch counts once its line stands in the journal, which is
written last. A large source has its batches made by as many processes as there are cores: excluding
the benchmark's documents costs Python time, which threads would not share.
"""

from __future__ import annotations

import itertools
import os
import signal
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field
from transformers import PreTrainedTokenizerBase

from biobench.errors import TrainingError
from biobench.schema.strict import Count, Strict
from trainer.corpus.cleaning import Columns, Excluded, Fingerprints
from trainer.corpus.shards import encode
from trainer.corpus.sources import ReadMeter, texts
from trainer.disk import writing
from trainer.recipe.corpus import CorpusSource, CorpusSpec

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
    """A batch. content: tokens, lengths and hashes of the documents that stay, as bytes."""

    content: tuple[bytes, ...]
    counts: Counter[str]


class BatchLine(Strict):
    """A line of the journal. sizes: of the three files after the batch, in bytes.

    whole: the source is read to its end.
    """

    source: str
    sizes: tuple[Count, ...] = Field(min_length=3, max_length=3)
    counts: dict[str, Count]
    whole: bool


@dataclass(frozen=True)
class Encoding:
    """How documents become tokens: the id after each, the type of ids on disk, what is excluded."""

    tokenizer: PreTrainedTokenizerBase
    end: int
    dtype: str
    excluded: Excluded
    fingerprints: Fingerprints

    def make(self, texts: Sequence[str]) -> EncodedBatch:
        """The batch of these documents."""
        counts: Counter[str] = Counter()
        allowed = []
        for text in texts:
            reason = self.excluded.why(text)
            if reason is None:
                allowed.append(text)
                continue
            counts.update([reason, *map("task {}".format, self.excluded.tasks_of(text))])
        tokens = bytearray()
        lengths = []
        for ids in encode(allowed, self.tokenizer):
            tokens += np.array([*ids, self.end], dtype=self.dtype).tobytes()
            lengths.append(len(ids) + 1)
        counts.update(documents=len(lengths), tokens=sum(lengths))
        hashes = self.fingerprints.of(allowed).tobytes()
        sizes = np.array(lengths, dtype=np.int64).tobytes()
        return EncodedBatch((bytes(tokens), sizes, hashes), counts)


def tokenise(spec: CorpusSpec, encoding: Encoding, work: Path, say: StageReport) -> Tokenised:
    """All documents of the corpus's sources below the folder `work`. Raises StoreError,
    TrainingError and what reading a source raises.
    """
    log = _BuildLog(work)
    counts: dict[str, Counter[str]] = {}
    for source in spec.sources:
        earlier = [line for line in log.earlier if line.source == source.id]
        counted: Counter[str] = Counter()
        for line in earlier:
            counted.update(line.counts)
        counts[source.id] = counted
        if earlier and earlier[-1].whole:
            continue
        batches = _batches(spec, source, say)
        left = itertools.islice(batches, len(earlier), None)
        for batch in _encoded(left, encoding):
            counted.update(batch.counts)
            log.append(source.id, batch)
        nothing = EncodedBatch((b"", b"", b""), Counter())
        log.append(source.id, nothing, whole=True)
    tokens, lengths_file, hashes_file = log.files
    lengths = np.fromfile(lengths_file, dtype=np.int64)
    hashes: Columns | None = None
    shape = (len(lengths), encoding.fingerprints.columns)
    if all(shape):
        hashes = np.memmap(hashes_file, dtype="<u8", mode="r", shape=shape)
    return Tokenised(tokens, lengths, counts, hashes)


class _BuildLog:
    """The files of a build and its journal; what a kill cut off in the middle is dropped at once.

    files: of tokens, lengths and hashes. earlier: lines of the journal that earlier starts wrote.
    """

    def __init__(self, work: Path) -> None:
        self.work = work
        self.journal = work / "journal.jsonl"
        self.files = [work / f"documents.{kind}" for kind in ("tokens", "lengths", "hashes")]
        self.earlier = self._whole_lines()
        sizes = self.earlier[-1].sizes if self.earlier else (0, 0, 0)
        with writing(work):
            self.journal.write_text("".join(map(_written, self.earlier)), encoding="utf-8")
            for file, size in zip(self.files, sizes, strict=True):
                with file.open("ab") as handle:
                    handle.truncate(size)

    def _whole_lines(self) -> list[BatchLine]:
        """The journal's lines where their batches are in the files; none where it is damaged."""
        try:
            *texts, _ = self.journal.read_text(encoding="utf-8").split("\n")
            lines = [BatchLine.model_validate_json(text) for text in texts]
            on_disk = [file.stat().st_size for file in self.files]
        except (OSError, ValueError):
            return []
        sizes = np.array([line.sizes for line in lines]).reshape(-1, len(on_disk))
        return [] if (sizes > on_disk).any() else lines

    def append(self, source: str, batch: EncodedBatch, *, whole: bool = False) -> None:
        """Write a batch, then its line."""
        with writing(self.work):
            for file, content in zip(self.files, batch.content, strict=True):
                with file.open("ab") as handle:
                    handle.write(content)
            sizes = tuple(file.stat().st_size for file in self.files)
            line = BatchLine(source=source, sizes=sizes, counts=batch.counts, whole=whole)
            with self.journal.open("a", encoding="utf-8") as journal:
                journal.write(_written(line))


def _written(line: BatchLine) -> str:
    return line.model_dump_json() + "\n"


def _batches(spec: CorpusSpec, source: CorpusSource, say: StageReport) -> Iterator[list[str]]:
    """The texts in lists of `DOCUMENTS`, shorter ones where documents are long."""
    meter = ReadMeter()
    documents = texts(source, Path(spec.root), meter)
    batch: list[str] = []
    characters = read = 0
    for text in itertools.chain(documents, [None]):
        if text is not None:
            batch.append(text)
            characters += len(text)
        if batch and (text is None or len(batch) == DOCUMENTS or characters >= CHARACTERS):
            read += len(batch)
            say(f"tokenising {source.id}: {read:,} documents", meter.fraction)
            yield batch
            batch = []
            characters = 0


def _encoded(batches: Iterator[list[str]], encoding: Encoding) -> Iterator[EncodedBatch]:
    """The batches in their order, after the first few by other processes. Raises TrainingError
    where one was killed.
    """
    yield from map(encoding.make, itertools.islice(batches, ALONE))
    next_batch = next(batches, None)
    if next_batch is None:
        return
    import loky  # only a large source needs it

    count = loky.cpu_count()
    pool = loky.ProcessPoolExecutor(max_workers=count, initializer=_begin, initargs=(encoding,))
    running: deque[Any] = deque()
    try:
        for batch in itertools.chain([next_batch], batches):
            running.append(pool.submit(_make, batch))
            if len(running) > 2 * count:
                yield running.popleft().result()
        yield from (future.result() for future in running)
    except loky.process_executor.BrokenProcessPool as error:
        raise TrainingError(
            "a process that tokenised the corpus was killed",
            hint="free memory, or set LOKY_MAX_CPU_COUNT to fewer processes, and start again: what "
            "was done is kept",
        ) from error
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
