"""Finding, overriding, hashing and describing tasks; suites; and what decides a run's key: all that
changes a score.
"""

import hashlib
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import biobench
from biobench.cli.main import app
from biobench.data.catalog import list_tasks, load_task, spec_paths
from biobench.data.describe import describe, validate
from biobench.data.hashing import documents_hash, task_hash, task_identity
from biobench.data.load import load_data
from biobench.data.suite import load_suite, matching, picked, pool, skipped, suite_tasks
from biobench.errors import SpecError, UsageError
from biobench.models.loading import find_checkpoint
from biobench.reporting.results import load
from biobench.reporting.suite import build_suite
from biobench.runs.plan import RunRequest, make_plan
from biobench.schema.document import Document, Remark, Span
from biobench.schema.task import SPLITS
from biobench.store import run_key
from tests.helpers.drafts import in_splits, write
from tests.helpers.tiny import make_tiny_encoder


def test_every_shipped_spec_is_complete():
    tasks = list_tasks()
    assert len(tasks) == len(spec_paths()) >= 7
    for task in tasks:
        spec = task.spec
        assert task.path.stem == spec.id
        assert len(spec.citation) > 20
        assert spec.published_as in (None, spec.id)
        for split in spec.counts:
            assert split in (*SPLITS, "all")
        if spec.variant_of is not None:
            assert spec.variant_of != spec.id
            assert spec.published_as is None


@pytest.mark.parametrize(
    ("task", "override", "epochs", "steps"),
    [
        ("quaero_medline", "training.epochs=1", 1, None),
        ("gad", "training.max_steps=9", None, 9),
        ("gad", "training.epochs=2", 2, None),
    ],
)
def test_a_length_of_training_takes_the_place_of_one_in_the_other_unit(
    task: str, override: str, epochs: int | None, steps: int | None
) -> None:
    training = load_task(task, [override]).spec.training
    assert (training.epochs, training.max_steps) == (epochs, steps)
    assert load_task(task, [override]).overrides == (override,)
    with pytest.raises(SpecError, match="either epochs or max_steps"):
        load_task(task, ["training.epochs=1", "training.max_steps=9"])


def test_suites_hold_no_variants_and_no_demo():
    english = {t.id for t in suite_tasks("en")}
    assert {"bc5cdr", "hoc", "gad"} <= english
    assert not english & {"ncbi_disease_single", "anatem_single", "demo_ner"}
    assert english <= {t.id for t in suite_tasks("all")}


def test_the_hash_is_the_protocol_and_nothing_else():
    task = load_task("anatem_single")
    plain = task_hash(task, "mtl")
    described = load_task(
        "anatem_single", ["licence=other", "name=other", "source.folder=elsewhere", "seeds=1-3"]
    )
    assert task_hash(described, "mtl") == plain
    lenient = load_task("anatem_single", ["reader.decode=lenient"])
    assert task_hash(lenient, "mtl") != plain
    spelled_out = load_task("anatem_single", ["reader.separator=tab", "training.max_grad_norm=1.0"])
    assert task_hash(spelled_out, "mtl") == plain
    gad = load_task("gad")
    assert task_hash(gad, "fold1") != task_hash(gad, "blurb")
    assert "folder" not in str(task_identity(gad, "blurb"))


def test_the_second_source_is_used_when_the_first_is_not_there(tmp_path):
    in_splits(tmp_path / "gad_blurb", "{}.tsv", "index\tsentence\tlabel\n0\t@ of GENE$\t1\n")
    assert load_data(load_task("gad"), tmp_path).source == "blurb"


IOB = {"folder": "iob", "labels": "[Disease, Symptom]", "reader": "{format: iob}"}


def test_validation_compares_counts(make_task, fixtures):
    more = "counts:\n  train: {documents: 2, mentions: 3, Disease: 3}\n  test: {documents: 3}"
    task = make_task(**IOB, more=more)
    found = validate(task, fixtures)
    assert found.state == "ready"
    counts = {"documents": 2, "groups": 2, "tokens": 8, "mentions": 3, "Disease": 3}
    assert found.counts["train"] == counts
    assert found.problems == ["counts.test.documents: the spec says 3, source 'local' has 2"]
    assert validate(load_task("gad"), fixtures).state == "missing"


def test_a_source_with_counts_of_its_own(make_task, fixtures):
    files = "{train: train.tsv, validation: devel.tsv, test: test.tsv}"
    more = "counts: {train: {documents: 99}}"
    counts = "{train: {documents: 2}, test: {documents: 5}}"
    own = make_task(files=f"{files}\n  counts: {counts}", more=more, **IOB)
    assert validate(own, fixtures).problems == [
        "counts.test.documents: the spec says 5, source 'local' has 2"
    ]
    none = make_task(files=f"{files}\n  counts: {{}}", more=more, **IOB)
    assert validate(none, fixtures).problems == []
    assert task_hash(own, "local") == task_hash(none, "local")


