"""`biobench study`: declared runs, each made once, checked as pairs and scored; tables from what is
stored.
"""

from pathlib import Path

import numpy as np
import pytest
import yaml

from biobench.errors import SpecError, UsageError
from biobench.stats import LeftOut
from biobench.workflows.study import Benchmark, Study, StudyRun, load_study, planned_runs
from biobench.workflows.study_table import ArmRow, table

ROOT = Path(__file__).parents[2]
DECLARED = """\
name: toy
question: Is the detour's encoder better than its twin's?
base: recipe.yaml
arms: [twin, detour]
reference: twin
seeds: [1, 2]
budgets: [6000]
benchmark: {tasks: [demo_topic], seeds: "4",
  overrides: [training.epochs=1, training.train_documents=32]}
"""

RECIPE = """\
extends: toy_detour
name: mine
base:
  config: {hidden_size: 32, intermediate_size: 32, num_hidden_layers: 2, num_attention_heads: 2,
    local_attention: 16}
  tokenizer: {vocabulary: 500}
corpus: {sources: [{id: embedded, embedded: {documents: 150}}], sequence_length: 64, held_out: 0.02}
phases: {detour: {schedule: {warmup: 1k}}}
arms:
  detour: {}
  twin: {phases: {detour: {name: masked, objective: mlm, masking: {rate: 0.3}}}}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A study of the toy recipes, seconds long."""
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "recipe.yaml").write_text(RECIPE)
    (tmp_path / "mine" / "study.yaml").write_text(DECLARED)
    return tmp_path / "mine"


def test_a_study_is_made_once_and_its_table_comes_from_what_is_stored(biobench, folder, tmp_path):
    assert "4 runs, 24,000 tokens" in biobench("study", folder, "--dry-run").out
    assert not (tmp_path / "study").exists()
    first = biobench("study", folder, "--device cpu --json").ok()
    twin, detour = first.json()["rows"]
    assert [row["arm"] for row in (twin, detour)] == ["twin", "detour"]
    assert (twin["difference"], set(detour["scores"])) == (None, {"1", "2"})
    runs = first.json()["runs"]
    assert {name: runs[f"twin-6k-s{name}"]["demo_topic"] for name in ("1", "2")} == twin["scores"]
    pairs = [detour["scores"][s] - twin["scores"][s] for s in ("1", "2")]
    assert detour["difference"] == pytest.approx(sum(pairs) / 2)
    written = [*tmp_path.glob("study/**/ledger.json"), *tmp_path.glob("study/results/runs/*/*")]
    times = {p: p.stat().st_mtime_ns for p in written}
    assert len(times) >= 4
    assert biobench("study", folder, "--device cpu --json").json() == first.json()
    assert {p: p.stat().st_mtime_ns for p in written} == times
    declared = folder / "study.yaml"
    declared.write_text(DECLARED.replace("[demo_topic]", "[demo_topic, diamed]"))
    (tmp_path / "empty").mkdir()
    refused = biobench("study", folder, "--out new --data-dir", tmp_path / "empty")
    assert (refused.status, "diamed" in refused.err) == (2, True)
    assert not (tmp_path / "new").exists(), "nothing is trained for a benchmark without data"
    declared.write_text(DECLARED)
    text = biobench("study", folder, "--table").out
    assert "not matched" not in text, "only the objective of the first phase differs"
    assert max(map(len, text.splitlines())) <= 120


def test_secondary_tasks_are_scored_and_do_not_enter_it(biobench, folder, tmp_path):
    declared = folder / "study.yaml"
    one = DECLARED.replace("arms: [twin, detour]", "arms: [twin]").replace("[1, 2]", "[1]")
    declared.write_text(one.replace("}\n", ", secondary: [demo_ner]}\n"))
    shown = biobench("study", folder, "--device cpu --json").ok().json()
    (row,), scores = shown["rows"], shown["runs"]["twin-6k-s1"]
    assert set(scores) == {"demo_topic", "demo_ner"}
    assert row["mean"] == scores["demo_topic"]
    (folder / "recipe.yaml").write_text(RECIPE + "optimizer: {learning_rate: 1e-3}\n")
    assert (
        "was made with other settings: optimizer" in biobench("study", folder, "--device cpu").err
    )


def made_study(arms=("twin", "detour"), seeds=(1, 2, 3, 4), tasks=("demo_ner", "demo_topic")):
    """A study of these arms and seeds with 10 tokens, and its runs."""
    benchmark = {"tasks": list(tasks)}
    changed = {"arms": arms, "seeds": seeds, "budgets": [10], "benchmark": benchmark}
    study = Study.model_validate(yaml.safe_load(DECLARED) | {"base": "toy_detour"} | changed)
    runs = [StudyRun(arm, 10, seed, "r.yaml", ()) for arm in study.arms for seed in study.seeds]
    return study, runs


