"""Submissions that are valid in form, with recomputed hashes, and must not be taken; and honest
ones, which are.
"""

import hashlib
import json
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from biobench.data.catalog import load_task
from biobench.data.hashing import task_identity
from biobench.errors import DataUnavailableError, UsageError
from biobench.export.formats import export
from biobench.schema.document import Document, Prediction, Span
from biobench.score import oracle, parts_of, scored
from biobench.store import Brief, Store
from biobench.store.tables import redacted
from biobench.submission.content import check_predictions
from biobench.submission.leading import leading
from biobench.submission.pack import MANIFEST, slug, submit
from biobench.submission.records import fits
from biobench.submission.verify import examine
from tests.helpers.cli_make import call
from tests.helpers.store_make import record, save_scored, shipped_identity
from tests.helpers.submission_make import (
    TASK,
    change_record,
    checked,
    codes,
    demo_data,
    every_code,
    honest_run,
    refused,
    relist,
    save_rekeyed,
    with_task,
)


@pytest.fixture
def stored(tmp_path: Path) -> tuple[Any, Path, list[Document], list[Prediction]]:
    """One honest run: its record, its results folder, its gold and its predictions."""
    run = honest_run(tmp_path / "results")
    return (run, tmp_path / "results", *Store(tmp_path / "results").load_predictions(run))


# packing


def test_an_honest_submission_is_packed_whole_and_scored_again(packed, monkeypatch, capfd):
    verification = examine(packed)
    assert verification.accepted, verification.checks
    found = (len(verification.runs), verification.state, verification.mark)
    assert found == (2, "verified", "re-scored")
    manifest = json.loads((packed / MANIFEST).read_text())
    listed = (manifest["model"], manifest["notes"], len(manifest["files"]))
    assert listed == ("org/tiny", "hello", 4)
    monkeypatch.chdir(packed.parent)
    made = call(monkeypatch, capfd, "submit", "org/tiny", "--results-dir", "results")
    assert (made.status, "2 runs packed" in made.out) == (0, True)
    folder = next((packed.parent / "submissions").iterdir())
    good = call(monkeypatch, capfd, "verify-submission", folder, "--json")
    assert (good.status, good.json()["verified"], good.json()["model"]) == (0, 2, "org/tiny")
    (folder / MANIFEST).unlink()
    bad = call(monkeypatch, capfd, "verify-submission", folder)
    assert (bad.status, bad.out.splitlines()[0]) == (1, "M01 error: submission.json: is missing")
    assert call(monkeypatch, capfd, "verify-submission").status == 2


def test_scores_on_slices_may_stand_in_a_submission(packed):
    data = demo_data()
    for path in (packed / "runs" / "demo_topic").glob("*.json"):
        store = Store(packed)
        stored = store.get("demo_topic", path.stem)
        parts = parts_of(stored.task.type, data.train, data.test)
        after = scored(stored, *store.load_predictions(stored), parts)
        assert {"frequent", "clean"} <= after.slices.keys()
        store.update(after)
    relist(packed)
    verification = examine(packed)
    assert verification.accepted, verification.checks


def test_packing_refuses_what_it_cannot_do(packed, tmp_path):
    results = tmp_path / "results"
    with pytest.raises(UsageError, match="is not empty"):
        submit("org/tiny", results, packed)
    with pytest.raises(UsageError, match="has no full runs"):
        submit("nobody", results, tmp_path / "other")
    honest_run(results, model="limited", limit=5)
    with pytest.raises(UsageError, match="is limited to 5 training documents"):
        submit("limited", results, tmp_path / "other")
    with pytest.raises(UsageError, match="characters"):
        submit("org/tiny", results, tmp_path / "other", notes="n" * 10_000)


def test_two_sets_of_weights_of_one_name_are_packed_one_at_a_time(tmp_path):
    """A model that was trained again in the same folder, and both runs kept."""
    for digit in "ab":
        honest_run(tmp_path / "results", weights=digit * 64)
    with pytest.raises(UsageError, match="with 2 weights or conditions") as caught:
        submit("org/tiny", tmp_path / "results", tmp_path / "none")
    assert "'org/tiny [weights aaaaaaaa]', 'org/tiny [weights bbbbbbbb]'" in caught.value.hint
    verification = checked(tmp_path / "results", model="org/tiny [weights bbbbbbbb]")
    assert verification.accepted
    assert (verification.model, len(verification.runs)) == ("org/tiny", 1)
    with pytest.raises(UsageError, match="names 2 different weights"):
        export("org/tiny", "model-card", tmp_path / "results")
    assert "org/tiny" in export("org/tiny [weights bbbbbbbb]", "model-card", tmp_path / "results")