def test_describe_with_and_without_data(fixtures):
    shown = describe(load_task("demo_ner"))
    assert shown["data"]["state"] == "ready"
    assert len(shown["samples"]) == 3
    assert shown["counts"]["test"]["documents"] == 80
    assert shown["count_problems"] == []
    surface, label = shown["samples"][0]["mentions"][0]
    assert surface in shown["samples"][0]["text"]
    assert label in shown["labels"]
    assert shown["samples_withheld"] == ""
    agreed = describe(
        load_task("demo_ner", ["access=agreement", "obtain={needs: a, pages: [], steps: []}"])
    )
    assert (agreed["samples"], agreed["data"]["state"]) == ([], "ready")
    assert agreed["samples_withheld"].startswith("the data is under an agreement")
    missing = describe(load_task("hoc"), fixtures)
    assert missing["data"]["state"] == "missing"
    assert missing["licence"] == "GPL-3.0"


def test_the_suites_have_their_tasks_and_each_has_a_spec_or_a_reason():
    sizes = {}
    for name in ("blurb", "drbenchmark"):
        declared = load_suite(name)
        sizes[name] = len(declared.tasks)
        for member in declared.tasks:
            if member.task is not None:
                loaded = load_task(member.task)
                assert loaded.spec.access == member.access, member.name
                assert member.metric is not None
    assert sizes == {"blurb": 13, "drbenchmark": 20}


def test_what_a_suite_leaves_out_is_named():
    lines = skipped("blurb")
    assert [line.split()[0] for line in lines] == ["ebm_pico", "bioasq"]
    assert skipped("fr") == []


def test_patterns_and_filters_pick_tasks():
    assert matching(["bc5*", "gad,hoc"]) == ["bc5_chem", "bc5_disease", "bc5cdr", "gad", "hoc"]
    assert {"bc5cdr_synonyms", "quaero_medline_synonyms"} < set(matching(["*_synonyms"]))
    with pytest.raises(UsageError, match="no task matches 'bc6"):
        matching(["bc6*"])
    french = picked(pool(), languages=["fr"], types=["token_ner"])
    assert {(t.spec.language, t.spec.type) for t in french} == {("fr", "token_ner")}
    clinical = {task.id for task in picked(french, tags=["clinical"])}
    assert "mantra_emea" in clinical
    assert "mantra_patents" in {task.id for task in french} - clinical
    assert picked(pool(), tags=["no such tag"]) == []


def test_a_wrong_suite_is_named(tmp_path):
    with pytest.raises(UsageError, match="unknown suite 'blurp'") as caught:
        suite_tasks("blurp")
    known = "known: all, blurb, drbenchmark, en, fr, needle"
    assert caught.value.hint == f"did you mean 'blurb'? {known}"
    problems = {
        "[gad, gad]": "task 'gad' occurs twice",
        "gad": r"mine\.yaml:2: tasks: input should be a valid list, got 'gad'",
        "[{name: x}]": "'x' needs either a task or a reason",
    }
    for tasks, problem in problems.items():
        path = write(tmp_path / "mine.yaml", f"id: mine\ntasks: {tasks}\n")
        with pytest.raises(SpecError, match=problem):
            load_suite(str(path))


