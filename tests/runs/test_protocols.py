"""`--protocol small`: caps that hold, keys of its own, and nothing beside it that would change the
recipe.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import biobench
from biobench.data.catalog import load_task, spec_paths
from biobench.data.load import load_data, subset
from biobench.reporting.results import load
from biobench.schema.protocols import PROTOCOLS, protocol_named_by, protocol_overrides
from tests.helpers.cli_make import QUICK

WHOLE: dict[str, Any] = {"seeds": 1, **QUICK, "limit": None, "overrides": ()}


@pytest.mark.parametrize("task", sorted(spec_paths()))
def test_every_shipped_spec_takes_the_protocol_and_keeps_the_rest_of_its_recipe(task: str) -> None:
    full = load_task(task)
    overrides = protocol_overrides("small", kind=full.spec.type, unit=full.spec.unit)
    small = load_task(task, overrides)
    before, after = (spec.training.model_dump() for spec in (full.spec, small.spec))
    changed = {name for name in before if before[name] != after[name]}
    assert changed <= {o.partition("=")[0].removeprefix("training.") for o in overrides}
    assert small.spec.training.train_documents
    assert full.spec.model_copy(update={"training": None}) == small.spec.model_copy(
        update={"training": None}
    )
    assert protocol_named_by(overrides) == "small"
    assert protocol_named_by([*overrides, "training.weight_decay=0.1"]) is None
    assert protocol_named_by(overrides[:1]) is None


def test_the_caps_hold_for_training_and_validation_and_never_for_the_test(
    encoder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = load_data(load_task("demo_topic"), None)
    caps = ("training.train_documents=17", "training.validation_documents=5", "training.epochs=1")
    monkeypatch.setitem(PROTOCOLS["small"], "text", caps)
    (result,) = biobench.run(encoder, tasks="demo_topic", protocol="small", **WHOLE)
    record = json.loads(Path(str(result.predictions)).with_suffix(".json").read_text())
    assert result.status == "done"
    assert record["training"]["steps"] == 2, "17 documents in batches of 16"
    assert record["task"]["test_documents"] == len(whole.test)
    assert record["limit"] is None
    own = ["training.epochs=1", "training.train_documents=16"]
    (other,) = biobench.run(encoder, tasks="demo_topic", **{**WHOLE, "overrides": own})
    assert other.key != result.key
    groups = {g.variant: g for g in load("results").groups}
    assert set(groups) == {"small protocol", "training.epochs=1, training.train_documents=16"}
    assert not any(g.is_full for g in groups.values())
    few, more = ({d.id for d in subset(whole.train, most=size)} for size in (17, 40))
    assert few < more
