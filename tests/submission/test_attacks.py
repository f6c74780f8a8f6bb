"""Submissions that are valid in form, with recomputed hashes, and must not be taken: each was taken once."""

from __future__ import annotations

import math
import os
import time
from dataclasses import replace
from pathlib import Path

import pytest

from biobench.data.catalog import load_task
from biobench.data.load import load_data
from biobench.errors import DataUnavailableError
from biobench.report.tasks import shipped
from biobench.schema.document import Document, Prediction, Span
from biobench.schema.record import TaskIdentity
from biobench.score import oracle, scored
from biobench.store import Store, run_key
from biobench.store.tables import redacted
from biobench.submission import guard
from biobench.submission.guard import verify
from biobench.submission.layout import MOST_RUNS
from biobench.submission.leading import leading
from biobench.submission.pack import submit
from biobench.submission.verify import examine
from tests.helpers.store_make import record
from tests.helpers.submission_make import TASK, change_record, codes, course, honest_run, relist


def rekeyed(made, results: Path, said=None, gold=None, **model):
    """The run under other weights, seed or predictions, with the key, scores and hashes that follow."""
    store = Store(results)
    stored, own = store.load_predictions(made)
    gold, said = stored if gold is None else gold, own if said is None else said
    seed = model.pop("seed", made.seed)
    made = made.model_copy(update={"seed": seed, "model": made.model.model_copy(update=model)})
    key = run_key(
        model_hash=made.model.hash,
        task_hash=made.task.hash,
        data_hash=made.task.data_hash,
        seed=seed,
        precision="fp32",
        limit=made.limit,
    )
    return store.save(scored(made.model_copy(update={"key": key}), gold, said), gold, said)


def findings(folder, grade="error", **options):
    return {c.code for c in examine(folder, **options).checks if c.grade == grade}


def test_one_run_under_nine_seeds(tmp_path):
    made = honest_run(tmp_path / "results")
    for seed in range(43, 51):
        rekeyed(made, tmp_path / "results", seed=seed)
    found = examine(submit("org/tiny", tmp_path / "results", tmp_path / "pack"))
    assert found.state == "refused"
    assert sum(c.code == "P02" and c.grade == "error" for c in found.checks) == 8


def test_one_run_under_two_seeds_with_its_scores_shaken(tmp_path):
    """Other scores, the same decisions, or nearly: a person must look."""
    made = honest_run(tmp_path / "results")
    _, said = Store(tmp_path / "results").load_predictions(made)
    shaken = [replace(p, label_scores=tuple(round(s * 0.98, 6) for s in p.label_scores)) for p in said]
    rekeyed(made, tmp_path / "results", shaken, seed=43)
    found = examine(submit("org/tiny", tmp_path / "results", tmp_path / "a"))
    assert found.state == "person"
    assert {c.code for c in found.checks if c.grade == "person"} == {"P02"}
    labels = made.task.labels
    turned = labels[(labels.index(shaken[3].labels[0]) + 1) % 4]
    other = list(shaken)
    other[3] = replace(shaken[3], labels=(turned,), label_scores=tuple(float(label == turned) for label in labels))
    rekeyed(made, tmp_path / "results", other, seed=43)
    found = examine(submit("org/tiny", tmp_path / "results", tmp_path / "b"))
    assert found.state == "person"
    assert any("documents that not both have right" in c.what for c in found.checks if c.code == "P02")


def test_the_gold_as_predictions_waits_for_a_maintainer(tmp_path):
    """Nothing in the files tells gold from a very good model. It would lead, so somebody makes a run of it first."""
    data = load_data(load_task(TASK), None)
    made = honest_run(tmp_path / "results")
    said = [
        replace(p, label_scores=tuple(float(label in p.labels) for label in data.labels)) for p in oracle(data.test)
    ]
    rekeyed(made, tmp_path / "results", said)
    honest_run(tmp_path / "board", model="org/theirs")
    pack = submit("org/tiny", tmp_path / "results", tmp_path / "pack")
    found = examine(pack, against=tmp_path / "board")
    assert (found.state, found.accepted) == ("person", False)
    (check,) = (c for c in found.checks if c.grade == "person")
    assert (check.code, check.where) == ("W01", f"runs/{TASK}")
    assert "biobench reproduce --of SUBMISSION --draw" in check.what
    assert [(r.state, r.rescored) for r in found.runs] == [("person", True)]
    assert examine(pack).state == "verified", "where there is nobody to lead, nothing waits"


