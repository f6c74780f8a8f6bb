"""Differences class by class."""

from __future__ import annotations

from pathlib import Path

import pytest

from biobench.comparison.classes import class_differences, comparable_groups
from biobench.report.entrants import find_entrants
from biobench.report.results import load
from biobench.stats import compare_seeds
from biobench.store import Store
from tests.helpers.report_make import save_run, save_runs


def set_f1(results: Path, model: str, f1: dict[int, dict[str, float]]) -> None:
    """Replace the F1 of labels, by seed."""
    store = Store(results)
    for record in store.records():
        if record.model.id == model:
            rows = {label: {"f1": value, "support": 7.0} for label, value in f1[record.seed].items()}
            store.update(record.model_copy(update={"per_label": rows}))


def test_means_differences_and_intervals_are_those_of_the_seeds(tmp_path):
    for model in ("a", "b"):
        save_runs(tmp_path, model, "bc5cdr", {42: 0.5, 43: 0.6, 44: 0.7})
    first = {42: 0.50, 43: 0.55, 44: 0.57}
    second = {42: 0.40, 43: 0.47, 44: 0.44}
    set_f1(tmp_path, "a", {s: {"Drug": 0.8, "Disease": v} for s, v in first.items()})
    set_f1(tmp_path, "b", {s: {"Drug": 0.81, "Disease": v} for s, v in second.items()})
    a, b = find_entrants(["a", "b"], load(tmp_path))
    groups = comparable_groups(a, b, "bc5cdr")
    assert groups is not None
    disease, drug = class_differences(*groups)
    assert (disease.label, disease.support, drug.label) == ("Disease", 7, "Drug")
    assert (disease.first, disease.second) == pytest.approx((0.54, 0.4366667))
    expected = compare_seeds(list(first.values()), list(second.values())).interval
    assert expected is not None
    assert (disease.low, disease.high) == pytest.approx((expected.low, expected.high))
    assert drug.difference == pytest.approx(-0.01)


def test_a_label_without_a_score_in_some_run_is_left_out(tmp_path):
    for model in ("a", "b"):
        save_runs(tmp_path, model, "bc5cdr", {42: 0.5, 43: 0.6})
    set_f1(tmp_path, "a", {42: {"Drug": 0.8, "Disease": 0.1}, 43: {"Drug": 0.8}})
    set_f1(tmp_path, "b", {s: {"Drug": 0.7, "Disease": 0.1} for s in (42, 43)})
    groups = comparable_groups(*find_entrants(["a", "b"], load(tmp_path)), "bc5cdr")
    assert groups is not None
    assert [line.label for line in class_differences(*groups)] == ["Drug"]


def test_other_data_or_one_seed(tmp_path):
    save_run(tmp_path, "a", "bc5cdr", 42, 0.5)
    save_run(tmp_path, "b", "bc5cdr", 42, 0.5, data="other")
    assert comparable_groups(*find_entrants(["a", "b"], load(tmp_path)), "bc5cdr") is None
    save_run(tmp_path, "c", "bc5cdr", 42, 0.6)
    groups = comparable_groups(*find_entrants(["a", "c"], load(tmp_path)), "bc5cdr")
    assert groups is not None
    assert all(line.low is None and line.high is None for line in class_differences(*groups))
    assert comparable_groups(*find_entrants(["a", "DrBERT"], load(tmp_path)), "bc5cdr") is None
