"""`speed` measures what it says, on any checkpoint."""

from __future__ import annotations

from pathlib import Path

import pytest

from biobench.errors import UsageError
from biobench.runs.speed import measure
from tests.helpers.checkpoints import make_checkpoint


def test_lengths_and_rates(tmp_path: Path) -> None:
    folder = make_checkpoint("modernbert", tmp_path / "m")
    how = {"batch_size": 2, "steps": 1, "device": "cpu", "offline": True}
    lines = measure(str(folder), [16, 64], **how)
    assert [line.length for line in lines] == [16, 64]
    for line in lines:
        assert line.inference_tokens_per_second > 0
        assert line.train_tokens_per_second > 0
        assert line.peak_memory_bytes > 10 * 2**20
        assert line.attention == "packed"
    assert lines[0].parameters == lines[1].parameters > 10_000
    with pytest.raises(UsageError, match="length 512 is not a length"):
        measure(str(make_checkpoint("bert", tmp_path / "bert")), [512], **how)
