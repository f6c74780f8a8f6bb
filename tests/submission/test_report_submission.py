"""Submissions: packed whole, taken when honest, refused with coded findings when not."""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import replace

import pyarrow.parquet as pq
import pytest

from biobench.errors import DataUnavailableError, UsageError
from biobench.export.formats import export
from biobench.score import scored
from biobench.store import Store, run_key
from biobench.submission.layout import JSON_BYTES
from biobench.submission.pack import MANIFEST, slug, submit
from biobench.submission.verify import examine as verify
from tests.helpers.submission_make import TASK, change_record, codes, honest_run, relist, rewrite


def test_an_honest_submission_is_taken_and_rescored(packed):
    found = verify(packed)
    assert found.accepted, found.checks
    assert (found.records, found.state, found.model) == (2, "verified", "org/tiny")
    assert json.loads(json.dumps(found.as_json()))["accepted"] is True


def test_packing_leaves_out_what_is_not_a_full_run(packed):
    assert len(list(packed.glob("runs/*/*.json"))) == 2
    manifest = json.loads((packed / MANIFEST).read_text())
    assert (manifest["model"], manifest["notes"], len(manifest["files"])) == ("org/tiny", "hello", 4)


def test_packing_refuses_what_it_cannot_do(packed, tmp_path):
    with pytest.raises(UsageError, match="is not empty"):
        submit("org/tiny", tmp_path / "results", packed)
    with pytest.raises(UsageError, match="has no full runs"):
        submit("nobody", tmp_path / "results", tmp_path / "other")
    honest_run(tmp_path / "results", model="limited", limit=5)
    with pytest.raises(UsageError, match="is limited to 5 training documents"):
        submit("limited", tmp_path / "results", tmp_path / "other")
    with pytest.raises(UsageError, match="characters"):
        submit("org/tiny", tmp_path / "results", tmp_path / "other", notes="n" * 10_000)


def test_two_sets_of_weights_of_one_name_are_packed_one_at_a_time(tmp_path):
    """A model that was trained again in the same folder, and both runs kept."""
    for digit in "ab":
        honest_run(tmp_path / "results", weights=digit * 64)
    with pytest.raises(UsageError, match="with 2 weights or conditions") as caught:
        submit("org/tiny", tmp_path / "results", tmp_path / "none")
    assert "'org/tiny [weights aaaaaaaa]', 'org/tiny [weights bbbbbbbb]'" in caught.value.hint
    packed = submit("org/tiny [weights bbbbbbbb]", tmp_path / "results", tmp_path / "pack")
    found = verify(packed)
    assert found.accepted
    assert (found.model, found.records) == ("org/tiny", 1)
    with pytest.raises(UsageError, match="names 2 different weights"):
        export("org/tiny", "model-card", tmp_path / "results")
    assert "org/tiny" in export("org/tiny [weights bbbbbbbb]", "model-card", tmp_path / "results")


def test_slugs_are_safe_and_apart():
    names = ["a/b", "a-b", "../../etc", "", "é" * 300, "<script>"]
    assert len({slug(n) for n in names}) == len(names)
    assert all("/" not in slug(n) and not slug(n).startswith(".") and len(slug(n)) < 80 for n in names)


