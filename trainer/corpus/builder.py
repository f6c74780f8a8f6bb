"""From text to shards: tokenise once, end each document, shuffle documents, join, cut into windows.

What is tokenised is kept until the corpus is whole, so an interrupted build continues where it
stopped. The result is a pure function of the texts, the tokenizer and the spec; its manifest
records all of it.
"""

from __future__ import annotations

import hashlib
import itertools
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from filelock import FileLock
from numpy.typing import NDArray
from transformers import PreTrainedTokenizerBase

from biobench.core.files import canonical
from biobench.errors import DataFormatError
from trainer.corpus.cleaning import Excluded, Fingerprints, check_packages, duplicates
from trainer.corpus.shards import DETAILS, MANIFEST, Corpus, tokenizer_hash, write_shards
from trainer.corpus.sources import ReadMeter, identity, pinned, texts
from trainer.corpus.tokenised import REASONS, Encoding, StageReport, Tokenised, tokenise
from trainer.disk import make_folder, write_json, writing
from trainer.model.tokens import end_token
from trainer.order import shuffled
from trainer.recipe.corpus import CorpusSource, CorpusSpec

FORMAT = 1
ENCODING = 2
"""How text becomes ids. It keys the cache but is not in the manifest: a corpus whose tokens are as
before keeps its hash. 1 took special tokens that are spelled out in the text for control tokens.
"""
Numbers = NDArray[np.int64]
"""(documents,) numbers of documents, counted through all sources."""
Texts = Sequence[str] | Mapping[str, Sequence[str]]
"""Documents that must stay out, all together or by the benchmark task that they come from."""


