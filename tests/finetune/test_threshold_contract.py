"""A label is given where its score is greater than the threshold, in the code and in what docs/results.md says."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import biobench
from biobench.finetune.network import decide
from biobench.kinds.labels import GRID
from tests.benchmarks.labels_make import make_labels, multi_label_spec

DOCS = Path(biobench.__file__).resolve().parent.parent / "docs" / "results.md"


@pytest.mark.parametrize("threshold", [0.5, 0.3, 0.95])
def test_a_score_on_the_threshold_gives_no_label(threshold: float) -> None:
    prepared, _ = make_labels(8, 6, multi_label_spec())
    on = np.full(len(prepared.outputs), threshold, dtype=np.float32)
    above = np.nextafter(on, np.float32(1))
    split = prepared.validation
    windows = sum(len(places) for places in split.windows)
    assert threshold in GRID, "a threshold that tuning can find"
    assert {p.labels for p in decide(prepared, split, [on] * windows, threshold)} == {()}
    assert {p.labels for p in decide(prepared, split, [above] * windows, threshold)} == {prepared.outputs}


def test_the_page_of_metrics_says_so() -> None:
    text = DOCS.read_text(encoding="utf-8")
    part = " ".join(text.split("## Multi-label decisions")[1].split("## ")[0].split())
    assert "greater than 0.5 (strictly" in part
    assert "equals the tuned threshold gives no label" in part
    assert "at least 0.5" not in part