def test_the_table_takes_whole_runs_only_and_pairs_by_seed():
    study, runs = made_study()
    scores = {f"twin-0.01k-s{s}": {"demo_ner": 0.1 * s, "demo_topic": 0.3} for s in (1, 2, 3, 4)}
    scores |= {
        f"detour-0.01k-s{s}": {"demo_ner": 0.1 * s + 0.02 * s, "demo_topic": 0.3} for s in (1, 2, 3)
    }
    scores["detour-0.01k-s4"] = {"demo_ner": 0.9}
    twin, detour = table(study, runs, scores)
    assert (twin.arm, twin.difference, len(twin.scores)) == ("twin", None, 4)
    assert sorted(detour.scores) == [1, 2, 3], "a run without all tasks does not count"
    assert detour.difference == pytest.approx(0.02)
    # t interval of 0.01, 0.02 and 0.03: sd 0.01, half-width 4.3027 * 0.01 / sqrt(3)
    assert detour.high - 0.02 == pytest.approx(4.30265 * 0.01 / 3**0.5, rel=1e-4)
    assert (detour.level, detour.shown, detour.test_sets) == (0.95, False, False)
    assert ArmRow("demo_ner", 1, {1: 0.5}).spread is None
    few = {name: of for name, of in scores.items() if not name.endswith("s3")}
    assert table(study, runs, few)[1].shown is None, "two seeds show nothing"
    for seed in (1, 2, 3):
        scores[f"detour-0.01k-s{seed}"]["demo_ner"] = 0.1 * seed + 0.02
    equal = table(study, runs, scores)[1]
    assert equal.difference == pytest.approx(0.01)
    assert (equal.p, equal.shown) == (None, None), "equal differences are no certainty"
    scores["detour-0.01k-s2"]["demo_ner"] += 1e-7
    nearly = table(study, runs, scores)[1]
    assert nearly.p > 0.01, "a score has the step of a document"


def test_all_arms_are_corrected_together_and_test_sets_are_in_the_intervals():
    study, runs = made_study(("twin", "detour", "causal"), tasks=("demo_topic",))
    gains = {"twin": 0.0, "detour": 0.05, "causal": 0.045}
    # what the arms add over the twin varies from seed to seed by a thousandth
    wobble = {("detour", s): 0.001 * s for s in study.seeds}
    scores = {
        run.name: {"demo_topic": 0.5 + gains[run.arm] + wobble.get((run.arm, run.seed), 0.0)}
        for run in runs
    }
    scores["causal-0.01k-s1"]["demo_topic"] += 0.002
    _, detour, causal = table(study, runs, scores)
    assert {detour.level, causal.level} == {0.975, 0.95}
    assert detour.shown
    assert causal.shown
    rng = np.random.default_rng(0)
    noisy = {
        run.name: {
            "demo_topic": LeftOut(
                full=np.array([scores[run.name]["demo_topic"]]),
                without=scores[run.name]["demo_topic"] + rng.normal(0, 0.05, (30, 1)),
                groups=tuple(map(str, range(30))),
            )
        }
        for run in runs
    }
    _, wide, _ = table(study, runs, scores, noisy)
    assert wide.test_sets
    assert wide.high - wide.low > 3 * (detour.high - detour.low)
    assert not wide.shown


@pytest.mark.parametrize(
    ("text", "other", "words"),
    [
        ("[twin, detour]", "[twin, detuor]", r"the base recipe\.yaml has no arm 'detuor'"),
        ("base: recipe.yaml", "base: toy_detor", "no recipe 'toy_detor'"),
        ("reference: twin", "reference: none", "reference .none. is no arm"),
        ('seeds: "4"', 'seeds: "4", protocol: smal', "smal"),
    ],
)
def test_what_is_wrong_is_named(folder, text, other, words):
    with pytest.raises(UsageError, match=r"holds no study\.yaml"):
        load_study(folder.parent)
    (folder / "study.yaml").write_text(DECLARED.replace(text, other))
    with pytest.raises((SpecError, UsageError), match=words):
        load_study(folder)


def test_an_older_declaration_names_its_secondary_tasks_by_their_old_word() -> None:
    assert Benchmark.model_validate({"tasks": ("gad",), "beside": ("hoc",)}).secondary == ("hoc",)


@pytest.mark.parametrize(
    "declaration",
    [
        "study",
        "study/pilot.yaml",
        "study/longer.yaml",
        "study/replication.yaml",
        "study/freezing.yaml",
    ],
)
def test_the_shipped_studies_are_valid_and_their_arms_spend_the_same_tokens(declaration):
    study = load_study(ROOT / "results" / declaration)
    planned = [(run.budget, run.recipe().phases) for run in planned_runs(study, None)]
    spent = {
        (budget, sum(p.tokens for p in phases), phases[0].schedule.warmup)
        for budget, phases in planned
    }
    assert len(spent) == len(study.budgets), spent
    assert all(abs(total - budget) <= 4 for budget, total, _ in spent)
