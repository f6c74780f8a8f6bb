"""The power statement of the needle task: what its default test set and seeds can see."""

from __future__ import annotations

import pytest

from biobench.data.catalog import load_task
from biobench.schema.task import parse_seeds
from biobench.stats.accuracy_power import accuracy_power
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


def test_what_cannot_be_simulated_is_refused() -> None:
    with pytest.raises(StatsInputError):
        accuracy_power(1, 5)
    with pytest.raises(StatsInputError):
        accuracy_power(100, 5, base=0.98)
