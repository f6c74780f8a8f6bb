"""Created splits against the vectors of the facts sheets, carving and the label rules; and the
check before a split.
"""

import json
import os
import random
import time
from collections.abc import Sequence
from dataclasses import replace

import pytest

from biobench.data import splits as split_rules
from biobench.data.catalog import LoadedTask, load_task
from biobench.data.labels import apply_rule
from biobench.data.load import _checked, limited, load_data, subset
from biobench.data.readers import Request
from biobench.data.splits import assign_splits, permutation, ratio_indices
from biobench.errors import DataFormatError, SpecError
from biobench.schema.document import Document, Span
from biobench.schema.source import (
    CollectedLabels,
    SplitApart,
    SplitCarve,
    SplitIds,
    SplitRatios,
    TopLabels,
)
from biobench.schema.strict import repeated
from tests.helpers.drafts import rows, write
from tests.helpers.processor import budget


def ratios(*values: float, method: str = "datasets", **more: str) -> SplitRatios:
    return SplitRatios.model_validate(
        {"ratios": tuple(values), "seed": 42, "method": method, **more}
    )


def docs(n: int, split: str = "") -> list[Document]:
    return [Document(id=f"d{i:04}", group=f"g{i // 2:04}", text="x", split=split) for i in range(n)]


def ids(documents: Sequence[Document]) -> list[str]:
    return [document.id for document in documents]


VECTORS = [
    (
        *("datasets", [705, 151, 152]),
        "360 700 92 632 259 334|478 179 565 387 274 381|480 285 25 248 501 767",
    ),
    (
        *("datasets", [254, 55, 55]),
        "250 84 183 101 73 339|166 354 50 138 172 107|186 156 45 119 361 64",
    ),
    (
        *("sklearn", [1703, 365, 366]),
        "381 1915 538 2236 2144 83|1937 240 282 873 1855 1221|1146 471 1813 1790 1014 374",
    ),
]
"""Method, sizes, and the first six of train, validation and test at 70, 15 and 15 percent with seed
42.
"""


@pytest.mark.parametrize(("method", "sizes", "heads"), VECTORS)
def test_vectors_of_held_out_splits(method, sizes, heads):
    n = sum(sizes)
    by_split = ratio_indices(n, ratios(0.7, 0.15, 0.15, method=method))
    assert [len(drawn) for drawn in by_split] == sizes
    assert "|".join(" ".join(map(str, drawn[:6])) for drawn in by_split) == heads
    assert sorted(i for drawn in by_split for i in drawn) == list(range(n))


@pytest.mark.parametrize(
    ("n", "first", "last"),
    [
        (466, "41 320 396 263 93 365", "12 57 327"),
        (1288, "883 1066 195 1220 831 792", "563 51 228"),
        (1292, "1044 845 612 439 1226 66", "563 51 228"),
        (1295, "936 932 485 1255 395 66", "563 51 228"),
    ],
)
def test_vectors_of_the_shuffle(n, first, last):
    order = " ".join(map(str, permutation(n, 42, "random")))
    assert order.startswith(f"{first} ")
    assert order.endswith(f" {last}")


def test_test_first_takes_the_test_part_of_the_first_permutation():
    n = 40
    train, validation, test = ratio_indices(n, ratios(0.7, 0.1, 0.2, first_cut="test"))
    order = permutation(n, 42, "datasets")
    rest = [order[8:][i] for i in permutation(32, 42, "datasets")]
    assert test == order[:8]
    assert validation == rest[:4]
    assert train == rest[4:]


def test_ratios_are_the_decimals_that_were_written():
    by_split = ratio_indices(10, ratios(0.7, 0.1, 0.2, method="random", rounding="truncate"))
    assert list(map(len, by_split)) == [7, 1, 2]


def test_only_the_shuffle_draws_from_sorted_ids():
    """`random` draws from the ids in order whatever the order of reading; the others from the
    documents as read.
    """
    documents = docs(20)
    for method in ("random", "datasets", "sklearn"):
        rule = ratios(0.7, 0.1, 0.2, method=method)
        by_split = assign_splits(documents[::-1], rule, None)
        read = documents if method == "random" else documents[::-1]
        for drawn, positions in zip(by_split.values(), ratio_indices(20, rule), strict=True):
            assert ids(drawn) == [read[i].id for i in positions]


