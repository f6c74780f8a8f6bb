"""Saving, reading back, damage, redaction, sharing and running out of space."""

from __future__ import annotations

import errno
import json
import os
import re
from dataclasses import replace
from unittest.mock import Mock

import pytest

from biobench.errors import DataUnavailableError, StoreError
from biobench.schema.record import ENGINE_VERSION
from biobench.score import rescore
from biobench.score.slices import RunTexts
from biobench.store import Store, run_key
from tests.helpers.store_make import (
    GOLD,
    SENTENCES,
    documents,
    file_of,
    predictions,
    record,
    saved,
)


def test_what_is_saved_comes_back(tmp_path):
    store = Store(tmp_path / "results")
    assert store.get("my_task", record().key) is None
    stored = saved(store)
    assert stored.predictions == f"runs/my_task/{stored.key}.parquet"
    assert store.get("my_task", stored.key) == stored
    assert store.path_of(stored) == tmp_path / "results" / stored.predictions
    gold, said = store.load_predictions(stored)
    assert gold == [replace(d, text="", origin="") for d in documents()]
    assert said == predictions()
    files = [path.read_bytes() for path in (tmp_path / "results").rglob("*") if path.is_file()]
    assert not any(sentence.encode() in content for sentence in SENTENCES for content in files), (
        "no text is stored"
    )
    assert saved(Store(tmp_path / "again")).predictions_sha256 == stored.predictions_sha256


def test_predictions_of_unknown_documents_are_refused(tmp_path):
    with pytest.raises(ValueError, match="distinct documents"):
        Store(tmp_path).save(record(), documents()[:1], predictions())
    with pytest.raises(ValueError, match="scored first"):
        Store(tmp_path).save(record(score=False), documents(), predictions())
    assert not list(tmp_path.rglob("*.json"))


def test_redacted_runs_hold_no_id_no_gold_and_no_order(store):
    stored = saved(store, redacted=True)
    content = store.path_of(stored).read_bytes()
    assert not any(name in content for name in (b"note-", b"patient-"))
    with pytest.raises(DataUnavailableError) as caught:
        store.load_predictions(stored)
    assert "--data-dir" in caught.value.hint
    gold, said = store.load_predictions(stored, documents())
    assert sorted(d.spans for d in gold) == sorted(GOLD)
    assert len({d.group for d in gold}) == 2
    spans = {d.text: p.spans for d in gold for p in said if p.document == d.id}
    assert spans == {text: p.spans for text, p in zip(SENTENCES, predictions(), strict=True)}
    assert [p.document for p in said] == sorted(p.document for p in said)


def names_in(store, run):
    return {prediction.document for prediction in store.load_predictions(run, documents())[1]}


def test_redacted_runs_of_one_data_set_share_their_names_and_no_others(store):
    first, second = saved(store, redacted=True), saved(store, redacted=True, seed=43)
    assert names_in(store, first) == names_in(store, second)
    other = [replace(d, text=d.text + "!") for d in documents()]
    with pytest.raises(StoreError, match="not those of this run"):
        store.load_predictions(first, other)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"{", "not JSON"),
        (b"\xff\xfe", "not JSON"),
        (b"[" * 100_000, "not JSON"),
        (b"[]", "does not hold a record"),
        (b'{"record_version": 1}', "damaged record"),
        (b'{"record_version": 99}', "newer BioBench"),
        (b'{"seed": NaN}', "NaN is not a finite number"),
        (b'{"key": "\\uD800"}', "not JSON"),
        ({"key": "half \ud800"}, "not JSON"),
        ({"per_label": {"Drug": {"f1": 1.0}}}, "damaged record"),
    ],
)
def test_a_damaged_record_is_a_finding_and_the_rest_works(store, content, said):
    good, bad = saved(store), saved(store, seed=43)
    path = file_of(store, bad)
    if isinstance(content, dict):
        content = json.dumps(json.loads(path.read_text()) | content).encode()
    path.write_bytes(content)
    with pytest.raises(StoreError, match=said) as caught:
        store.get("my_task", bad.key)
    assert caught.value.file == str(path)
    assert [b.key for b in store.briefs()[0]] == [good.key]
    records, (finding,) = store.scan()
    assert records == [good] == store.records()
    assert (finding.file, said in finding.what) == (str(path), True)


def test_a_model_folder_in_another_encoding_does_not_hide_its_run(store):
    model = record().model.model_copy(update={"id": b"caf\xe9".decode("utf-8", "surrogateescape")})
    store.save(record(seed=43).model_copy(update={"model": model}), documents(), predictions())
    assert [r.model.id.rstrip("\ufffd") for r in store.records()] == ["caf"]
    assert len(store.briefs()[0]) == 1


def test_renamed_copied_or_half_deleted_runs_are_findings(store, tmp_path):
    good, lost = saved(store), saved(store, seed=43)
    store.path_of(lost).unlink()
    here = file_of(store, good)
    for folder, name in [
        ("my_task", "0" * 32),
        ("other_task", good.key),
        ("my_task", "notes"),
        ("MY TASK", "1" * 32),
    ]:
        (tmp_path / "runs" / folder).mkdir(exist_ok=True)
        (tmp_path / "runs" / folder / f"{name}.json").write_bytes(here.read_bytes())
    records, findings = store.scan()
    assert records == [good]
    said = " ".join(str(f) for f in findings)
    assert len(findings) == 5
    assert "predictions are missing" in said
    assert said.count("record of another run") == 2
    assert said.count("do not name a run") == 2


