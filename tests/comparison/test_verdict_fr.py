"""The French verdict says what the English one says: as many sentences, the same numbers and names in each."""

from __future__ import annotations

import re

import pytest

from biobench.comparison.compare import compare
from biobench.comparison.verdict_fr import verdict_fr
from tests.helpers.ledger_make import ledger, write
from tests.helpers.report_make import save_runs

DETOUR, TWIN = "ModernCamemBERT-bio-base CLM detour (10B)", "ModernCamemBERT-bio-base MLM twin (10B)"
TASKS = ("bc5cdr", "anatem", "gad", "hoc", "quaero_emea")


def figures(sentence):
    """All numbers, without the words that one language needs and the other does not."""
    return sorted(number.replace(",", ".") for number in re.findall(r"\d+(?:[.,]\d+)?", sentence))


def check(held):
    french = verdict_fr(held)
    assert len(french) == len(held.verdict)
    for one, other in zip(held.verdict, french, strict=True):
        assert figures(one) == figures(other), (one, other)
        assert [m for m in held.models if m in one] == [m for m in held.models if m in other]
        assert one != other
        assert not re.search(r"\d\.\d", other), "French has decimal commas"
    return french


@pytest.mark.parametrize("gap", [0.0, 0.002, 0.05])
@pytest.mark.parametrize("tasks", [1, 2, 5])
@pytest.mark.parametrize("seeds", [1, 3])
def test_two_models(tmp_path, gap, tasks, seeds):
    for number, task in enumerate(TASKS[:tasks]):
        wobble = 0.004 * (-1) ** number if gap else 0.0
        save_runs(tmp_path, "north", task, {42 + s: 0.6 + gap + wobble + 0.003 * s for s in range(seeds)})
        save_runs(tmp_path, "south", task, {42 + s: 0.6 + 0.0031 * s * bool(gap) + 0.003 * s for s in range(seeds)})
    check(compare(["north", "south"], results_dir=tmp_path, documents=False))


def test_several_models_published_ones_and_twins(tmp_path):
    for name, level in (("north", 0.6), ("south", 0.65), ("west", 0.7)):
        for task in TASKS:
            save_runs(tmp_path, name, task, {s: level + 0.01 * (s % 3) for s in (42, 43, 44)})
    french = check(compare(["north", "south", "west"], results_dir=tmp_path, documents=False))
    assert french[0].startswith("Moyenne la plus haute en anglais : west")
    french = check(compare(["north", "south", "west"], results_dir=tmp_path, documents=False, pooled=True))
    assert french[0].startswith("Moyenne la plus haute : west")
    assert check(compare([DETOUR, TWIN], results_dir=tmp_path))[0].startswith(f"{DETOUR} est meilleur que {TWIN}")
    check(compare([DETOUR, TWIN, "DrBERT"], results_dir=tmp_path))
    ledgers = {n: write(tmp_path / n / "ledger.json", ledger(n, o)) for n, o in (("north", "clm"), ("south", "mlm"))}
    french = check(compare(["north", "south"], results_dir=tmp_path, documents=False, ledgers=ledgers))
    assert french[0].startswith("Jumeaux appariés")
