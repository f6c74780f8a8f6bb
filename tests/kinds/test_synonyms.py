"""Concepts of unseen names, asked of a frozen encoder: numbers against a second way to compute
them, and real files.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import biobench
from biobench.baselines import gate
from biobench.data.catalog import load_task
from biobench.data.load import load_data
from biobench.errors import SpecError, UsageError
from biobench.schema.document import Document, Prediction
from biobench.score import compute, rescore
from biobench.store import Store
from tests.helpers.spec_make import spec_text
from tests.helpers.tiny import make_tiny_encoder

FAST: dict[str, Any] = {
    "device": "cpu",
    "parallel": 1,
    "results_dir": "results",
    "data_dir": "data",
}
SPEC = spec_text(
    "names",
    type="synonyms",
    source="{folder: names, files: {train: train.txt, validation: dev.txt, test: test.txt}}",
    reader="{format: pubtator, label: concept, concept_match: '(D\\d+)'}",
    labels="{collected: 12}",
    seeds='"42"',
    protocol="{max_length: 32}",
    training="{encoder: frozen, epochs: 1, learning_rate: 1e-3}",
    unit="document",
    probe="{kind: similarity, pooling: mean}",
    metric="{primary: accuracy_at_1, paper: mrr}",
)
STEMS = (
    "fever",
    "cough",
    "lung pain",
    "heart failure",
    "renal stone",
    "liver tumour",
    "blood loss",
    "skin rash",
    "bone cyst",
    "eye drop",
    "ear ache",
)
FORMS = ("{}", "acute {}", "{} of childhood", "severe {}", "{}s", "chronic {}", "{} syndrome")
Mention = tuple[str, str]
"""(surface, concept column)."""


def write(path: Path, mentions: list[Mention]) -> None:
    """One document a mention, between two words."""
    blocks = []
    for number, (surface, concept) in enumerate(mentions):
        name = f"{path.stem}{number}"
        row = f"{name}\t2\t{2 + len(surface)}\t{surface}\tDisease\t{concept}"
        blocks.append(f"{name}|t|A {surface}\n{name}|a|was seen.\n{row}\n")
    path.write_text("\n".join(blocks), encoding="utf-8")


def corpus() -> dict[str, list[Mention]]:
    """Every concept has four names in training and seven in test; what is dropped stands beside
    them.
    """
    train = [(f.format(stem), f"D{i}") for i, stem in enumerate(STEMS) for f in FORMS[:4]]
    test = [
        (f.format(stem).upper() if f == FORMS[0] else f.format(stem), f"D{i}")
        for i, stem in enumerate(STEMS)
        for f in FORMS
    ]
    train += [("fever", "D1"), ("two at once", "D1|D2"), ("nothing", "-1")]
    test += [
        ("new thing", "D99"),
        ("two of them", "D1|D2"),
        ("no id", "-1"),
        ("high  temperature", "D0"),
    ]
    return {"train": train, "dev": [("mild fever", "D0"), ("mild cough", "D1")], "test": test}


@pytest.fixture
def names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data" / "names").mkdir(parents=True)
    for split, mentions in corpus().items():
        write(tmp_path / "data" / "names" / f"{split}.txt", mentions)
    path = tmp_path / "names.yaml"
    path.write_text(SPEC, encoding="utf-8")
    return path


def asked() -> tuple[dict[str, set[str]], dict[str, set[str]]]:
    """(candidates, queries) by lower-case surface, taken from the lists above by other code than
    the project's.
    """
    known: dict[str, set[str]] = {}
    queries: dict[str, set[str]] = {}
    for surface, concept in corpus()["train"]:
        if concept[1:].isdigit() and concept[0] == "D":
            known.setdefault(" ".join(surface.lower().split()), set()).add(concept)
    for surface, concept in corpus()["test"]:
        name = " ".join(surface.lower().split())
        if name not in known and concept in set.union(*known.values()):
            queries[name] = {concept}
    return known, queries


def test_queries_are_unseen_names_of_known_concepts(names: Path) -> None:
    data = load_data(load_task(names), "data")
    known, queries = asked()
    assert {d.text.lower(): set(d.labels) for d in data.train} == known
    assert {d.text.lower(): set(d.labels) for d in data.test} == queries
    assert known["fever"] == {"D0", "D1"}
    assert "high temperature" in queries
    assert len(queries) == 3 * len(STEMS) + 1
    assert {d.group for d in data.test} == {f"test/D{i}" for i in range(len(STEMS))}
    assert not {d.group for d in data.test} & {d.group for d in data.train}


def test_the_scores_are_those_of_a_second_computation(names: Path, tmp_path: Path) -> None:
    from transformers import AutoModel, AutoTokenizer

    encoder = make_tiny_encoder(tmp_path / "tiny")
    (result,) = biobench.run(encoder, tasks=names, track="frozen", gate=False, **FAST)
    assert (result.status, result.reason) == ("done", None)
    (record,) = Store("results").records()
    gold, predictions = Store("results").load_predictions(record, None)
    model = AutoModel.from_pretrained(encoder).eval()
    tokenizer = AutoTokenizer.from_pretrained(encoder)

    @torch.inference_mode()
    def units(documents: list[Document]) -> torch.Tensor:
        inputs = [torch.tensor([tokenizer(d.text)["input_ids"]]) for d in documents]
        means = [model(input_ids=ids).last_hidden_state[0].mean(0) for ids in inputs]
        return torch.nn.functional.normalize(torch.stack(means), dim=-1)

    data = load_data(load_task(names), "data")
    rankings = {p.document: p.labels for p in predictions}
    cosines = units(data.test) @ units(data.train).T
    ranks: list[int] = []
    for document, row in zip(data.test, cosines.numpy(), strict=True):
        ranking = rankings[document.id]
        assert len(ranking) == 11
        best = [row[[concept in d.labels for d in data.train]].max() for concept in ranking]
        assert (np.diff(best) <= 3e-3).all(), "half precision turns only ties"
        ranks.append(1 + ranking.index(document.labels[0]))
    assert {d.id for d in gold} == rankings.keys()
    expected = {
        "accuracy_at_1": np.mean(np.equal(ranks, 1)),
        "accuracy_at_5": np.mean(np.less_equal(ranks, 5)),
        "mrr": np.mean(np.reciprocal(ranks, dtype=float)),
    }
    assert result.scores == pytest.approx(expected, abs=1e-12)
    assert 0.2 < result.scores["accuracy_at_1"] < 1
    assert (record.track, record.cost.train_seconds) == ("frozen", 0)
    assert {r.outcome for r in rescore(Store("results"))} == {"unchanged"}
    again = biobench.run(
        encoder, tasks=names, track="frozen", gate=False, **{**FAST, "results_dir": "again"}
    )
    assert again[0].scores == result.scores
    assert Store("again").load_predictions(Store("again").records()[0], None)[1] == predictions


def test_ranks_below_the_depth_count_nothing() -> None:
    labels = tuple(f"C{i}" for i in range(30))
    gold = [Document(f"d{i}", "g", "", "test", labels=(f"C{i}",)) for i in (0, 4, 19, 20)]
    predictions = [Prediction(d.id, labels=labels) for d in gold]
    score: Any = {"type": "synonyms", "labels": labels, "gold_labels": labels, "gold": gold}
    assert compute(predictions=predictions, **score).values == {
        "accuracy_at_1": 0.25,
        "accuracy_at_5": 0.5,
        "mrr": pytest.approx((1 + 1 / 5 + 1 / 20) / 4),
    }
    assert set(compute(predictions=[], **score).values.values()) == {0.0}


def test_the_gate_plays_names(names: Path) -> None:
    task = load_task(names)
    data = load_data(task, "data")
    verdict = gate(task, data)
    assert verdict.passed, [c.words for c in verdict.checks]
    baselines = {p.name: p.scores for p in verdict.policies}
    assert list(baselines) == ["commonest concepts", "letter n-grams", "oracle"]
    # D1 has five names in training, more than any other, and three of the 34 queries
    assert baselines["commonest concepts"]["accuracy_at_1"] == pytest.approx(3 / 34)
    assert baselines["letter n-grams"]["accuracy_at_1"] > 0.9
    texts = [d.text for d in data.test]
    shuffled = [replace(d, text=texts[(i + 7) % len(texts)]) for i, d in enumerate(data.test)]
    assert not gate(task, replace(data, documents={**data.documents, "test": shuffled})).passed


def test_what_does_not_fit_is_refused(names: Path, tmp_path: Path) -> None:
    encoder = make_tiny_encoder(tmp_path / "tiny")
    with pytest.raises(UsageError, match="trains nothing"):
        biobench.run(encoder, tasks=names, gate=False, **FAST)
    for old, new, words in (
        ("encoder: frozen, ", "", "type 'synonyms' trains nothing"),
        ("kind: similarity", "kind: linear", "type 'synonyms' trains nothing"),
        (
            "max_length: 32",
            "max_length: 32, long_documents: stride",
            "'stride' does not fit type 'synonyms'",
        ),
        ("(D\\d+)", "D\\d+", "has 0 groups"),
        ("primary: accuracy_at_1", "primary: macro_f1", "is not defined for type 'synonyms'"),
    ):
        names.write_text(SPEC.replace(old, new), encoding="utf-8")
        with pytest.raises(SpecError, match=words):
            load_task(names)
