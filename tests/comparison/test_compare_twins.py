"""The first line for two models with training ledgers; silence where one has none."""

from __future__ import annotations

from pathlib import Path

import pytest

from biobench.comparison.compare import compare
from biobench.errors import StoreError, UsageError
from tests.helpers.compare_make import save_runs
from tests.helpers.ledger_make import ledger, write

TASKS = ("gad", "diamed")


@pytest.fixture
def results(tmp_path: Path) -> Path:
    folder = tmp_path / "results"
    save_runs(folder, "detour", TASKS, 0.8)
    save_runs(folder, "twin", TASKS, 0.7)
    save_runs(folder, "other", TASKS, 0.7)
    return folder


def test_matched_twins_are_the_first_line(results, tmp_path):
    given = {"detour": write(tmp_path / "a.json", ledger("a", "clm")), "twin": write(tmp_path / "b.json", ledger("b"))}
    held = compare("detour", "twin", results_dir=results, ledgers=given)
    assert held.text().splitlines()[0] == held.verdict[0]
    assert held.verdict[0].startswith("Matched twins: detour and twin were trained alike but for the objective")
    assert held.as_json()["twins"][0]["matched"] is True


def test_not_matched_names_what_differs(results, tmp_path):
    other = ledger("b", precision="bf16", batch_sequences=2)
    given = {"detour": write(tmp_path / "a.json", ledger("a", "clm")), "twin": write(tmp_path / "b.json", other)}
    held = compare("detour", "twin", results_dir=results, ledgers=given)
    assert held.verdict[0].startswith("Not matched twins: detour and twin differ in")
    assert "precision" in held.verdict[0]
    assert "batch windows" in held.verdict[0]


def test_a_noise_pair_is_called_one(results, tmp_path):
    given = {
        "detour": write(tmp_path / "a.json", ledger("a")),
        "twin": write(tmp_path / "b.json", ledger("b", training=2)),
    }
    held = compare("detour", "twin", results_dir=results, ledgers=given)
    assert "differ in the training seed alone" in held.verdict[0]


def test_ledgers_beside_the_models_are_found(results, tmp_path):
    for name, objective in (("detour", "clm"), ("twin", "mlm")):
        write(tmp_path / "models" / name / "ledger.json", ledger(name, objective))
    held = compare(tmp_path / "models" / "detour", tmp_path / "models" / "twin", results_dir=results)
    assert held.models == ("detour", "twin")
    assert held.verdict[0].startswith("Matched twins")


def test_without_two_ledgers_nothing_is_said(results, tmp_path):
    alone = {"detour": write(tmp_path / "a.json", ledger("a"))}
    for given in (None, alone):
        held = compare("detour", "twin", results_dir=results, ledgers=given)
        assert held.twins == ()
        assert "twins" not in held.text()


def test_wrong_ledgers_are_one_line(results, tmp_path):
    with pytest.raises(UsageError, match="not compared here"):
        compare("detour", "twin", results_dir=results, ledgers={"nobody": tmp_path})
    with pytest.raises(UsageError, match="no ledger at"):
        compare("detour", "twin", results_dir=results, ledgers={"twin": tmp_path / "none.json"})
    broken = tmp_path / "broken.json"
    broken.write_text("{}")
    with pytest.raises(StoreError, match="damaged"):
        compare("detour", "twin", results_dir=results, ledgers={"detour": broken, "twin": broken})
