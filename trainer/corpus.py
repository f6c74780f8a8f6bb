"""From text to shards: tokenise once, end each document, shuffle documents, join, cut into windows.

Tokenised parts are kept until the corpus is whole, so an interrupted build goes on where it stopped. The
result is a pure function of the texts, the tokenizer and the spec; its manifest records all of it.
"""

from __future__ import annotations

import io
import itertools
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from filelock import FileLock
from numpy.typing import NDArray
from transformers import PreTrainedTokenizerBase

from biobench.errors import DataFormatError
from trainer.disk import canonical, file_hash, make_folder, write_json, writing
from trainer.exclusion import Excluded
from trainer.model import end_token
from trainer.order import shuffled
from trainer.recipe import CorpusSource, CorpusSpec
from trainer.shards import MANIFEST, Corpus
from trainer.sources import files_of, identity, texts
from trainer.tokenization import tokenizer_hash

FORMAT = 1
ENCODING = 2
"""How text becomes ids. It keys the cache but is not in the manifest: a corpus whose tokens are as before keeps
its hash. 1 took special tokens that are spelled out in the text for control tokens."""
PART_DOCUMENTS = 2000
Pairs = NDArray[np.int64]
"""(documents, 2): source number, document number in it."""
Report = Callable[[str, float], None]
"""Told what is being done and which fraction of it is done (nan: unknown)."""


@dataclass
class _Source:
    """The tokenised documents of one source: where each lies, and how long it is."""

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


def documents(source: CorpusSource, root: Path) -> Iterator[str]:
    """`texts` of a source, each proved to be text. Raises DataFormatError for half of a surrogate pair."""
    for number, text in enumerate(texts(source, root), 1):
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
    sources = [_tokenise(s, spec, tokenizer, work, dtype, excluded, say) for s in spec.sources]
    made = make_folder(folder.with_name(f"{folder.name}.tmp"))
    manifest = _assemble(spec, tokenizer, sources, made, dtype, excluded, say)
    write_json(made / MANIFEST, manifest)
    with writing(folder):
        if folder.exists():
            shutil.rmtree(folder)
        made.rename(folder)
    shutil.rmtree(work)


def _tokenise(
    source: CorpusSource,
    spec: CorpusSpec,
    tokenizer: PreTrainedTokenizerBase,
    work: Path,
    dtype: str,
    excluded: Excluded,
    say: Report,
) -> _Source:
    """Tokenise a source in parts of `PART_DOCUMENTS`; parts of an earlier, interrupted build are taken over."""
    end = end_token(tokenizer)
    assert end is not None
    start = [tokenizer.cls_token_id] if spec.start_token == "cls" and tokenizer.cls_token_id is not None else []
    result = _Source(source)
    stream = documents(source, Path(spec.root))
    for number in itertools.count():
        batch = list(itertools.islice(stream, PART_DOCUMENTS))
        if not batch:
            break
        say(f"tokenising {source.id}: {number * PART_DOCUMENTS + len(batch)} documents", float("nan"))
        kept: list[str] = []
        for text in batch:
            reason = excluded.why(text)
            if reason is None:
                kept.append(text)
            else:
                result.excluded[reason] += 1
        tokens_file = work / f"{source.id}-{number:06d}.bin"
        lengths_file = work / f"{source.id}-{number:06d}.npy"
        if not lengths_file.is_file():
            _write_part(tokens_file, lengths_file, kept, tokenizer, start, end, dtype)
        result.lengths.append(np.load(lengths_file))
        count = int(result.lengths[-1].sum())
        result.parts.append(np.memmap(tokens_file, dtype=dtype, mode="r") if count else np.zeros(0, dtype=dtype))
    return result


def _write_part(
    tokens_file: Path,
    lengths_file: Path,
    batch: list[str],
    tokenizer: PreTrainedTokenizerBase,
    start: list[int],
    end: int,
    dtype: str,
) -> None:
    rows = [np.array([*start, *ids, end], dtype=dtype) for ids in encode(batch, tokenizer)]
    lengths = io.BytesIO()
    np.save(lengths, np.array([len(r) for r in rows], dtype=np.int64))
    with writing(tokens_file):
        _write(tokens_file, np.concatenate(rows) if rows else np.zeros(0, dtype=dtype))
        temporary = lengths_file.with_suffix(".tmp")
        temporary.write_bytes(lengths.getvalue())
        temporary.replace(lengths_file)


def _write(file: Path, tokens: NDArray[Any]) -> None:
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


def _assemble(
    spec: CorpusSpec,
    tokenizer: PreTrainedTokenizerBase,
    sources: list[_Source],
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


def _repeats(sources: list[_Source]) -> list[float]:
    """How often each source is read: as given, or so that the shares come out with nothing left out.

    The source that is most plentiful for its share is read once; all others are repeated.
    """
    if sources[0].spec.share is None:
        return [s.spec.repeat or 1.0 for s in sources]
    total = max(s.tokens / (s.spec.share or 1.0) for s in sources)
    return [total * (s.spec.share or 0.0) / max(s.tokens, 1) for s in sources]


def _join(
    documents: Pairs,
    sources: list[_Source],
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
            _write(file, joined[:limit])
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


def _locator(source: _Source) -> Callable[[int], NDArray[Any]]:
    """A function from document number to its tokens."""
    starts = [np.concatenate([[0], np.cumsum(n)]) for n in source.lengths]
    firsts = np.concatenate([[0], np.cumsum([len(n) for n in source.lengths])])

    def find(number: int) -> NDArray[Any]:
        part = int(np.searchsorted(firsts, number, side="right")) - 1
        inside = number - int(firsts[part])
        return np.asarray(source.parts[part][starts[part][inside] : starts[part][inside + 1]])

    return find