def test_slugs_are_safe_and_apart():
    names = ["a/b", "a-b", "../../etc", "", "é" * 300, "<script>"]
    assert len({slug(n) for n in names}) == len(names)
    assert all(
        "/" not in slug(n) and not slug(n).startswith(".") and len(slug(n)) < 80 for n in names
    )


# records

POINT = {
    "step": 10**6,
    "epoch": 1.0,
    "train_loss": 0.5,
    "validation": {"macro_f1": 0.5},
    "learning_rate": 5e-5,
}
"""A validation after more steps than a run has."""
TIMELESS = {
    "seconds": 0,
    "train_seconds": 0,
    "evaluation_seconds": 0,
    "peak_memory_bytes": 10**8,
    "train_tokens_per_second": 0,
}
LIES: dict[str, tuple[str, Any, str]] = {
    "another score": ("scores.macro_f1", 0.99, "S01"),
    "no number": ("scores.macro_f1", math.nan, "R01"),
    "more than all": ("scores.macro_f1", 1.5, "R02"),
    "no scores": ("scores", {}, "R02"),
    "another engine": ("engine_version", 99, "R03"),
    "limited": ("limit", 5, "R04"),
    "overrides": ("overrides", ["training.epochs=99"], "R04"),
    "another split": ("split", "validation", "R04"),
    "made elsewhere": ("origin", "outside", "R04"),
    "labels mapped": ("label_map", {"a": "b"}, "R04"),
    "another seed": ("seed", 7, "R05"),
    "other weights": ("model.hash", "other", "R05"),
    "another model": ("model.id", "somebody/else", "R06"),
    "another spec": ("task.hash", "0" * 64, "T02"),
    "redacted": ("redacted", True, "T03"),
    "the paper's metric": ("task.paper", "weighted_f1", "T03"),
    "the protocol": ("protocol.reader", {"lengths": [5]}, "T03"),
    "a protocol without fields": ("protocol.training", [], "R01"),
    "a fold": ("resampling", {"fold": 0, "folds": 1, "train_documents": 9}, "T03"),
    "one document": ("task.test_documents", 1, "D01"),
    "lost mentions": ("unexpressed_gold", {"test": {"x": 5}}, "D01"),
    "another task": ("task.id", "elsewhere", "R01"),
    "a slice": ("slices", {"clean": {"gold": 3, "scores": {"micro_f1": 1.0}}}, "S04"),
    "a slice of an unknown name": (
        "slices",
        {"lucky": {"gold": 3, "scores": {"micro_f1": 1.0}}},
        "R02",
    ),
    "more than all of a slice": (
        "slices",
        {"clean": {"gold": 3, "scores": {"micro_f1": 7.0}}},
        "R02",
    ),
    "no parameters": ("model.parameters", 0, "R02"),
    "an odd branch": ("model.revision", "a branch", "R02"),
    "markup as a device": ("provenance.device", "CPU [verified]", "R02"),
    "oracle of 7": ("windows.ceiling", {"macro_f1": 7.0}, "R02"),
    "all truncated": ("windows.truncated_documents", 10**6, "R02"),
    "fp8": ("training.precision", "fp8", "R02"),
    "threshold without use": ("training.threshold", 0.5, "R02"),
    "step beyond the last": ("training.curve", [POINT], "R02"),
    "best step beyond the last": ("training.best_step", 10**6, "R02"),
    "script as a date": ("provenance.started", "<script>", "R01"),
    "negative seconds": ("cost.seconds", -5.0, "R01"),
    "a path": ("predictions", "../../etc/passwd", "R01"),
    "script as architecture": ("model.architecture", "<script>alert(1)</script>", "R01"),
    "a link as licence": ("model.licence", "mit](https://example.org)", "R01"),
    "escapes": ("provenance.packages", {"torch": "2\x1b[31m"}, "R01"),
    "record version -7": ("record_version", -7, "R01"),
    "longer training than run": ("cost.train_seconds", 1e6, "R02"),
    "no time at all": ("cost", TIMELESS, "R02"),
    "less memory than weights": ("cost.peak_memory_bytes", 1, "R02"),
}
"""A field of the record, its false value, and the code of the finding."""


