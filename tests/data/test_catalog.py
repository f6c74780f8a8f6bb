"""Finding, overriding, hashing and describing tasks."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from biobench.data.catalog import LoadedTask, list_tasks, load_task, spec_paths
from biobench.data.describe import describe, validate
from biobench.data.hashing import task_hash, task_identity
from biobench.data.load import load_data
from biobench.data.suite import suite_tasks
from biobench.errors import DataUnavailableError, UsageError
from biobench.schema.task import SPLITS


def test_every_shipped_spec_is_complete() -> None:
    tasks = list_tasks()
    assert len(tasks) == len(spec_paths()) >= 7
    for task in tasks:
        spec = task.spec
        assert task.path.stem == spec.id
        assert spec.homepage.startswith("http")
        assert len(spec.citation) > 20
        assert spec.published_as in (None, spec.id)
        for split in spec.counts:
            assert split in SPLITS
        if spec.variant_of is not None:
            assert spec.variant_of != spec.id
            assert spec.published_as is None


def test_unknown_ids_and_paths() -> None:
    with pytest.raises(UsageError, match="unknown task") as caught:
        load_task("ncbi_disease_singel")
    assert caught.value.hint == "did you mean 'ncbi_disease_single'?"
    with pytest.raises(UsageError, match="no file"):
        load_task("nowhere/at_all.yaml")
    with pytest.raises(UsageError, match="unknown suite"):
        suite_tasks("de")


def test_suites_hold_no_variants_and_no_demo() -> None:
    english = {t.id for t in suite_tasks("en")}
    assert {"bc5cdr", "hoc", "gad"} <= english
    assert not english & {"ncbi_disease_single", "anatem_single", "demo_ner"}
    assert english <= {t.id for t in suite_tasks("all")}


def test_the_hash_is_the_protocol_and_nothing_else() -> None:
    task = load_task("anatem_single")
    plain = task_hash(task, "mtl")
    described = load_task("anatem_single", ["licence=other", "name=other", "source.folder=elsewhere", "seeds=1-3"])
    assert task_hash(described, "mtl") == plain
    for change in ("training.epochs=3", "reader.decode=lenient", "version=9", "protocol.max_length=128"):
        assert task_hash(load_task("anatem_single", [change]), "mtl") != plain, change
    spelled_out = load_task("anatem_single", ["reader.separator=tab", "training.max_grad_norm=1.0"])
    assert task_hash(spelled_out, "mtl") == plain
    gad = load_task("gad")
    assert task_hash(gad, "fold1") != task_hash(gad, "blurb")
    assert "folder" not in str(task_identity(gad, "blurb"))


def test_unavailable_data_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(DataUnavailableError) as caught:
        load_data(load_task("ncbi_disease_single"), tmp_path)
    assert "train.tsv, devel.tsv, test.tsv" in caught.value.hint
    assert str(tmp_path / "mtl_ncbi_disease_iob") in caught.value.hint
    assert "https://" in caught.value.hint
    assert "biobench data fetch" in caught.value.hint


def test_the_second_source_is_used_when_the_first_is_not_there(tmp_path: Path) -> None:
    folder = tmp_path / "gad_blurb"
    folder.mkdir()
    for name in ("train", "dev", "test"):
        (folder / f"{name}.tsv").write_text(f"index\tsentence\tlabel\n0\t{name} of @GENE$\t1\n")
    assert load_data(load_task("gad"), tmp_path).source == "blurb"


def test_validation_compares_counts(make_task: Callable[..., LoadedTask], fixtures: Path) -> None:
    more = "counts:\n  train: {documents: 2, mentions: 3, Disease: 3}\n  test: {documents: 3}"
    task = make_task(
        type="token_ner",
        folder="iob",
        files="{train: train.tsv, validation: devel.tsv, test: test.tsv}",
        labels="[Disease, Symptom]",
        reader="{format: iob}",
        more=more,
    )
    found = validate(task, fixtures)
    assert found.state == "ready"
    assert found.counts["train"] == {"documents": 2, "groups": 2, "tokens": 8, "mentions": 3, "Disease": 3}
    assert found.problems == ["counts.test.documents: the spec says 3, source 'local' has 2"]
    assert validate(load_task("gad"), fixtures).state == "missing"


def test_a_source_with_counts_of_its_own(make_task: Callable[..., LoadedTask], fixtures: Path) -> None:
    files = "{train: train.tsv, validation: devel.tsv, test: test.tsv}"
    shared = {"type": "token_ner", "folder": "iob", "labels": "[Disease, Symptom]", "reader": "{format: iob}"}
    more = "counts: {train: {documents: 99}}"
    own = make_task(
        files=f"{files}\n  counts: {{train: {{documents: 2}}, test: {{documents: 5}}}}", more=more, **shared
    )
    assert validate(own, fixtures).problems == ["counts.test.documents: the spec says 5, source 'local' has 2"]
    none = make_task(files=f"{files}\n  counts: {{}}", more=more, **shared)
    assert validate(none, fixtures).problems == []
    assert task_hash(own, "local") == task_hash(none, "local")


def test_describe_with_and_without_data(fixtures: Path) -> None:
    shown = describe(load_task("demo_ner"))
    assert shown["data"]["state"] == "ready"
    assert len(shown["samples"]) == 3
    assert shown["counts"]["test"]["documents"] == 80
    assert shown["count_problems"] == []
    surface, label = shown["samples"][0]["mentions"][0]
    assert surface in shown["samples"][0]["text"]
    assert label in shown["labels"]
    missing = describe(load_task("hoc"), fixtures)
    assert missing["data"]["state"] == "missing"
    assert missing["licence"] == "GPL-3.0"
