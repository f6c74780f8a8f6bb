"""Energy is measured when asked for, and only then."""

from __future__ import annotations

import pytest

from biobench.errors import UsageError
from biobench.runs import provenance


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
