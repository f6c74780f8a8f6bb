"""From text to shards: tokenise once, end each document, shuffle documents, join, cut into windows.

Tokenised parts are kept until the corpus is whole, so an interrupted build goes on where it stopped. The
result is a pure function of the texts, the tokenizer and the spec; its manifest records all of it.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import itertools
import math
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from filelock import FileLock
from numpy.typing import NDArray
from transformers import PreTrainedTokenizerBase

from biobench.core.files import canonical, choose_another
from biobench.errors import DataFormatError, StoreError
from trainer.corpus.cleaning import Cleaner, Excluded, check_packages, duplicates
from trainer.corpus.parts import Encoding, StageReport, Tokenised, tokenise
from trainer.corpus.shards import DETAILS, MANIFEST, Corpus, ShardWriter, tokenizer_hash
from trainer.corpus.sources import Digests, ReadMeter, files_of, identity, pinned, texts
from trainer.disk import make_folder, write_json, writing
from trainer.model.tokens import end_token
from trainer.order import shuffled
from trainer.recipe.corpus import CorpusSource, CorpusSpec

FORMAT = 1
ENCODING = 2
"""How text becomes ids. It keys the cache but is not in the manifest: a corpus whose tokens are as before keeps
its hash. 1 took special tokens that are spelled out in the text for control tokens."""
Numbers = NDArray[np.int64]
"""(documents,) numbers of documents, counted through all sources."""
_AT_ONCE = 1 << 14
"""Documents between two reports while shards are written."""
_PIECE = 1 << 22
"""Most bytes of a document that are held at once."""


def documents(source: CorpusSource, root: Path, meter: ReadMeter | None = None) -> Iterator[str]:
    """`texts` of a source, each proved to be text. Raises DataFormatError for half of a surrogate pair."""
    for number, text in enumerate(texts(source, root, meter), 1):
        try:
            text.encode()
        except UnicodeEncodeError as error:
            files = files_of(source, root) if source.path is not None else []
            raise DataFormatError(
                f"document {number} of corpus source '{source.id}' holds half of a character "
                f"(U+{ord(text[error.start]):04X})",
                hint="write the text again as UTF-8, without lone surrogates such as \\ud800",
                file=files[0] if len(files) == 1 else None,
            ) from None
        yield text


Texts = Sequence[str] | Mapping[str, Sequence[str]]
"""Documents that must stay out, all together or by the benchmark task that they come from."""


def excluded_documents(spec: CorpusSpec, more: Texts) -> Excluded:
    """The documents that must stay out: those of the recipe's files and `more`."""
    root = Path(spec.root)
    listed: Iterator[str] = itertools.chain.from_iterable(
        documents(CorpusSource(id="excluded", path=name), root) for name in spec.exclude.files
    )
    if isinstance(more, Mapping):
        return Excluded(listed, n=spec.exclude.ngram, tasks=more)
    return Excluded(itertools.chain(listed, more), n=spec.exclude.ngram)


def build(
    spec: CorpusSpec,
    tokenizer: PreTrainedTokenizerBase,
    cache: Path,
    *,
    exclude: Texts | None = None,
    verify: bool = True,
    report: StageReport | None = None,
) -> Corpus:
    """The corpus of `spec` below `cache`: built, or opened and verified when it is there already.

    exclude: documents that must not be trained on, besides the recipe's own list.
    verify: compare the shards with their hashes. Raises DataUnavailableError, DataFormatError and StoreError.
    """
    say = report or (lambda what, done: None)
    check_packages(spec.clean)
    excluded = excluded_documents(spec, exclude or [])
    make_folder(cache, remedy=choose_another("corpus.cache in the recipe (or --cache)"))
    folder = corpus_folder(spec, tokenizer, cache, excluded)
    with FileLock(f"{folder}.lock"):
        spec = spec if (folder / MANIFEST).is_file() else pinned(spec)
        if not (folder / MANIFEST).is_file():
            _build(spec, tokenizer, folder, excluded, say)
        corpus = Corpus(folder)
        if verify:
            say("checking shards", float("nan"))
            corpus.verify()
    return corpus


def is_built(spec: CorpusSpec, tokenizer: PreTrainedTokenizerBase, cache: Path, exclude: Texts = ()) -> bool:
    """Whether `build` would find the corpus below `cache` and only open it."""
    if not cache.is_dir():
        return False
    return (corpus_folder(spec, tokenizer, cache, excluded_documents(spec, exclude)) / MANIFEST).is_file()


