"""Splits: official ones as they come, and created ones reproduced permutation for permutation.

The permutations are those of the libraries that the reference protocols used, written out so that
no library version can move a document: `datasets` is
``numpy.random.default_rng(seed).permutation(n)``,
`sklearn` is ``numpy.random.RandomState(seed).permutation(n)``, both with the held-out part first
and its size rounded up; `random` shuffles the sorted ids with ``random.Random(seed)``.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import Any, Literal

from pydantic import TypeAdapter, ValidationError

from biobench.core.files import inside, read_regular
from biobench.core.grouped import grouped
from biobench.data.counts import groups_of
from biobench.errors import DataFormatError, SpecError
from biobench.schema.document import Document
from biobench.schema.source import (
    SplitApart,
    SplitCarve,
    SplitFoldFiles,
    SplitIds,
    SplitRatios,
    Splits,
    SplitShuffled,
)
from biobench.schema.task import SPLITS

SplitDocuments = dict[str, list[Document]]
"""The documents of each split."""
Positions = tuple[list[int], list[int], list[int]]
"""Of train, validation and test, in the order drawn."""

MOST_IDS_BYTES = 64 * 2**20
"""Of an ids file; a million ids have about 10 MB."""


def assign_splits(
    documents: Sequence[Document], splits: Splits, folder: Path | None
) -> SplitDocuments:
    """The documents by split, each with its `split` set. `folder` holds the ids file of `SplitIds`.

    Order: as drawn for ratios, as read for all others. What ratios draw depends on the order read
    (method random: on that of the ids, as texts), and so does what is cut from the end of train.
    Raises DataFormatError when a document has no split or a split would be empty.
    """
    if isinstance(splits, SplitIds):
        drawn = _by_ids(documents, ids_path(splits, folder or Path()))
    else:
        drawn = _RULES.get(type(splits), _official)(documents, splits)
    result: SplitDocuments = {}
    for name in SPLITS:
        result[name] = list(map(partial(_placed, name), drawn[name]))
    return result


def _placed(split: str, document: Document) -> Document:
    """The document as one of this split."""
    if document.split == split:
        return document
    return replace(document, split=split)


def _no_documents() -> SplitDocuments:
    return {name: [] for name in SPLITS}


def _official(documents: Sequence[Document], splits: Splits) -> SplitDocuments:
    """The splits that the files say."""
    result = _no_documents()
    for document in documents:
        if document.split not in result:
            raise DataFormatError(
                "document {} has no split",
                hint="name files per split, or set `splits`",
                file=document.origin or None,
                value=document.id,
            )
        result[document.split].append(document)
    return result


def _apart(documents: Sequence[Document], splits: SplitApart) -> SplitDocuments:
    """The official splits, train without the groups of others."""
    result = _official(documents, splits)
    groups_elsewhere: set[str] = set()
    for name in splits.leave_out_of_train:
        groups_elsewhere |= groups_of(result[name])
    result["train"] = [d for d in result["train"] if d.group not in groups_elsewhere]
    return result


def permutation(n: int, seed: int, method: str) -> list[int]:
    """The order in which `method` (datasets, sklearn, random) draws n items."""
    import numpy as np

    order = list(range(n))
    if method == "random":
        random.Random(seed).shuffle(order)
    elif method == "datasets":
        order = np.random.default_rng(seed).permutation(n).tolist()
    else:
        order = np.random.RandomState(seed).permutation(n).tolist()
    return order


def ratio_indices(n: int, splits: SplitRatios) -> Positions:
    """Positions of train, validation and test among n items, in the order drawn."""
    train, validation, test = [Fraction(str(ratio)) for ratio in splits.ratios]
    if splits.method == "random":
        return _shuffled_once(n, [train, validation, test], splits)
    every = list(range(n))
    if splits.first_cut == "train":
        held_out, trained = _hold_out(every, validation + test, splits)
        tested, validated = _hold_out(held_out, test / (validation + test), splits)
    else:
        tested, remaining = _hold_out(every, test, splits)
        validated, trained = _hold_out(remaining, validation / (train + validation), splits)
    return trained, validated, tested


def _shuffled_once(n: int, shares: list[Fraction], splits: SplitRatios) -> Positions:
    """One shuffle, cut into train, validation and test in this order."""
    sizes = [int(share * n) for share in shares]
    if splits.rounding == "largest_remainder":
        # Equal remainders go to the earlier split, as they do where the test ratio is 1 - train -
        # validation.
        by_remainder = sorted(range(3), key=lambda i: sizes[i] - shares[i] * n)
        for i in by_remainder[: n - sum(sizes)]:
            sizes[i] += 1
    order = permutation(n, splits.seed, "random")
    train, validation, _ = sizes
    held_out = train + validation
    return order[:train], order[train:held_out], order[held_out:]


def _hold_out(
    items: list[int], share: Fraction, splits: SplitRatios
) -> tuple[list[int], list[int]]:
    """(held out, kept): a fresh permutation of the positions; the held-out part comes first,
    rounded up.
    """
    size = math.ceil(float(share) * len(items))
    order = [items[i] for i in permutation(len(items), splits.seed, splits.method)]
    return order[:size], order[size:]


def _unit(by: str) -> Callable[[Document], str]:
    """What is drawn: the id of a single document, or of its group."""
    return attrgetter("group" if by == "group" else "id")


def _by_ratios(documents: Sequence[Document], splits: SplitRatios) -> SplitDocuments:
    units = grouped(documents, _unit(splits.by))
    names = sorted(units) if splits.method == "random" else list(units)
    result: SplitDocuments = {}
    for split, positions in zip(SPLITS, ratio_indices(len(names), splits), strict=True):
        result[split] = []
        for position in positions:
            result[split] += units[names[position]]
    return result


def shuffled_order(n: int, splits: SplitShuffled) -> list[int]:
    """Positions of n items after the shuffles."""
    order = list(range(n))
    generator = random.Random(splits.seed)
    for _ in range(splits.shuffles):
        generator.shuffle(order)
    return order


def _shuffled(documents: Sequence[Document], splits: SplitShuffled) -> SplitDocuments:
    _check_cuts(documents, splits)
    result = _no_documents()
    result["test"] = [document for document in documents if document.split == "test"]
    drawn = [document for document in documents if document.split != "test"]
    cuts = [int(share * len(drawn)) for share in splits.cuts]
    parts = itertools.pairwise([0, *cuts, len(drawn)])
    order = shuffled_order(len(drawn), splits)
    for name, (start, end) in zip(SPLITS, parts, strict=False):
        result[name] = [drawn[i] for i in sorted(order[start:end])]
    return result


def _check_cuts(documents: Sequence[Document], splits: SplitShuffled) -> None:
    """Refuse two shares of files that name a split, and one share where they do not name train and
    test.
    """
    named = {d.split for d in documents}
    fits = named == {"train", "test"}
    if len(splits.cuts) == 2:
        fits = named.isdisjoint(SPLITS)
    if not fits:
        names = ", ".join(sorted(named - {""})) or "no"
        message = f"splits.cuts has {len(splits.cuts)} shares and the files name {names} split"
        hint = "two shares cut `files.all`; one cuts `files.train` next to `files.test`"
        raise DataFormatError(message, hint=hint)


def _carved(documents: Sequence[Document], splits: SplitCarve) -> SplitDocuments:
    result = _official(documents, "official")
    size, unit_of = splits.validation_from_train_tail, _unit(splits.by)
    units = list(dict.fromkeys(map(unit_of, result["train"])))
    if result["validation"] or size >= len(units):
        number, unit = len(result["validation"]), f"{splits.by}s"
        message = (
            f"cannot cut {size} validation {unit} from {len(units)} training {unit} "
            f"({number} documents are in a validation file)"
        )
        raise DataFormatError(message, hint="check splits.validation_from_train_tail and `files`")
    tail = set(units[-size:])
    train = result["train"]
    result["validation"] = [document for document in train if unit_of(document) in tail]
    result["train"] = [document for document in train if unit_of(document) not in tail]
    return result


def _of_fold(documents: Sequence[Document], splits: SplitFoldFiles) -> SplitDocuments:
    """The splits of one of several numbered sets of files."""
    if splits.validation_from_train_tail is None:
        return _official(documents, splits)
    tail = splits.validation_from_train_tail
    return _carved(documents, SplitCarve(validation_from_train_tail=tail))


_RULES: dict[type, Callable[[Sequence[Document], Any], SplitDocuments]] = {
    SplitApart: _apart,
    SplitCarve: _carved,
    SplitFoldFiles: _of_fold,
    SplitRatios: _by_ratios,
    SplitShuffled: _shuffled,
}
"""What each form of `splits` does; the word `official` has none."""


def _by_ids(documents: Sequence[Document], path: Path) -> SplitDocuments:
    split_of = _read_ids(path)
    result = _no_documents()
    seen: set[str] = set()
    for document in documents:
        if document.group not in split_of:
            raise DataFormatError(
                f"{{}} is in no split of {path.name}",
                hint="the split was made for other data",
                file=document.origin or None,
                value=document.group,
            )
        seen.add(document.group)
        result[split_of[document.group]].append(document)
    missing = sorted(split_of.keys() - seen)
    if missing:
        message = f"{len(missing)} ids of {path.name} have no document, the first is {{}}"
        hint = "complete the data; a part of it would be another test set"
        raise DataFormatError(message, hint=hint, value=missing[0])
    return result


def ids_path(splits: SplitIds, folder: Path) -> Path:
    """Where the ids file lies. folder: the spec's. Raises SpecError where a link leads out of
    it."""
    return inside(folder, splits.ids_file, SpecError)


def _read_ids(path: Path) -> dict[str, str]:
    """Group to split. Raises SpecError."""
    hint = 'a JSON object {"train": [...], "validation": [...], "test": [...]} of id texts'
    schema = TypeAdapter(dict[Literal["train", "validation", "test"], list[str]])
    try:
        content = schema.validate_json(read_regular(path, MOST_IDS_BYTES, SpecError))
    except ValidationError as error:
        message = f"holds no ids by split: {error.errors()[0]['msg']}"
        raise SpecError(message, hint=hint, file=path) from None
    split_of: dict[str, str] = {}
    for split, ids in content.items():
        split_of.update(dict.fromkeys(ids, split))
    if len(split_of) < sum(map(len, content.values())):
        raise SpecError("an id occurs twice", hint=hint, file=path)
    return split_of