@pytest.mark.parametrize("method", ["datasets", "sklearn", "random"])
def test_groups_stay_together(method):
    by_split = assign_splits(docs(60), ratios(0.8, 0.1, 0.1, method=method, by="group"), None)
    splits_of_groups = {(d.group, d.split) for documents in by_split.values() for d in documents}
    assert len(splits_of_groups) == 30
    assert sum(map(len, by_split.values())) == 60


IDS = SplitIds(ids_file="ids.json")


def test_ids_must_match_both_ways(tmp_path):
    path = tmp_path / "ids.json"
    path.write_text(json.dumps({"train": ["g0000"], "validation": ["g0001"], "test": ["g0002"]}))
    by_split = assign_splits(docs(6), IDS, tmp_path)
    assert list(map(len, by_split.values())) == [2, 2, 2]
    with pytest.raises(DataFormatError, match="is in no split"):
        assign_splits(docs(8), IDS, tmp_path)
    with pytest.raises(DataFormatError, match="have no document"):
        assign_splits(docs(4), IDS, tmp_path)
    path.write_text(json.dumps({"train": ["g0000"], "validation": ["g0000"], "test": []}))
    with pytest.raises(SpecError, match="occurs twice"):
        assign_splits(docs(4), IDS, tmp_path)


@pytest.mark.parametrize("kind", ["link", "pipe", "device", "folder"])
def test_ids_come_from_a_plain_file_of_the_specs_folder(tmp_path, kind):
    folder = tmp_path / "specs"
    folder.mkdir()
    (tmp_path / "private.json").write_text("{}")
    match kind:
        case "link":
            (folder / "ids.json").symlink_to(tmp_path / "private.json")
        case "pipe":
            os.mkfifo(folder / "ids.json")
        case "device":
            (folder / "ids.json").symlink_to("/dev/zero")
        case "folder":
            (folder / "ids.json").mkdir()
    with pytest.raises(SpecError, match=r"is a link that leaves its folder|is a (pipe|folder)"):
        assign_splits(docs(4), IDS, folder)


def test_a_large_ids_file_is_not_read_whole(tmp_path, monkeypatch):
    monkeypatch.setattr(split_rules, "MOST_IDS_BYTES", 10)
    (tmp_path / "ids.json").write_text(json.dumps({"train": ["g0000"]}))
    with pytest.raises(SpecError, match="has more than the 10 bytes"):
        assign_splits(docs(4), IDS, tmp_path)


def test_carving_needs_a_free_tail():
    documents, two = docs(5, "train"), SplitCarve(validation_from_train_tail=2)
    by_split = assign_splits(documents, two, None)
    assert ids(by_split["validation"]) == ["d0003", "d0004"]
    with pytest.raises(DataFormatError, match="cannot cut"):
        assign_splits(documents, SplitCarve(validation_from_train_tail=5), None)
    with pytest.raises(DataFormatError, match="1 documents are in a validation file"):
        assign_splits([*documents, *docs(1, "validation")], two, None)


def test_carving_whole_groups_from_the_end():
    """Two documents a group; a group that stands again at the end was begun before and stays in
    train.
    """
    documents = [*docs(8, "train"), Document("again", "g0000", "x", "train")]
    by_split = assign_splits(documents, SplitCarve(validation_from_train_tail=2, by="group"), None)
    assert ids(by_split["validation"]) == ids(documents[4:8])
    assert ids(by_split["train"]) == ids([*documents[:4], documents[8]])
    with pytest.raises(
        DataFormatError, match="cannot cut 4 validation groups from 4 training groups"
    ):
        assign_splits(documents, SplitCarve(validation_from_train_tail=4, by="group"), None)