def corpus_folder(spec: CorpusSpec, tokenizer: PreTrainedTokenizerBase, cache: Path, excluded: Excluded) -> Path:
    """Where the corpus lies below `cache` once it is built: a name by its content, and by that of its sources."""
    spec, root, digests = pinned(spec), Path(spec.root), Digests(cache / "sources.json")
    described = spec.model_dump(mode="json", exclude={"root", "cache", "exclude"})
    described["sources"] = [{k: v for k, v in s.items() if k != "path"} for s in described["sources"]]
    sources = [identity(s, root, digests) for s in spec.sources]
    parts = [[FORMAT, ENCODING], described, sources, tokenizer_hash(tokenizer), excluded.hash, excluded.n]
    return cache / hashlib.sha256(canonical(parts).encode()).hexdigest()[:20]


def _build(
    spec: CorpusSpec, tokenizer: PreTrainedTokenizerBase, folder: Path, excluded: Excluded, say: StageReport
) -> None:
    work = make_folder(folder.with_name(f"{folder.name}.parts"))
    largest = max(tokenizer.get_vocab().values())
    dtype = "uint16" if largest < 1 << 16 else "uint32"
    start = [tokenizer.cls_token_id] if spec.start_token == "cls" and tokenizer.cls_token_id is not None else []
    end = end_token(tokenizer)
    assert end is not None
    cleaner = None if spec.clean is None else Cleaner(spec.clean)
    encoding = Encoding(tokenizer, tuple(start), end, dtype, excluded, cleaner)
    root = Path(spec.root)
    meters = [ReadMeter() for _ in spec.sources]
    sources = [
        tokenise(s, documents(s, root, meter), meter, encoding, work, say)
        for s, meter in zip(spec.sources, meters, strict=True)
    ]
    building = make_folder(folder.with_name(f"{folder.name}.tmp"))
    manifest, held_out = _assemble(spec, tokenizer, sources, building, dtype, excluded, say)
    by_task = {s.spec.id: {task: s.tasks.get(task, 0) for task in excluded.tasks} for s in sources}
    details = {"held_out_tokens": list(held_out.items()), "removed_by_task": by_task}
    write_json(building / DETAILS, details)
    write_json(building / MANIFEST, manifest)
    with writing(folder):
        if folder.exists():
            shutil.rmtree(folder)
        building.rename(folder)
    shutil.rmtree(work)


def _assemble(
    spec: CorpusSpec,
    tokenizer: PreTrainedTokenizerBase,
    sources: list[Tokenised],
    folder: Path,
    dtype: str,
    excluded: Excluded,
    say: StageReport,
) -> tuple[dict[str, Any], dict[str, int]]:
    """Hold out, repeat, shuffle and join the documents: (the manifest, held-out tokens of each source)."""
    train: list[Numbers] = []
    held_out_tokens: dict[str, int] = {}
    validation: list[Numbers] = []
    drawn_documents: list[int] = []
    drawn_tokens: list[int] = []
    firsts = _firsts(sources)
    staying = _staying(spec, sources)
    for number, (source, repeats) in enumerate(zip(sources, _repeats(spec, sources, staying), strict=True)):
        count = len(staying[number])
        if count == 0:
            out_of_it = sum(source.excluded.values()) + sum(source.cleaned.values())
            raise DataFormatError(
                f"corpus source '{source.spec.id}' has no documents left ({out_of_it} were excluded)",
                hint="check its path, format and field, the exclusion list, and corpus.clean",
            )
        order = staying[number][shuffled(count, "held out", spec.seed, source.spec.id)]
        out = min(round(count * spec.held_out) or (1 if spec.held_out else 0), count - 1)
        validation.append(np.sort(order[:out]) + firsts[number])
        held_out_tokens[source.spec.id] = _tokens_of(source, order[:out])
        stay = order[out:]
        whole, part = divmod(repeats, 1)
        some = stay[: round(part * len(stay))]
        drawn_documents.append(int(whole) * len(stay) + len(some))
        drawn_tokens.append(int(whole) * _tokens_of(source, stay) + _tokens_of(source, some))
        train.append(np.sort(np.tile(stay, int(whole))) + firsts[number])
        train.append(some + firsts[number])
        del order, stay, some
    drawn = np.concatenate(train)
    train.clear()
    arranged = drawn[shuffled(len(drawn), "documents", spec.seed)]
    del drawn
    splits = {
        "train": _join(arranged, sources, folder, "train", spec, dtype, say),
        "held_out": _join(np.concatenate(validation), sources, folder, "held-out", spec, dtype, say),
    }
    if not splits["train"]["windows"]:
        raise DataFormatError(
            f"the corpus holds less than one window of {spec.sequence_length} tokens",
            hint="add text, or make corpus.sequence_length smaller",
        )
    manifest = {
        "format": FORMAT,
        "sequence_length": spec.sequence_length,
        "dtype": dtype,
        "seed": spec.seed,
        "tokenizer": tokenizer_hash(tokenizer),
        "vocabulary": len(tokenizer),
        "end_token": end_token(tokenizer),
        "start_token": spec.start_token,
        "sources": [
            {
                "id": s.spec.id,
                "documents": s.documents,
                "tokens": s.tokens,
                "drawn_documents": drawn_documents[n],
                "drawn_tokens": drawn_tokens[n],
                "share": round(drawn_tokens[n] / sum(drawn_tokens), 6),
                "excluded": s.excluded,
                **({"cleaned": s.cleaned} if spec.clean is not None else {}),
                **({"revision": s.spec.revision} if s.spec.hub is not None and s.spec.revision else {}),
            }
            for n, s in enumerate(sources)
        ],
        "exclusion": {"documents": excluded.count, "ngram": excluded.n, "hash": excluded.hash},
        **splits,
    }
    return manifest, held_out_tokens


