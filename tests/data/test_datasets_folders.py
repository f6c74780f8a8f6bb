"""What `datasets` writes, by `save_to_disk` or as parquet, becomes a task with the labels that its
features name.
"""

from __future__ import annotations

import struct
from itertools import accumulate
from pathlib import Path
from typing import Any

import datasets
import pytest
from datasets import ClassLabel, Dataset, DatasetDict, Features, List, Value

from biobench.data.load import load_data
from biobench.data.scaffold import scaffold
from biobench.data.verify import verify
from biobench.errors import DataFormatError
from biobench.schema.document import Document
from tests.helpers.drafts import drafted

SPLITS = ("train", "validation", "test")
TOPICS = ClassLabel(names=["urgent", "routine", "other"])
TAGS = ClassLabel(names=["O", "B-Disease", "I-Disease", "B-Drug", "I-Drug"])
ENTITY = {
    "start": Value("int32"),
    "end": Value("int32"),
    "label": ClassLabel(names=["Dis", "Drug"]),
}


def texts(split: str) -> list[str]:
    return [f"Fever since day {n} of the {split} visit." for n in range(6)]


def columns(split: str) -> dict[str, dict[str, Any]]:
    """Name of a shape to the columns of one of its splits."""
    mentions = [[{"start": 0, "end": 5, "label": n % 2}] for n in range(6)]
    several = [{"start": [0], "end": [5], "label": [n % 2]} for n in range(6)]
    return {
        "classes": {"text": texts(split), "label": [0, 1, 0, 1, 0, 1]},
        "tags": {
            "tokens": [["Hay", "fever", "or", f"{split}{n}"] for n in range(6)],
            "ner_tags": [[1, 2, 0, 3]] * 6,
        },
        "entities": {"text": texts(split), "entities": mentions},
        "entity_lists": {"text": texts(split), "entities": several},
        "several": {"text": texts(split), "labels": [[0, 1], [1], [0], [0, 1], [1], [0]]},
        "strings": {"text": texts(split), "label": ["a", "b", "a", "b", "a", "b"]},
    }


FEATURES = {
    "classes": Features(text=Value("string"), label=TOPICS),
    "tags": Features(tokens=List(Value("string")), ner_tags=List(TAGS)),
    "entities": Features(text=Value("string"), entities=List(ENTITY)),
    "entity_lists": Features(text=Value("string"), entities=datasets.Sequence(ENTITY)),
    "several": Features(text=Value("string"), labels=List(TOPICS)),
    "strings": Features(text=Value("string"), label=Value("string")),
}
RIGHT: dict[str, tuple[str, list[str]]] = {
    "classes": ("single_label", ["urgent", "routine"]),
    "tags": ("token_ner", ["Hay fever/Disease", "test0/Drug"]),
    "entities": ("span_ner", ["Fever/Dis"]),
    "entity_lists": ("span_ner", ["Fever/Dis"]),
    "several": ("multi_label", ["urgent", "routine"]),
    "strings": ("single_label", ["a", "b"]),
}
"""Type, and what the first test document, or of `classes` and `strings` the first two, has."""


def gold(document: Document) -> list[str]:
    mentions = [f"{document.text[s.start : s.end]}/{s.label}" for s in document.spans]
    return [*document.labels, *mentions]


@pytest.mark.parametrize("written", ["disk", "parquet"])
@pytest.mark.parametrize("shape", FEATURES)
def test_the_features_say_type_and_labels(shape: str, written: str, tmp_path: Path) -> None:
    parts = {
        split: Dataset.from_dict(columns(split)[shape], features=FEATURES[shape])
        for split in SPLITS
    }
    folder = tmp_path / "corpus"
    if written == "disk":
        DatasetDict(parts).save_to_disk(folder, num_shards=dict.fromkeys(SPLITS, 2))
    else:
        folder.mkdir()
        for split, rows in parts.items():
            rows.to_parquet(folder / f"{split}.parquet")
    task = drafted(folder)
    test = load_data(task, tmp_path).test
    kind, right = RIGHT[shape]
    assert task.spec.type == kind
    assert [label for document in test for label in gold(document)][: len(right)] == right
    checked = verify(task, tmp_path)
    assert {name: checked.counts[name]["documents"] for name in SPLITS} == dict.fromkeys(SPLITS, 6)
    assert not checked.problems


@pytest.mark.parametrize("last", [2**31 - 2, -5_000])
def test_offsets_that_lead_out_of_an_arrow_file_are_refused(last: int, tmp_path: Path) -> None:
    """Arrow itself reads whatever memory they name, or dies."""
    lengths = map(len, columns("test")["strings"]["text"])
    sound = list(accumulate(lengths, initial=0))
    parts = {split: Dataset.from_dict(columns(split)["strings"]) for split in SPLITS}
    DatasetDict(parts).save_to_disk(tmp_path / "corpus")
    (file,) = (tmp_path / "corpus" / "test").glob("*.arrow")
    offsets, wrong = (struct.pack("<7i", *sound[:-1], end) for end in (sound[-1], last))
    content = file.read_bytes()
    assert content.count(offsets) == 1
    file.write_bytes(content.replace(offsets, wrong))
    with pytest.raises(DataFormatError, match="not a whole parquet or Arrow file"):
        scaffold(tmp_path / "corpus", "made")


def test_hidden_labels_are_named(tmp_path: Path) -> None:
    labels = {"train": [0, 1, 0, 1, 0, 1], "test": [-1] * 6}
    for split, values in labels.items():
        rows = {"text": texts(split), "label": values}
        Dataset.from_dict(rows, features=FEATURES["classes"]).to_parquet(
            tmp_path / f"{split}.parquet"
        )
    with pytest.raises(DataFormatError, match=r"test\.parquet:1: '-1' is not an index") as caught:
        scaffold(tmp_path, "made")
    assert "-1 stands for a hidden label" in caught.value.hint
