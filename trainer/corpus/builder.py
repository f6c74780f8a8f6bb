"""From text to shards: tokenise once, end each document, shuffle documents, join, cut into windows.

What is tokenised is kept until the corpus is whole, so an interrupted build continues where it
stopped. The result is a pure function of the texts, the tokenizer and the spec; its manifest
records all of it.
"""

from __future__ import annotations

import logging
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from filelock import FileLock
from numpy.typing import NDArray
from transformers import PreTrainedTokenizerBase

from biobench.core.files import canonical, sha256_of, temporary_folder
from biobench.errors import DataFormatError
from trainer.corpus.cleaning import Excluded, Fingerprints, check_packages, duplicates
from trainer.corpus.shards import DETAILS, MANIFEST, Corpus, tokenizer_hash, write_shards
from trainer.corpus.sources import identity, pinned, texts
from trainer.corpus.tokenised import REASONS, Encoding, StageReport, Tokenised, tokenise
from trainer.disk import make_folder, write_json, writing
from trainer.model.tokens import end_token
from trainer.order import shuffled
from trainer.recipe.corpus import Cleaning, CorpusSource, CorpusSpec

CACHE = "corpus.cache in the recipe (or --cache)"
FORMAT = 1
ENCODING = 2
"""How text becomes ids. It keys the cache but is not in the manifest: a corpus whose tokens are as
before keeps its hash. 1 took special tokens that are spelled out in the text for control tokens.
"""
Numbers = NDArray[np.int64]
"""(documents,) numbers of documents, counted through all sources."""
Texts = Sequence[str] | Mapping[str, Sequence[str]]
"""Documents that must stay out, all together or by the benchmark task that they come from."""


def excluded_documents(spec: CorpusSpec, documents: Texts) -> Excluded:
    """The documents that must stay out: those of the recipe's files and these."""
    listed = list(documents) if not isinstance(documents, Mapping) else []
    for name in spec.exclude.files:
        listed += texts(CorpusSource(id="excluded", path=name), Path(spec.root))
    tasks = documents if isinstance(documents, Mapping) else {}
    return Excluded(listed, n=spec.exclude.ngram, tasks=tasks)


def build(
    spec: CorpusSpec,
    tokenizer: PreTrainedTokenizerBase,
    cache: Path,
    *,
    exclude: Texts = (),
    verify: bool = True,
    report: StageReport = lambda what, done: None,
) -> Corpus:
    """The corpus of `spec` below `cache`: built, or opened and verified when it is there already.

    exclude: documents that must not be trained on, in addition to the recipe's list.
    verify: compare the shards with their hashes. Raises DataUnavailableError, DataFormatError and
    StoreError.
    """
    check_packages(spec.clean)
    excluded = excluded_documents(spec, exclude)
    make_folder(cache, place=CACHE)
    folder = corpus_folder(spec, tokenizer, cache, excluded)
    with FileLock(f"{folder}.lock"):
        if not (folder / MANIFEST).is_file():
            _build(pinned(spec), tokenizer, folder, excluded, report)
        corpus = Corpus(folder)
        if verify:
            report("checking shards", float("nan"))
            corpus.verify()
    if spec.held_out and not len(corpus.held_out):
        documents = corpus.manifest["held_out"]["documents"]
        logging.getLogger("trainer").warning(
            "corpus: what is held out (documents: %d) is less than one window of %d tokens, so "
            "there is no validation loss; raise corpus.held_out",
            documents,
            spec.sequence_length,
        )
    return corpus


def is_built(
    spec: CorpusSpec, tokenizer: PreTrainedTokenizerBase, cache: Path, exclude: Texts = ()
) -> bool:
    """Whether `build` would find the corpus below `cache` and only open it."""
    if not cache.is_dir():
        return False
    folder = corpus_folder(spec, tokenizer, cache, excluded_documents(spec, exclude))
    return (folder / MANIFEST).is_file()


