"""`compare --json` recomputed from the raw records with scipy and statsmodels, digit by digit."""

from __future__ import annotations

import json
import math
from itertools import combinations

import numpy as np
import pytest
from scipy import optimize, special, stats
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.weightstats import DescrStatsW

from biobench.comparison.compare import compare
from biobench.store import Store
from tests.helpers.report_make import save_run

CORPORA = {"gad": "gad", "hoc": "hoc", "bc5cdr": "bc5cdr", "anatem": "anatem", "chemprot": "chemprot"}
SEEDS = (42, 43, 44, 45)


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    """Three models on five corpora, scores to the last digit random."""
    folder = tmp_path_factory.mktemp("runs")
    rng = np.random.default_rng(11)
    for place, model in enumerate(("a", "b", "c")):
        for task in CORPORA:
            level = 0.3 + 0.15 * place + rng.normal(0, 0.1)
            for seed in SEEDS:
                save_run(folder, model, task, seed, float(level + rng.normal(0, 0.1)))
    return folder


def test_every_number_of_the_pairs(stored):
    found = json.loads(json.dumps(compare("a", "b", "c", results_dir=stored, documents=False).as_json()))
    scores = {(r.model.id, r.task.id, r.seed): r.scores["macro_f1"] for r in Store(stored).records()}
    raw, local = [], []
    answers = {sum(row["support"] for row in r.per_label.values()) for r in Store(stored).records()}
    floor = 1 / answers.pop() / math.sqrt(6)
    assert not answers, "one size of test set, so one unit"
    for (a, b), pair in zip(combinations("abc", 2), found["pairs"], strict=True):
        gaps = np.array([[scores[a, t, s] - scores[b, t, s] for s in SEEDS] for t in pair["corpora"]])
        means = gaps.mean(axis=1)
        n = len(means)
        assert list(pair["corpora"].values()) == pytest.approx(means.tolist(), abs=1e-12)
        assert pair["difference"] == pytest.approx(means.mean(), abs=1e-12)
        # the t over corpora, and the one on these tasks (variances of the seeds added up, Welch and Satterthwaite);
        # no spread is taken below the rounding of one answer of the test set
        sd = max(means.std(ddof=1), floor)
        plain = 2 * stats.t.sf(abs(means.mean()) / sd * math.sqrt(n), n - 1)
        width = stats.t.ppf(0.975, n - 1) * sd / math.sqrt(n)
        parts = np.maximum(gaps.std(axis=1, ddof=1), floor) ** 2 / len(SEEDS) / n**2
        se, df = math.sqrt(parts.sum()), parts.sum() ** 2 / (parts**2 / (len(SEEDS) - 1)).sum()
        within = 2 * stats.t.sf(abs(means.mean()) / se, df)
        assert pair["within"]["test"]["p"] == pytest.approx(within, rel=1e-9)
        half = max(width, stats.t.ppf(0.975, df) * se)
        far = "high" if means.mean() > 0 else "low"
        away = means.mean() + (half if far == "high" else -half)
        assert pair["test"][far] == pytest.approx(away, rel=1e-9)
        # the skewness guard: Hall's transformation of the t, skewness shrunken by n / (n + 6)
        skew = stats.skew(means, bias=False) * n / (n + 6)
        s = means.mean() / sd
        hall = math.sqrt(n) * (s + skew * s**2 / 3 + skew**2 * s**3 / 27 + skew / (6 * n))
        p = max(plain, 2 * stats.t.sf(abs(hall), n - 1), within)
        assert pair["p"] == pytest.approx(p, rel=1e-9)
        assert pair["wilcoxon_p"] == pytest.approx(stats.wilcoxon(means).pvalue)
        raw.append(p)
        local.append(within)
        rest = [np.delete(means, i) for i in range(n)]
        left = [2 * stats.t.sf(abs(r.mean()) / max(r.std(ddof=1), floor) * 2, n - 2) for r in rest]
        assert list(pair["without"].values()) == pytest.approx(left, rel=1e-9)
    assert [p["p_holm"] for p in found["pairs"]] == pytest.approx(multipletests(raw, method="holm")[1].tolist())
    shown = [p["within"]["p_holm"] for p in found["pairs"]]
    assert shown == pytest.approx(multipletests(local, method="holm")[1].tolist())