def test_train_leaves_out_what_other_splits_hold():
    def drawn(split: str, groups: str) -> list[Document]:
        return [Document(f"{split}/{g}", g, "x", split) for g in groups]

    documents = [*drawn("train", "abcd"), *drawn("validation", "b"), *drawn("test", "de")]
    apart = assign_splits(documents, SplitApart(leave_out_of_train=["validation"]), None)
    wanted = ["train/a", "train/c", "train/d", "validation/b", "test/d", "test/e"]
    assert ids([*apart["train"], *apart["validation"], *apart["test"]]) == wanted
    both = assign_splits(documents, SplitApart(leave_out_of_train=["validation", "test"]), None)
    assert ids(both["train"]) == ["train/a", "train/c"]


def test_limit_is_in_proportion_fixed_and_keeps_the_full_hash():
    task = load_task("demo_topic")
    full, few = load_data(task, None), load_data(task, None, limit=60)
    assert list(map(len, few.documents.values())) == [60, 20, 20]
    assert (few.hash, few.gold_labels) == (full.hash, full.gold_labels)
    assert len(load_data(task, None, limit=10**6).train) == len(full.train)
    # By the same definition for every version: what of the seeded shuffle comes first, in corpus
    # order, rounded.
    for name, size in (("train", 62), ("validation", 21), ("test", 21)):
        every = full.documents[name]
        order = list(range(len(every)))
        random.Random(20250101).shuffle(order)
        assert limited(full.documents, 62)[name] == [every[i] for i in sorted(order[:size])]
    assert list(map(len, limited(full.documents, 1).values())) == [1, 1, 1]
    with pytest.raises(DataFormatError, match="limit 0"):
        limited(full.documents, 0)


def lettered(**labels: str) -> list[Document]:
    """Documents named by the arguments, in their order, each with the letters of its text as
    labels.
    """
    return [Document(name, name, "t", "", labels=tuple(codes)) for name, codes in labels.items()]


def test_ties_go_to_the_first_in_order_of_ids_and_labels_are_sorted():
    # In order of ids: a M, b A B, c A Z, d Q. A is in two documents; of the others M and B come
    # first.
    labels, accepted = apply_rule(TopLabels(top_k=3), lettered(c="ZA", a="M", d="Q", b="BA"))
    assert labels == ("A", "B", "M")
    assert {d.id: d.labels for d in accepted} == {"c": ("A",), "a": ("M",), "b": ("A", "B")}
    assert ids(accepted) == ["c", "a", "b"], "in the order of reading; d has no label left"
    in_one, _ = apply_rule(TopLabels(top_k=1), lettered(a="YX"))
    assert in_one == ("X",), "within a document ties go to the code"


def test_a_document_counts_once():
    labels, accepted = apply_rule(TopLabels(top_k=1), lettered(a="KK", b="L", c="L"))
    assert labels == ("L",)
    assert ids(accepted) == ["b", "c"]


def test_as_many_codes_as_there_are_and_not_one_more():
    documents = lettered(a="BA")
    assert apply_rule(TopLabels(top_k=2), documents)[0] == ("A", "B")
    with pytest.raises(DataFormatError, match="holds 2 codes"):
        apply_rule(TopLabels(top_k=3), documents)


def test_collected_labels_are_all_there_are_and_no_document_goes():
    documents = lettered(b="YXY", a="", c="Z")
    labels, accepted = apply_rule(CollectedLabels(collected=3), documents)
    assert labels == ("X", "Y", "Z")
    assert [(d.id, d.labels) for d in accepted] == [("b", ("X", "Y")), ("a", ()), ("c", ("Z",))]
    for other in (2, 4):
        with pytest.raises(
            DataFormatError, match=f"holds 3 labels, the spec says labels.collected: {other}"
        ):
            apply_rule(CollectedLabels(collected=other), documents)


def test_a_list_changes_nothing():
    documents = lettered(a="BA", b="")
    assert apply_rule(["B", "A", "C"], documents) == (("B", "A", "C"), documents)


PLAIN = Document("a", "a", "abcdef", "test", tokens=((0, 6),), tags=("O",), origin="f:3")


def _passed(task: LoadedTask, documents: Sequence[Document]) -> list[Document]:
    return list(_checked(Request(task.options["generated"], {}, task.spec), documents))


