"""The first line for two models with training ledgers; silence where one has none."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from compare_make import save_runs

from biobench.errors import StoreError, UsageError
from biobench.report.compare import compare
from trainer.ledger import Ledger, LedgerBase, LedgerCorpus, PhaseRecord

TASKS = ("gad", "diamed")


def ledger(name: str, objective: str = "mlm", *, training: int = 1, **changed: Any) -> Ledger:
    """A run's ledger in miniature."""
    phase = PhaseRecord(
        name="main",
        objective=objective,
        masking=None if objective == "clm" else {"rate": 0.3},
        tokens=1000,
        steps=10,
        targets=300,
        first_sample=0,
        last_sample=9,
        order_hash="o",
        epochs=0.5,
        peak_rate=1e-3,
        final_rate=0.0,
        schedule={"kind": "wsd"},
        frozen_layers=None,
        head="tied",
        data="main",
        isolate_documents=True,
        flops=1e9,
        leak=0.0,
        reach={"global": (-1, -1)},
        train_loss=2.0,
        validation_loss=None,
    )
    return Ledger(
        name=name,
        recipe_hash="r",
        base=LedgerBase(
            source="base", revision=None, architecture="x", parameters=1, init_hash="i", tokenizer_hash="t"
        ),
        corpus=LedgerCorpus(
            manifest_hash="m",
            windows=10,
            tokens=2000,
            sources={"s": 1.0},
            excluded_documents=0,
            exclusion_hash="e",
        ),
        sequence_length=100,
        batch_sequences=1,
        step_tokens=100,
        optimizer={"name": "adamw"},
        precision="fp32",
        dropout=0.0,
        attention="sdpa",
        distributed="none",
        world_sizes=(1,),
        seeds={"data": 1, "init": 1, "training": training},
        phases=(phase,),
        tokens=1000,
        steps=10,
        flops=1e9,
        seconds=1.0,
        finished="2026-01-01T00:00:00+00:00",
        code_version="1",
        packages={},
    ).model_copy(update=changed)


@pytest.fixture
def results(tmp_path: Path) -> Path:
    folder = tmp_path / "results"
    save_runs(folder, "detour", TASKS, 0.8)
    save_runs(folder, "twin", TASKS, 0.7)
    save_runs(folder, "other", TASKS, 0.7)
    return folder


def write(path: Path, held: Ledger) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(held.model_dump_json())
    return path


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


def test_three_models_give_each_pair_with_ledgers(results, tmp_path):
    given = {"detour": write(tmp_path / "a.json", ledger("a", "clm")), "twin": write(tmp_path / "b.json", ledger("b"))}
    held = compare("detour", "twin", "other", results_dir=results, ledgers=given)
    assert [(t.first, t.second) for t in held.twins] == [("detour", "twin")]


def test_wrong_ledgers_are_one_line(results, tmp_path):
    with pytest.raises(UsageError, match="not compared here"):
        compare("detour", "twin", results_dir=results, ledgers={"nobody": tmp_path})
    with pytest.raises(UsageError, match="no ledger at"):
        compare("detour", "twin", results_dir=results, ledgers={"twin": tmp_path / "none.json"})
    broken = tmp_path / "broken.json"
    broken.write_text("{}")
    with pytest.raises(StoreError, match="damaged"):
        compare("detour", "twin", results_dir=results, ledgers={"detour": broken, "twin": broken})
