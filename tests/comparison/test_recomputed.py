"""`compare --json` recomputed from the stored predictions and records with scipy and statsmodels,
digit by digit.
"""

from __future__ import annotations

import json
import math
from itertools import combinations

import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.multitest import multipletests

from biobench.comparison.compare import compare
from biobench.store import Store
from tests.helpers.compare_make import save_runs

TASKS = ("gad", "hoc", "bc5cdr", "anatem", "chemprot")
SEEDS = (42, 43, 44, 45)
DOCUMENTS = 60


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    """Three models on five corpora."""
    folder = tmp_path_factory.mktemp("runs")
    rng = np.random.default_rng(11)
    for place, model in enumerate("abc"):
        for task in TASKS:
            save_runs(
                folder,
                model,
                (task,),
                float(0.5 + 0.1 * place + rng.normal(0, 0.08)),
                SEEDS,
                count=DOCUMENTS,
            )
    return folder


def right_answers(folder) -> dict[tuple[str, str, int], np.ndarray]:
    """(model, task, seed) -> which documents were answered right, in order of their ids."""
    store, found = Store(folder), {}
    for record in store.records():
        gold, predictions = store.load_predictions(record, None)
        said = {p.document: p.labels for p in predictions}
        answers = [float(said[d.id] == d.labels) for d in sorted(gold, key=lambda d: d.id)]
        found[record.model.id, record.task.id, record.seed] = np.array(answers)
    return found


def test_every_number_of_the_pairs(stored):
    """Micro F1 of one label a document is accuracy: seeds and documents are a two-way layout of
    right answers.
    """
    shown = compare("a", "b", "c", results_dir=stored, average="micro").as_json()
    found = json.loads(json.dumps(shown, allow_nan=False))
    right, least = right_answers(stored), 1 / DOCUMENTS / math.sqrt(6)
    here, beyond = [], []
    n = len(TASKS)
    for (a, b), pair in zip(combinations("abc", 2), found["pairs"], strict=True):
        tasks = [line["task"] for line in pair["tasks"]]
        gaps = np.array([[right[a, t, s] - right[b, t, s] for s in SEEDS] for t in tasks])
        means = gaps.mean(axis=(1, 2))
        assert [line["difference"] for line in pair["tasks"]] == pytest.approx(
            means.tolist(), abs=1e-12
        )
        assert pair["difference"] == pytest.approx(means.mean(), abs=1e-12)
        seeds = np.maximum(gaps.mean(axis=2).std(axis=1, ddof=1), least) ** 2 / len(SEEDS)
        assert [line["seeds"]["se"] for line in pair["tasks"]] == pytest.approx(
            np.sqrt(seeds).tolist(), rel=1e-9
        )
        for line in pair["tasks"]:
            assert (line["paired"], line["groups"]) == (True, DOCUMENTS)
            p = 2 * stats.t.sf(abs(line["difference"]) / line["seeds"]["se"], len(SEEDS) - 1)
            assert line["seeds"]["p"] == pytest.approx(p)
            # shown apart: neither part is wider than both together
            assert (
                max(line[part]["se"] for part in ("seeds", "documents"))
                <= line["total"]["se"] + 1e-12
            )
        documents = [line["documents"]["se"] ** 2 for line in pair["tasks"]]
        # the bootstrap has n and not n - 1 below; its own error is 2.2%
        exact = gaps.mean(axis=1).var(axis=1) / DOCUMENTS
        assert np.sqrt(documents) == pytest.approx(np.sqrt(exact), rel=0.1)
        rest = gaps - gaps.mean(axis=1, keepdims=True) - gaps.mean(axis=2, keepdims=True)
        rest += gaps.mean(axis=(1, 2), keepdims=True)
        both = (rest**2).sum(axis=(1, 2)) / (len(SEEDS) - 1) / (DOCUMENTS - 1) / rest[0].size
        total = seeds.sum() + sum(documents)
        variance = max(total - both.sum(), seeds.sum(), sum(documents)) / n**2
        below = (seeds**2 / (len(SEEDS) - 1)).sum() + (np.square(documents) / (DOCUMENTS - 1)).sum()
        df = max(len(SEEDS) - 1, total**2 / below * (variance * n**2 / total) ** 2)
        se = math.sqrt(variance)
        half = stats.t.ppf(0.975, df) * se
        assert pair["here"]["se"] == pytest.approx(se, rel=1e-9)
        assert pair["here"]["df"] == pytest.approx(df, rel=1e-9)
        assert pair["here"]["high"] - pair["difference"] == pytest.approx(half, rel=1e-9)
        here.append(2 * stats.t.sf(abs(means.mean()) / se, df))
        plain = stats.ttest_1samp(means, 0)
        beyond.append(max(plain.pvalue, here[-1]))
        width = stats.t.ppf(0.975, n - 1) * means.std(ddof=1) / math.sqrt(n)
        assert pair["beyond"]["high"] - pair["difference"] == pytest.approx(
            max(width, half), rel=1e-9
        )
        assert pair["beyond"]["p"] == pytest.approx(beyond[-1], rel=1e-9)
    for name, raw in (("p_here", here), ("p_beyond", beyond)):
        corrected = multipletests(raw, method="holm")[1].tolist()
        assert [pair[name] for pair in found["pairs"]] == pytest.approx(corrected, rel=1e-8)
    for pair in found["pairs"]:
        assert (pair["verdict"]["here"] == "shown") == (pair["p_here"] <= 0.05)


def test_a_declared_plan_names_what_is_exploratory(stored, tmp_path):
    plan = tmp_path / "plan.yaml"
    plan.write_text("pairs:\n  - [a, b]\nseeds: [42, 43, 44, 45]\nalpha: 0.05\n", encoding="utf-8")
    alone = compare(["c"], results_dir=stored, plan=plan)
    data = alone.as_json()
    assert set(alone.models) == {"a", "b", "c"}
    marks = {frozenset((p["first"], p["second"])): p["exploratory"] for p in data["pairs"]}
    assert marks == {frozenset("ab"): False, frozenset("ac"): True, frozenset("bc"): True}
    declared = next(p for p in data["pairs"] if not p["exploratory"])
    assert declared["p_here"] == declared["here"]["p"], "corrected for the declared pairs alone"
    assert len(data["plan"]) == 16
    assert f"declared before looking: plan {data['plan']}" in alone.notes
    assert any(line.startswith("exploratory, not in the declared plan:") for line in alone.notes)
    plan.write_text(
        "alpha: 0.05\nseeds: [42,43,44,45]\npairs: [[a, b]]\n# laid out otherwise\n",
        encoding="utf-8",
    )
    assert compare([], results_dir=stored, plan=plan).plan == data["plan"]
    plan.write_text("pairs: [[a, b]]\nseeds: [42]\n", encoding="utf-8")
    other = compare([], results_dir=stored, plan=plan)
    assert any("exploratory: a has other seeds than the plan declares" in n for n in other.notes)
    assert other.plan != data["plan"]
