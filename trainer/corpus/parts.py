"""The documents of a source as tokens, in parts that are whole or not there.

A large source has its parts made by as many processes as there are cores: keeping the benchmark's documents out
costs Python time, which threads would not share. Parts of an interrupted build are taken over, so a build that is
started again reads its sources and makes what is missing.
"""

from __future__ import annotations

import io
import itertools
import os
import signal
from collections import deque
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
from trainer.corpus.exclusion import Excluded
from trainer.corpus.sources import Meter
from trainer.disk import writing
from trainer.recipe.spec import CorpusSource

DOCUMENTS = 2000
"""In a part."""
ALONE = 4
"""Parts of a source that are made by this process alone; a source with more is worth starting others."""
Report = Callable[[str, float], None]
"""Told what is being done and which fraction of it is done (nan: unknown)."""
Make = Callable[[Path, list[str]], None]


@dataclass
class Tokenised:
    """The tokenised documents of one source: where each lies, how long it is, how many were kept out and why."""

    spec: CorpusSource
    parts: list[NDArray[Any]] = field(default_factory=list)
    lengths: list[NDArray[np.int64]] = field(default_factory=list)
    excluded: dict[str, int] = field(default_factory=lambda: {"same": 0, "overlap": 0})

    @property
    def documents(self) -> int:
        return sum(len(n) for n in self.lengths)

    @property
    def tokens(self) -> int:
        return sum(int(n.sum()) for n in self.lengths)


@dataclass(frozen=True)
class Encoding:
    """How documents become tokens: ids before and after each, their type on disk, what is kept out."""

    tokenizer: PreTrainedTokenizerBase
    start: tuple[int, ...]
    end: int
    dtype: str
    excluded: Excluded

    def make(self, part: Path, texts: list[str]) -> None:
        """Write a part: its tokens (`part`), then what proves that it is whole (`_proof`). Raises StoreError."""
        reasons = [self.excluded.why(text) for text in texts]
        kept = [text for text, reason in zip(texts, reasons, strict=True) if reason is None]
        rows = [np.array([*self.start, *ids, self.end], dtype=self.dtype) for ids in encode(kept, self.tokenizer)]
        about = io.BytesIO()
        lengths = np.array([len(r) for r in rows], dtype=np.int64)
        np.savez(about, lengths=lengths, same=reasons.count("same"), overlap=reasons.count("overlap"))
        with writing(part):
            write_tokens(part, np.concatenate(rows) if rows else np.zeros(0, dtype=self.dtype))
            temporary = part.with_suffix(".tmp")
            temporary.write_bytes(about.getvalue())
            temporary.replace(_proof(part))


def tokenise(
    source: CorpusSource, texts: Iterator[str], meter: Meter, encoding: Encoding, work: Path, say: Report
) -> Tokenised:
    """The source's documents, in parts of `DOCUMENTS` below `work`. Raises StoreError and TrainingError.

    meter: how much of the source has been read, as `texts` goes on.
    """
    parts: list[Path] = []
    read = 0

    def missing() -> Iterator[tuple[Path, list[str]]]:
        nonlocal read
        while batch := list(itertools.islice(texts, DOCUMENTS)):
            part = work / f"{source.id}-{len(parts):06d}.bin"
            parts.append(part)
            read += len(batch)
            say(f"tokenising {source.id}: {read:,} documents", meter.fraction)
            if _about(part, encoding.dtype) is None:
                yield part, batch

    waiting = missing()
    for part, batch in itertools.islice(waiting, ALONE):
        encoding.make(part, batch)
    first = next(waiting, None)
    if first is not None:
        with _others(encoding) as make:
            for part, batch in itertools.chain([first], waiting):
                make(part, batch)
    return _read(source, parts, encoding.dtype)


def _read(source: CorpusSource, parts: list[Path], dtype: str) -> Tokenised:
    result = Tokenised(source)
    for part in parts:
        about = _about(part, dtype)
        if about is None:
            raise StoreError(
                "a part of the corpus that was just written cannot be read",
                hint="check the disk, then start again: the other parts are kept",
                file=part,
            )
        result.lengths.append(about.pop("lengths"))
        for why, count in about.items():
            result.excluded[why] += int(count)
        tokens = int(result.lengths[-1].sum())
        result.parts.append(np.memmap(part, dtype=dtype, mode="r") if tokens else np.zeros(0, dtype=dtype))
    return result


def _proof(part: Path) -> Path:
    return part.with_suffix(".npz")


def _about(part: Path, dtype: str) -> dict[str, NDArray[np.int64]] | None:
    """The lengths of a part's documents and how many were kept out for each reason; None unless it is whole."""
    try:
        with np.load(_proof(part)) as held:
            about = {name: held[name] for name in ("lengths", "same", "overlap")}
        whole = part.stat().st_size == about["lengths"].sum() * np.dtype(dtype).itemsize
    except (OSError, ValueError, KeyError, EOFError, BadZipFile):
        return None
    return about if whole else None


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


def encode(batch: list[str], tokenizer: PreTrainedTokenizerBase) -> list[list[int]]:
    """The ids of each text without special tokens; what is spelled like one ("[SEP]", "</s>") is text as well.

    No id of `control_ids` is among them.
    """
    if not batch:
        return []
    found: list[list[int]] = tokenizer(batch, add_special_tokens=False, split_special_tokens=True, verbose=False)[
        "input_ids"
    ]
    control = control_ids(tokenizer)
    return [ids if control.isdisjoint(ids) else _spelled(ids, control, tokenizer) for ids in found]


def control_ids(tokenizer: PreTrainedTokenizerBase) -> set[int]:
    """Ids that must not come from text: all special tokens but the unknown one, which stands for text."""
    roles = ("pad", "bos", "eos", "cls", "sep", "mask")
    named = {i for i in (getattr(tokenizer, f"{role}_token_id") for role in roles) if i is not None}
    special = {i for i, token in tokenizer.added_tokens_decoder.items() if token.special}
    return named | ({*special, *tokenizer.all_special_ids} - {tokenizer.unk_token_id})


def _spelled(ids: list[int], control: set[int], tokenizer: PreTrainedTokenizerBase) -> list[int]:
    """`ids` with every control id written out character by character.

    A Unigram model holds its control tokens among its pieces and finds them in the text whatever it is told.
    """
    result: list[int] = []
    for one in ids:
        if one not in control:
            result.append(one)
            continue
        letters = [tokenizer.convert_tokens_to_ids(letter) for letter in str(tokenizer.convert_ids_to_tokens(one))]
        result += [i for i in letters if isinstance(i, int) and i not in control]
    return result
