"""`run` in other modes: validation only, a checkpoint as it is, and the fine-tuned model kept."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModelForSequenceClassification, pipeline

from biobench.data.catalog import load_task
from biobench.data.load import load_data
from biobench.store import Store
from tests.helpers.checkpoints import make_checkpoint
from tests.helpers.cli_make import FAST, Said

Command = Callable[..., Said]


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


def test_validation_only_runs_never_meet_the_test_split(biobench: Command, tiny: Path, tmp_path: Path) -> None:
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


def test_every_line_tells_track_limit_share_and_overrides(biobench: Command, tiny: Path) -> None:
    base = ("run", tiny, "--task", "demo_topic", "--task", "demo_ner", "--seeds", "1", "--json", *FAST)
    for row in biobench(*base, "--dry-run", "--train-fraction", "0.5").json():
        assert (row["track"], row["limit"], row["train_fraction"]) == ("fixed", 24, 0.5)
        assert "training.epochs=1" in row["overrides"]


@pytest.mark.parametrize("family", ["bert", "modernbert"])
def test_a_kept_token_model_loads_in_the_pipeline_and_answers_as_the_run_did(
    biobench: Command, tmp_path: Path, family: str
) -> None:
    model = make_checkpoint(family, tmp_path / family)
    more = ("--set", "training.adapter.rank=4", "--set", "training.learning_rate=1e-2", "--keep-model", "kept")
    base = ("run", model, "--task", "demo_ner", "--seeds", "1", "--json", *FAST, "--set", "training.precision=fp32")
    row = biobench(*base, *more).json()[0]
    assert row["status"] == "done", row["reason"]
    kept = tmp_path / row["model_folder"]
    answers = pipeline("token-classification", model=str(kept))("Aspirin against fever.")
    assert all(set(a) >= {"entity", "score", "start", "end"} for a in answers)
    assert "B-" in " ".join(json.loads((kept / "config.json").read_text())["id2label"].values())
    ready = biobench(
        "run", kept, "--task", "demo_ner", "--no-training", "--json", "--limit", "24", "--device", "cpu",
        *("--set", "training.precision=fp32"),
    ).json()[0]  # fmt: skip
    assert (ready["status"], ready["origin"]) == ("done", "checkpoint"), ready["reason"]
    assert spans_of(tmp_path, "demo_ner", ready["key"]) == spans_of(tmp_path, "demo_ner", row["key"])
    assert record_of(ready, tmp_path)["training"]["steps"] == 0
    again = biobench(*base, *more[:-1], "elsewhere").json()[0]
    assert again["status"] == "skipped"
    assert "--force" in again["reason"]


def test_a_kept_sequence_model_is_the_librarys_where_the_head_is(biobench: Command, bert: Path, tmp_path: Path) -> None:
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
    evaluated = ("--no-training", "--json", "--limit", "24", "--device", "cpu", *fp32)
    for folder, row, pooling in ((kept, stock, "stock"), (apart, pooled, "mean")):
        own = ("--set", f"head.pooling={pooling}")
        ready = biobench("run", folder, "--task", "demo_topic", *evaluated, *own).json()[0]
        assert ready["status"] == "done", ready["reason"]
        assert spans_of(tmp_path, "demo_topic", ready["key"]) == spans_of(tmp_path, "demo_topic", row["key"])
    other = biobench("run", apart, "--task", "demo_topic", *evaluated, "--set", "head.pooling=cls").json()[0]
    assert other["status"] == "failed"
    assert "another task or protocol" in other["reason"]


def test_labels_of_a_checkpoint_are_mapped_by_declaration(biobench: Command, bert: Path, tmp_path: Path) -> None:
    labels = load_data(load_task("demo_topic"), None).labels
    torch.manual_seed(0)
    full = AutoModelForSequenceClassification.from_pretrained(bert, num_labels=len(labels))
    full.save_pretrained(tmp_path / "tuned")
    for file in bert.glob("*token*"):
        (tmp_path / "tuned" / file.name).write_bytes(file.read_bytes())
    base = ("run", tmp_path / "tuned", "--task", "demo_topic", "--json", "--no-training", "--limit", "24")
    assert "does not name its" in biobench(*base).json()[0]["reason"]
    forward = [part for i, label in enumerate(labels) for part in ("--label-map", f"LABEL_{i}={label}")]
    turned = [part for i, label in enumerate(labels[::-1]) for part in ("--label-map", f"LABEL_{i}={label}")]
    first, second = biobench(*base, *forward).json()[0], biobench(*base, *turned).json()[0]
    assert (first["status"], second["status"]) == ("done", "done"), (first["reason"], second["reason"])
    assert first["key"] != second["key"]
    mirror = dict(zip(labels, labels[::-1], strict=True))
    ours = spans_of(tmp_path, "demo_topic", first["key"])
    theirs = spans_of(tmp_path, "demo_topic", second["key"])
    assert [(d, (mirror[own[0]],)) for d, _, own in ours] == [(d, own) for d, _, own in theirs]
    assert record_of(first, tmp_path)["label_map"]["LABEL_0"] == labels[0]
    partly = biobench(*base, *forward[:-2]).json()[0]
    assert partly["status"] == "failed"
    assert f"LABEL_{len(labels) - 1}" in partly["reason"]


def test_what_does_not_go_together_is_refused(biobench: Command, bert: Path) -> None:
    base = ("run", bert, "--task", "demo_topic", *FAST)
    assert "goes with --no-training" in biobench(*base, "--label-map", "a=b").refusal()
    assert "--track tuned does not go" in biobench(*base, "--no-training", "--track", "tuned").refusal()
    assert "is not MODEL_LABEL=TASK_LABEL" in biobench(*base, "--no-training", "--label-map", "a").refusal()
    bare = biobench(*base, "--no-training", "--json").json()[0]
    assert bare["status"] == "failed"
    assert "no fine-tuned sequence classification head" in bare["reason"]
