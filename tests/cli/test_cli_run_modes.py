"""`run` in other modes: validation only, and the fine-tuned model kept."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from transformers import pipeline

from biobench.data.catalog import load_task
from biobench.data.load import load_data
from biobench.store import Store
from tests.helpers.checkpoints import make_checkpoint
from tests.helpers.cli_make import FAST, Run


@pytest.fixture(scope="module")
def bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random BERT."""
    return make_checkpoint("bert", tmp_path_factory.mktemp("families") / "bert")


def record_of(row: dict[str, Any], folder: Path) -> dict[str, Any]:
    """The stored record of a line of `run --json`."""
    return dict(json.loads((folder / row["predictions"]).with_suffix(".json").read_text()))


def spans_of(folder: Path, task: str, key: str) -> list[tuple[str, Any, Any]]:
    """What a stored run predicts."""
    store = Store(folder / "results")
    record = store.get(task, key)
    assert record is not None
    return [(p.document, p.spans, p.labels) for p in store.stored_predictions(record)[1]]


def test_validation_only_runs_never_meet_the_test_split(biobench: Run, tiny: Path, tmp_path: Path) -> None:
    base = ("run", tiny, "--task", "demo_topic", "--seeds", "1", "--json", *FAST)
    spared = biobench(*base, "--no-test").json()[0]
    assert (spared["status"], spared["split"]) == ("done", "validation")
    record = record_of(spared, tmp_path)
    best = max(record["training"]["curve"], key=lambda point: point["validation"]["macro_f1"])
    assert spared["scores"]["micro_f1"] == pytest.approx(best["validation"]["micro_f1"])
    documents = {name for name, *_ in spans_of(tmp_path, "demo_topic", spared["key"])}
    data = load_data(load_task("demo_topic"), None, 24)
    assert documents == {d.id for d in data.validation}
    assert not (tmp_path / "results" / "floors").exists(), "not even the policies without skill look at the test split"
    tested = biobench(*base).json()[0]
    assert tested["key"] != spared["key"]
    rows = [r for r in biobench("report", "--format", "json").json() if r["source"] == "run"]
    assert {r["variant"] for r in rows if "validation only" in r["variant"]}
    assert all(r["n_seeds"] == 1 for r in rows), "the two stand on lines of their own"
    assert biobench("rescore", "--json").json()[0]["outcome"] == "unchanged"
    assert "validation only" in biobench("report", "--format", "md").out


def test_a_kept_token_model_loads_in_the_pipeline_and_answers_as_the_run_did(
    biobench: Run, bert: Path, tmp_path: Path
) -> None:
    more = ("--set", "training.adapter.rank=4", "--set", "training.learning_rate=1e-2", "--keep-model", "kept")
    base = ("run", bert, "--task", "demo_ner", "--seeds", "1", "--json", *FAST, "--set", "training.precision=fp32")
    row = biobench(*base, *more).json()[0]
    assert row["status"] == "done", row["reason"]
    kept = tmp_path / row["model_folder"]
    answers = pipeline("token-classification", model=str(kept))("Aspirin against fever.")
    assert all(set(a) >= {"entity", "score", "start", "end"} for a in answers)
    assert "B-" in " ".join(json.loads((kept / "config.json").read_text())["id2label"].values())
    again = biobench(*base, *more[:-1], "elsewhere").json()[0]
    assert again["status"] == "skipped"
    assert "--force" in again["reason"]


def test_a_kept_sequence_model_is_the_librarys_where_the_head_is(biobench: Run, bert: Path, tmp_path: Path) -> None:
    base = ("run", bert, "--task", "demo_topic", "--seeds", "1", "--json", *FAST, "--keep-model", "kept")
    fp32 = ("--set", "training.precision=fp32")
    stock = biobench(*base, *fp32, "--set", "head.pooling=stock").json()[0]
    kept = tmp_path / stock["model_folder"]
    assert not (kept / "head.safetensors").exists()
    answer = pipeline("text-classification", model=str(kept))("A study of asthma.")[0]
    assert answer["label"] in load_data(load_task("demo_topic"), None).labels
    pooled = biobench(*base, *fp32, "--set", "head.pooling=mean").json()[0]
    apart = tmp_path / pooled["model_folder"]
    assert (apart / "head.safetensors").exists(), "BERT's own head has another pooling"