@pytest.mark.parametrize(("field", "value", "code"), LIES.values(), ids=LIES.keys())
def test_records_that_lie_are_refused(packed, field, value, code):
    *groups, name = field.split(".")

    def lie(record: Any) -> None:
        for group in groups:
            record = record[group]
        record[name] = value

    change_record(packed, lie)
    assert code in refused(packed)


def first_label(record: dict[str, Any]) -> Any:
    return next(iter(record["per_label"].values()))


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (lambda r: r["task"]["labels"].pop(), "T03"),
        (lambda r: r["task"]["gold_labels"].pop(), "D01"),
        (lambda r: r["per_label"].popitem(), "S03"),
        (lambda r: first_label(r).update(f1=0.123), "S03"),
        (lambda r: first_label(r).update(invented=0.5), "S03"),
    ],
    ids=["fewer labels", "fewer gold labels", "a label less", "a score", "another number"],
)
def test_labels_that_lie_are_refused(packed, change, code):
    change_record(packed, change)
    assert code in refused(packed)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            lambda c: c.replace(b'"scores": {', b'"scores": {"macro_f1": 1.0,\n', 1),
            "one name twice",
        ),
        (lambda c: b"\xef\xbb\xbf" + c, "not JSON"),
        (lambda c: c.replace(b"org/tiny", b"org/\\ud800"), "not JSON"),
        (lambda c: b"[" * 100_000, "not JSON"),
        (
            lambda c: c.replace(
                b'"protocol": {', b'"protocol": {"x": ' + b"[" * 700 + b"]" * 700 + b",", 1
            ),
            "nested",
        ),
    ],
)
def test_json_in_which_two_readers_see_two_things(packed, change, words):
    path = next(packed.glob("runs/*/*.json"))
    path.write_bytes(change(path.read_bytes()))
    relist(packed)
    verification = examine(packed)
    assert any(c.code == "R01" and words in c.what for c in verification.checks), (
        verification.checks
    )
    assert [len(part) for part in Store(packed).scan()] == [1, 1], (
        "a results folder is read past it"
    )


def test_a_claim_about_training_text_is_named_as_the_submitters(packed):
    split = {
        "documents": 80,
        "exact": 0,
        "touched": 0,
        "ngrams": 9,
        "ngrams_seen": 0,
        "short": 0,
        "seen": 0,
    }
    claim = {"corpus": "wiki", "corpus_hash": "a" * 64, "excluded": True, "test": split}
    change_record(packed, lambda r: r.update(contamination=claim))
    verification = examine(packed)
    assert (verification.state, every_code(verification)) == ("verified", {"C04"})


def test_collected_label_sets_are_no_contradiction():
    """Tasks whose data decides the labels: the spec holds a rule, not a list."""
    spec, labels = load_task("fracco_30").spec, tuple(f"{i:04d}" for i in range(30))
    assert fits(labels, spec)
    assert not fits(labels[:29], spec)
    assert not fits((labels[1], labels[0], *labels[2:]), spec)


@pytest.mark.parametrize(
    ("seeds", "state", "found"),
    [
        ((42,), "verified", {"C02"}),
        ((42, 43, 44), "verified", set()),
        ((42, 1007, 77), "person", {"C02", "C05"}),
    ],
)
def test_seeds_that_are_missing_may_have_been_chosen(tmp_path, seeds, state, found):
    for seed in seeds:
        honest_run(tmp_path / "results", seed)
    verification = checked(tmp_path / "results")
    assert (verification.state, every_code(verification)) == (state, found)


def test_several_checkpoints_and_a_seed_twice_under_one_name(packed, tmp_path):
    other = honest_run(tmp_path / "results", 43, weights="c" * 64)
    Store(packed).copy(Store(tmp_path / "results"), other)
    relist(packed)
    assert refused(packed) == {"R09", "C03"}


# predictions


@pytest.mark.parametrize(
    "fields",
    [
        {"label_scores": (math.nan, 0.1, 0.1, 0.1)},
        {"label_scores": (9.0, 0.1, 0.1, 0.1)},
        {"label_scores": (-0.1, 0.1, 0.1, 0.1)},
        {"label_scores": (0.5, 0.5)},
        {"span_scores": (0.5,)},
        {"spans": (Span(0, 1, "cardiology"),)},
        {"tags": ("O",)},
        "turned",
        "twice",
    ],
)
def test_answers_that_no_model_gives(stored, fields):
    run, _, gold, predictions = stored
    first = predictions[0]
    if fields == "turned":
        fields = {"label_scores": tuple(1 - s for s in first.label_scores)}
    if fields == "twice":
        fields = {"labels": first.labels * 2}
    assert check_predictions(run, gold, predictions) == []
    (check,) = check_predictions(run, gold, [replace(first, **fields), *predictions[1:]])
    assert check.code == "P01"