def test_what_does_not_lead_does_not_wait(tmp_path):
    """The mean over seeds counts, on each average, against the best other model under the same conditions."""
    worse = honest_run(tmp_path / "mine")
    rekeyed(worse, tmp_path / "mine", [replace(p, labels=("cardiology",), label_scores=(1.0, 0.0, 0.0, 0.0))
                                      for p in Store(tmp_path / "mine").load_predictions(worse)[1]])  # fmt: skip
    honest_run(tmp_path / "board", model="org/theirs")
    pack = submit("org/tiny", tmp_path / "mine", tmp_path / "pack")
    assert {c.code for c in examine(pack, against=tmp_path / "board").checks} == {"C02"}
    theirs = submit("org/theirs", tmp_path / "board", tmp_path / "theirs")
    assert "W01" in {c.code for c in examine(theirs, against=tmp_path / "mine").checks}
    assert "W01" not in {c.code for c in examine(theirs, against=tmp_path / "board").checks}, "its own earlier runs"


@pytest.mark.parametrize(("score", "waits"), [(0.79, False), (0.86, True)])
def test_a_mean_above_the_best_published_value_waits(score, waits):
    """Gold with errors where public runs err scored 0.86 on GAD, where the best published encoder has 0.80 or less."""
    made = record(task="gad", score=False)
    made = made.model_copy(update={"scores": {"macro_f1": score, "micro_f1": score}})
    assert bool(leading([made], [])) == waits


@pytest.mark.parametrize("seeds", [(42, 43), (43, 42)])
@pytest.mark.parametrize("place", ["results", "submitted/theirs"])
def test_another_models_predictions_under_a_new_name(tmp_path, seeds, place):
    board, mine = tmp_path / "board", tmp_path / "mine"
    theirs = board if place == "results" else board / place
    (board / "runs").mkdir(parents=True)
    for seed, other in zip((42, 43), seeds, strict=True):
        honest_run(theirs, seed, model="org/theirs")
        copied = honest_run(mine, seed, model="org/theirs")
        (mine / "runs" / TASK / f"{copied.key}.json").unlink()
        rekeyed(copied, mine, seed=other, id="org/tiny", hash="f" * 64)
    pack = submit("org/tiny", mine, tmp_path / "pack")
    assert examine(pack).state == "verified"
    found = examine(pack, against=board)
    assert found.state == "refused"
    assert [c.code for c in found.checks if c.grade == "error"] == ["P02", "P02"]
    assert all("org/theirs" in c.what for c in found.checks if c.code == "P02")


def test_the_same_submission_again_and_honest_others_are_no_finding(tmp_path):
    board = tmp_path / "board"
    for seed in (42, 43):
        honest_run(tmp_path / "mine", seed)
        honest_run(board, seed, model="org/theirs")
    pack = submit("org/tiny", tmp_path / "mine", board / "submitted" / "mine")
    again = submit("org/tiny", tmp_path / "mine", tmp_path / "again")
    for folder in (pack, again):
        found = verify(folder, None, board)
        assert {c.code for c in found.checks} <= {"W01"}, found.checks


