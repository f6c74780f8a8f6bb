"""`speed` measures what it says, on any checkpoint; energy is measured when asked for, and only then."""

from __future__ import annotations

from pathlib import Path

import pytest

from biobench.errors import UsageError
from biobench.runs import provenance
from biobench.runs.speed import measure
from tests.helpers.checkpoints import make_checkpoint


def test_lengths_and_rates(tmp_path: Path) -> None:
    folder = make_checkpoint("modernbert", tmp_path / "m")
    lines = measure(str(folder), [16, 64], batch_size=2, steps=1, device="cpu")
    assert [line.length for line in lines] == [16, 64]
    for line in lines:
        assert line.inference_tokens_per_second > 0
        assert line.train_tokens_per_second > 0
        assert line.peak_memory_bytes > 10 * 2**20
        assert line.attention == "packed"
    assert lines[0].parameters == lines[1].parameters > 10_000


def test_a_length_that_the_model_cannot_read(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="length 512 is outside"):
        measure(str(make_checkpoint("bert", tmp_path / "m")), [512])


def test_unasked_nothing_is_measured() -> None:
    with provenance.metered(False) as meter:
        pass
    assert meter.kwh is None


def test_the_extra_that_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(provenance, "find_spec", lambda name: None)
    with pytest.raises(UsageError, match="codecarbon is not installed"), provenance.metered(True):
        pass


def test_measured() -> None:
    pytest.importorskip("codecarbon", reason="the energy extra is not installed")
    with provenance.metered(True) as meter:
        sum(range(3_000_000))
    assert meter.kwh is not None
    assert 0 < meter.kwh < 0.1
