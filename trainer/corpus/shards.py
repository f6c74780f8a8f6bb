"""A built corpus on disk: memory-mapped windows of tokens behind a manifest."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray
from transformers import PreTrainedTokenizerBase, PreTrainedTokenizerFast

from biobench.core.files import canonical
from biobench.errors import StoreError
from trainer.corpus.sources import Digests

SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")


def train_tokenizer(texts: Iterable[str], vocabulary: int, max_length: int) -> PreTrainedTokenizerFast:
    """A byte-level BPE tokenizer in ModernBERT's manner; digits stand alone. A pure function of the texts.

    vocabulary: entries, special tokens included. max_length: longest input in tokens, for its users.
    """
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, processors, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Digits(individual_digits=True),
            pre_tokenizers.ByteLevel(add_prefix_space=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    # A mask stands for a word with the space before it, as words do.
    special = [AddedToken(token, lstrip=token == "[MASK]", special=True) for token in SPECIAL]
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary,
        special_tokens=special,
        show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
    )
    tokenizer.train_from_iterator(texts, trainer)
    ids = {token: tokenizer.token_to_id(token) for token in SPECIAL}
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B [SEP]",
        special_tokens=[(t, ids[t]) for t in ("[CLS]", "[SEP]")],
    )
    return PreTrainedTokenizerFast(  # type: ignore[no-untyped-call]
        tokenizer_object=tokenizer,
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        mask_token="[MASK]",
        model_max_length=max_length,
        model_input_names=["input_ids", "attention_mask"],
    )


def tokenizer_hash(tokenizer: PreTrainedTokenizerBase) -> str:
    """sha256 over the tokenizer's whole definition and special tokens."""
    backend = getattr(tokenizer, "backend_tokenizer", None)
    definition = backend.to_str() if backend is not None else repr(sorted(tokenizer.get_vocab().items()))
    special = repr(sorted((k, str(v)) for k, v in tokenizer.special_tokens_map.items()))
    return hashlib.sha256(f"{definition}\n{special}".encode()).hexdigest()


def encode(batch: list[str], tokenizer: PreTrainedTokenizerBase) -> list[list[int]]:
    """The ids of each text without special tokens; what is spelled like one ("[SEP]", "</s>") is text as well.

    No id of `control_ids` is among them.
    """
    if not batch:
        return []
    encoded: list[list[int]] = tokenizer(batch, add_special_tokens=False, split_special_tokens=True, verbose=False)[
        "input_ids"
    ]
    control = control_ids(tokenizer)
    return [ids if control.isdisjoint(ids) else _spelled(ids, control, tokenizer) for ids in encoded]


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


MANIFEST = "manifest.json"
DETAILS = "details.json"
"""Held-out tokens of each source in their order, and removed documents by task; not part of the corpus's hash."""
_REBUILD = "delete the folder; the corpus is built again from its sources"

_PART = {"tokens": int, "shards": [{"file": str, "tokens": int, "sha256": str}]}
_SHAPE = {
    "sequence_length": int,
    "dtype": str,
    "sources": [{"id": str, "share": (int, float)}],
    "exclusion": {"documents": int, "hash": str},
    "train": _PART,
    "held_out": _PART,
}
"""What is read of a manifest: field to its type, or to the shape of its parts."""


class ShardWriter:
    """Takes bytes end to end and cuts them into files of `shard` bytes, the last of whole windows of `window` bytes.

    Each file is hashed as it is written. shards: those written so far, sizes in bytes; rest: bytes after the last
    window. A context, whose end writes what is left.
    """

    GATHERED = 1 << 22
    """Bytes that wait in memory, besides those of an unfinished window."""

    def __init__(self, folder: Path, name: str, *, window: int, shard: int) -> None:
        self.folder, self.name, self.window, self.size = folder, name, window, shard
        self.shards: list[dict[str, Any]] = []
        self.rest = bytearray()
        self._file: BinaryIO | None = None
        self._digest = hashlib.sha256()
        self._written = 0

    def add(self, piece: bytes) -> None:
        """Put bytes behind those before. Raises OSError."""
        self.rest += piece
        if len(self.rest) >= self.GATHERED:
            self._write()

    def __enter__(self) -> ShardWriter:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            if kind is None:
                self._write()
        finally:
            if self._file is not None:
                self._close()

    def _write(self) -> None:
        """Write the whole windows that wait."""
        whole = len(self.rest) // self.window * self.window
        start = 0
        while start < whole:
            end = min(whole, start + self.size - self._written)
            if self._file is None:
                self._file = (self.folder / f"{self.name}-{len(self.shards):05d}.bin").open("wb")
            piece = bytes(self.rest[start:end])
            self._file.write(piece)
            self._digest.update(piece)
            self._written += end - start
            start = end
            if self._written == self.size:
                self._close()
        del self.rest[:whole]

    def _close(self) -> None:
        assert self._file is not None
        self._file.close()
        name = Path(self._file.name).name
        self.shards.append({"file": name, "tokens": self._written, "sha256": self._digest.hexdigest()})
        self._file, self._digest, self._written = None, hashlib.sha256(), 0


