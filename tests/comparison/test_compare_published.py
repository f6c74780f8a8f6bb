"""Published means alone: what can be said of them is said as computed by hand, and what cannot is named."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from biobench.comparison.compare import compare
from biobench.errors import UsageError

DETOUR = "ModernCamemBERT-bio-base CLM detour (10B)"
TWIN = "ModernCamemBERT-bio-base MLM twin (10B)"

# Printed percentages, copied by hand from the published French table: task -> (detour, twin), by corpus.
PRINTED = {
    "fracco": {"fracco_30": (74.8, 69.9), "fracco_100": (60.1, 56.8), "cantemist": (71.0, 64.9)},
    "distemist": {"distemist": (25.5, 23.5)},
    "meddialog_fr": {"meddialog_fr": (63.6, 62.5)},
    "diamed": {"diamed": (67.4, 63.4)},
    "quaero_emea": {"quaero_emea": (68.6, 68.5)},
    "quaero_medline": {"quaero_medline": (61.9, 61.4)},
}


@pytest.fixture(scope="module")
def held(tmp_path_factory):
    return compare(DETOUR, TWIN, results_dir=tmp_path_factory.mktemp("empty"))


def test_the_suite_test_is_the_one_computed_by_hand(held):
    means = [sum(a - b for a, b in tasks.values()) / len(tasks) for tasks in PRINTED.values()]
    n = len(means)
    mean = sum(means) / n
    se = math.sqrt(sum((m - mean) ** 2 for m in means) / (n - 1) / n)
    critical = 2.5705818366147395  # t, 5 degrees of freedom, 0.975
    suite = held.pairs[0].pair.comparison
    assert 100 * suite.difference == pytest.approx(mean) == pytest.approx(2.078, abs=5e-4)
    interval = suite.test.interval
    assert 100 * interval.low == pytest.approx(mean - critical * se) == pytest.approx(0.071, abs=5e-4)
    assert 100 * interval.high == pytest.approx(mean + critical * se) == pytest.approx(4.085, abs=5e-4)
    assert suite.test.p == pytest.approx(0.0448, abs=5e-5)
    assert suite.test.df == 5
    # all six of one sign: 2 of the 2^6 sign patterns are as extreme
    assert suite.wilcoxon_p == pytest.approx(2 / 2**6) == 0.03125
    assert (suite.wins, suite.ties, suite.losses) == (8, 0, 0)
    assert held.pairs[0].pair.p_holm == suite.test.p


def test_every_task_is_there_as_printed(held):
    lines = {line.task: line for line in held.pairs[0].tasks}
    for corpus, tasks in PRINTED.items():
        for task, (a, b) in tasks.items():
            line = lines.pop(task)
            assert line.corpus == corpus
            assert (100 * line.first, 100 * line.second) == (pytest.approx(a), pytest.approx(b))
            assert line.published
            assert line.seeds.p is line.documents is line.total is None
    assert not lines


def test_what_cannot_be_concluded_is_said_with_the_reason(held):
    text = held.text()
    assert held.verdict[0].startswith(f"{DETOUR} is better than {TWIN} on tasks like these, by 2.08 points")
    assert "0.07 to 4.08" in held.verdict[0]
    assert "p = 0.045" in held.verdict[0]
    assert "for 5 of the 6 corpora, leaving that one out" in held.verdict[2]
    limits = [line for line in held.verdict if line.startswith("Cannot be concluded")]
    assert len(limits) == 1
    for word in ("seeds", "test set", "Why:", "printed means", "without predictions"):
        assert word in limits[0]
    pair = held.pairs[0]
    assert pair.pair.comparison.improvement is None
    assert pair.plan is None
    assert pair.within.test is None
    assert "Matched" not in text
    assert "8 of 8 tasks" in text


def test_json_is_strict_and_complete(held):
    data = json.loads(json.dumps(held.as_json(), allow_nan=False))
    pair = data["pairs"][0]
    assert pair["p"] == pytest.approx(0.0448, abs=5e-5)
    assert pair["test"]["estimand"] == data["estimand"] == "tasks like these"
    assert {t["task"] for t in pair["tasks"]} == {t for tasks in PRINTED.values() for t in tasks}
    assert data["verdict"] == list(held.verdict)


def test_the_documented_example_is_what_is_printed(held):
    page = (Path(__file__).resolve().parents[2] / "docs" / "statistics.md").read_text(encoding="utf-8")
    shown = page.split('biobench compare "Modern')[1].split("```")[0].split("\n", 1)[1]
    assert " ".join(shown.split()) in " ".join(held.text().split())


def test_a_published_model_with_itself(tmp_path):
    held = compare([DETOUR, DETOUR], results_dir=tmp_path)
    suite = held.pairs[0].pair.comparison
    assert suite.difference == 0
    assert suite.test.p == 1
    assert (suite.test.interval.low, suite.test.interval.high) == (0, 0)
    assert [s.ties for s in held.standings] == ["a", "a"]
    assert held.verdict[0].startswith("No difference")


def test_published_values_stand_only_beside_their_average(tmp_path):
    with pytest.raises(UsageError) as caught:
        compare(DETOUR, TWIN, results_dir=tmp_path, average="macro")
    assert "macro" in str(caught.value)
    assert "--average paper" in caught.value.hint
    micro = compare(DETOUR, TWIN, results_dir=tmp_path, average="micro")
    assert "diamed" not in micro.tasks
    assert any("diamed" in note for note in micro.notes)


def test_the_english_table_is_compared_whole(tmp_path):
    held = compare("ModernBERT-bio-base CLM detour (50B)", "ModernBERT-bio-base MLM twin (50B)", results_dir=tmp_path)
    assert len(held.tasks) == 11
    assert "hoc" in held.tasks


def test_many_published_models_are_ranked_and_corrected(tmp_path):
    names = [DETOUR, TWIN, "DrBERT", "CamemBERT"]
    held = compare(names, results_dir=tmp_path)
    raw = [r.pair.comparison.test.p for r in held.pairs]
    order = sorted(range(6), key=raw.__getitem__)
    expected, worst = [0.0] * 6, 0.0
    for place, index in enumerate(order):
        worst = max(worst, min(1.0, (6 - place) * raw[index]))
        expected[index] = worst
    assert [r.pair.p_holm for r in held.pairs] == pytest.approx(expected)
    assert {s.model for s in held.standings} == set(names)
    ranks = {r.model: (r.low, r.high) for r in held.ranks}
    assert ranks["CamemBERT"] == (3, 4)
    assert "Holm" in held.text()
    first = compare(names, results_dir=tmp_path, against_first=True)
    assert len(first.pairs) == 3
    assert all(s.ties is None for s in first.standings)
    assert any("tie groups" in note for note in first.notes)
