"""From text to shards: tokenise once, end each document, shuffle documents, join, cut into windows.

Tokenised parts are kept until the corpus is whole, so an interrupted build goes on where it stopped. The
result is a pure function of the texts, the tokenizer and the spec; its manifest records all of it.
"""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from filelock import FileLock
from numpy.typing import NDArray
from transformers import PreTrainedTokenizerBase

from biobench.core.files import canonical, file_hash
from biobench.errors import DataFormatError
from trainer.corpus.exclusion import Excluded
from trainer.corpus.parts import Encoding, Report, Tokenised, tokenise, write_tokens
from trainer.corpus.shards import MANIFEST, Corpus
from trainer.corpus.sources import Meter, files_of, identity, texts
from trainer.corpus.tokenization import tokenizer_hash
from trainer.disk import make_folder, write_json, writing
from trainer.model.network import end_token
from trainer.order import shuffled
from trainer.recipe.spec import CorpusSource, CorpusSpec

FORMAT = 1
ENCODING = 2
"""How text becomes ids. It keys the cache but is not in the manifest: a corpus whose tokens are as before keeps
its hash. 1 took special tokens that are spelled out in the text for control tokens."""
Pairs = NDArray[np.int64]
"""(documents, 2): source number, document number in it."""


def documents(source: CorpusSource, root: Path, meter: Meter | None = None) -> Iterator[str]:
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


def excluded_documents(spec: CorpusSpec, more: Sequence[str]) -> Excluded:
    """The documents that must stay out: those of the recipe's files and `more` (texts)."""
    root = Path(spec.root)
    listed: Iterator[str] = itertools.chain.from_iterable(
        documents(CorpusSource(id="excluded", path=name), root) for name in spec.exclude.files
    )
    return Excluded(itertools.chain(listed, more), n=spec.exclude.ngram)


def build(
    spec: CorpusSpec,
    tokenizer: PreTrainedTokenizerBase,
    cache: Path,
    *,
    exclude: list[str] | None = None,
    verify: bool = True,
    report: Report | None = None,
) -> Corpus:
    """The corpus of `spec` below `cache`: built, or opened and verified when it is there already.

    exclude: texts of documents that must not be trained on, besides the recipe's own list.
    verify: compare the shards with their hashes. Raises DataUnavailableError, DataFormatError and StoreError.
    """
    say = report or (lambda what, done: None)
    excluded = excluded_documents(spec, exclude or [])
    make_folder(cache)
    folder = corpus_folder(spec, tokenizer, cache, excluded)
    with FileLock(f"{folder}.lock"):
        if not (folder / MANIFEST).is_file():
            _build(spec, tokenizer, folder, excluded, say)
        corpus = Corpus(folder)
        if verify:
            say("checking shards", float("nan"))
            corpus.verify()
    return corpus


def corpus_folder(spec: CorpusSpec, tokenizer: PreTrainedTokenizerBase, cache: Path, excluded: Excluded) -> Path:
    """Where the corpus lies below `cache` once it is built."""
    return cache / _key(spec, tokenizer, excluded)[:20]


def _key(spec: CorpusSpec, tokenizer: PreTrainedTokenizerBase, excluded: Excluded) -> str:
    import hashlib

    root = Path(spec.root)
    described = spec.model_dump(mode="json", exclude={"root", "cache", "exclude"})
    parts = [
        [FORMAT, ENCODING],
        described,
        [identity(s, root) for s in spec.sources],
        tokenizer_hash(tokenizer),
        excluded.hash,
        excluded.n,
    ]
    return hashlib.sha256(canonical(parts).encode()).hexdigest()


def _build(spec: CorpusSpec, tokenizer: PreTrainedTokenizerBase, folder: Path, excluded: Excluded, say: Report) -> None:
    work = make_folder(folder.with_name(f"{folder.name}.parts"))
    largest = max(tokenizer.get_vocab().values())
    dtype = "uint16" if largest < 1 << 16 else "uint32"
    start = [tokenizer.cls_token_id] if spec.start_token == "cls" and tokenizer.cls_token_id is not None else []
    end = end_token(tokenizer)
    assert end is not None
    encoding = Encoding(tokenizer, tuple(start), end, dtype, excluded)
    root = Path(spec.root)
    meters = [Meter() for _ in spec.sources]
    sources = [
        tokenise(s, documents(s, root, meter), meter, encoding, work, say)
        for s, meter in zip(spec.sources, meters, strict=True)
    ]
    made = make_folder(folder.with_name(f"{folder.name}.tmp"))
    manifest = _assemble(spec, tokenizer, sources, made, dtype, excluded, say)
    write_json(made / MANIFEST, manifest)
    with writing(folder):
        if folder.exists():
            shutil.rmtree(folder)
        made.rename(folder)
    shutil.rmtree(work)


