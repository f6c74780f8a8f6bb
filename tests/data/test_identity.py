"""What makes a run's identity: every part of a spec, of a document and of a request that can change a score."""

from __future__ import annotations

import hashlib
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest

from biobench.data.catalog import load_task
from biobench.data.hashing import documents_hash, task_hash, task_identity
from biobench.data.load import load_data
from biobench.models.loading import find_checkpoint
from biobench.runs.plan import RunRequest, make_plan
from biobench.schema.document import Document, Span
from biobench.store import run_key
from tests.helpers.tiny import make_tiny_encoder

DECIDING = {
    *("id", "version", "language", "type", "labels", "unit", "protocol", "training", "head", "metric"),
    *("source", "reader", "splits"),
}
DOCUMENT = Document(
    "a", "g", "Une phrase.", "test", spans=(Span(4, 10, "X"),), labels=("l",), tokens=((0, 3), (4, 10)),
    tags=("O", "B-X"), origin="f:1",
)  # fmt: skip


def test_the_hash_of_a_document_is_what_it_was() -> None:
    document = replace(DOCUMENT, text="Une phrase à dire.")
    assert documents_hash([document], "src") == "64016952d641876ed602bcda8894a5cab001b79039cdf3fd1fdb828e40f74326"


def test_the_hash_holds_each_part_that_decides() -> None:
    assert set(task_identity(load_task("demo_ner"), "generated")) == DECIDING
    probed = load_task("demo_ner", ["training.encoder=frozen", "probe={}"])
    assert set(task_identity(probed, "generated")) == {*DECIDING, "probe"}
    assert task_hash(load_task("demo_ner", ["metric.paper=macro_f1"]), "generated") == task_hash(
        load_task("demo_ner"), "generated"
    )


CHOICES = (
    "training.learning_rate=1e-4 training.adam_epsilon=1e-6 training.precision=bf16 training.train_fraction=0.5 "
    "training.head_learning_rate=1e-3 head.dropout=0.2 metric.selection=micro_f1 protocol.long_documents=stride "
    "protocol.merge=mean version=9 unit=document"
)


@pytest.mark.parametrize("change", CHOICES.split())
def test_each_choice_of_the_recipe_makes_another_run(change: str) -> None:
    plain, changed = (task_hash(load_task("demo_ner", own), "generated") for own in ([], [change]))
    assert plain != changed


def test_the_data_s_hash_holds_each_part_of_a_document() -> None:
    own = documents_hash([DOCUMENT], "s")
    changes: dict[str, Any] = {
        "id": "b",
        "group": "h",
        "text": "Une phrase!",
        "split": "train",
        "spans": (Span(4, 10, "Y"),),
        "labels": ("m",),
        "tokens": ((0, 3), (4, 9)),
        "tags": ("O", "I-X"),
        "query": "q",
        "pieces": ((0, 3), (4, 9)),
    }
    for name, value in changes.items():
        assert documents_hash([replace(DOCUMENT, **{name: value})], "s") != own, name
    same: dict[str, Any] = {"origin": "g:2", "evidence": (("l", 3),), "unexpressed": ("X",)}
    assert documents_hash([replace(DOCUMENT, **same)], "s") == own
    assert documents_hash([DOCUMENT], "other") != own
    assert {f.name for f in fields(Document)} == {*changes, *same, "plan"}


def test_the_data_s_hash_covers_all_splits_and_the_gold_is_that_of_test() -> None:
    data = load_data(load_task("demo_topic"), None, limit=8)
    whole = load_data(load_task("demo_topic"), None)
    every = [d for name in ("train", "validation", "test") for d in whole.documents[name]]
    assert data.hash == whole.hash == documents_hash(every, "generated")
    assert set(data.gold_labels) == {label for d in whole.test for label in d.labels}


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_tiny_encoder(tmp_path_factory.mktemp("keys") / "tiny")


def test_a_key_is_the_digest_of_the_decisions() -> None:
    """Written out by hand: a key that is made in another way orphans every stored run."""
    text = (
        '{"data":"d","engine":2,"limit":null,"model":"é","precision":"bf16","protocol":null,"seed":42,"task":"t",'
        '"track":"fixed"}'
    )
    wanted = hashlib.sha256(text.encode()).hexdigest()[:32]
    key = run_key(model_hash="é", task_hash="t", data_hash="d", seed=42, precision="bf16", engine_version=2)
    assert key == wanted


def test_a_plan_s_keys_hold_what_was_asked_for(encoder: Path) -> None:
    overrides = ("training.precision=bf16", "training.epochs=2", "training.train_fraction=0.5")
    common = {"overrides": overrides, "device": "cpu", "track": "tuned", "limit": 8}
    asked = RunRequest(model=(str(encoder),), tasks=("demo_topic",), seeds="3,5", **common)  # type: ignore[arg-type]
    task = task_hash(load_task("demo_topic", list(overrides)), "generated")
    identity = {"task_hash": task, "data_hash": load_data(load_task("demo_topic"), None).hash, "precision": "bf16"}
    model = find_checkpoint(str(encoder)).hash
    wanted = [run_key(model_hash=model, seed=seed, track="tuned", limit=8, **identity) for seed in (3, 5)]
    assert [item.key for item in make_plan(asked).items] == wanted
    assert len(set(wanted)) == 2