def _firsts(sources: list[Tokenised]) -> list[int]:
    """The number of each source's first document when all are counted through."""
    return [0, *itertools.accumulate(s.documents for s in sources)]


def _tokens_of(source: Tokenised, documents: Numbers) -> int:
    return sum(
        int((source.ends[some + 1] - source.ends[some]).sum())
        for some in np.array_split(documents, 1 + len(documents) // _AT_ONCE)
    )


def _staying(spec: CorpusSpec, sources: list[Tokenised]) -> list[Numbers]:
    """The numbers of each source's documents that are no duplicates; counts those that are among its `cleaned`."""
    hashes = [s.hashes for s in sources if s.hashes is not None]
    if spec.clean is None or not hashes:
        return [np.arange(s.documents, dtype=np.int64) for s in sources]
    verdicts = iter(duplicates(hashes, exact=spec.clean.exact_duplicates))
    staying = []
    for source in sources:
        verdict = next(verdicts) if source.hashes is not None else np.zeros(0, dtype=np.int8)
        source.cleaned["exact_duplicates"] = int((verdict == 1).sum())
        source.cleaned["near_duplicates"] = int((verdict == 2).sum())
        staying.append(np.flatnonzero(verdict == 0).astype(np.int64))
    return staying


def _repeats(spec: CorpusSpec, sources: list[Tokenised], staying: list[Numbers]) -> list[float]:
    """How often each source is read: as given, or so that the shares come out with nothing left out.

    The source that is most plentiful for its share is read once; all others are repeated, `most_repeats` times at most.
    """
    most = spec.most_repeats or math.inf
    if sources[0].spec.share is None:
        return [min(s.spec.repeat or 1.0, most) for s in sources]
    tokens = [
        s.tokens if len(numbers) == s.documents else _tokens_of(s, numbers)
        for s, numbers in zip(sources, staying, strict=True)
    ]
    total = max(t / (s.spec.share or 1.0) for s, t in zip(sources, tokens, strict=True))
    repeats = [total * (s.spec.share or 0.0) / max(t, 1) for s, t in zip(sources, tokens, strict=True)]
    return [min(r, most) for r in repeats]


def _join(
    documents: Numbers,
    sources: list[Tokenised],
    folder: Path,
    name: str,
    spec: CorpusSpec,
    dtype: str,
    say: StageReport,
) -> dict[str, Any]:
    """Write documents end to end into shards of whole windows; the tokens after the last window are dropped."""
    firsts = np.array(_firsts(sources))
    width = np.dtype(dtype).itemsize
    size = max(spec.sequence_length, spec.shard_tokens // spec.sequence_length * spec.sequence_length)
    writer = ShardWriter(folder, name, window=spec.sequence_length * width, shard=size * width)
    with writing(folder), contextlib.ExitStack() as opened:
        opened.enter_context(writer)
        files = [opened.enter_context(s.file.open("rb", buffering=0)) for s in sources]
        for done in range(0, len(documents), _AT_ONCE):
            some = documents[done : done + _AT_ONCE]
            where = np.searchsorted(firsts, some, side="right") - 1
            for source, number in zip(where.tolist(), (some - firsts[where]).tolist(), strict=True):
                start, end = sources[source].ends[number : number + 2].tolist()
                _copy(files[source], start * width, end * width, writer)
            say(f"writing {name} shards", done / len(documents))
    return {
        "documents": len(documents),
        "windows": sum(s["tokens"] for s in writer.shards) // width // spec.sequence_length,
        "tokens": sum(s["tokens"] for s in writer.shards) // width,
        "dropped_tokens": len(writer.rest) // width,
        "shards": [shard | {"tokens": shard["tokens"] // width} for shard in writer.shards],
    }


def _copy(file: io.FileIO, start: int, end: int, writer: ShardWriter) -> None:
    """Hand the bytes from `start` to `end` of a file to the writer, a piece at a time."""
    while start < end:
        piece = os.pread(file.fileno(), min(end - start, _PIECE), start)
        if not piece:
            raise StoreError("a file of the corpus in the making is cut short", hint="start again", file=file.name)
        writer.add(piece)
        start += len(piece)
