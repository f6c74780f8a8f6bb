"""The gate on the real corpora: all pass; shuffled labels and moved offsets do not."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import pytest

from biobench.baselines import gate
from biobench.data.catalog import LoadedTask, load_task
from biobench.data.load import load_data
from biobench.schema.document import TaskData

pytestmark = pytest.mark.real

READERS = {
    "ncbi_disease_single": "training dictionary",
    "ncbi_disease": "training dictionary",
    "bc5cdr": "training dictionary",
    "anatem": "training dictionary",
    "social_history": "training dictionary",
    "quaero_emea": "training dictionary",
    "quaero_medline": "training dictionary",
    "gad": "bag of words",
    "hoc": "bag of words",
    "chemprot_rebuilt": "bag of words",
    "ddi": "bag of words",
    "fracco_30": "bag of words",
    "fracco_100": "bag of words",
}
"""Every task whose data the shared corpora hold, and the baseline that reads."""


@lru_cache(maxsize=2)
def loaded(name: str, data_dir: Path) -> tuple[LoadedTask, TaskData]:
    task = load_task(name)
    return task, load_data(task, data_dir)


@pytest.mark.parametrize("name", READERS)
def test_real_corpora_pass(name: str, data_dir: Path) -> None:
    task, data = loaded(name, data_dir)
    verdict = gate(task, data)
    assert verdict.passed, verdict.reasons
    scores = {p.name: p.scores for p in verdict.policies}
    assert {scores["oracle"][average] for average in ("macro_f1", "micro_f1", "weighted_f1")} == {1.0}
    assert scores["oracle"]["macro_f1_all"] == pytest.approx(len(data.gold_labels) / len(data.labels))
    blind = [p.scores["macro_f1"] for p in verdict.policies if p.name not in (READERS[name], "oracle")]
    assert scores[READERS[name]]["macro_f1"] > 1.3 * max(blind)


def test_known_ceiling_of_macro_over_all_labels(data_dir: Path) -> None:
    _, data = loaded("fracco_100", data_dir)
    assert (len(data.gold_labels), len(data.labels)) == (96, 100), "at most 96.0"