def test_changed_predictions_are_found_out(store):
    stored = saved(store)
    with store.path_of(stored).open("ab") as file:
        file.write(b" ")
    with pytest.raises(StoreError, match="not the file that was stored"):
        store.load_predictions(stored)


@pytest.mark.parametrize(
    ("task", "key"), [("../up", "0" * 32), ("a/b", "0" * 32), ("ok", "../../x"), ("ok", "A" * 32)]
)
def test_names_never_become_other_paths(tmp_path, task, key):
    with pytest.raises(StoreError, match="do not name a run"):
        Store(tmp_path).get(task, key)


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_a_full_disk_leaves_what_was_there(store, tmp_path, monkeypatch, step):
    before = saved(store)
    full = Mock(side_effect=OSError(errno.ENOSPC, "No space left on device"))
    monkeypatch.setattr(os, step, full)
    with pytest.raises(StoreError, match="the disk is full") as caught:
        saved(store, seed=43)
    assert "space" in caught.value.hint
    with pytest.raises(StoreError, match="the disk is full"):
        store.update(before.model_copy(update={"scores": {"macro_f1": 0.0}}))
    assert full.called
    monkeypatch.undo()
    assert store.scan() == ([before], [])
    assert not list(tmp_path.rglob("*.tmp"))


def test_a_file_where_the_folder_should_be(tmp_path):
    (tmp_path / "results").write_text("")
    store = Store(tmp_path / "results")
    with pytest.raises(StoreError, match="cannot be written"):
        saved(store)
    with pytest.raises(StoreError, match="cannot be written"), store.claim("my_task", "0" * 32):
        pass


def test_numbers_that_are_not_finite_are_not_stored(tmp_path):
    wild = record().model_copy(update={"scores": {"macro_f1": float("nan")}})
    with pytest.raises(StoreError, match="JSON cannot"):
        Store(tmp_path).save(wild, documents(), predictions())


def test_a_store_knows_which_command_made_a_run(store, tmp_path):
    key = "0" * 32
    assert store.command_of("my_task", key) is None
    store.note_command("my_task", key, 1.5)
    assert store.command_of("my_task", key) == 1.5
    (tmp_path / "locks" / "my_task" / f"{key}.command").write_bytes(b"[]")
    with pytest.raises(StoreError, match="is not the note of a run") as error:
        store.command_of("my_task", key)
    assert error.value.hint == "move it away"


def test_a_failure_is_known_to_its_command_alone(store, tmp_path):
    key = "0" * 32
    assert store.failure("my_task", key, 1700000000.25) is None
    store.note_failure("my_task", key, 1700000000.25, "the loss is not finite (étape 3)")
    assert (
        Store(tmp_path).failure("my_task", key, 1700000000.25) == "the loss is not finite (étape 3)"
    )
    assert store.failure("my_task", key, 1700000000.5) is None, "a later command tries again"
    assert store.get("my_task", key) is None
    for damage in (b"", b"[]", b"{}", b"\xff", b"[" * 100_000):
        (tmp_path / "locks" / "my_task" / f"{key}.failed").write_bytes(damage)
        with pytest.raises(StoreError, match="not the note of a run"):
            store.failure("my_task", key, 1700000000.25)


def test_keys_name_every_decision():
    decided = {
        "model_hash": "m",
        "task_hash": "t",
        "data_hash": "d",
        "seed": 42,
        "precision": "bf16",
    }
    key = run_key(**decided)
    assert re.fullmatch("[0-9a-f]{32}", key)
    assert run_key(**decided, track="fixed", limit=None, engine_version=ENGINE_VERSION) == key
    changes = [
        *(
            {name: "other"}
            for name in ("model_hash", "task_hash", "data_hash", "precision", "track")
        ),
        {"seed": 43},
        {"limit": 8},
        {"protocol": {"training": {"epochs": 1}}},
        {"engine_version": ENGINE_VERSION + 1},
    ]
    keys = {run_key(**decided | change) for change in changes} | {key}
    assert len(keys) == len(changes) + 1
    assert run_key(**decided, protocol={"a": 1, "b": 2}) == run_key(
        **decided, protocol={"b": 2, "a": 1}
    )
    with pytest.raises(ValueError, match="not JSON compliant"):
        run_key(**decided, protocol={"rate": float("inf")})


def test_rescoring_goes_on_past_what_it_cannot_score(store, tmp_path):
    good, secret, broken = saved(store), saved(store, seed=43, redacted=True), saved(store, seed=44)
    assert {r.outcome for r in rescore(store)} == {"unchanged", "unavailable"}
    store.path_of(broken).write_bytes(b"not parquet")
    store.update(good.model_copy(update={"scores": {"macro_f1": 0.0}}))
    (tmp_path / "runs" / "my_task" / f"{'f' * 32}.json").write_text("{")
    rows = {r.key: r for r in rescore(store)}
    outcomes = {key: row.outcome for key, row in rows.items()}
    assert rows[good.key].changed["macro_f1"] == (0.0, good.scores["macro_f1"])
    assert store.get("my_task", good.key) == good, "deleted scores come back identical"
    assert outcomes == {
        "": "failed",
        good.key: "changed",
        secret.key: "unavailable",
        broken.key: "failed",
    }
    store.update(secret.model_copy(update={"scores": {}}))

    def texts(record):
        return RunTexts(record.task.type, documents(), documents(), redacted=record.redacted)

    again = {r.key: r.outcome for r in rescore(store, texts)}
    assert again[secret.key] == "changed"
    after = store.get("my_task", secret.key)
    assert after.slices["rare"].gold == 5
    assert after.model_copy(update={"slices": {}}) == secret
