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


def welch_df(parts: list[tuple[float, float]], variance: float) -> float:
    """Satterthwaite's degrees of freedom of a variance that is a sum of parts (variance, df)."""
    return variance**2 / sum(part**2 / df for part, df in parts)


def interaction(right: np.ndarray) -> float:
    """Variance that the mean over (seeds, documents) of right answers has from their interaction,
    by the residuals of the two-way layout.
    """
    rest = right - right.mean(axis=0) - right.mean(axis=1, keepdims=True) + right.mean()
    return (rest**2).sum() / (len(SEEDS) - 1) / (DOCUMENTS - 1) / right.size


def test_every_number_of_the_pairs(stored):
    """Micro F1 of one label a document is accuracy: seeds and documents are a two-way layout of
    right answers.
    """
    shown = compare("a", "b", "c", results_dir=stored, average="micro").as_json()
    found = json.loads(json.dumps(shown, allow_nan=False))
    answers, n = right_answers(stored), len(TASKS)
    p_here, p_beyond = [], []
    for (a, b), pair in zip(combinations("abc", 2), found["pairs"], strict=True):
        seeds, documents, shared, gaps = [], [], 0.0, []
        for line in pair["tasks"]:
            sides = [np.array([answers[model, line["task"], s] for s in SEEDS]) for model in (a, b)]
            gap = sides[0].mean(axis=0) - sides[1].mean(axis=0)
            gaps.append(gap.mean())
            assert line["difference"] == pytest.approx(gaps[-1], abs=1e-12)
            of_seeds = [side.mean(axis=1).var(ddof=1) / len(SEEDS) for side in sides]
            expected = stats.ttest_ind(*(side.mean(axis=1) for side in sides), equal_var=False)
            assert line["seeds"]["p"] == pytest.approx(expected.pvalue, rel=1e-9)
            of_documents = gap.var(ddof=1) / DOCUMENTS
            assert line["documents"]["se"] == pytest.approx(math.sqrt(of_documents), rel=1e-9)
            assert (line["splits"], line["groups"]) == (False, DOCUMENTS)
            seeds += [(part / n**2, len(SEEDS) - 1.0) for part in of_seeds]
            documents.append((of_documents / n**2, DOCUMENTS - 1.0))
            shared += sum(map(interaction, sides)) / n**2
        mean = float(np.mean(gaps))
        assert pair["difference"] == pytest.approx(mean, abs=1e-12)
        sums = [sum(part for part, _ in parts) for parts in (seeds, documents)]
        total = max(sum(sums) - shared, *sums)
        noises = [
            (sums[0], welch_df(seeds, sums[0])),
            (sums[1], welch_df(documents, sums[1])),
            (total, welch_df(seeds + documents, total)),
        ]
        p_here.append(max(2 * stats.t.sf(abs(mean) / math.sqrt(v), df) for v, df in noises))
        noises.append((np.var(gaps, ddof=1) / n, n - 1.0))
        p_beyond.append(max(2 * stats.t.sf(abs(mean) / math.sqrt(v), df) for v, df in noises))
        for name, p, among in (("here", p_here[-1], noises[:3]), ("beyond", p_beyond[-1], noises)):
            assert pair[name]["p"] == pytest.approx(p, rel=1e-9)
            level = pair[name]["level"]
            half = max(stats.t.ppf((1 + level) / 2, df) * math.sqrt(v) for v, df in among)
            assert pair[name]["high"] - mean == pytest.approx(half, rel=1e-9)
    for name, raw in (("here", p_here), ("beyond", p_beyond)):
        adjusted = multipletests(raw, method="holm")[1].tolist()
        assert [pair[f"p_{name}"] for pair in found["pairs"]] == pytest.approx(adjusted, rel=1e-9)
        for pair, p in zip(found["pairs"], adjusted, strict=True):
            assert (pair["verdict"][name] == "shown") == (p <= 0.05)
            leaves_out_zero = pair[name]["low"] > 0 or pair[name]["high"] < 0
            assert leaves_out_zero == (p <= 0.05)


def test_a_declared_plan_names_what_is_exploratory(stored, tmp_path):
    plan = tmp_path / "plan.yaml"
    plan.write_text("pairs:\n  - [a, b]\nseeds: [42, 43, 44, 45]\nalpha: 0.05\n", encoding="utf-8")
    planned = compare(["c"], results_dir=stored, plan=plan)
    assert set(planned.models) == {"a", "b", "c"}
    (declared,) = (pair for pair in planned.pairs if not pair.exploratory)
    assert {declared.first, declared.second} == {"a", "b"}
    assert declared.here.p_corrected == declared.here.p, "corrected for the declared pairs alone"
    assert len(planned.plan) == 16
    assert f"declared before looking: plan {planned.plan}" in planned.notes
    for text, is_same in (
        ("alpha: 0.05\nseeds: [42,43,44,45]\npairs: [[a, b]]\n# laid out otherwise\n", True),
        ("pairs: [[a, b]]\nseeds: [42]\n", False),
    ):
        plan.write_text(text, encoding="utf-8")
        again = compare([], results_dir=stored, plan=plan)
        assert (again.plan == planned.plan) == is_same
        other_seeds = "exploratory: a has other seeds than the plan declares"
        assert any(other_seeds in note for note in again.notes) != is_same