def redacted_run(results: Path, change=None, claim=None):
    """A run on an invented corpus of the de-identification task, whose data nobody here has."""
    task = load_task("deid")
    info = shipped()["deid"]
    source = task.spec.all_sources[0].id
    labels = tuple(task.spec.labels)
    texts = [f"Note {i} of Dr Smith." for i in range(30)]
    gold = [
        Document(id=f"n{i}", group=f"p{i}", text=t, split="test", spans=(Span(10, 18, labels[i % len(labels)]),))
        for i, t in enumerate(texts)
    ]
    said = [Prediction(document=d.id, spans=d.spans if i % 3 else (), span_scores=(0.9,) if i % 3 else ())
            for i, d in enumerate(gold)]  # fmt: skip
    present = {s.label for d in gold for s in d.spans}
    identity = TaskIdentity(
        id="deid", version=task.spec.version, hash=info.hashes[source], data_hash="0" * 64, source=source,
        corpus=info.corpus, language=info.language, type=info.type, labels=labels,
        gold_labels=tuple(label for label in labels if label in present),
        negative_label=task.spec.metric.negative_label, primary=task.spec.metric.primary, paper=info.paper,
        test_documents=30, decode="strict",
    )  # fmt: skip
    from biobench.data.hashing import task_identity

    base = record(model="org/tiny", task="deid", score=False)
    key = run_key(model_hash=base.model.hash, task_hash=identity.hash, data_hash="0" * 64, seed=42, precision="fp32")
    made = base.model_copy(
        update={"task": identity, "key": key, "protocol": task_identity(task, source), "redacted": True}
        | course(base, task.spec)
    )
    made = scored(made, gold, said)
    stored = redacted(gold, said)
    if change is not None:
        stored = change(*stored)
    if claim is not None:
        made = claim(made)
    # what `save` would do, without its own redaction
    plain = Store(results).save(made.model_copy(update={"redacted": False}), *stored)
    Store(results).update(plain.model_copy(update={"redacted": True}))
    return plain


def test_an_invented_redacted_run_is_consistent_at_best(tmp_path):
    redacted_run(tmp_path / "results")
    found = examine(submit("org/tiny", tmp_path / "results", tmp_path / "pack"), tmp_path / "no-data")
    assert found.state == "consistent", found.checks
    assert found.count("verified") == 0
    assert "not scored again" in found.summary()
    assert "D03" in {c.code for c in found.checks}


def with_names(gold, said):
    names = {d.id: f"note-{i}" for i, d in enumerate(gold)}
    return [replace(d, id=names[d.id]) for d in gold], [replace(p, document=names[p.document]) for p in said]


def with_gold(gold, said):
    return [replace(d, spans=p.spans) for d, p in zip(gold, said, strict=True)], said


def of_another_task(gold, said):
    return gold, [replace(p, spans=(Span(0, 3, "Chemical"),), span_scores=(0.5,)) for p in said]


def fewer_spans(gold, said):
    return gold, [replace(p, spans=(), span_scores=()) for p in said]


@pytest.mark.parametrize("change", [with_names, with_gold, of_another_task, fewer_spans])
def test_a_redacted_run_whose_table_does_not_fit_its_record(tmp_path, change):
    redacted_run(tmp_path / "results", change)
    pack = submit("org/tiny", tmp_path / "results", tmp_path / "pack")
    assert codes(pack, data_dir=tmp_path / "no-data") == {"P01"}


def test_a_redacted_run_with_better_scores_than_its_counts(tmp_path):
    redacted_run(tmp_path / "results", claim=lambda r: r.model_copy(update={"scores": r.scores | {"micro_f1": 0.99}}))
    pack = submit("org/tiny", tmp_path / "results", tmp_path / "pack")
    assert codes(pack, data_dir=tmp_path / "no-data") == {"S06"}


def test_a_whole_invented_corpus_is_never_verified(tmp_path, monkeypatch):
    def gone(*_, **__):
        raise DataUnavailableError("no data", hint="none")

    for seed in (42, 43):
        honest_run(tmp_path / "results", seed)
    pack = submit("org/tiny", tmp_path / "results", tmp_path / "pack")
    monkeypatch.setattr("biobench.submission.verify.load_folds", gone)
    found = examine(pack)
    assert found.state == "consistent"
    assert (found.count("verified"), found.count("consistent")) == (0, 2)


