"""A built corpus on disk: memory-mapped windows of tokens behind a manifest."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic_core import from_json
from transformers import PreTrainedTokenizerBase, PreTrainedTokenizerFast

from biobench.core.files import canonical, inside, sha256_of
from biobench.core.text import first_line
from biobench.errors import StoreError
from biobench.schema.strict import Count, Strict
from trainer.corpus.sources import digests
from trainer.disk import read_json

SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")


def train_tokenizer(
    texts: Iterable[str], vocabulary: int, max_length: int
) -> PreTrainedTokenizerFast:
    """A byte-level BPE tokenizer in ModernBERT's manner; digits stand alone. A pure function of the
    texts.

    vocabulary: entries, special tokens included. max_length: longest input in tokens, for its
    users.
    """
    from tokenizers import (
        AddedToken,
        Tokenizer,
        decoders,
        models,
        pre_tokenizers,
        processors,
        trainers,
    )

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
    if backend is not None:
        definition = backend.to_str()
    else:
        definition = repr(sorted(tokenizer.get_vocab().items()))
    special = repr(sorted((k, str(v)) for k, v in tokenizer.special_tokens_map.items()))
    return sha256_of(f"{definition}\n{special}".encode())


def encode(batch: list[str], tokenizer: PreTrainedTokenizerBase) -> list[list[int]]:
    """The ids of each text without special tokens; what is spelled like one ("[SEP]", "</s>") is
    text as well.

    No id of `control_ids` is among them.
    """
    if not batch:
        return []
    encoded: list[list[int]] = tokenizer(
        batch, add_special_tokens=False, split_special_tokens=True, verbose=False
    )["input_ids"]
    control = control_ids(tokenizer)
    # a Unigram model holds its control tokens among its pieces and finds them in the text whatever
    # it is told
    for row, ids in enumerate(encoded):
        if not control.isdisjoint(ids):
            encoded[row] = [i for i in ids if i not in control]
    return encoded


def control_ids(tokenizer: PreTrainedTokenizerBase) -> set[int]:
    """Ids that must not come from text: all special tokens but the unknown one, which stands for
    text.
    """
    roles = ("pad", "bos", "eos", "cls", "sep", "mask")
    named = {getattr(tokenizer, f"{role}_token_id") for role in roles} - {None}
    special = {i for i, token in tokenizer.added_tokens_decoder.items() if token.special}
    return named | ({*special, *tokenizer.all_special_ids} - {tokenizer.unk_token_id})


MANIFEST = "manifest.json"
DETAILS = "details.json"
_REBUILD = "delete the folder; the corpus is built again from its sources"


def write_shards(
    folder: Path, name: str, pieces: Iterator[bytes], *, size: int, shard: int
) -> list[dict[str, Any]]:
    """The first `size` bytes of all pieces as files of `shard` bytes: name, bytes (as ``tokens``)
    and hash of each.
    """
    shards = []
    piece = memoryview(b"")
    for number, start in enumerate(range(0, size, shard)):
        file = f"{name}-{number:05d}.bin"
        digest = hashlib.sha256()
        shard_size = bytes_left = min(shard, size - start)
        with (folder / file).open("wb") as handle:
            while bytes_left:
                piece = piece or memoryview(next(pieces))
                part = piece[:bytes_left]
                piece = piece[bytes_left:]
                handle.write(part)
                digest.update(part)
                bytes_left -= len(part)
        shards.append({"file": file, "tokens": shard_size, "sha256": digest.hexdigest()})
    return shards


class Shards:
    """Windows of one split, read from memory-mapped files; `shards` is the manifest's list of
    files.
    """

    def __init__(self, folder: Path, shards: list[dict[str, Any]], length: int, dtype: str) -> None:
        self.length = length
        self._maps: list[NDArray[Any]] = []
        for shard in shards:
            file = inside(folder, str(shard["file"]), StoreError)
            tokens = int(shard["tokens"])
            expected = tokens * np.dtype(dtype).itemsize
            size = file.stat().st_size if file.is_file() else 0
            if size != expected:
                raise StoreError(
                    f"corpus shard has {size} bytes instead of {expected}", hint=_REBUILD, file=file
                )
            self._maps.append(np.memmap(file, dtype=dtype, mode="r").reshape(-1, length))
        self._ends = np.cumsum([0, *map(len, self._maps)])

    def __len__(self) -> int:
        return int(self._ends[-1])

    def read(self, indices: NDArray[np.int64]) -> NDArray[np.int64]:
        """(count, tokens) windows as int64."""
        windows = np.empty((len(indices), self.length), dtype=np.int64)
        shards = np.searchsorted(self._ends, indices, side="right") - 1
        places = indices - self._ends[shards]
        for row, (shard, place) in enumerate(zip(shards, places, strict=True)):
            windows[row] = self._maps[shard][place]
        return windows


class Details(Strict):
    """What is told of a corpus beside its manifest and is not part of its hash: excluded documents
    by source and task.
    """

    removed_by_task: dict[str, dict[str, Count]]


class Corpus:
    """An opened corpus: `train` and `held_out` windows, the manifest, and its hash.

    The hash covers the content of all shards and how they were made, not where they lie. Raises
    StoreError where the manifest is missing or damaged.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        manifest = folder / MANIFEST
        if not manifest.is_file():
            raise StoreError(
                "is no corpus that was built here",
                hint="name the folder that `biobench corpus build RECIPE` made",
                file=folder,
            )
        try:
            self.manifest: dict[str, Any] = from_json(manifest.read_bytes())
            self.hash = sha256_of(canonical(self.manifest).encode())
            self.length, dtype = int(self.manifest["sequence_length"]), str(self.manifest["dtype"])
            self.train, self.held_out = (
                Shards(folder, self.manifest[split]["shards"], self.length, dtype)
                for split in ("train", "held_out")
            )
        except (OSError, ValueError, LookupError, TypeError) as error:
            what = f"the corpus manifest is damaged: {first_line(error)}"
            hint = "restore it, or build the corpus into another folder"
            raise StoreError(what, hint=hint, file=manifest) from error

    def removed_by_task(self) -> dict[str, dict[str, int]]:
        """Documents that were excluded because of each benchmark task, by source; one may count for
        several tasks.

        Empty for corpora that were built before it was kept. Raises StoreError.
        """
        file = self.folder / DETAILS
        if not file.is_file():
            return {}
        details = read_json(Details, file, "the counts of removed documents are damaged", _REBUILD)
        return details.removed_by_task

    def verify(self) -> None:
        """Compare every shard with its hash, unless it is as it was when that was last done.

        Raises StoreError naming the first damaged one.
        """
        shards = [*self.manifest["train"]["shards"], *self.manifest["held_out"]["shards"]]
        files = [self.folder / shard["file"] for shard in shards]
        hashes = digests(files, self.folder / "verified.json")
        for file, shard, result in zip(files, shards, hashes, strict=True):
            if result != shard["sha256"]:
                raise StoreError(
                    "corpus shard is damaged: its content has changed", hint=_REBUILD, file=file
                )