class Shards:
    """Windows of one split, read from memory-mapped files; `shards` is the manifest's list of files."""

    def __init__(self, folder: Path, shards: list[dict[str, Any]], length: int, dtype: str) -> None:
        self.length = length
        self._maps: list[NDArray[Any]] = []
        for shard in shards:
            file = folder / str(shard["file"])
            expected = int(shard["tokens"]) * np.dtype(dtype).itemsize
            if not file.is_file() or file.stat().st_size != expected:
                size = file.stat().st_size if file.is_file() else 0
                raise StoreError(f"corpus shard has {size} bytes instead of {expected}", hint=_REBUILD, file=file)
            if expected:
                self._maps.append(np.memmap(file, dtype=dtype, mode="r").reshape(-1, length))
        self._ends = np.cumsum([len(m) for m in self._maps]) if self._maps else np.zeros(0, dtype=np.int64)

    def __len__(self) -> int:
        return int(self._ends[-1]) if self._maps else 0

    def read(self, indices: NDArray[np.int64]) -> NDArray[np.int64]:
        """(count, tokens) windows as int64."""
        out = np.empty((len(indices), self.length), dtype=np.int64)
        which = np.searchsorted(self._ends, indices, side="right")
        for row, (index, shard) in enumerate(zip(indices, which, strict=True)):
            start = int(self._ends[shard - 1]) if shard else 0
            out[row] = self._maps[shard][index - start]
        return out


class Corpus:
    """An opened corpus: `train` and `held_out` windows, the manifest, and its hash.

    The hash covers the content of all shards and how they were made, not where they lie.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.manifest: dict[str, Any] = read_manifest(folder)
        self.hash = manifest_hash(self.manifest)
        self.length = int(self.manifest["sequence_length"])
        dtype = str(self.manifest["dtype"])
        self.train = Shards(folder, self.manifest["train"]["shards"], self.length, dtype)
        self.held_out = Shards(folder, self.manifest["held_out"]["shards"], self.length, dtype)

    def held_out_sources(self) -> dict[str, range]:
        """The held-out windows that hold text of one source alone, by source; of corpora built since that is kept."""
        windows: dict[str, range] = {}
        begin = 0
        for source, tokens in self._details().get("held_out_tokens", []):
            first, last = -(-begin // self.length), min((begin + int(tokens)) // self.length, len(self.held_out))
            if last > first:
                windows[source] = range(first, last)
            begin += int(tokens)
        return windows

    def removed_by_task(self) -> dict[str, dict[str, int]]:
        """Documents that were left out because of each benchmark task, by source; one may count for several tasks."""
        removed: dict[str, dict[str, int]] = self._details().get("removed_by_task", {})
        return removed

    def _details(self) -> dict[str, Any]:
        """What is known beside the manifest; nothing of corpora that were built before it was kept."""
        file = self.folder / DETAILS
        if not file.is_file():
            return {}
        try:
            details: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        except ValueError as error:
            raise StoreError("the corpus's details are damaged", hint=_REBUILD, file=file) from error
        return details

    def verify(self) -> None:
        """Compare every shard with its hash, unless it is as it was when that was last done.

        Raises StoreError naming the first damaged one.
        """
        shards = [shard for part in ("train", "held_out") for shard in self.manifest[part]["shards"]]
        files = [self.folder / shard["file"] for shard in shards]
        for file, shard, result in zip(files, shards, Digests(self.folder / "verified.json").of(files), strict=True):
            if result != shard["sha256"]:
                raise StoreError("corpus shard is damaged: its content has changed", hint=_REBUILD, file=file)


def read_manifest(folder: Path) -> dict[str, Any]:
    """The manifest of a built corpus. Raises StoreError when it is missing or damaged."""
    file = folder / MANIFEST
    try:
        manifest = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise StoreError("the corpus manifest is missing or damaged", hint=_REBUILD, file=file) from error
    missing = _missing(manifest, _SHAPE)
    if missing is not None:
        raise StoreError(
            f"the corpus manifest is damaged: {missing} is missing or not what it should be", hint=_REBUILD, file=file
        )
    result: dict[str, Any] = manifest
    return result


def _missing(value: Any, shape: Any, name: str = "the whole") -> str | None:
    """Name of the first part of `value` that is not of `shape`; None when all are."""
    if isinstance(shape, dict):
        if not isinstance(value, dict):
            return name
        problems = (_missing(value.get(key), inner, f"'{key}'") for key, inner in shape.items())
        return next((f for f in problems if f is not None), None)
    if isinstance(shape, list):
        if not isinstance(value, list):
            return name
        return next((f for f in (_missing(item, shape[0], name) for item in value) if f is not None), None)
    return None if isinstance(value, shape) and not isinstance(value, bool) else name


def manifest_hash(manifest: dict[str, Any]) -> str:
    """sha256 of the manifest in canonical spelling."""
    return hashlib.sha256(canonical(manifest).encode()).hexdigest()