def corpus_folder(
    spec: CorpusSpec, tokenizer: PreTrainedTokenizerBase, cache: Path, excluded: Excluded
) -> Path:
    """Where the corpus lies below `cache` once it is built: a name by its content, and by that of
    its sources.
    """
    spec, root = pinned(spec), Path(spec.root)
    described = spec.model_dump(mode="json", exclude={"root", "cache", "exclude"})
    for source in described["sources"]:
        del source["path"]  # what lies there counts, by its identity
    sources = [identity(s, root, cache / "sources.json") for s in spec.sources]
    made_with = [tokenizer_hash(tokenizer), excluded.hash, excluded.n]
    identifying = [[FORMAT, ENCODING], described, sources, *made_with]
    return cache / sha256_of(canonical(identifying).encode())[:20]


def _build(
    spec: CorpusSpec,
    tokenizer: PreTrainedTokenizerBase,
    folder: Path,
    excluded: Excluded,
    say: StageReport,
) -> None:
    work = make_folder(folder.with_name(f"{folder.name}.parts"))
    dtype = "uint16" if max(tokenizer.get_vocab().values()) < 1 << 16 else "uint32"
    fingerprints = Fingerprints(spec.clean or Cleaning())
    encoding = Encoding(tokenizer, end_token(tokenizer), dtype, excluded, fingerprints)
    tokenised = tokenise(spec, encoding, work, say)
    by_task = {}
    for source, count in tokenised.counts.items():
        by_task[source] = {task: count[f"task {task}"] for task in excluded.tasks}
    with temporary_folder(folder, CACHE) as building:
        write_json(building / MANIFEST, _assemble(spec, encoding, tokenised, building, say))
        write_json(building / DETAILS, {"removed_by_task": by_task})
        shutil.rmtree(folder, ignore_errors=True)
    shutil.rmtree(work)


class _Staying(NamedTuple):
    """The documents of a source that repeat no other. cleaned: how many duplicates of a sort go."""

    numbers: Numbers
    cleaned: dict[str, int]


def _assemble(
    spec: CorpusSpec, encoding: Encoding, documents: Tokenised, folder: Path, say: StageReport
) -> dict[str, Any]:
    """Hold out, repeat, shuffle and join the documents: the manifest."""
    stays = _without_duplicates(spec, documents)
    repeats = _repeats(spec, [int(documents.lengths[stay.numbers].sum()) for stay in stays])
    portions = map(partial(_portion, spec, documents), spec.sources, stays, repeats)
    held_outs, trains, rows = zip(*portions, strict=True)
    drawn_tokens = sum(row["drawn_tokens"] for row in rows)
    for row in rows:
        row["share"] = round(row["drawn_tokens"] / drawn_tokens, 6)
    held_out = np.concatenate(held_outs)
    train = np.concatenate(trains)
    del trains  # the numbers of a large corpus fill much of the memory
    train = train[shuffled(len(train), "documents", spec.seed)]
    join = partial(_join, documents, spec, encoding.dtype, folder=folder, say=say)
    splits = {"train": join(train, "train"), "held_out": join(held_out, "held-out")}
    if not splits["train"]["windows"]:
        raise DataFormatError(
            f"the corpus holds less than one window of {spec.sequence_length} tokens",
            hint="add text, or make corpus.sequence_length smaller",
        )
    excluded = encoding.excluded
    return {
        "format": FORMAT,
        "sequence_length": spec.sequence_length,
        "dtype": encoding.dtype,
        "seed": spec.seed,
        "tokenizer": tokenizer_hash(encoding.tokenizer),
        "vocabulary": len(encoding.tokenizer),
        "end_token": encoding.end,
        "start_token": spec.start_token,
        "sources": list(rows),
        "exclusion": {"documents": excluded.count, "ngram": excluded.n, "hash": excluded.hash},
        **splits,
    }


def _without_duplicates(spec: CorpusSpec, documents: Tokenised) -> list[_Staying]:
    """What stays of each source."""
    verdicts = np.zeros(len(documents.lengths), dtype=np.int8)
    sorts: dict[str, int] = {}
    if documents.hashes is not None and spec.clean is not None:
        sorts = {"exact_duplicates": 1, "near_duplicates": 2}
        verdicts = duplicates(documents.hashes, exact=spec.clean.exact_duplicates)
    stays = []
    start = 0
    for source in spec.sources:
        end = start + documents.counts[source.id]["documents"]
        of_source = verdicts[start:end]
        counts = np.bincount(of_source, minlength=3).tolist()
        cleaned = {name: counts[sort] for name, sort in sorts.items()}
        numbers = start + np.flatnonzero(of_source == 0)
        stays.append(_Staying(numbers, cleaned))
        start = end
    return stays