def changed(predictions, **fields):
    return [replace(predictions[0], **fields), *predictions[1:]]


@pytest.mark.parametrize(
    "scores",
    [
        (math.nan, 0.1, 0.1, 0.1),
        (9.0, 0.1, 0.1, 0.1),
        (-0.1, 0.1, 0.1, 0.1),
        (0.5, 0.5),
    ],
)
def test_label_scores_that_no_model_gives(tmp_path, scores):
    made = honest_run(tmp_path / "results")
    _, said = Store(tmp_path / "results").load_predictions(made)
    rekeyed(made, tmp_path / "results", changed(said, label_scores=scores))
    assert codes(submit("org/tiny", tmp_path / "results", tmp_path / "pack")) == {"P01"}


def test_decisions_that_do_not_follow_from_their_scores(tmp_path):
    made = honest_run(tmp_path / "results")
    _, said = Store(tmp_path / "results").load_predictions(made)
    turned = [replace(p, label_scores=tuple(1 - s for s in p.label_scores)) for p in said]
    rekeyed(made, tmp_path / "results", turned)
    assert codes(submit("org/tiny", tmp_path / "results", tmp_path / "pack")) == {"P01"}


@pytest.mark.parametrize("fields", [{"span_scores": (0.5,)}, {"spans": (Span(0, 1, "cardiology"),)}, {"tags": ("O",)}])
def test_fields_of_another_kind_of_task(tmp_path, fields):
    made = honest_run(tmp_path / "results")
    _, said = Store(tmp_path / "results").load_predictions(made)
    rekeyed(made, tmp_path / "results", changed(said, **fields))
    assert codes(submit("org/tiny", tmp_path / "results", tmp_path / "pack")) == {"P01"}


@pytest.mark.parametrize("split", ["train"])
def test_predictions_of_another_split(tmp_path, split):
    made = honest_run(tmp_path / "results")
    gold, said = Store(tmp_path / "results").load_predictions(made)
    rekeyed(made, tmp_path / "results", said, [replace(d, split=split) for d in gold])
    assert codes(submit("org/tiny", tmp_path / "results", tmp_path / "pack")) == {"P01"}


POINT = {"step": 5, "epoch": 1.0, "train_loss": 0.5, "validation": {"macro_f1": 0.5}, "learning_rate": 5e-5}
SPLIT = {"documents": 9, "exact": 0, "touched": 0, "ngrams": 9, "ngrams_seen": 0, "short": 0, "seen": 0}
CLAIM = {"corpus": "wiki", "corpus_hash": "a" * 64, "excluded": True, "test": SPLIT}
SCRIPT = "<script>alert(1)</script>"
RECORD_LIES = {
    "threshold of 7": lambda r: r["training"].update(threshold=7.0),
    "threshold without use": lambda r: r["training"].update(threshold=0.5),
    "negative seed": lambda r: r.update(seed=-1),
    "loss of 1e308": lambda r: r["training"].update(curve=[POINT | {"train_loss": 1e308}]),
    "step beyond the last": lambda r: r["training"].update(curve=[POINT | {"step": 10**6}]),
    "best step beyond the last": lambda r: r["training"].update(best_step=r["training"]["steps"] + 1),
    "year 9999": lambda r: r["provenance"].update(started="9999-12-31T00:00:00+00:00"),
    "no zone": lambda r: r["provenance"].update(started="2026-01-01T00:00:00"),
    "architecture of script": lambda r: r["model"].update(architecture=SCRIPT),
    "licence of a link": lambda r: r["model"].update(licence="mit](https://example.org)"),
    "package version of escapes": lambda r: r["provenance"].update(packages={"torch": "2\x1b[31m"}),
    "record version -7": lambda r: r.update(record_version=-7),
    "overrides": lambda r: r.update(overrides=["training.epochs=99"]),
}


@pytest.mark.parametrize("lie", RECORD_LIES.values(), ids=RECORD_LIES.keys())
def test_fields_that_no_run_has(packed, lie):
    change_record(packed, lie)
    assert codes(packed) & {"R01", "R02", "R04"}


