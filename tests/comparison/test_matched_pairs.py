"""The first line for two models with training ledgers; silence where one has none."""

from __future__ import annotations

import pytest

from biobench.comparison.compare import compare
from biobench.comparison.matched import CHECKPOINTS
from biobench.errors import StoreError
from tests.helpers.compare_make import save_runs
from tests.helpers.ledger_make import ledger, write


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    folder = tmp_path_factory.mktemp("results")
    for model in ("detour", "twin"):
        save_runs(folder, model, ("gad",), 0.8, (1, 2))
    return folder


def test_a_matched_pair_is_the_first_line(results, tmp_path):
    given = {
        "detour": write(tmp_path / "a.json", ledger("a", "clm")),
        "twin": write(tmp_path / "b.json", ledger("b")),
    }
    held = compare("detour", "twin", results_dir=results, ledgers=given)
    assert held.text().splitlines()[0] == held.verdict[0] == held.as_json()["matched"][0]
    assert held.verdict[0].startswith(
        "Matched twins: detour and twin were trained alike but for the objective"
    )
    write(tmp_path / "b.json", ledger("b", precision="bf16", batch_sequences=2))
    line, about = compare("detour", "twin", results_dir=results, ledgers=given).matched
    assert about == CHECKPOINTS
    assert "`biobench study`" in about
    assert line.startswith("Not matched twins: detour and twin differ in")
    assert "precision" in line
    assert "batch sequences" in line
    write(tmp_path / "b.json", ledger("b", "clm", training=2))
    line, _ = compare("detour", "twin", results_dir=results, ledgers=given).matched
    assert "differ in the training seed alone" in line


def test_ledgers_of_the_models_folders_are_read(results, tmp_path):
    folders = [tmp_path / "models" / name for name in ("detour", "twin")]
    for folder, objective in zip(folders, ("clm", "mlm"), strict=True):
        write(folder / "ledger.json", ledger(folder.name, objective))
    held = compare(*folders, results_dir=results)
    assert held.models == ("detour", "twin")
    assert held.verdict[0].startswith("Matched twins")
    assert compare("detour", folders[1], results_dir=results).matched == ()
    (folders[1] / "ledger.json").write_text("{}")
    with pytest.raises(StoreError, match="damaged"):
        compare(*folders, results_dir=results)
