"""The power statement of the needle task: what its default test set and seeds can see."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from biobench.data.catalog import load_task
from biobench.schema.task import parse_seeds
from biobench.stats.accuracy_power import _better, accuracy_power
from biobench.stats.types import StatsInputError


def test_the_default_detects_five_points_with_a_power_of_eighty_percent() -> None:
    for name in ("needle_fr", "needle_en"):
        task = load_task(name)
        for options in task.options.values():
            examples, seeds = options.examples["test"], len(parse_seeds(task.spec.seeds))  # type: ignore[attr-defined]
            assert accuracy_power(examples, seeds, draws=300) > 0.8
            # Even where all seeds of a model answer alike and add nothing.
            assert accuracy_power(examples, seeds, agreement=0.98, draws=300) > 0.8


def test_how_many_it_needs_and_what_the_paper_s_test_set_sees() -> None:
    assert accuracy_power(500, 5, draws=300) < 0.7
    assert accuracy_power(1300, 5, draws=300) > 0.8
    assert accuracy_power(225, 1, draws=300) < 0.35


def test_no_difference_is_found_as_often_as_the_level_says() -> None:
    found = accuracy_power(1920, 5, difference=0.0, draws=1000)
    assert found < 0.045  # one side of a two-sided 5% test


@pytest.mark.parametrize(("examples", "seeds"), [(40, 1), (40, 4), (400, 3)])
def test_the_decision_is_a_t_on_examples_and_what_seeds_add(examples: int, seeds: int) -> None:
    rng = np.random.default_rng(examples + seeds)
    gaps = (
        0.1 + rng.normal(0, 1, (examples, seeds)) + rng.normal(0, 0.3, (1, seeds)) + rng.normal(0, 0.5, (examples, 1))
    )
    parts = [(gaps.mean(axis=1).var(ddof=1) / examples, examples - 1)]
    if seeds > 1:
        own = gaps.mean(axis=0).var(ddof=1) - np.mean([gaps[:, s].var(ddof=1) / examples for s in range(seeds)])
        parts.append((max(0.0, own) / seeds, seeds - 1))
    variance = sum(v for v, _ in parts)
    df = variance**2 / sum(v**2 / d for v, d in parts)
    p = 2 * stats.t.sf(abs(gaps.mean()) / variance**0.5, df)
    ahead = gaps * np.sign(gaps.mean())
    assert _better(ahead, 1.001 * p)
    assert not _better(ahead, 0.999 * p)
    assert not _better(-ahead, 1.001 * p)


def test_differences_without_spread_are_found_where_there_are_any() -> None:
    assert [_better(np.full((5, seeds), gap), 0.05) for seeds in (1, 2) for gap in (1.0, 0.0, -1.0)] == [
        *(True, False, False),
        *(True, False, False),
    ]


def test_what_cannot_be_simulated_is_refused() -> None:
    with pytest.raises(StatsInputError):
        accuracy_power(1, 5)
    for wrong in ({"base": 0.98}, {"base": 0.0}, {"agreement": 0.0}, {"agreement": 1.0}, {"draws": 0}, {"seeds": 0}):
        with pytest.raises(StatsInputError):
            accuracy_power(**({"examples": 100, "seeds": 5} | wrong))
    assert 0 <= accuracy_power(2, 1, draws=5) <= 1
