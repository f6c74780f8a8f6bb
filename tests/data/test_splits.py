"""Created splits against the test vectors of the facts sheets; ids, carving and the ways to fail."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from biobench.data.catalog import load_task
from biobench.data.load import limited, load_data
from biobench.data.splits import assign_splits, permutation, ratio_indices
from biobench.errors import DataFormatError, SpecError
from biobench.schema.document import Document
from biobench.schema.source import SplitApart, SplitCarve, SplitIds, SplitRatios


def ratios(*values: float, method: str = "datasets", **more: str) -> SplitRatios:
    return SplitRatios.model_validate({"ratios": tuple(values), "seed": 42, "method": method, **more})


def docs(n: int, split: str = "") -> list[Document]:
    return [Document(id=f"d{i:04}", group=f"g{i // 2:04}", text="x", split=split) for i in range(n)]


VECTORS = {
    (1008, "datasets"): "360 700 92 632 259 334|478 179 565 387 274 381|480 285 25 248 501 767",
    (364, "datasets"): "250 84 183 101 73 339|166 354 50 138 172 107|186 156 45 119 361 64",
    (2434, "sklearn"): "381 1915 538 2236 2144 83|1937 240 282 873 1855 1221|1146 471 1813 1790 1014 374",
}
"""Documents and method to the first six of train, validation and test at 70, 15 and 15 percent with seed 42."""


@pytest.mark.parametrize(("n", "method"), VECTORS)
def test_vectors_of_held_out_splits(n: int, method: str) -> None:
    parts = ratio_indices(n, ratios(0.7, 0.15, 0.15, method=method))
    assert [len(p) for p in parts] == {1008: [705, 151, 152], 364: [254, 55, 55], 2434: [1703, 365, 366]}[n]
    assert [part[:6] for part in parts] == [list(map(int, six.split())) for six in VECTORS[n, method].split("|")]
    assert sorted(i for part in parts for i in part) == list(range(n))


@pytest.mark.parametrize(
    ("n", "first", "last"),
    [
        (466, "41 320 396 263 93 365", "12 57 327"),
        (1288, "883 1066 195 1220 831 792", "563 51 228"),
        (1292, "1044 845 612 439 1226 66", "563 51 228"),
        (1295, "936 932 485 1255 395 66", "563 51 228"),
    ],
)
def test_vectors_of_the_shuffle(n: int, first: str, last: str) -> None:
    order = permutation(n, 42, "random")
    assert order[:6] == [int(i) for i in first.split()]
    assert order[-3:] == [int(i) for i in last.split()]


def test_test_first_takes_the_test_part_of_the_first_permutation() -> None:
    n = 40
    train, validation, test = ratio_indices(n, ratios(0.7, 0.1, 0.2, first_cut="test"))
    order = permutation(n, 42, "datasets")
    rest = [order[8:][i] for i in permutation(32, 42, "datasets")]
    assert test == order[:8]
    assert validation == rest[:4]
    assert train == rest[4:]


def test_ratios_are_the_decimals_that_were_written() -> None:
    parts = ratio_indices(10, ratios(0.7, 0.1, 0.2, method="random", rounding="truncate"))
    assert tuple(map(len, parts)) == (7, 1, 2)


def test_only_the_shuffle_draws_from_sorted_ids() -> None:
    """`random` draws from the ids in order whatever the order of reading; the others from the documents as read."""
    documents = docs(20)[::-1]
    for method in ("random", "datasets", "sklearn"):
        parts = assign_splits(documents, ratios(0.7, 0.1, 0.2, method=method), None)
        ids = sorted(d.id for d in documents) if method == "random" else [d.id for d in documents]
        wanted = ratio_indices(20, ratios(0.7, 0.1, 0.2, method=method))
        assert [[d.id for d in parts[s]] for s in ("train", "validation", "test")] == [
            [ids[i] for i in part] for part in wanted
        ]


@pytest.mark.parametrize("method", ["datasets", "sklearn", "random"])
def test_groups_stay_together(method: str) -> None:
    parts = assign_splits(docs(60), ratios(0.8, 0.1, 0.1, method=method, by="group"), None)
    where: dict[str, set[str]] = {}
    for split, documents in parts.items():
        for d in documents:
            assert d.split == split
            where.setdefault(d.group, set()).add(split)
    assert all(len(splits) == 1 for splits in where.values())
    assert sum(map(len, parts.values())) == 60


def test_ids_must_match_both_ways(tmp_path: Path) -> None:
    path = tmp_path / "ids.json"
    path.write_text(json.dumps({"train": ["g0000"], "validation": ["g0001"], "test": ["g0002"]}))
    parts = assign_splits(docs(6), SplitIds(ids_file="ids.json"), tmp_path)
    assert {name: len(found) for name, found in parts.items()} == {"train": 2, "validation": 2, "test": 2}
    with pytest.raises(DataFormatError, match="is in no split"):
        assign_splits(docs(8), SplitIds(ids_file="ids.json"), tmp_path)
    with pytest.raises(DataFormatError, match="have no document"):
        assign_splits(docs(4), SplitIds(ids_file="ids.json"), tmp_path)
    path.write_text(json.dumps({"train": ["g0000"], "validation": ["g0000"], "test": []}))
    with pytest.raises(SpecError, match="stands twice"):
        assign_splits(docs(4), SplitIds(ids_file="ids.json"), tmp_path)


def test_carving_needs_a_free_tail() -> None:
    documents = docs(5, "train")
    parts = assign_splits(documents, SplitCarve(validation_from_train_tail=2), None)
    assert [d.id for d in parts["validation"]] == ["d0003", "d0004"]
    with pytest.raises(DataFormatError, match="cannot cut"):
        assign_splits(documents, SplitCarve(validation_from_train_tail=5), None)
    with pytest.raises(DataFormatError, match="beside a validation file"):
        assign_splits([*documents, *docs(1, "validation")], SplitCarve(validation_from_train_tail=2), None)


def test_carving_whole_groups_from_the_end() -> None:
    """Two documents a group; a group that stands again at the end was begun before and stays in train."""
    documents = [*docs(8, "train"), Document("again", "g0000", "x", "train")]
    parts = assign_splits(documents, SplitCarve(validation_from_train_tail=2, by="group"), None)
    assert [d.id for d in parts["validation"]] == ["d0004", "d0005", "d0006", "d0007"]
    assert [d.id for d in parts["train"]] == ["d0000", "d0001", "d0002", "d0003", "again"]
    with pytest.raises(DataFormatError, match="cannot cut 4 validation groups from 4 training groups"):
        assign_splits(documents, SplitCarve(validation_from_train_tail=4, by="group"), None)


def test_train_leaves_out_what_other_splits_hold() -> None:
    def part(split: str, *groups: str) -> list[Document]:
        return [Document(f"{split}/{g}", g, "x", split) for g in groups]

    documents = [*part("train", "a", "b", "c", "d"), *part("validation", "b"), *part("test", "d", "e")]
    one = assign_splits(documents, SplitApart(leave_out_of_train=["validation"]), None)
    assert ["".join(d.group for d in one[s]) for s in ("train", "validation", "test")] == ["acd", "b", "de"]
    both = assign_splits(documents, SplitApart(leave_out_of_train=["validation", "test"]), None)
    assert [d.group for d in both["train"]] == ["a", "c"]


def test_limit_is_in_proportion_fixed_and_keeps_the_full_hash() -> None:
    task = load_task("demo_topic")
    full, few = load_data(task, None), load_data(task, None, limit=60)
    assert [len(few.documents[s]) for s in ("train", "validation", "test")] == [60, 20, 20]
    assert few.hash == full.hash
    assert few.gold_labels == full.gold_labels
    ids = [d.id for d in few.train]
    assert ids == [d.id for d in load_data(task, None, limit=60).train]
    assert ids != [d.id for d in full.train[:60]]
    assert {d.id for d in load_data(task, None, limit=30).train} < set(ids)
    assert len(load_data(task, None, limit=10**6).train) == len(full.train)
    # By the same definition for every version: what of the seeded shuffle comes first, in corpus order, rounded.
    for name, size in zip(("train", "validation", "test"), (62, 21, 21), strict=True):
        order = list(range(len(full.documents[name])))
        random.Random(20250101).shuffle(order)
        wanted = [full.documents[name][i].id for i in sorted(order[:size])]
        assert [d.id for d in limited(full.documents, 62)[name]] == wanted
    assert [len(v) for v in limited(full.documents, 1).values()] == [1, 1, 1]
    with pytest.raises(DataFormatError, match="limit 0"):
        limited(full.documents, 0)