def test_missing_seeds_are_warnings(tmp_path):
    honest_run(tmp_path / "results", 42)
    found = verify(submit("org/tiny", tmp_path / "results", tmp_path / "submission"))
    assert found.accepted
    assert {c.code for c in found.checks} == {"C02"}


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (lambda r: r["scores"].update(macro_f1=0.99), "S01"),
        (lambda r: r["scores"].update(macro_f1=float("nan")), "R01"),
        (lambda r: r["scores"].update(macro_f1=1.5), "R02"),
        (lambda r: r.update(scores={}), "R02"),
        (lambda r: r.update(engine_version=99), "R03"),
        (lambda r: r.update(limit=5), "R04"),
        (lambda r: r.update(seed=7), "R05"),
        (lambda r: r["model"].update(hash="other"), "R05"),
        (lambda r: r["model"].update(id="somebody/else"), "R06"),
        (lambda r: r["task"].update(hash="0" * 64), "T02"),
        (lambda r: r["task"].update(labels=r["task"]["labels"][:-1]), "T03"),
        (lambda r: r["task"].update(gold_labels=r["task"]["gold_labels"][:1]), "D01"),
        (lambda r: r["task"].update(id="elsewhere"), "R01"),
        (lambda r: r.update(redacted=True), "T03"),
        (lambda r: r["task"].update(paper="weighted_f1"), "T03"),
        (lambda r: r["protocol"].update(reader={"lengths": 5}), "T03"),
        (lambda r: r["task"].update(test_documents=1), "D01"),
        (lambda r: r.update(per_label={}), "S03"),
        (lambda r: r["per_label"].popitem(), "S03"),
        (lambda r: next(iter(r["per_label"].values())).pop("tp"), "S03"),
        (
            lambda r: r.update(per_label=dict(zip(r["per_label"], reversed(r["per_label"].values()), strict=True))),
            "S03",
        ),
        (lambda r: r["model"].update(parameters=0), "R02"),
        (lambda r: r["cost"].update(seconds=-5.0), "R01"),
        (lambda r: r["windows"].update(ceiling={"macro_f1": 7.0}), "R02"),
        (lambda r: r["windows"].update(truncated_documents=10**6), "R02"),
        (lambda r: r["training"].update(precision="fp8"), "R02"),
        (lambda r: r["provenance"].update(started="<script>"), "R01"),
        (lambda r: r.update(predictions="../../etc/passwd"), "R01"),
    ],
)
def test_records_that_lie_are_refused(packed, change, code):
    change_record(packed, change)
    assert code in codes(packed)


def test_runs_on_other_data_are_not_taken_for_those_on_the_data_at_hand(tmp_path):
    made = honest_run(tmp_path / "elsewhere")
    gold, said = Store(tmp_path / "elsewhere").load_predictions(made)
    other = made.task.model_copy(update={"data_hash": "0" * 64})
    key = run_key(model_hash=made.model.hash, task_hash=other.hash, data_hash="0" * 64, seed=42, precision="fp32")
    Store(tmp_path / "results").save(made.model_copy(update={"key": key, "task": other}), gold, said)
    assert codes(submit("org/tiny", tmp_path / "results", tmp_path / "submission")) == {"D02"}


def test_predictions_changed_after_the_fact(packed):
    path = next(packed.glob("runs/*/*.parquet"))
    table = pq.read_table(path)
    gold = table.column("gold_labels").to_pylist()
    at = table.schema.get_field_index("labels")
    pq.write_table(table.set_column(at, table.schema.field(at), [gold]), path)
    assert "M04" in codes(packed)
    relist(packed)
    assert "R07" in codes(packed)
    sha = hashlib.sha256(path.read_bytes()).hexdigest()
    record_path = path.with_suffix(".json")
    rewrite(record_path, predictions_sha256=sha)
    relist(packed)
    assert codes(packed) == {"P01"}  # decided labels against their scores


def test_gold_that_is_not_the_datas(tmp_path):
    """Gold bent to fit the predictions gives perfect scores, and is found out by the data."""
    made = honest_run(tmp_path / "results")
    store = Store(tmp_path / "results")
    gold, said = store.load_predictions(made)
    by_id = {p.document: p.labels for p in said}
    bent = [replace(d, labels=by_id[d.id]) for d in gold]
    store.save(scored(made, bent, said), bent, said)
    assert codes(submit("org/tiny", tmp_path / "results", tmp_path / "submission")) == {"D01"}


def test_leaving_out_the_hard_documents(tmp_path):
    made = honest_run(tmp_path / "results")
    store = Store(tmp_path / "results")
    gold, said = store.load_predictions(made)
    kept = [d for d, p in zip(gold, said, strict=True) if d.labels == p.labels]
    right = [p for d, p in zip(gold, said, strict=True) if d.labels == p.labels]
    store.save(scored(made, kept, right), kept, right)
    assert codes(submit("org/tiny", tmp_path / "results", tmp_path / "a")) == {"D01"}
    store.save(scored(made, gold, right), gold, right)
    assert codes(submit("org/tiny", tmp_path / "results", tmp_path / "b")) == {"S02"}


def test_duplicated_documents(tmp_path):
    made = honest_run(tmp_path / "results")
    path = Store(tmp_path / "results").path_of(made)
    table = pq.read_table(path)
    import pyarrow as pa

    pq.write_table(pa.concat_tables([table, table.slice(0, 1)]), path)
    sha = hashlib.sha256(path.read_bytes()).hexdigest()
    Store(tmp_path / "results").update(made.model_copy(update={"predictions_sha256": sha}))
    found = verify(submit("org/tiny", tmp_path / "results", tmp_path / "submission"))
    assert [(c.code, c.what) for c in found.checks if c.grade == "error"] == [("S02", "a document is there twice")]


