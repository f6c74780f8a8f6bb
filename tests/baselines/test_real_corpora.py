"""The gate on real corpora: they pass, and what reads is far above what does not."""

from __future__ import annotations

from pathlib import Path

import pytest

from biobench.baselines import gate
from biobench.data.catalog import load_task
from biobench.data.load import load_data

pytestmark = pytest.mark.real

READERS = {
    "ncbi_disease": "training dictionary",
    "social_history": "training dictionary",
    "quaero_emea": "training dictionary",
    "gad": "bag of words",
    "hoc": "bag of words",
    "fracco_30": "bag of words",
}
"""One corpus at hand of each kind and reader, and the baseline that reads."""


@pytest.mark.parametrize("name", READERS)
def test_real_corpora_pass(name: str, data_dir: Path) -> None:
    task = load_task(name)
    data = load_data(task, data_dir)
    verdict = gate(task, data)
    assert verdict.passed, verdict.reasons
    scores = {p.name: p.scores for p in verdict.policies}
    assert {scores["oracle"][average] for average in ("macro_f1", "micro_f1", "weighted_f1")} == {
        1.0
    }
    assert scores["oracle"]["macro_f1_all"] == pytest.approx(
        len(data.gold_labels) / len(data.labels)
    )
    blind = [
        p.scores["macro_f1"] for p in verdict.policies if p.name not in (READERS[name], "oracle")
    ]
    assert scores[READERS[name]]["macro_f1"] > 1.3 * max(blind)