@pytest.mark.parametrize(("start", "end"), [(2, 2), (3, 2), (-1, 2), (5, 7), (6, 7)])
def test_a_span_lies_in_its_text_and_has_a_character(start, end):
    task = load_task("demo_ner")
    label = task.spec.labels[0]
    with pytest.raises(DataFormatError, match=f"span {start}-{end} leaves the text"):
        _passed(task, [replace(PLAIN, spans=(Span(start, end, label),))])
    whole = replace(PLAIN, spans=(Span(0, 6, label),))
    assert _passed(task, [whole]) == [whole]


def test_a_mention_counts_once_and_mentions_stand_in_order():
    task = load_task("demo_ner")
    label, other = sorted(task.spec.labels[:2])
    spans = (Span(0, 1, label), Span(0, 1, other), Span(3, 4, label), Span(3, 4, other))
    (accepted,) = _passed(task, [replace(PLAIN, spans=(*spans[::-1], spans[2]))])
    assert accepted.spans == spans


@pytest.mark.parametrize("task", ["demo_ner", "demo_topic"])
def test_a_document_without_text_is_refused_whatever_its_format(task):
    blank = replace(PLAIN, text=" \n", tokens=(), tags=())
    with pytest.raises(DataFormatError, match="document 'a' has no text") as caught:
        _passed(load_task(task), [blank])
    assert caught.value.line == 3
    if task == "demo_topic":
        labels = load_task(task).spec.labels[:1]
        assert _passed(load_task(task), [replace(blank, query="a question", labels=tuple(labels))])


def test_a_single_label_task_has_one_label_a_document():
    task = load_task("demo_topic")
    first, second = task.spec.labels[:2]
    assert _passed(task, [replace(PLAIN, labels=(first,))])[0].labels == (first,)
    for labels in ((), (first, second)):
        with pytest.raises(DataFormatError, match=f"{len(labels)} labels in a single-label task"):
            _passed(task, [replace(PLAIN, labels=labels)])
    with pytest.raises(DataFormatError, match="'nothing' is not a label"):
        _passed(task, [replace(PLAIN, labels=("nothing",))])
    with pytest.raises(DataFormatError, match="document id 'a' occurs twice"):
        _passed(
            task, [replace(PLAIN, labels=(first,)), replace(PLAIN, labels=(second,), text="other")]
        )


@pytest.mark.parametrize("limit", [None, 1])
def test_the_labels_that_have_gold_are_those_of_the_whole_test_split(make_task, tmp_path, limit):
    """Training has a and b, test has b and d, one document of each: whatever is drawn, b and d
    count.
    """
    for name, labels in (("train", "ab"), ("validation", "c"), ("test", "bd")):
        items = rows(len(labels), text="text {i}", label=list(labels))
        write(tmp_path / "data" / f"{name}.tsv", items)
    task = make_task(
        type="single_label",
        labels="[d, c, b, a]",
        files="{train: train.tsv, validation: validation.tsv, test: test.tsv}",
        reader="{format: tsv, columns: {text: text, label: label}}",
    )
    data = load_data(task, tmp_path, limit)
    assert (data.labels, data.gold_labels) == (("d", "c", "b", "a"), ("d", "b"))
    assert len(data.test) == (2 if limit is None else 1)


@pytest.mark.parametrize(("share", "size"), [(1.0, 10), (0.75, 8), (0.36, 4), (0.34, 3), (0.01, 1)])
def test_a_share_is_rounded_to_the_nearest(share, size):
    documents = [replace(PLAIN, id=str(i)) for i in range(10)]
    assert len(subset(documents, share)) == size


def test_ten_thousands_of_labels_are_collected_in_a_second():
    names = [f"label {number:05}" for number in range(20_000)]
    documents = [Document(name, name, "text", "train", labels=(name,)) for name in names]
    began = time.process_time()
    labels, ordered = apply_rule(CollectedLabels(collected=len(names)), documents)
    assert (repeated([*labels, names[0]]), ordered) == ([names[0]], documents)
    assert time.process_time() - began < budget(1.0)