def test_labels_left_out_of_the_average_are_found_without_the_data(tmp_path, monkeypatch):
    made = honest_run(tmp_path / "results")
    store = Store(tmp_path / "results")
    gold, said = store.load_predictions(made)
    fewer = made.model_copy(update={"task": made.task.model_copy(update={"gold_labels": made.task.gold_labels[:1]})})
    store.save(scored(fewer, gold, said), gold, said)

    def gone(*_, **__):
        raise DataUnavailableError("no data", hint="none")

    monkeypatch.setattr("biobench.submission.verify.load_folds", gone)
    assert codes(submit("org/tiny", tmp_path / "results", tmp_path / "submission")) == {"D01"}


def test_empty_cells_are_damage_not_a_crash(packed):
    import pyarrow as pa

    path = next(packed.glob("runs/*/*.parquet"))
    table = pq.read_table(path)
    at = table.schema.get_field_index("labels")
    holes = pa.array([None] * table.num_rows, pa.list_(pa.string()))
    pq.write_table(table.set_column(at, table.schema.field(at), holes), path)
    record_path = path.with_suffix(".json")
    sha = hashlib.sha256(path.read_bytes()).hexdigest()
    rewrite(record_path, predictions_sha256=sha)
    relist(packed)
    assert codes(packed) == {"R07"}


def test_layout(packed, tmp_path):
    (packed / "runs" / TASK / "notes.html").write_text("<script>alert(1)</script>")
    (packed / "extra").mkdir()
    (packed / "extra" / "x").write_text("")
    os.symlink("/etc/passwd", packed / "runs" / TASK / f"{'a' * 32}.json")
    os.mkfifo(packed / "runs" / TASK / f"{'b' * 32}.json")
    assert codes(packed) == {"L01", "L02"}
    link = tmp_path / "link"
    os.symlink(packed, link)
    assert codes(link) == {"L05"}
    assert codes(tmp_path / "nowhere") == {"L05"}


def test_sizes_are_bounded_before_anything_is_read(packed):
    path = next(packed.glob("runs/*/*.json"))
    with open(path, "wb") as stream:
        stream.truncate(2**30)
    assert codes(packed) == {"L03"}
    with open(path, "wb") as stream:
        stream.truncate(JSON_BYTES + 1)
    assert codes(packed) == {"L03"}


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"model": "m" * 10_000}, "M05"),
        ({"model": "evil\u202egnp"}, "M05"),
        ({"notes": "n" * 10_000}, "M05"),
        ({"files": []}, "M03"),
        ({"more": 1}, "M01"),
        ({"version": "one"}, "M01"),
    ],
)
def test_manifests(packed, change, code):
    manifest = json.loads((packed / MANIFEST).read_text())
    (packed / MANIFEST).write_text(json.dumps(manifest | change))
    assert code in codes(packed)


def test_a_manifest_that_is_missing_or_lists_ghosts(packed):
    manifest = json.loads((packed / MANIFEST).read_text())
    manifest["files"].append({"path": "../../../etc/passwd", "size": 1, "sha256": "0"})
    (packed / MANIFEST).write_text(json.dumps(manifest))
    assert codes(packed) == {"M02"}
    (packed / MANIFEST).unlink()
    assert codes(packed) == {"M01"}


def test_the_commands(packed, tmp_path, monkeypatch):
    from typer.testing import CliRunner

    from biobench.cli.main import app

    monkeypatch.chdir(tmp_path)
    runner = CliRunner()
    made = runner.invoke(app, ["submit", "org/tiny", "--results-dir", "results"])
    assert made.exit_code == 0
    assert "2 runs packed" in made.stdout
    folder = next((tmp_path / "submissions").iterdir())
    good = runner.invoke(app, ["verify-submission", str(folder), "--json"])
    assert good.exit_code == 0
    assert json.loads(good.stdout)["verified"] == 2
    (folder / MANIFEST).unlink()
    bad = runner.invoke(app, ["verify-submission", str(folder)])
    assert bad.exit_code == 1
    assert "M01 error" in bad.stdout