@pytest.mark.parametrize(
    ("kind", "fields", "words"),
    [
        ("regression", {"label_scores": (0.5, 0.5)}, "one number of the scale"),
        ("regression", {"label_scores": (5.5,)}, "one number of the scale"),
        ("regression", {"label_scores": (1.0,), "labels": ("a",)}, "one number of the scale"),
        ("synonyms", {"labels": ("a", "a")}, "different labels in order"),
        ("synonyms", {"labels": tuple("abcdefghijklmnopqrstu")}, "different labels in order"),
        ("span_ner", {"labels": ("a",)}, "labels of documents"),
        ("span_ner", {"spans": (Span(0, 1, "a"),), "span_scores": (1.0, 1.0)}, "of span scores"),
        ("span_ner", {"spans": (Span(0, 1, "a"), Span(0, 1, "a"))}, "a span twice"),
    ],
)
def test_answers_that_no_model_of_the_kind_gives(kind, fields, words):
    run = record()
    task = run.task.model_copy(update={"type": kind, "labels": ("a",)})
    run = run.model_copy(update={"task": task, "scale": (0.0, 5.0)})
    (check,) = check_predictions(run, [], [Prediction("n", **fields)])
    assert (check.code, words in check.what) == ("P01", True)


@pytest.mark.parametrize(
    "span", [Span(-5, 3, "Disease"), Span(3, 3, "Disease"), Span(9, 3, "Disease")]
)
def test_spans_that_no_text_has(span):
    gold = [Document("n", "n", "", "test", tokens=((0, 5),), tags=("O",))]
    (check,) = check_predictions(record(), gold, [Prediction("n", spans=(span,))])
    assert "end before" in check.what


def test_predictions_of_another_split_a_document_twice_and_documents_that_are_missing(stored):
    run, results, gold, predictions = stored
    store = Store(results)
    save_rekeyed(results, run, predictions, [replace(d, split="train") for d in gold])
    assert codes(checked(results, "a")) == {"P01"}
    right = [(d, p) for d, p in zip(gold, predictions, strict=True) if d.labels == p.labels]
    save_rekeyed(results, run, [p for _, p in right], [d for d, _ in right])
    assert codes(checked(results, "b")) == {"D01"}
    save_rekeyed(results, run, [p for _, p in right], gold)
    assert codes(checked(results, "c")) == {"S02"}
    run = save_rekeyed(results, run, predictions, gold)
    path = store.path_of(run)
    table = pq.read_table(path)
    pq.write_table(pa.concat_tables([table, table.slice(0, 1)]), path)
    store.update(
        run.model_copy(update={"predictions_sha256": hashlib.sha256(path.read_bytes()).hexdigest()})
    )
    verification = checked(results, "d")
    assert [c.what for c in verification.checks if c.code == "S02"] == ["a document is there twice"]


def relisted(packed: Path, path: Path) -> None:
    """The record of these predictions names their hash, and the manifest those of both."""
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    change_record(packed, lambda r: r.update(predictions_sha256=digest), path.with_suffix(".json"))


def test_predictions_changed_after_the_fact(packed):
    path = next(packed.glob("runs/*/*.parquet"))
    table = pq.read_table(path)
    at = table.schema.get_field_index("labels")
    pq.write_table(
        table.set_column(at, table.schema.field(at), [table.column("gold_labels").to_pylist()]),
        path,
    )
    assert "M04" in refused(packed)
    relist(packed)
    assert "R07" in refused(packed)
    relisted(packed, path)
    assert refused(packed) == {"P01"}, "decided labels against their scores"
    holes = pa.array([None] * table.num_rows, pa.list_(pa.string()))
    pq.write_table(table.set_column(at, table.schema.field(at), holes), path)
    relisted(packed, path)
    assert refused(packed) == {"R07"}, "empty cells are damage"


# data


