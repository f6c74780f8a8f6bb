"""The word lists stand in data files; what is generated from them is what it was when they stood in
the code.
"""

from __future__ import annotations

import hashlib
from typing import Literal

import pytest

from biobench.data.catalog import load_task
from biobench.data.load import load_data
from trainer.corpus.embedded import documents


@pytest.mark.parametrize(
    ("languages", "digest"),
    [
        ("both", "090b4ca8de71983bb3995adf1b5b3abd4da3b794243df81d442b4407c78d0bb0"),
        ("en", "9315a259a466fd07b8259fe14bb19345fce4d64e8eed166269f41e61d9783659"),
        ("fr", "0195cc78a291f300bd70f8940fce0993a4f2f39f218edddacf0e038670fa0e72"),
    ],
)
def test_the_embedded_texts_are_the_same(
    languages: Literal["both", "en", "fr"], digest: str
) -> None:
    made = "\n".join(documents(500, seed=7, languages=languages))
    assert hashlib.sha256(made.encode()).hexdigest() == digest


@pytest.mark.parametrize(
    ("task", "limit", "digest"),
    [
        ("demo_ner", None, "0a648b0c5485dc1864a013bc03a4fdadf874c0538f6eedc781a2fda83b3c7a1f"),
        ("demo_topic", None, "fdffce7420c1c58de57aeafb7f241859af596576413b5bb4f5c49613163cc459"),
        ("demo_names", None, "27ec4e4d689444a7bd1cd6c38b5f5ba4d18aab3861bbda7e9a76b2ee51272155"),
        ("demo_first", None, "e5f24e57b806b41b9dc30db5554990db0f56a96f8ab44fdd2e2abbfbe52870d9"),
        ("needle_en", 200, "8e1a44d7dc9415cf476b093b23f1ba40fc3d9a9da4530178c7f0647076adf96f"),
    ],
)
def test_the_data_of_generated_tasks_has_the_same_hash(
    task: str, limit: int | None, digest: str
) -> None:
    assert load_data(load_task(task), None, limit).hash == digest