def test_a_declared_plan_names_what_is_exploratory(stored, tmp_path):
    plan = tmp_path / "plan.yaml"
    plan.write_text("pairs:\n  - [a, b]\nseeds: [42, 43, 44, 45]\nalpha: 0.05\n", encoding="utf-8")
    alone = compare(["c"], results_dir=stored, documents=False, plan=plan)
    data = alone.as_json()
    assert set(alone.models) == {"a", "b", "c"}
    marks = {frozenset((p["first"], p["second"])): p["exploratory"] for p in data["pairs"]}
    assert marks == {frozenset("ab"): False, frozenset("ac"): True, frozenset("bc"): True}
    declared = next(p for p in data["pairs"] if not p["exploratory"])
    assert declared["p_holm"] == declared["p"], "corrected for the declared pairs alone"
    assert len(data["plan"]) == 16
    assert alone.verdict[0] == f"Declared before looking: plan {data['plan']}."
    assert any(line.startswith("Exploratory, not in the declared plan:") for line in alone.verdict)
    plan.write_text("alpha: 0.05\nseeds: [42,43,44,45]\npairs: [[a, b]]\n# laid out otherwise\n", encoding="utf-8")
    assert compare([], results_dir=stored, documents=False, plan=plan).plan == data["plan"]
    plan.write_text("pairs: [[a, b]]\nseeds: [42]\n", encoding="utf-8")
    other = compare([], results_dir=stored, documents=False, plan=plan)
    assert any("exploratory: a has other seeds than the plan declares" in n for n in other.notes)
    assert other.plan != data["plan"]


def test_sameness_is_two_one_sided_tests(stored):
    """Of suite, these tasks, and each task: the larger p of statsmodels' pair."""
    rope = 0.02
    shown = compare("a", "b", results_dir=stored, documents=False, rope=rope).as_json()
    scores = {(r.model.id, r.task.id, r.seed): r.scores["macro_f1"] for r in Store(stored).records()}
    (pair,) = shown["pairs"]
    floor = 1 / sum(row["support"] for row in Store(stored).records()[0].per_label.values()) / math.sqrt(6)
    gaps = np.array([[scores["a", t, s] - scores["b", t, s] for s in SEEDS] for t in pair["corpora"]])
    rows = dict(zip(pair["corpora"], gaps, strict=True))
    assert len(pair["tasks"]) == len(rows)
    for task in pair["tasks"]:
        row = rows[task["task"]]
        if row.std(ddof=1) < floor:  # no spread is taken below the rounding of one answer
            row = row.mean() + floor * np.array([1, -1, 1, -1]) / stats.tstd([1, -1, 1, -1])
        assert task["same"] == pytest.approx(DescrStatsW(row).ttost_mean(-rope, rope)[0], rel=1e-9)
    parts = np.maximum(gaps.std(axis=1, ddof=1), floor) ** 2 / len(SEEDS) / len(gaps) ** 2
    df = parts.sum() ** 2 / (parts**2 / (len(SEEDS) - 1)).sum()
    sides = [stats.t.cdf((side * gaps.mean() - rope) / math.sqrt(parts.sum()), df) for side in (1, -1)]
    assert pair["within"]["same"] == pytest.approx(max(sides), rel=1e-9)
    corpora = DescrStatsW(gaps.mean(axis=1)).ttost_mean(-rope, rope)[0]
    assert pair["same"] == pytest.approx(max(corpora, *sides), rel=1e-9), "no surer of other tasks than of these"


def test_the_letters_rest_on_moderated_variances(stored):
    """The prior by a search for the d0 whose scaled F law has the mean and the variance of the log variances."""
    shown = compare("a", "b", "c", results_dir=stored, documents=False).as_json()["pairs"]
    gaps = np.array([list(pair["corpora"].values()) for pair in shown])
    n, df = gaps.shape[1], gaps.shape[1] - 1
    s2 = gaps.var(axis=1, ddof=1)
    logs = np.log(s2)
    spread = logs.var(ddof=1) - special.polygamma(1, df / 2)
    prior_df, prior = math.inf, s2.mean()
    if spread > 0:
        d0 = 2 * optimize.bisect(lambda half: special.polygamma(1, half) - spread, 1e-3, 1e6, xtol=1e-12)
        shift = (special.digamma(df / 2) - math.log(df / 2)) - (special.digamma(d0 / 2) - math.log(d0 / 2))
        prior_df, prior = d0, math.exp(logs.mean() - shift)
    prior_df = min(prior_df, (3 - 2) * df / 2)
    moderated = np.maximum((prior_df * prior + df * s2) / (prior_df + df), s2)
    p = 2 * stats.t.sf(abs(gaps.mean(axis=1)) / np.sqrt(moderated / n), prior_df + df)
    corrected = multipletests(p, method="holm")[1].tolist()
    assert [pair["p_moderated"] for pair in shown] == pytest.approx(corrected, rel=1e-8)
