"""`biobench.run` takes what the command line takes, and refuses what it refuses before anything is trained."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import biobench
from biobench.data.catalog import spec_paths
from biobench.errors import UsageError

FAST: dict[str, Any] = {
    "limit": 24,
    "overrides": "training.epochs=1",
    "device": "cpu",
    "parallel": 1,
    "gate": False,
    "results_dir": "results",
}


@pytest.fixture
def encoder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    from tests.helpers.tiny import make_tiny_encoder

    monkeypatch.chdir(tmp_path)
    return make_tiny_encoder(tmp_path / "tiny")


def test_paths_single_values_and_lists_are_alike(encoder: Path) -> None:
    first = biobench.run(encoder, tasks=spec_paths()["demo_ner"], seeds=1, **FAST)
    again = biobench.run([str(encoder)], tasks=["demo_ner"], seeds=[1], **{**FAST, "train_fractions": 1.0})
    assert [r.status for r in first] == ["done"]
    assert [(r.status, r.key) for r in again] == [("skipped", first[0].key)]


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"track": "free"}, "--track 'free'"),
        ({"executor": "slurm"}, "--executor 'slurm'"),
        ({"parallel": 0}, "--parallel '0'"),
        ({"seeds": []}, "--seeds"),
    ],
)
def test_what_is_wrong_is_refused_before_training(encoder: Path, wrong: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        biobench.run(encoder, tasks="demo_ner", **{**FAST, **wrong})
    assert not Path("results").exists()
