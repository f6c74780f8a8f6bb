"""Accuracy by cell from the documents' ids, with intervals that pairs and seeds do not narrow by
themselves.
"""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest
from statsmodels.api import OLS
from statsmodels.stats.proportion import proportion_confint

from biobench.kinds.needle import accuracies
from biobench.schema.document import Document, Prediction
from biobench.schema.needle import ABSENT, PRESENT, GridCell, example_id, name_of
from biobench.score import compute
from biobench.score.needle import grid, wilson


def pairs(count: int) -> list[Document]:
    made = []
    for i in range(count):
        cell = GridCell((512, 1024)[i % 2], ("start", "end")[i // 2 % 2], "drug")
        for label in (PRESENT, ABSENT):
            made.append(
                Document(example_id("fr", cell, i, label), f"g{i}", "", "test", labels=(label,))
            )
    return made


def said(gold: list[Document], wrong: set[int]) -> list[Prediction]:
    other = {PRESENT: ABSENT, ABSENT: PRESENT}
    return [
        Prediction(d.id, labels=(other[d.labels[0]] if i in wrong else d.labels[0],))
        for i, d in enumerate(gold)
    ]


def test_slices_are_counted_from_ids() -> None:
    gold = pairs(4)
    scores = accuracies(gold, {p.document: p for p in said(gold, {0, 1, 2})})
    shares = {"512": 0.5, "1024": 0.75, "512.start": 0.0, "end": 1.0, "drug": 5 / 8}
    assert {name: scores[f"accuracy.{name}"] for name in shares} == pytest.approx(shares)
    one_length = ["accuracy.512", "accuracy.512.end", "accuracy.512.start"]
    other = [name.replace("512", "1024") for name in one_length]
    assert list(scores) == [*one_length, *other, "accuracy.end", "accuracy.start", "accuracy.drug"]
    call = {"labels": (ABSENT, PRESENT), "gold_labels": (ABSENT, PRESENT), "gold": gold}
    whole = compute(type="needle", predictions=said(gold, {0, 1, 2}), **call).values
    assert whole.items() >= (scores | {"accuracy": 5 / 8}).items()
    plain = compute(type="single_label", predictions=said(gold, {0, 1, 2}), **call).values
    assert plain.keys() == whole.keys() - scores.keys()
    assert accuracies([Document("cos-1", "g", "", "test", labels=(PRESENT,))], {}) == {}
    assert name_of((None, None, None)) == "accuracy"


@pytest.mark.parametrize(("right", "of"), [(140, 225), (0, 8), (8, 8), (1, 9), (3.3, 12.7)])
def test_wilson_equals_statsmodels(right: float, of: float) -> None:
    assert wilson(right / of, of) == pytest.approx(proportion_confint(right, of, method="wilson"))
    assert 0 <= wilson(right / of, of)[0] <= right / of <= wilson(right / of, of)[1] <= 1


@pytest.mark.parametrize("widths", [(1, 2, 5) * 6, (7, 1, 1) * 6, (4,) * 6, (9, 5)])
def test_the_interval_of_uneven_groups_is_the_cluster_robust_one(widths: tuple[int, ...]) -> None:
    """The standard error is that of a regression on a constant with errors clustered by group."""
    owners = [f"g{i}" for i, width in enumerate(widths) for _ in range(width)]
    gold = [replace(d, group=owner) for d, owner in zip(pairs(len(owners)), owners, strict=False)]
    rng = random.Random(2)
    chance = {owner: rng.random() for owner in owners}
    runs = [
        said(gold, {i for i, owner in enumerate(owners) if rng.random() < chance[owner]})
        for _ in range(3)
    ]
    cells, hits = grid(gold, runs)
    share = cells[None, None, None]
    values = np.array(
        [np.mean([run[i].labels == d.labels for run in runs]) for i, d in enumerate(gold)]
    )
    assert [hits[d.id] for d in gold] == pytest.approx(values.tolist())
    assert (share.mean, share.documents, share.groups) == (
        pytest.approx(values.mean()),
        len(gold),
        len(set(owners)),
    )
    numbers = np.unique(owners, return_inverse=True)[1]
    se = (
        OLS(values, np.ones_like(values))
        .fit(cov_type="cluster", cov_kwds={"groups": numbers})
        .bse[0]
    )
    count = min(values.mean() * (1 - values.mean()) / se**2, len(gold))
    expected = proportion_confint(values.mean() * count, count, method="wilson")
    assert (share.low, share.high) == pytest.approx(expected)


def test_groups_more_alike_than_chance_give_no_more_observations_than_documents() -> None:
    gold = pairs(4)
    # one wrong in every pair, then one in each of three of four: documents of a pair differ more
    # than others
    for wrong, right in (({0, 2, 4, 6}, 4), ({0, 2, 4}, 5)):
        share = grid(gold, [said(gold, wrong)])[0][None, None, None]
        assert (share.low, share.high) == pytest.approx(
            proportion_confint(right, 8, method="wilson")
        )
    alone = [replace(d, group="all") for d in gold]
    share = grid(alone, [said(alone, {0, 2, 4})])[0][None, None, None]
    assert (share.mean, share.groups) == (5 / 8, 1)
    assert (share.low, share.high) == pytest.approx(proportion_confint(5, 8, method="wilson"))
