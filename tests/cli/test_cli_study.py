"""`biobench study`: declared runs, each made once, checked as pairs and scored; tables from what is stored."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from biobench.errors import SpecError, UsageError
from biobench.workflows.study import ArmRow, Study, StudyRun, check_windows, load_study, table
from tests.helpers.cli_make import Said

ROOT = Path(__file__).parents[2]
DECLARED = """\
name: toy
question: Is the detour's encoder better than its twin's?
base: recipe.yaml
arms: [twin, detour]
reference: twin
seeds: [1, 2]
budgets: [6000]
benchmark: {tasks: [demo_topic], seeds: "4", overrides: [training.epochs=1, training.train_documents=32]}
"""

RECIPE = """\
extends: toy_detour
name: mine
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


def test_a_study_is_made_once_and_its_table_comes_from_what_is_stored(
    biobench: Callable[..., Said], folder: Path, tmp_path: Path
) -> None:
    costs = biobench("study", folder, "--dry-run")
    assert "4 runs, 24,000 tokens" in costs.out
    assert not (tmp_path / "study").exists()
    first = biobench("study", folder, "--device", "cpu", "--json")
    assert first.status == 0, first.err
    rows = {row["arm"]: row for row in first.json()["rows"]}
    assert set(rows) == {"twin", "detour"}
    assert set(rows["detour"]["scores"]) == {"1", "2"}
    assert rows["twin"]["difference"] is None
    runs = first.json()["runs"]
    assert {name: runs[f"twin-6k-s{name}"]["demo_topic"] for name in ("1", "2")} == rows["twin"]["scores"]
    pairs = [rows["detour"]["scores"][s] - rows["twin"]["scores"][s] for s in ("1", "2")]
    assert rows["detour"]["difference"] == pytest.approx(sum(pairs) / 2)
    times = {p: p.stat().st_mtime_ns for p in (tmp_path / "study").rglob("*.json")}
    again = biobench("study", folder, "--device", "cpu", "--json")
    assert again.json() == first.json()
    assert all(
        p.stat().st_mtime_ns == t for p, t in times.items() if p.name in ("ledger.json",) or "results" in p.parts
    )
    others = ("--results-dir", "study/results", "--set", "training.train_documents=32", "--device", "cpu")
    for task, epochs, seed in (("demo_topic", 2, 4), ("demo_topic", 1, 5), ("demo_ner", 1, 4)):
        own = ("--task", task, "--seeds", seed, "--set", f"training.epochs={epochs}")
        assert biobench("run", "study/runs/twin-6k-s1/model", *own, *others).status == 0
    assert biobench("study", folder, "--table", "--json").json() == first.json(), "other runs of its encoders"
    text = biobench("study", folder, "--table").out
    assert "not matched" not in text, "only the objective of the first phase differs"
    assert max(map(len, text.splitlines())) <= 120


def test_tasks_beside_the_mean_are_scored_and_those_that_no_encoder_can_read_are_refused_before_training(
    biobench: Callable[..., Said], folder: Path, tmp_path: Path
) -> None:
    declared = folder / "study.yaml"
    one = DECLARED.replace("arms: [twin, detour]", "arms: [twin]").replace("[1, 2]", "[1]")
    declared.write_text(one.replace("}\n", ", beside: [short.yaml]}\n"))
    needle = (ROOT / "results" / "study" / "needle_short.yaml").read_text()
    few = "notes: 60, lengths: [128], examples: {train: 24, validation: 8, test: 16}"
    for old, new in (("id: needle_short", "id: short"), ("haystack: synthetic, lengths: [128, 256]", few)):
        assert old in needle
        needle = needle.replace(old, new)
    (folder / "short.yaml").write_text(needle)
    for more in ((), ("--dry-run",)):
        said = biobench("study", folder, "--device", "cpu", *more)
        assert said.status == 2
        assert "short: its shortest documents have 128 tokens, and twin-6k-s1 will read 64" in said.err
    assert not (tmp_path / "study").exists()
    (folder / "recipe.yaml").write_text(RECIPE.replace("sequence_length: 64", "sequence_length: 128"))
    said = biobench("study", folder, "--device", "cpu", "--json")
    assert said.status == 0, said.err
    (row,), scores = said.json()["rows"], said.json()["runs"]["twin-6k-s1"]
    assert set(scores) == {"demo_topic", "short"}
    assert row["mean"] == scores["demo_topic"]


