"""`biobench reproduce`: bit for bit where all is the same, and no wrong agreement where something is not."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.cli_make import FAST, Said, call


@pytest.fixture
def biobench(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], tmp_path: Path) -> Callable[..., Said]:
    """`biobench(ARGUMENTS)` in this process, in an empty folder."""
    monkeypatch.delenv("BIOBENCH_DATA_DIR", raising=False)
    monkeypatch.delenv("BIOBENCH_RESULTS_DIR", raising=False)
    monkeypatch.chdir(tmp_path)
    return lambda *arguments: call(monkeypatch, capfd, *arguments)


@pytest.fixture
def stored(biobench: Callable[..., Said], tmp_path: Path) -> Path:
    """The record of one run, of `models/tiny` on demo_ner."""
    from tests.helpers.tiny import make_tiny_encoder

    make_tiny_encoder(tmp_path / "models" / "tiny")
    done = biobench("run", "models/tiny", "--task", "demo_ner", "--seeds", "3", "--json", "--no-gate", *FAST)
    return (tmp_path / str(done.json()[0]["predictions"])).with_suffix(".json")


def rewritten(path: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """The record with a change."""
    record = json.loads(path.read_text())
    change(record)
    path.write_text(json.dumps(record))


@pytest.mark.parametrize("models", ["models", "models/tiny"])
def test_the_same_machine_gives_the_same_bits(biobench: Callable[..., Said], stored: Path, models: str) -> None:
    said = biobench("reproduce", stored, "--models", models, "--json")
    (row,) = said.json()
    assert (said.status, row["agreement"], row["again"]) == (0, "identical", row["stored"])
    folder = biobench("reproduce", stored.parents[2], "--models", models)
    assert folder.status == 0
    assert "agrees, the same predictions bit for bit" in folder.out


def test_other_weights_data_or_engine_are_not_run(biobench: Callable[..., Said], stored: Path, tmp_path: Path) -> None:
    from tests.helpers.tiny import make_tiny_encoder

    shutil.rmtree(tmp_path / "models")
    make_tiny_encoder(tmp_path / "models" / "tiny", window=64)
    rewritten(stored, lambda r: r["task"].update(data_hash="0" * 64) or r.update(engine_version=1))
    said = biobench("reproduce", stored, "--models", "models", "--json")
    (row,) = said.json()
    assert (said.status, row["agreement"], row["again"]) == (1, "other", None)
    for part in ("weights ", "data ", "engine "):
        assert part in row["reason"], row["reason"]
    assert not (tmp_path / "reproduced").exists()


def test_a_score_that_was_made_up_does_not_agree(biobench: Callable[..., Said], stored: Path) -> None:
    """The record claims more than its predictions give; so does the parquet file's hash."""
    rewritten(stored, lambda r: r.update(predictions_sha256="0" * 64))
    said = biobench("reproduce", stored, "--models", "models", "--json")
    assert said.status != 0, "predictions that are not those of the record are no evidence"


def test_predictions_that_differ_agree_within_the_interval_alone(
    biobench: Callable[..., Said], stored: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from biobench.store import Store
    from biobench.workflows import reproduce as module

    store = Store(stored.parents[2])
    (record,) = store.records()
    gold, predictions = store.stored_predictions(record)
    changed = [*predictions[:-1], type(predictions[-1])(document=predictions[-1].document, tags=predictions[-1].tags)]
    shutil.rmtree(stored.parents[2])
    Store(stored.parents[2]).save(record, gold, changed)
    (row,) = biobench("reproduce", stored, "--models", "models", "--json").json()
    if changed[-1].spans != predictions[-1].spans:
        assert row["same"] < 1
    assert row["agreement"] in ("within", "identical")
    shutil.rmtree(tmp_path / "reproduced")
    monkeypatch.setattr(module, "_interval", lambda *_: (2.0, 3.0))
    assert biobench("reproduce", stored, "--models", "models").status == 1


def test_nothing_to_reproduce_is_one_line(biobench: Callable[..., Said], stored: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert "no record here" in biobench("reproduce", tmp_path / "empty").refusal()
    assert "no record here" in biobench("reproduce", tmp_path / "nowhere").refusal()
    same = biobench("reproduce", stored, "--models", "models", "--results-dir", stored.parents[2])
    assert "the records lie here" in same.err