def _repeats(spec: CorpusSpec, tokens: Sequence[int]) -> list[float]:
    """How often the documents of each source are drawn. tokens: of one reading of each source.

    With shares, the source that is most plentiful for its share is read once; all others are
    repeated.
    """
    shares = np.array([source.share for source in spec.sources], dtype=float)
    if np.isnan(shares).any():  # every source has a share, or none
        return [source.repeat or 1.0 for source in spec.sources]
    total = (np.array(tokens) / shares).max()
    repeats: list[float] = (total * shares / np.maximum(tokens, 1)).tolist()
    return repeats


def _portion(
    spec: CorpusSpec, documents: Tokenised, source: CorpusSource, staying: _Staying, repeats: float
) -> tuple[Numbers, Numbers, dict[str, Any]]:
    """What a source gives to the corpus: numbers of the documents that are held out, of the others
    as often as they are drawn (`repeats` times), and its line of the manifest.

    Raises DataFormatError where there are none.
    """
    counts = documents.counts[source.id]
    numbers = staying.numbers
    excluded = {reason: counts[reason] for reason in REASONS}
    if len(numbers) == 0:
        removed = sum(excluded.values()) + sum(staying.cleaned.values())
        raise DataFormatError(
            f"corpus source '{source.id}' has no documents left ({removed} were excluded)",
            hint="check its path, format and field, the exclusion list, and corpus.clean",
        )
    order = numbers[shuffled(len(numbers), "held out", spec.seed, source.id)]
    held_out = round(len(order) * spec.held_out)
    if spec.held_out:
        held_out = max(held_out, 1)
    held_out = min(held_out, len(order) - 1)
    stay = order[held_out:]
    times, fraction = divmod(repeats, 1)
    drawn = np.sort(np.tile(stay, int(times)))
    drawn = np.concatenate([drawn, stay[: round(fraction * len(stay))]])
    row = {
        "id": source.id,
        "documents": counts["documents"],
        "tokens": counts["tokens"],
        "drawn_documents": len(drawn),
        "drawn_tokens": int(documents.lengths[drawn].sum()),
        "share": 0.0,  # known once all sources are drawn
        "excluded": excluded,
    }
    if spec.clean is not None:
        row["cleaned"] = staying.cleaned
    if source.hub is not None and source.revision:
        row["revision"] = source.revision
    return np.sort(order[:held_out]), drawn, row


def _join(
    documents: Tokenised,
    spec: CorpusSpec,
    dtype: str,
    numbers: Numbers,
    name: str,
    *,
    folder: Path,
    say: StageReport,
) -> dict[str, Any]:
    """Write documents end to end into shards of whole windows; the tokens after the last window are
    dropped.
    """
    width = np.dtype(dtype).itemsize
    window = spec.sequence_length
    starts = np.cumsum(documents.lengths) - documents.lengths
    tokens = int(documents.lengths[numbers].sum())
    windows = tokens // window

    def pieces(file: int) -> Iterator[bytes]:
        for done, number in enumerate(numbers):
            if done % 10_000 == 0:
                fraction = done / len(numbers) if done else float("nan")
                say(f"writing {name} shards", fraction)
            size = int(documents.lengths[number])
            start = int(starts[number])
            yield os.pread(file, size * width, start * width)

    with writing(folder), documents.file.open("rb") as file:
        shards = write_shards(
            folder,
            name,
            pieces(file.fileno()),
            size=windows * window * width,
            shard=max(window, spec.shard_tokens // window * window) * width,
        )
    return {
        "documents": len(numbers),
        "windows": windows,
        "tokens": windows * window,
        "dropped_tokens": tokens % window,
        "shards": [shard | {"tokens": shard["tokens"] // width} for shard in shards],
    }
