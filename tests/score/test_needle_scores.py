"""Accuracy by cell from the documents' ids, with intervals that pairs and seeds do not narrow by themselves."""

from __future__ import annotations

import random

import pytest

from biobench.schema.document import Document, Prediction
from biobench.schema.needle import ABSENT, PRESENT, Cell, example_id
from biobench.score.needle import accuracies, grid, name_of, wilson


def pairs(count: int) -> list[Document]:
    made = []
    for i in range(count):
        cell = Cell((512, 1024)[i % 2], ("start", "end")[i // 2 % 2], "drug")
        made += [
            Document(example_id("fr", cell, i, label), f"g{i}", "", "test", labels=(label,))
            for label in (PRESENT, ABSENT)
        ]
    return made


def said(gold: list[Document], wrong: set[int]) -> list[Prediction]:
    other = {PRESENT: ABSENT, ABSENT: PRESENT}
    return [Prediction(d.id, labels=(other[d.labels[0]] if i in wrong else d.labels[0],)) for i, d in enumerate(gold)]


def test_slices_are_counted_from_ids() -> None:
    gold = pairs(4)
    scores = accuracies(gold, said(gold, {0, 1, 2}))
    assert scores["accuracy.512"] == 0.5
    assert scores["accuracy.1024"] == 0.75
    assert scores["accuracy.512.start"] == 0.0
    assert scores["accuracy.end"] == 1.0
    assert scores["accuracy.drug"] == pytest.approx(5 / 8)
    assert accuracies([Document("cos-1", "g", "", "test", labels=(PRESENT,))], []) == {}
    assert name_of((None, None, None)) == "accuracy"


def test_seeds_do_not_narrow_the_interval_and_whole_pairs_widen_it() -> None:
    gold = pairs(200)
    rng = random.Random(1)
    wrong = {i for i in range(400) if rng.random() < 0.4}
    runs = said(gold, wrong)
    one, _ = grid(gold, [runs])
    five, _ = grid(gold, [runs] * 5)
    key = (None, None, None)
    assert one[key] == five[key]
    low, high = wilson(one[key].mean, 400)
    assert one[key].high - one[key].low == pytest.approx(high - low, rel=0.15)
    together = said(gold, {j for i in range(0, 400, 2) if rng.random() < 0.4 for j in (i, i + 1)})
    widened, _ = grid(gold, [together])
    assert widened[key].high - widened[key].low > 1.25 * (high - low)


def test_an_interval_stands_where_all_is_right() -> None:
    gold = pairs(8)
    cells, hits = grid(gold, [said(gold, set())])
    assert cells[512, "start", None].mean == 1.0
    assert 0.4 < cells[512, "start", None].low < 0.9
    assert set(hits.values()) == {1.0}


def test_wilson_against_the_formula_s_known_values() -> None:
    # scipy.stats.binomtest(140, 225).proportion_ci(method="wilson")
    low, high = wilson(140 / 225, 225)
    assert (low, high) == (pytest.approx(0.5573, abs=5e-4), pytest.approx(0.6830, abs=5e-4))