def test_a_run_made_under_another_declaration_is_not_taken_for_this_one(
    biobench: Callable[..., Said], folder: Path, tmp_path: Path
) -> None:
    declared = folder / "study.yaml"
    declared.write_text(DECLARED.replace("arms: [twin, detour]", "arms: [twin]").replace("[1, 2]", "[1]"))
    assert biobench("study", folder, "--device", "cpu").status == 0
    (folder / "recipe.yaml").write_text(RECIPE + "optimizer: {learning_rate: 1e-3}\n")
    assert "was made with other settings: optimizer" in biobench("study", folder, "--device", "cpu").err


def test_the_table_takes_whole_runs_only_and_pairs_by_seed() -> None:
    study = Study.model_validate(
        {
            "name": "x",
            "question": "?",
            "base": "toy_detour",
            "arms": ["twin", "detour"],
            "reference": "twin",
            "seeds": [1, 2, 3],
            "budgets": [10],
            "benchmark": {"tasks": ["a", "b"]},
        }
    )
    runs = [StudyRun(arm, 10, seed, "r.yaml", ()) for arm in study.arms for seed in study.seeds]
    scores = {f"twin-0.01k-s{s}": {"a": 0.1 * s, "b": 0.3} for s in (1, 2, 3)}
    scores |= {f"detour-0.01k-s{s}": {"a": 0.1 * s + 0.02 * s, "b": 0.3} for s in (1, 2)}
    scores["detour-0.01k-s3"] = {"a": 0.9}
    twin, detour = table(study, runs, scores)
    assert (twin.arm, twin.difference, len(twin.scores)) == ("twin", None, 3)
    assert sorted(detour.scores) == [1, 2], "a run without all tasks does not count"
    assert detour.difference == pytest.approx(0.015)
    # t interval of 0.01 and 0.02: sd 0.00707, half-width 12.706 * 0.005
    assert detour.high is not None
    assert detour.high - 0.015 == pytest.approx(12.7062 * 0.005, rel=1e-4)
    assert ArmRow("a", 1, {1: 0.5}, None, None, None).spread is None


def test_what_is_wrong_is_named(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"holds no study\.yaml"):
        load_study(tmp_path)
    declared = folder / "study.yaml"
    declared.write_text(DECLARED.replace("[twin, detour]", "[twin, detuor]"))
    with pytest.raises(SpecError, match=r"the base recipe\.yaml has no arm 'detuor'"):
        load_study(folder)
    declared.write_text(DECLARED.replace("base: recipe.yaml", "base: toy_detor"))
    with pytest.raises(UsageError, match="no recipe 'toy_detor'"):
        load_study(folder)
    declared.write_text(DECLARED.replace("base: recipe.yaml", "base: toy_detour"))
    assert load_study(folder).base == "toy_detour", "a shipped recipe"
    declared.write_text(DECLARED.replace("reference: twin", "reference: none"))
    with pytest.raises(SpecError):
        load_study(folder)
    declared.write_text(DECLARED.replace('seeds: "4"', 'seeds: "4", protocol: smal'))
    with pytest.raises(SpecError, match="smal"):
        load_study(folder)


@pytest.mark.parametrize("declaration", ["study", "study/pilot.yaml", "study/longer.yaml", "study/freezing.yaml"])
def test_the_shipped_studies_are_valid_and_their_arms_spend_the_same_tokens(declaration: str) -> None:
    from biobench.workflows.study import planned_runs

    study = load_study(ROOT / "results" / declaration)
    spent = set()
    runs = planned_runs(study, None)
    check_windows(study, runs)
    for run in runs:
        phases = run.recipe().phases
        spent.add((run.budget, sum(p.tokens for p in phases), phases[0].schedule.warmup))
    assert len(spent) == len(study.budgets), spent
    assert all(abs(total - budget) <= 4 for budget, total, _ in spent)


def test_a_declaration_beside_study_yaml_lays_its_overrides_over_every_recipe(folder: Path) -> None:
    from biobench.workflows.study import planned_runs

    wide = DECLARED.replace("seeds: [1, 2]", "seeds: [1]\noverrides: [corpus.sequence_length=48]")
    (folder / "short.yaml").write_text(wide)
    study = load_study(folder / "short.yaml")
    recipes = [run.recipe() for run in planned_runs(study, None)]
    assert [r.corpus.sequence_length for r in recipes] == [48, 48]
    assert {run.recipe().corpus.sequence_length for run in planned_runs(load_study(folder), None)} == {64}