def excluded_documents(spec: CorpusSpec, more: Texts) -> Excluded:
    """The documents that must stay out: those of the recipe's files and `more`."""
    root = Path(spec.root)
    listed: Iterator[str] = itertools.chain.from_iterable(
        texts(CorpusSource(id="excluded", path=name), root) for name in spec.exclude.files
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

    exclude: documents that must not be trained on, in addition to the recipe's list.
    verify: compare the shards with their hashes. Raises DataUnavailableError, DataFormatError and
    StoreError.
    """
    say = report or (lambda what, done: None)
    check_packages(spec.clean)
    excluded = excluded_documents(spec, exclude or [])
    make_folder(cache, place="corpus.cache in the recipe (or --cache)")
    folder = corpus_folder(spec, tokenizer, cache, excluded)
    with FileLock(f"{folder}.lock"):
        if not (folder / MANIFEST).is_file():
            _build(pinned(spec), tokenizer, folder, excluded, say)
        corpus = Corpus(folder)
        if verify:
            say("checking shards", float("nan"))
            corpus.verify()
    return corpus


def is_built(
    spec: CorpusSpec, tokenizer: PreTrainedTokenizerBase, cache: Path, exclude: Texts = ()
) -> bool:
    """Whether `build` would find the corpus below `cache` and only open it."""
    if not cache.is_dir():
        return False
    return (
        corpus_folder(spec, tokenizer, cache, excluded_documents(spec, exclude)) / MANIFEST
    ).is_file()


def corpus_folder(
    spec: CorpusSpec, tokenizer: PreTrainedTokenizerBase, cache: Path, excluded: Excluded
) -> Path:
    """Where the corpus lies below `cache` once it is built: a name by its content, and by that of
    its sources.
    """
    spec, root = pinned(spec), Path(spec.root)
    described = spec.model_dump(mode="json", exclude={"root", "cache", "exclude"})
    described["sources"] = [
        {k: v for k, v in s.items() if k != "path"} for s in described["sources"]
    ]
    sources = [identity(s, root, cache / "sources.json") for s in spec.sources]
    parts = [
        [FORMAT, ENCODING],
        described,
        sources,
        tokenizer_hash(tokenizer),
        excluded.hash,
        excluded.n,
    ]
    return cache / hashlib.sha256(canonical(parts).encode()).hexdigest()[:20]


def _build(
    spec: CorpusSpec,
    tokenizer: PreTrainedTokenizerBase,
    folder: Path,
    excluded: Excluded,
    say: StageReport,
) -> None:
    work = make_folder(folder.with_name(f"{folder.name}.parts"))
    dtype = "uint16" if max(tokenizer.get_vocab().values()) < 1 << 16 else "uint32"
    end = end_token(tokenizer)
    assert end is not None
    fingerprints = None if spec.clean is None else Fingerprints(spec.clean)
    encoding = Encoding(tokenizer, end, dtype, excluded, fingerprints)
    meters = {source.id: ReadMeter() for source in spec.sources}
    read = ((s.id, texts(s, Path(spec.root), meters[s.id]), meters[s.id]) for s in spec.sources)
    tokenised = tokenise(read, encoding, work, say)
    building = make_folder(folder.with_name(f"{folder.name}.tmp"))
    manifest = _assemble(spec, encoding, tokenised, building, say)
    counts = tokenised.counts
    by_task = {s: {task: counts[s][f"task {task}"] for task in excluded.tasks} for s in counts}
    write_json(building / DETAILS, {"removed_by_task": by_task})
    write_json(building / MANIFEST, manifest)
    with writing(folder):
        if folder.exists():
            shutil.rmtree(folder)
        building.rename(folder)
    shutil.rmtree(work)


def _assemble(
    spec: CorpusSpec, encoding: Encoding, documents: Tokenised, folder: Path, say: StageReport
) -> dict[str, Any]:
    """Hold out, repeat, shuffle and join the documents: the manifest."""
    lengths, excluded = documents.lengths, encoding.excluded
    ends = np.cumsum([documents.counts[s.id]["documents"] for s in spec.sources])
    repeated = np.zeros(len(lengths), dtype=np.int8)
    if spec.clean is not None and documents.hashes is not None:
        repeated = duplicates(documents.hashes, exact=spec.clean.exact_duplicates)
    verdicts = np.split(repeated, ends[:-1])
    staying = [
        first + np.flatnonzero(part == 0) for first, part in zip([0, *ends], verdicts, strict=False)
    ]
    tokens = [int(lengths[numbers].sum()) for numbers in staying]
    # with shares, the source that is most plentiful for its share is read once; all others are
    # repeated
    total = max(size / (s.share or 1.0) for s, size in zip(spec.sources, tokens, strict=True))
    rows: list[dict[str, Any]] = []
    train: list[Numbers] = []
    validation: list[Numbers] = []
    for source, numbers, size, verdict in zip(spec.sources, staying, tokens, verdicts, strict=True):
        counts = documents.counts[source.id]
        repeats = (
            source.repeat or 1.0 if source.share is None else total * source.share / max(size, 1)
        )
        kinds = enumerate(
            ("exact_duplicates", "near_duplicates") if documents.hashes is not None else (), 1
        )
        cleaned = {name: int((verdict == kind).sum()) for kind, name in kinds}
        removed = {why: counts[why] for why in REASONS}
        if len(numbers) == 0:
            raise DataFormatError(
                f"corpus source '{source.id}' has no documents left "
                f"({sum(removed.values()) + sum(cleaned.values())} were excluded)",
                hint="check its path, format and field, the exclusion list, and corpus.clean",
            )
        order = numbers[shuffled(len(numbers), "held out", spec.seed, source.id)]
        out = min(round(len(order) * spec.held_out) or (1 if spec.held_out else 0), len(order) - 1)
        validation.append(np.sort(order[:out]))
        stay = order[out:]
        whole, part = divmod(repeats, 1)
        drawn = [np.sort(np.tile(stay, int(whole))), stay[: round(part * len(stay))]]
        train += drawn
        rows.append(
            {
                "id": source.id,
                "documents": counts["documents"],
                "tokens": counts["tokens"],
                "drawn_documents": sum(map(len, drawn)),
                "drawn_tokens": sum(int(lengths[some].sum()) for some in drawn),
                "share": 0.0,
                "excluded": removed,
                **({"cleaned": cleaned} if spec.clean is not None else {}),
                **(
                    {"revision": source.revision}
                    if source.hub is not None and source.revision
                    else {}
                ),
            }
        )
    for row in rows:
        row["share"] = round(row["drawn_tokens"] / sum(r["drawn_tokens"] for r in rows), 6)
    together = np.concatenate(train)
    arranged = together[shuffled(len(together), "documents", spec.seed)]
    train.clear()
    del together
    splits = {
        "train": _join(arranged, documents, folder, "train", spec, encoding.dtype, say),
        "held_out": _join(
            np.concatenate(validation), documents, folder, "held-out", spec, encoding.dtype, say
        ),
    }
    if not splits["train"]["windows"]:
        hint = "add text, or make corpus.sequence_length smaller"
        raise DataFormatError(
            f"the corpus holds less than one window of {spec.sequence_length} tokens", hint=hint
        )
    return {
        "format": FORMAT,
        "sequence_length": spec.sequence_length,
        "dtype": encoding.dtype,
        "seed": spec.seed,
        "tokenizer": tokenizer_hash(encoding.tokenizer),
        "vocabulary": len(encoding.tokenizer),
        "end_token": encoding.end,
        "start_token": spec.start_token,
        "sources": rows,
        "exclusion": {"documents": excluded.count, "ngram": excluded.n, "hash": excluded.hash},
        **splits,
    }


def _join(
    numbers: Numbers,
    documents: Tokenised,
    folder: Path,
    name: str,
    spec: CorpusSpec,
    dtype: str,
    say: StageReport,
) -> dict[str, Any]:
    """Write documents end to end into shards of whole windows; the tokens after the last window are
    dropped.
    """
    width, window = np.dtype(dtype).itemsize, spec.sequence_length
    starts = np.cumsum(documents.lengths) - documents.lengths
    tokens = int(documents.lengths[numbers].sum())

    def pieces(file: int) -> Iterator[bytes]:
        for done, number in enumerate(numbers):
            if done % 10_000 == 0:
                say(f"writing {name} shards", done / len(numbers))
            yield os.pread(
                file, int(documents.lengths[number]) * width, int(starts[number]) * width
            )

    with writing(folder), documents.file.open("rb") as file:
        shards = write_shards(
            folder,
            name,
            pieces(file.fileno()),
            size=tokens // window * window * width,
            shard=max(window, spec.shard_tokens // window * window) * width,
        )
    return {
        "documents": len(numbers),
        "windows": tokens // window,
        "tokens": tokens // window * window,
        "dropped_tokens": tokens % window,
        "shards": [shard | {"tokens": shard["tokens"] // width} for shard in shards],
    }