def test_gold_that_is_not_the_datas(stored):
    """Gold bent to fit the predictions gives perfect scores, and the data shows it."""
    run, results, gold, predictions = stored
    save_rekeyed(
        results,
        run,
        predictions,
        [replace(d, labels=p.labels) for d, p in zip(gold, predictions, strict=True)],
    )
    assert codes(checked(results)) == {"D01"}


def test_runs_on_other_data_are_not_taken_for_those_on_the_data_at_hand(stored):
    run, results, _, _ = stored
    (results / "runs" / TASK / f"{run.key}.json").unlink()
    save_rekeyed(results, with_task(run, data_hash="0" * 64))
    assert codes(checked(results)) == {"D02"}


def test_without_the_data_a_run_is_consistent_at_best(stored, monkeypatch):
    def gone(*_, **__):
        raise DataUnavailableError("no data", hint="none")

    monkeypatch.setattr("biobench.submission.verify.load_folds", gone)
    run, results, _, _ = stored
    honest_run(results, 43)
    verification = checked(results, "a")
    found = (verification.state, verification.count("verified"), verification.mark)
    assert found == ("consistent", 0, "claimed")
    save_rekeyed(results, with_task(run, gold_labels=run.task.gold_labels[:1]))
    assert codes(checked(results, "b")) == {"D01"}, "labels that the average skips"


def redacted_run(
    results: Path, change: Callable[..., Any] = lambda gold, predictions: (gold, predictions)
) -> None:
    """A run on an invented corpus of the de-identification task, whose data nobody here has."""
    spec, labels = load_task("deid").spec, tuple(load_task("deid").spec.labels)
    gold = [
        Document(
            f"n{i}",
            f"p{i}",
            f"Note {i} of Dr Smith.",
            "test",
            spans=(Span(10, 18, labels[i % len(labels)]),),
        )
        for i in range(30)
    ]
    predictions = [
        Prediction(d.id, spans=d.spans if i % 3 else (), span_scores=(0.9,) if i % 3 else ())
        for i, d in enumerate(gold)
    ]
    identity = shipped_identity("deid") | {
        "version": spec.version,
        "data_hash": "0" * 64,
        "type": spec.type,
    }
    identity |= {
        "labels": labels,
        "gold_labels": labels,
        "primary": spec.metric.primary,
        "test_documents": len(gold),
    }
    run = record(model="org/tiny", task="deid", score=False)
    protocol, cost = (
        task_identity(load_task("deid"), identity["source"]),
        {"peak_memory_bytes": 10**8},
    )
    run = run.model_copy(update={"protocol": protocol, "cost": run.cost.model_copy(update=cost)})
    run = save_scored(results, run, gold, predictions, **identity)
    # what `save` would do of itself for a redacted run, but for the change
    saved = Store(results).save(run, *change(*redacted(gold, predictions)))
    Store(results).update(saved.model_copy(update={"redacted": True}))


def with_names(gold, predictions):
    names = {d.id: f"note-{i}" for i, d in enumerate(gold)}
    return [replace(d, id=names[d.id]) for d in gold], [
        replace(p, document=names[p.document]) for p in predictions
    ]


@pytest.mark.parametrize(
    "change",
    [
        with_names,
        lambda gold, said: (
            [replace(d, spans=p.spans) for d, p in zip(gold, said, strict=True)],
            said,
        ),
        lambda gold, said: (
            gold,
            [replace(p, spans=(Span(0, 3, "Chemical"),), span_scores=(0.5,)) for p in said],
        ),
    ],
    ids=["names", "gold", "labels of another task"],
)
def test_a_redacted_run_holds_no_names_gold_or_foreign_labels(tmp_path, change):
    redacted_run(tmp_path / "results")
    verification = checked(tmp_path / "results", "a", data_dir=tmp_path / "no-data")
    assert (verification.state, verification.count("verified")) == ("consistent", 0)
    assert "not scored again" in verification.summary()
    assert "D03" in every_code(verification)
    redacted_run(tmp_path / "results", change)
    assert codes(checked(tmp_path / "results", "b", data_dir=tmp_path / "no-data")) == {"P01"}


# what would lead