def test_a_claim_about_training_text_is_named_as_the_submitters(packed):
    change_record(packed, lambda r: r.update(contamination=CLAIM | {"test": SPLIT | {"documents": 80}}))
    found = examine(packed)
    assert found.state == "verified"
    assert {c.code for c in found.checks} == {"C04"}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda c: c.replace(b'"scores": {', b'"scores": {"macro_f1": 1.0,\n', 1), "one name twice"),
        (lambda c: b"\xef\xbb\xbf" + c, "not JSON"),
        (lambda c: c.decode().encode("utf-16"), "not JSON"),
        (lambda c: c.replace(b"org/tiny", b"org/\\ud800"), "not JSON"),
        (lambda c: b"[" * 100_000, "not JSON"),
    ],
)
def test_json_in_which_two_readers_see_two_things(packed, change, said):
    path = next(packed.glob("runs/*/*.json"))
    path.write_bytes(change(path.read_bytes()))
    relist(packed)
    found = examine(packed)
    assert found.state == "refused"
    assert any(c.code == "R01" and said in c.what for c in found.checks), found.checks


def test_more_runs_than_any_model_has_are_not_opened(packed):
    folder = next(packed.glob("runs/*"))
    for number in range(MOST_RUNS):
        (folder / f"{number:032x}.json").write_bytes(b"{}")
    began = time.process_time()
    assert codes(packed) == {"L04"}
    assert time.process_time() - began < 1


@pytest.mark.parametrize(
    ("what", "said"), [("spin", "SIG"), ("die", "SIGSEGV"), ("raise", "OddError: no"), ("eat", "MemoryError")]
)
def test_a_file_that_takes_too_long_or_kills_its_reader_is_a_finding(packed, monkeypatch, what, said):
    paths = [str(Path(__file__).parent / "sitecustom"), os.environ.get("PYTHONPATH", "")]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(path for path in paths if path))
    monkeypatch.setenv("BIOBENCH_TEST_READER", what)
    monkeypatch.setattr(guard, "SECONDS", 4 if what == "spin" else guard.SECONDS)
    found = verify(packed)
    assert (found.state, [c.code for c in found.checks]) == ("refused", ["L07"])
    assert said in found.checks[0].what


def test_modules_in_the_submissions_folder_are_not_imported(packed, monkeypatch, tmp_path):
    for name in ("json", "resource", "pyarrow", "biobench"):
        (packed / f"{name}.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n")
    monkeypatch.chdir(packed)
    found = verify(".")
    assert {c.code for c in found.checks} == {"L02"}
    for name in ("json", "resource", "pyarrow", "biobench"):
        (packed / f"{name}.py").unlink()
    monkeypatch.chdir(tmp_path)
    for name in ("json", "resource", "pyarrow", "biobench"):
        (tmp_path / f"{name}.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([".", "", "sub/.."]))
    assert verify(packed).state == "verified"
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("kind", ["pipe", "link"])
@pytest.mark.parametrize("where", ["submission.json", "runs/*/*.parquet", "."])
def test_special_files_are_refused_at_once_as_what_they_are(packed, kind, where):
    path = packed.with_name("odd") if where == "." else next(packed.glob(where))
    path.unlink(missing_ok=True)
    if kind == "pipe":
        os.mkfifo(path)
    else:
        path.symlink_to("/dev/zero")
    found = verify(path if where == "." else packed)
    assert found.state == "refused"
    assert any(c.code in ("L01", "L05") and kind in c.what for c in found.checks)


def test_collected_label_sets_are_no_contradiction():
    """Tasks whose data decides the labels: the spec holds a rule, not a list."""
    from biobench.submission.records import fits

    spec = load_task("fracco_30").spec
    labels = tuple(f"{i:04d}" for i in range(30))
    assert fits(labels, spec)
    assert not fits(labels[:29], spec)
    assert not fits((labels[1], labels[0], *labels[2:]), spec)