def _assemble(
    spec: CorpusSpec,
    tokenizer: PreTrainedTokenizerBase,
    sources: list[Tokenised],
    folder: Path,
    dtype: str,
    excluded: Excluded,
    say: Report,
) -> dict[str, Any]:
    """Hold out, repeat, shuffle and join the documents; returns the manifest."""
    train: list[Pairs] = []
    held: list[Pairs] = []
    repeats = _repeats(sources)
    for number, source in enumerate(sources):
        count = source.documents
        if count == 0:
            raise DataFormatError(
                f"corpus source '{source.spec.id}' has no documents left "
                f"({sum(source.excluded.values())} were excluded)",
                hint="check its path, format and field, and the exclusion list",
            )
        order = shuffled(count, "held out", spec.seed, source.spec.id)
        out = min(round(count * spec.held_out) or (1 if spec.held_out else 0), count - 1)
        held.append(_pairs(number, np.sort(order[:out])))
        stay = order[out:]
        whole, part = divmod(repeats[number], 1)
        train.append(_pairs(number, np.sort(np.tile(stay, int(whole)))))
        train.append(_pairs(number, stay[: round(part * len(stay))]))
    drawn = np.concatenate(train)
    arranged = drawn[shuffled(len(drawn), "documents", spec.seed)]
    made = {
        "train": _join(arranged, sources, folder, "train", spec, dtype, say),
        "held_out": _join(np.concatenate(held), sources, folder, "held-out", spec, dtype, say),
    }
    if not made["train"]["windows"]:
        raise DataFormatError(
            f"the corpus holds less than one window of {spec.sequence_length} tokens",
            hint="add text, or make corpus.sequence_length smaller",
        )
    chosen = [drawn[drawn[:, 0] == n, 1] for n in range(len(sources))]
    used = [int(np.concatenate(s.lengths)[c].sum()) for s, c in zip(sources, chosen, strict=True)]
    return {
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
                "drawn_documents": len(chosen[n]),
                "drawn_tokens": used[n],
                "share": round(used[n] / sum(used), 6),
                "excluded": s.excluded,
            }
            for n, s in enumerate(sources)
        ],
        "exclusion": {"documents": excluded.count, "ngram": excluded.n, "hash": excluded.hash},
        **made,
    }


def _pairs(source: int, documents: NDArray[np.int64]) -> Pairs:
    return np.stack([np.full(len(documents), source, dtype=np.int64), documents], axis=1)


def _repeats(sources: list[Tokenised]) -> list[float]:
    """How often each source is read: as given, or so that the shares come out with nothing left out.

    The source that is most plentiful for its share is read once; all others are repeated.
    """
    if sources[0].spec.share is None:
        return [s.spec.repeat or 1.0 for s in sources]
    total = max(s.tokens / (s.spec.share or 1.0) for s in sources)
    return [total * (s.spec.share or 0.0) / max(s.tokens, 1) for s in sources]


def _join(
    documents: Pairs,
    sources: list[Tokenised],
    folder: Path,
    name: str,
    spec: CorpusSpec,
    dtype: str,
    say: Report,
) -> dict[str, Any]:
    """Write documents end to end into shards of whole windows; the tokens after the last window are dropped."""
    locate = [_locator(s) for s in sources]
    size = max(spec.sequence_length, spec.shard_tokens // spec.sequence_length * spec.sequence_length)
    shards: list[dict[str, Any]] = []
    waiting: list[NDArray[Any]] = []
    count = 0

    def flush(limit: int) -> None:
        nonlocal waiting, count
        joined = np.concatenate(waiting) if waiting else np.zeros(0, dtype=dtype)
        file = folder / f"{name}-{len(shards):05d}.bin"
        with writing(file):
            write_tokens(file, joined[:limit])
        shards.append({"file": file.name, "tokens": limit, "sha256": file_hash(file)})
        waiting, count = [joined[limit:]], len(joined) - limit

    for done, (source, number) in enumerate(documents):
        piece = locate[int(source)](int(number))
        waiting.append(piece)
        count += len(piece)
        while count >= size:
            flush(size)
            say(f"writing {name} shards", done / len(documents))
    rest = count // spec.sequence_length * spec.sequence_length
    if rest:
        flush(rest)
    tokens = sum(int(s["tokens"]) for s in shards)
    return {
        "documents": len(documents),
        "windows": tokens // spec.sequence_length,
        "tokens": tokens,
        "dropped_tokens": count,
        "shards": shards,
    }


def _locator(source: Tokenised) -> Callable[[int], NDArray[Any]]:
    """A function from document number to its tokens."""
    starts = [np.concatenate([[0], np.cumsum(n)]) for n in source.lengths]
    firsts = np.concatenate([[0], np.cumsum([len(n) for n in source.lengths])])

    def find(number: int) -> NDArray[Any]:
        part = int(np.searchsorted(firsts, number, side="right")) - 1
        inside = number - int(firsts[part])
        return np.asarray(source.parts[part][starts[part][inside] : starts[part][inside + 1]])

    return find
