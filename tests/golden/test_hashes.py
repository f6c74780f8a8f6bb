"""Every shipped spec keeps its hash, and every corpus at hand its data hash: equal hashes, equal
keys of stored runs.

`python -m tests.golden.test_hashes DATA` writes the file anew; explain its difference in the change
that makes it.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from biobench.data.catalog import list_tasks
from biobench.data.hashing import task_hash
from biobench.data.load import load_data
from biobench.errors import DataUnavailableError

FILE = Path(__file__).parent / "hashes.json"
GOLDEN: dict[str, Any] = (
    json.loads(FILE.read_text(encoding="utf-8")) if FILE.is_file() else {"data": {}}
)


def spec_hashes() -> dict[str, str]:
    """`task/source` to hash."""
    return {f"{t.id}/{s.id}": task_hash(t, s.id) for t in list_tasks() for s in t.spec.all_sources}


def data_state(task_id: str, data_dir: Path) -> list[Any]:
    """Source at hand, data hash, documents of each split, labels with gold in the test split."""
    task = next(t for t in list_tasks() if t.id == task_id)
    data = load_data(task, data_dir)
    assert data.count_problems == [], task_id
    return [
        data.source,
        data.hash,
        {name: len(d) for name, d in data.documents.items()},
        list(data.gold_labels),
    ]


def test_every_shipped_spec_has_the_hash_that_it_had() -> None:
    found = spec_hashes()
    changed = [name for name, digest in GOLDEN["tasks"].items() if found.get(name) != digest]
    assert not changed, "give a new field of specs its default by `schema.source.later`"


@pytest.mark.real
@pytest.mark.parametrize("task_id", sorted(GOLDEN["data"]))
def test_every_corpus_at_hand_is_read_as_it_was(task_id: str, data_dir: Path) -> None:
    assert data_state(task_id, data_dir) == GOLDEN["data"][task_id]


if __name__ == "__main__":
    import sys

    found = {}
    for shipped in list_tasks():
        try:
            found[shipped.id] = data_state(shipped.id, Path(sys.argv[1]))
        except DataUnavailableError:
            continue
    text = json.dumps({"tasks": spec_hashes(), "data": found}, indent=1, sort_keys=True)
    FILE.write_text(text + "\n", encoding="utf-8")