def test_the_gold_as_predictions_waits_for_a_maintainer(stored, tmp_path):
    """Nothing in the files tells gold from a very good model. It would lead, so somebody makes a
    run of it first.
    """
    run, results, gold, _ = stored
    labels = demo_data().labels
    save_rekeyed(
        results,
        run,
        [
            replace(p, label_scores=tuple(float(label in p.labels) for label in labels))
            for p in oracle(gold)
        ],
    )
    honest_run(tmp_path / "board", model="org/theirs")
    pack = submit("org/tiny", results, tmp_path / "pack")
    verification = examine(pack, against=tmp_path / "board")
    assert (verification.state, verification.accepted) == ("person", False)
    (check,) = (c for c in verification.checks if c.grade == "person")
    assert (check.code, check.where) == ("W01", f"runs/{TASK}")
    assert "biobench reproduce --of SUBMISSION --draw" in check.what
    assert [(r.state, r.rescored) for r in verification.runs] == [("person", True)]
    assert examine(pack).state == "person", "it is the oracle, whoever else is there"


def test_the_first_model_on_a_task_waits(stored, tmp_path):
    """Before, the gold was verified in a results folder without another model."""
    pack = submit("org/tiny", stored[1], tmp_path / "pack")
    (tmp_path / "board").mkdir()
    (check,) = (c for c in examine(pack, against=tmp_path / "board").checks if c.code == "W01")
    assert "is the first on this task" in check.what
    assert examine(pack).state == "verified", "no results folder, nobody to lead"
    change_record(pack, lambda claimed: claimed["scores"].update(macro_f1=0.99))
    lied = examine(pack, against=tmp_path / "board")
    assert lied.state == "refused"
    assert "W01" not in every_code(lied), "what is refused waits for nobody"


def scoring(
    score: float, model: str = "org/tiny", weights: str = "a" * 64, task: str = "gad"
) -> Any:
    """A run that claims this score."""
    made = record(model=model, task=task, score=False)
    identity = made.model.model_copy(update={"hash": weights})
    scores = {"macro_f1": score, "micro_f1": score}
    return made.model_copy(update={"scores": scores, "model": identity})


NAMESAKE = "7" * 64
"""Other weights of the same name."""


@pytest.mark.parametrize(
    ("score", "task", "rivals", "words"),
    [
        (0.7, "gad", [scoring(0.6, weights=NAMESAKE)], "lies above every other run here (60.00)"),
        (0.7, "gad", [scoring(0.6)], "is the first on this task"),
        (0.7, "gad", [scoring(0.75, "org/other")], ""),
        (0.7, "gad", [scoring(0.6), scoring(0.75, "org/other")], ""),
        (0.7, "gad", [scoring(0.75, weights=NAMESAKE)], ""),
        (0.995, TASK, [scoring(0.999, "org/other", task=TASK)], "within a point of what is"),
        (0.985, TASK, [scoring(0.999, "org/other", task=TASK)], ""),
        # gold with errors where public runs err scored 0.86, the best published encoder below 0.80
        (0.79, "gad", None, ""),
        (0.86, "gad", None, "lies above the best published"),
    ],
)
def test_a_mean_above_other_models_print_or_what_is_possible_waits(score, task, rivals, words):
    earlier = None if rivals is None else map(Brief.of, rivals)
    leads = leading([scoring(score, task=task)], earlier)
    assert bool(leads) == bool(words)
    assert all(words in lead.what for lead in leads)


def test_a_lead_is_named_by_the_published_average_with_macro_f1_beside_it():
    run = with_task(scoring(0.6), paper="micro_f1", primary="macro_f1")
    run = run.model_copy(update={"scores": {"macro_f1": 0.6, "micro_f1": 0.7}})
    (lead,) = leading([run], [])
    assert lead.what == (
        "mean micro_f1 70.00 of 1 seeds (macro_f1 60.00) is the first on this task"
    )


@pytest.mark.parametrize(("mine", "waits"), [((0.5, 0.7), False), ((0.5, 0.72), True)])
def test_means_are_compared_with_the_best_other_model_of_the_same_conditions(mine, waits):
    def run(score: float, model: str = "org/tiny", track: str = "fixed", task: str = "own") -> Any:
        made = scoring(score, model, task=task).model_copy(update={"track": track})
        return made.model_copy(update={"scores": {"macro_f1": score, "micro_f1": 0.1}})

    rivals = [run(0.6, "b"), run(0.55, "c"), run(0.9, "d", "frozen"), run(0.9, "e", task="else")]
    others = [Brief.of(rival) for rival in [*rivals, run(0.9)]]
    assert bool(leading([run(score) for score in mine], others)) == waits
    assert leading([run(0.8, track="tuned")], others) == [], "where none ran so, under any"
