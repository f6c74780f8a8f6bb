"""Keys, scores and records of small runs of every kind of task are what they were before the last
change.

`tests/helpers/golden_make.py` says how they are made, and how the file is written anew.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from biobench.data.catalog import load_task
from biobench.schema.kind import KINDS
from tests.helpers.golden_make import (
    FILE,
    PRETRAINED,
    RUNS,
    golden_pretraining,
    golden_runs,
    machine,
    write_tasks,
)

GOLDEN: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))
ROUNDING = 1e-13
"""On the same machine: a library's sum of products may end otherwise in its last bit."""
DIGITS = 1e-3
"""On another machine: how far a loss or a score may be from what it was (sums run in another order
there).
"""


@pytest.fixture(scope="module", autouse=True)
def one_thread() -> Iterator[None]:
    """Sums in the order in which the stored ones ran."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """All runs, made once."""
    return dict(golden_runs(tmp_path_factory.mktemp("golden") / "runs"))


def same(found: Any, wanted: Any) -> None:
    """Equal but for rounding, or on another machine than that of the file: equal but for the last
    digits of numbers.
    """
    assert without_numbers(found) == without_numbers(wanted)
    if GOLDEN["machine"] == machine():
        assert not isinstance(found, dict) or found.get("decided") == wanted.get("decided")
        assert numbers(found) == pytest.approx(numbers(wanted), rel=ROUNDING, abs=ROUNDING)
    else:
        assert numbers(found) == pytest.approx(numbers(wanted), rel=DIGITS, abs=DIGITS)


def without_numbers(value: Any) -> Any:
    """The value with 0.0 for every float; the digest of the decisions is no exact part of it
    either.
    """
    if isinstance(value, dict):
        return {k: without_numbers(v) for k, v in value.items() if k != "decided"}
    if isinstance(value, list):
        return [without_numbers(v) for v in value]
    return 0.0 if isinstance(value, float) else value


def numbers(value: Any) -> list[float]:
    """All floats of the value, in order."""
    if isinstance(value, dict):
        return [x for v in value.values() for x in numbers(v)]
    if isinstance(value, list):
        return [x for v in value for x in numbers(v)]
    return [value] if isinstance(value, float) else []


@pytest.mark.parametrize("name", GOLDEN["runs"])
def test_a_run_has_its_key_its_scores_and_its_record(made: dict[str, Any], name: str) -> None:
    assert made[name]["key"] == GOLDEN["runs"][name]["key"]
    same(made[name]["scores"], GOLDEN["runs"][name]["scores"])
    same(made[name], GOLDEN["runs"][name])


def test_the_runs_are_of_every_kind_of_task(made: dict[str, Any], tmp_path: Path) -> None:
    assert set(made) == set(GOLDEN["runs"]) > set(RUNS)
    paths = write_tasks(tmp_path)
    kinds = {load_task(paths.get(task, task)).spec.type for _, task, _ in RUNS.values()}
    assert kinds == set(KINDS)
    assert {family for family, _, _ in RUNS.values()} == {"bert", "modernbert"}


def test_the_scores_say_something(made: dict[str, Any]) -> None:
    """Runs whose scores are all those of one answer would not notice a wrong one."""
    right = {
        name: sum(label["tp"] > 0 for label in r["per_label"].values()) for name, r in made.items()
    }
    assert sum(labels >= 2 for labels in right.values()) >= 15, right
    assert len({json.dumps(r["scores"]) for r in made.values()}) >= 17


def test_the_pretraining_pair_has_its_ledgers(tmp_path: Path) -> None:
    found = dict(golden_pretraining(tmp_path))
    same(json.loads(json.dumps(found)), GOLDEN["pretraining"])
    detour, twin = (found[name] for name in PRETRAINED)
    assert detour["base"]["init_hash"] == twin["base"]["init_hash"]
    assert [p["order_hash"] for p in detour["phases"]] == [p["order_hash"] for p in twin["phases"]]
    assert detour["phases"][0]["train_loss"] != twin["phases"][0]["train_loss"]
