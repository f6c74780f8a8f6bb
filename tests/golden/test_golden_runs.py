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
from biobench.models.loading import find_checkpoint
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
DIGESTS = ("decided", "init_hash", "model_hash")
"""Digests of decisions by score and of drawn and trained weights: the last bit of one number
changes a digest, so another machine has its own.
"""
SCORES = ("scores", "validation")
"""Fields of a record that map a score's name to its value. A score that is added to a kind changes
no other, so the file need not hold it.
"""
Pretrained = tuple[Path, dict[str, Any]]
SAME_MACHINE = GOLDEN["machine"] == machine()


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


@pytest.fixture(scope="module")
def pretrained(tmp_path_factory: pytest.TempPathFactory) -> Pretrained:
    """The folder of the pretraining pair, made once, and its ledgers."""
    folder = tmp_path_factory.mktemp("golden") / "pretraining"
    return folder, dict(golden_pretraining(folder))


def same(found: Any, wanted: Any, same_machine: bool = SAME_MACHINE) -> None:
    """Equal but for rounding, or on another machine than that of the file: equal but for the last
    digits of numbers and the digests that hang on them.
    """
    assert without_numbers(found) == without_numbers(wanted)
    if same_machine:
        assert digests(found) == digests(wanted)
    tolerance = ROUNDING if same_machine else DIGITS
    assert numbers(found) == pytest.approx(numbers(wanted), rel=tolerance, abs=tolerance)


def without_numbers(value: Any) -> Any:
    """The value with 0.0 for every float, and without the digests that floats decide."""
    if isinstance(value, dict):
        return {k: without_numbers(v) for k, v in value.items() if k not in DIGESTS}
    if isinstance(value, list):
        return [without_numbers(v) for v in value]
    return 0.0 if isinstance(value, float) else value


def without_added_scores(found: Any, stored: Any, field: str = "") -> Any:
    """What was found without the scores that `stored` does not name."""
    if isinstance(found, dict) and isinstance(stored, dict):
        names = stored.keys() & found.keys() if field in SCORES else found.keys()
        return {
            name: without_added_scores(part, stored.get(name), name)
            for name, part in found.items()
            if name in names
        }
    if isinstance(found, list) and isinstance(stored, list) and len(found) == len(stored):
        pairs = zip(found, stored, strict=True)
        return [without_added_scores(part, other, field) for part, other in pairs]
    return found


def numbers(value: Any) -> list[float]:
    """All floats of the value, in order."""
    return [leaf for _, leaf in leaves(value) if isinstance(leaf, float)]


def digests(value: Any) -> list[str]:
    """All digests of the value that floats decide, in order."""
    return [leaf for name, leaf in leaves(value) if name in DIGESTS]


def leaves(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """(name of the field, value) of all that is neither mapping nor list, in order."""
    if isinstance(value, dict):
        for field, part in value.items():
            yield from leaves(part, field)
    elif isinstance(value, list):
        for part in value:
            yield from leaves(part, name)
    else:
        yield name, value


@pytest.mark.parametrize("name", GOLDEN["runs"])
def test_a_run_has_its_key_its_scores_and_its_record(made: dict[str, Any], name: str) -> None:
    stored = GOLDEN["runs"][name]
    assert made[name]["key"] == stored["key"]
    same(without_added_scores(made[name], stored), stored)


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


@pytest.mark.parametrize("name", GOLDEN["runs"])
def test_a_score_that_moves_by_a_hundredth_is_found_on_another_machine(
    made: dict[str, Any], name: str
) -> None:
    primary = made[name]["task"]["primary"]
    for step in (-0.01, 0.01):
        moved = made[name]["scores"] | {primary: made[name]["scores"][primary] + step}
        with pytest.raises(AssertionError):
            same(moved, GOLDEN["runs"][name]["scores"], same_machine=False)


def test_another_machine_may_differ_in_last_digits_and_their_digests_alone() -> None:
    stored = GOLDEN["pretraining"]["twin"]
    last_digits = stored | {"flops": stored["flops"] * (1 + 1e-6), "model_hash": "0" * 64}
    same(last_digits, stored, same_machine=False)
    for field in ("flops", "model_hash"):
        with pytest.raises(AssertionError):
            same(stored | {field: last_digits[field]}, stored, same_machine=True)
    for change in ({"recipe_hash": "0" * 64}, {"steps": 21}, {"flops": stored["flops"] * 1.01}):
        with pytest.raises(AssertionError):
            same(stored | change, stored, same_machine=False)


def test_the_pretraining_pair_has_its_ledgers(pretrained: Pretrained) -> None:
    _, found = pretrained
    same(json.loads(json.dumps(found)), GOLDEN["pretraining"])
    detour, twin = (found[name] for name in PRETRAINED)
    assert detour["base"]["init_hash"] == twin["base"]["init_hash"]
    assert [p["order_hash"] for p in detour["phases"]] == [p["order_hash"] for p in twin["phases"]]
    assert detour["phases"][0]["train_loss"] != twin["phases"][0]["train_loss"]


def test_the_trained_weights_are_those_of_the_model_folder_and_of_a_second_run(
    pretrained: Pretrained, tmp_path: Path
) -> None:
    folder, found = pretrained
    for name, ledger in found.items():
        assert find_checkpoint(str(folder / name / "model")).hash == ledger["model_hash"]
    assert dict(golden_pretraining(tmp_path)) == found