def test_a_suite_of_ones_own_runs_and_is_reported_with_its_own_mean(tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text(
        "id: mine\nname: Mine\nmean: types\ntasks:\n  - {name: topic, task: demo_topic, type: a, "
        "metric: accuracy}\n"
        "  - {name: ner, task: demo_ner, type: b, metric: micro_f1}\n",
        encoding="utf-8",
    )
    fast = {"overrides": ["training.epochs=1"], "device": "cpu", "gate": False}
    made = biobench.run("dummy", suite=str(path), seeds=1, results_dir=tmp_path / "out", **fast)
    assert sorted(r.task for r in made) == ["demo_ner", "demo_topic"]
    declared = load_suite(str(path))
    report = build_suite(load(tmp_path / "out"), declared, str(path))
    assert {(r.task, r.metric) for r in report.rows} == {("topic", "accuracy"), ("ner", "micro_f1")}
    (average,) = report.averages
    assert average.mean == pytest.approx(sum(r.mean for r in report.rows) / 2)
    assert (average.task, average.complete) == ("avg_mine", True)
    arguments = ["report", "--results-dir", str(tmp_path / "out"), "--suite", str(path)]
    shown = " ".join(CliRunner().invoke(app, arguments).output.split())
    assert "Scores of Mine in percent, accuracy: topic; micro F1: ner" in shown


def test_a_part_of_a_suite_has_no_average_unless_asked_for(tmp_path):
    declared = load_suite("blurb")
    (tmp_path / "out").mkdir()
    results = load(tmp_path / "out")
    whole = build_suite(results, declared, "blurb")
    assert {r.complete for r in whole.averages} == {True}
    assert all(r.tasks == 13 for r in whole.averages)
    parts = build_suite(results, declared, "blurb", incomplete=True)
    partial = [r for r in parts.averages if not r.complete]
    assert partial
    assert all("of 13 blurb tasks" in r.notes[0] for r in partial)
    assert any("ebm_pico cannot be run" in note for note in whole.notes)


DECIDING = {
    "id",
    "version",
    "language",
    "type",
    "labels",
    "unit",
    "protocol",
    "training",
    "head",
    "metric",
    "source",
    "reader",
    "splits",
}
DOCUMENT = Document(
    "a",
    "g",
    "Une phrase.",
    "test",
    spans=(Span(4, 10, "X"),),
    labels=("l",),
    tokens=((0, 3), (4, 10)),
    tags=("O", "B-X"),
    origin="f:1",
)


def test_the_hash_of_a_document_is_what_it_was():
    document = replace(DOCUMENT, text="Une phrase à dire.")
    assert (
        documents_hash([document], "src")
        == "64016952d641876ed602bcda8894a5cab001b79039cdf3fd1fdb828e40f74326"
    )


def test_the_hash_holds_each_part_that_decides():
    assert set(task_identity(load_task("demo_ner"), "generated")) == DECIDING
    probed = load_task("demo_ner", ["training.encoder=frozen", "probe={}"])
    assert set(task_identity(probed, "generated")) == {*DECIDING, "probe"}
    assert task_hash(load_task("demo_ner", ["metric.paper=macro_f1"]), "generated") == task_hash(
        load_task("demo_ner"), "generated"
    )


CHOICES = (
    "training.learning_rate=1e-4 training.adam_epsilon=1e-6 training.precision=bf16 "
    "training.train_fraction=0.5 training.epochs=3 protocol.max_length=128 "
    "training.head_learning_rate=1e-3 head.dropout=0.2 metric.selection=micro_f1 "
    "protocol.long_documents=stride "
    "protocol.merge=mean version=9 unit=document"
)


@pytest.mark.parametrize("change", CHOICES.split())
def test_each_choice_of_the_recipe_makes_another_run(change):
    plain, changed = (task_hash(load_task("demo_ner", own), "generated") for own in ([], [change]))
    assert plain != changed


def test_the_data_s_hash_holds_each_part_of_a_document():
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
    same: dict[str, Any] = {
        "origin": "g:2",
        "evidence": (("l", 3),),
        "unexpressed": ("X",),
        "remarks": (Remark("dropped", "X"),),
        "concepts": ((4, 10, "C0"),),
    }
    assert documents_hash([replace(DOCUMENT, **same)], "s") == own
    assert documents_hash([DOCUMENT], "other") != own
    assert {f.name for f in fields(Document)} == {*changes, *same, "plan"}


def test_the_data_s_hash_covers_all_splits_and_the_gold_is_that_of_test():
    data = load_data(load_task("demo_topic"), None, limit=8)
    whole = load_data(load_task("demo_topic"), None)
    every = [*whole.train, *whole.validation, *whole.test]
    assert data.hash == whole.hash == documents_hash(every, "generated")
    assert set(data.gold_labels) == {label for d in whole.test for label in d.labels}


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_tiny_encoder(tmp_path_factory.mktemp("keys") / "tiny")


def test_a_key_is_the_digest_of_the_decisions():
    """Written out by hand: a key that is made in another way orphans every stored run."""
    text = (
        '{"data":"d","engine":2,"limit":null,"model":"é","precision":"bf16","protocol":null,"seed":42,"task":"t",'
        '"track":"fixed"}'
    )
    wanted = hashlib.sha256(text.encode()).hexdigest()[:32]
    key = run_key(
        model_hash="é", task_hash="t", data_hash="d", seed=42, precision="bf16", engine_version=2
    )
    assert key == wanted


def test_a_plan_s_keys_hold_what_was_asked_for(encoder):
    overrides = ("training.precision=bf16", "training.epochs=2", "training.train_fraction=0.5")
    common = {"overrides": overrides, "device": "cpu", "track": "tuned", "limit": 8}
    asked = RunRequest(model=(str(encoder),), tasks=("demo_topic",), seeds="3,5", **common)
    task = task_hash(load_task("demo_topic", list(overrides)), "generated")
    identity = {
        "task_hash": task,
        "data_hash": load_data(load_task("demo_topic"), None).hash,
        "precision": "bf16",
    }
    model = find_checkpoint(str(encoder)).hash
    wanted = [
        run_key(model_hash=model, seed=seed, track="tuned", limit=8, **identity) for seed in (3, 5)
    ]
    assert [item.key for item in make_plan(asked).items] == wanted
    assert len(set(wanted)) == 2
