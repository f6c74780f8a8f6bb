"""Test-set noise from stored predictions: counted as the scores were, left out where it cannot be
had.
"""

from __future__ import annotations

import numpy as np
import pytest

from biobench.comparison.compare import compare
from biobench.data.catalog import load_task
from biobench.data.hashing import task_hash
from biobench.data.load import load_data
from biobench.schema.document import Prediction
from biobench.score import scored
from biobench.store import Store
from tests.helpers import store_make
from tests.helpers.compare_make import SEEDS, save_pair, save_runs
from tests.helpers.store_make import record

TASKS = ("gad", "diamed", "meddialog_fr")


@pytest.mark.parametrize("metric", ["micro_f1_positive", "accuracy", "macro_f1_all", "weighted_f1"])
def test_the_papers_average_is_resampled_as_it_is_scored(tmp_path, metric):
    identity = {"paper": metric, "negative_label": "C"}
    save_pair(tmp_path, ("own_task",), 0.9, 0.6, identity=identity)
    held = compare("a", "b", results_dir=tmp_path, average="paper")
    line = held.pairs[0].tasks[0]
    scores = {(r.model.id, r.seed): r.scores[metric] for r in Store(tmp_path).records()}
    assert line.metric == metric
    assert line.difference == pytest.approx(
        np.mean([scores["a", s] - scores["b", s] for s in SEEDS])
    )
    assert line.documents.estimate == pytest.approx(line.difference)
    assert line.documents.noises[0].se > 0


@pytest.mark.parametrize(
    ("metric", "known"),
    [("partial_micro_f1", True), ("partial_macro_f1", True), ("example_f1", False)],
)
def test_partial_spans_are_counted_and_other_scores_are_not(tmp_path, metric, known):
    gold = store_make.documents()
    for model, missed in (("a", 0), ("b", 2)):
        base = record(model=model, score=False)
        base = base.model_copy(update={"task": base.task.model_copy(update={"paper": metric})})
        said = store_make.predictions(missed)
        made = scored(base, gold, said)
        made = made.model_copy(update={"scores": {"example_f1": 0.5, **made.scores}})
        Store(tmp_path).save(made, gold, said)
    held = compare("a", "b", results_dir=tmp_path, average="paper")
    assert (held.pairs[0].tasks[0].documents is not None) == known
    assert any("no average of F1 counts" in note for note in held.notes) != known


def test_damaged_predictions_cost_only_their_documents(tmp_path):
    save_pair(tmp_path, TASKS, 0.8, 0.7)
    next(tmp_path.glob("runs/gad/*.parquet")).write_bytes(b"PAR1")
    held = compare("a", "b", results_dir=tmp_path, pooled=True)
    lines = {line.task: line for line in held.pairs[0].tasks}
    assert lines["gad"].documents is None
    assert lines["gad"].seeds.p is not None
    assert lines["diamed"].documents is not None
    assert held.pairs[0].verdict.here == "not tested"
    assert (
        "Not tested for the mean of these 3 tasks: test-set noise is unknown on gad"
        in held.verdict[0]
    )
    assert any("gad" in note and "stored with the record" in note for note in held.notes)


def test_stale_scores_are_not_resampled(tmp_path):
    save_pair(tmp_path, ("gad",), 0.8, 0.7)
    store = Store(tmp_path)
    old = store.records()[0]
    store.update(old.model_copy(update={"scores": {**old.scores, "macro_f1": 0.123}}))
    held = compare("a", "b", results_dir=tmp_path)
    assert held.pairs[0].tasks[0].documents is None
    assert any("rescore" in note for note in held.notes)


def test_redacted_runs_with_the_data_at_hand(tmp_path):
    task = load_task("demo_topic")
    data = load_data(task, None)
    about = {"hash": task_hash(task, data.source), "data_hash": data.hash, "source": data.source}
    about |= {"type": "single_label", "labels": data.labels, "gold_labels": data.gold_labels}
    for model, wrong in (("a", 3), ("b", 9)):
        said = []
        for number, document in enumerate(data.test):
            label = document.labels[0]
            if number < wrong:
                label = next(other for other in data.labels if other != label)
            said.append(Prediction(document=document.id, labels=(label,)))
        run = record(model=model, task="demo_topic", seed=42, score=False, redacted=True)
        store_make.save_scored(tmp_path, run, data.test, said, **about)
    (line,) = compare("a", "b", results_dir=tmp_path).pairs[0].tasks
    assert line.groups == len({d.group for d in data.test})
    assert line.documents.p < 1


def test_counts_are_kept_until_a_run_is_written_again(tmp_path, monkeypatch):
    """A second verdict reads no predictions; one rewritten run is read again; a kept file that is
    cut is read anew.
    """
    for model, quality in (("a", 0.8), ("b", 0.6)):
        save_runs(tmp_path, model, ("gad", "anatem"), quality, (1, 2))
    first = compare("a", "b", results_dir=tmp_path).as_json()
    read = []
    load = Store.load_predictions
    monkeypatch.setattr(
        Store, "load_predictions", lambda *given: read.append(given[1].key) or load(*given)
    )
    assert compare("a", "b", results_dir=tmp_path).as_json() == first
    assert read == []
    save_runs(tmp_path, "b", ("gad",), 0.7, (2,))
    changed = compare("a", "b", results_dir=tmp_path).as_json()
    assert len(read) == 2, "both seeds of the group"
    assert changed != first
    for file in (tmp_path / ".counts").iterdir():
        file.write_bytes(file.read_bytes()[:-30])
    assert compare("a", "b", results_dir=tmp_path).as_json() == changed
    assert len(read) == 2 + 8
