"""The gate of the suites' tasks on the real corpora."""

from __future__ import annotations

from pathlib import Path

import pytest

from biobench.baselines import gate
from biobench.data.catalog import load_task
from biobench.data.load import load_data
from biobench.schema.document import TaskData

pytestmark = pytest.mark.real


def data_of(task: str, folder: Path) -> TaskData:
    return load_data(load_task(task), folder)


@pytest.mark.parametrize("task", ["biosses", "pubmedqa"])
def test_gates_pass_or_say_why_nothing_is_asked(task: str, data_dir: Path) -> None:
    verdict = gate(load_task(task), data_of(task, data_dir))
    assert verdict.passed, verdict.reasons
    asked = [c for c in verdict.checks if c.name.startswith("beats")]
    if load_task(task).spec.gate.expect == "beyond_words":
        assert all("not asked" in c.words for c in asked)
    else:
        assert all(c.p is not None and c.p < 0.01 for c in asked)
