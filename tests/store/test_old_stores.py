"""Results folders as earlier versions wrote them open and say what they said.

`fixtures/stores/record-1`: runs and gate verdicts of a tiny random encoder under record version 1,
written before the fields of records had ranges: documents, spans, a tuned limited run, a task under
an agreement.
"""

from __future__ import annotations

import json
import shutil
from typing import Any

import pytest

from biobench.schema.baseline import BASELINE_VERSION
from biobench.schema.record import RECORD_VERSION
from biobench.store import Store
from biobench.store.baselines import scan_baselines
from biobench.store.records import REMOVED, canonical_json

GONE = {name for names in REMOVED.values() for name in names}
VERSIONS = range(1, RECORD_VERSION + 1)


@pytest.fixture(params=VERSIONS)
def old(request, fixtures, tmp_path):
    """A copy: reading writes an index."""
    return shutil.copytree(fixtures / "stores" / f"record-{request.param}", tmp_path / "results")


def test_every_record_of_an_earlier_version_loads_with_its_predictions(old):
    store = Store(old)
    records, found = store.scan()
    assert not found
    assert len(records) == len(list(old.glob("runs/*/*.json"))) == 4
    assert {r.task.id for r in records} == {"demo_ner", "demo_topic", "clinic_notes"}
    assert {r.track for r in records} == {"fixed", "tuned"}
    assert any(r.training.trials for r in records)
    for record in records:
        gold, said = store.stored_predictions(record)
        assert len(gold) == len(said) == record.task.test_documents
        assert record.redacted == (record.task.id == "clinic_notes")
    assert store.briefs()[1] == []
    versions = {
        json.loads(path.read_bytes())["floor_version"] for path in old.glob("floors/*/*.json")
    }
    assert max(versions) == 3 < BASELINE_VERSION
    assert scan_baselines(old) == ([], []), (
        "verdicts of an earlier gate are made anew, and are no damage either"
    )


def test_a_record_of_an_earlier_version_is_written_again_without_loss(old):
    for path in old.glob("runs/*/*.json"):
        record = Store(old).get(path.parent.name, path.stem)
        before = json.loads(path.read_bytes())
        after = json.loads(canonical_json(record.model_dump(mode="json")))
        assert holds(after, before), path


def holds(after: Any, before: Any) -> bool:
    """Whether everything in `before` but removed fields stands in `after`, which may have more
    fields at any depth.
    """
    if isinstance(before, dict):
        return isinstance(after, dict) and all(
            n in after and holds(after[n], v) for n, v in before.items() if n not in GONE
        )
    if isinstance(before, list):
        return (
            isinstance(after, list) and len(after) == len(before) and all(map(holds, after, before))
        )
    return bool(after == before)


def test_a_record_that_uses_every_field_opens_and_is_written_again_without_loss(fixtures, tmp_path):
    full = shutil.copytree(fixtures / "stores" / "record-1-full", tmp_path / "results")
    (path,) = full.glob("runs/*/*.json")
    record = Store(full).get(path.parent.name, path.stem)
    before = json.loads(path.read_bytes())
    assert holds(json.loads(canonical_json(record.model_dump(mode="json"))), before)
    assert record.contamination.test.seen == 2
    assert before["cost"]["prepared_ahead"], "a removed field is passed over"
