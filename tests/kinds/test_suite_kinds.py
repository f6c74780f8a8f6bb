"""Regression, pairs and multiple choice: a corpus of one's own by one YAML, and the awkward rows of
real files.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

import biobench
from biobench.baselines import gate
from biobench.data.catalog import load_task
from biobench.data.load import load_data
from biobench.encode.pairs import encode_pairs
from biobench.errors import DataFormatError, ModelError, SpecError
from biobench.models.loading import find_checkpoint, load_tokenizer
from biobench.reporting.frame import build
from biobench.schema.document import Document, Prediction
from biobench.score import compute, oracle, rescore
from biobench.store import Store
from tests.helpers.spec_make import spec_text, write_spec
from tests.helpers.sts_make import COMMON, STS, WORDS, write_sts

MCQA = spec_text(
    "my_mcqa",
    type="multiple_choice",
    labels="[A, B, C]",
    metric="{primary: exact_match, paper: hamming}",
    source="{folder: mcqa, files: {train: train.jsonl, validation: dev.jsonl, test: test.jsonl}}",
    reader="{format: choices, layout: lines, question: q, options: [A, B, C], right: answer, "
    "right_is: from_one}",
    **COMMON,
)


def write_mcqa(folder: Path, sizes: tuple[int, int, int] = (16, 8, 12)) -> None:
    """Three options of which one or two are right; every fourth question has two options only."""
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(4)
    for name, size in zip(("train", "dev", "test"), sizes, strict=True):
        lines = []
        for number in range(size):
            right = sorted({1 + int(rng.integers(0, 2)), 1 + int(rng.integers(0, 2))})
            options = {
                "A": "fever high",
                "B": "cough dry",
                "C": None if number % 4 == 0 else "dose low",
            }
            question = f"which of {WORDS[number % 8]} {WORDS[number // 8 % 8]} in {name}"
            lines.append(json.dumps({"q": question, **options, "answer": right}))
        (folder / f"{name}.jsonl").write_text("\n".join(lines), encoding="utf-8")


def spec(folder: Path, text: str) -> Path:
    path = folder / f"{text.split(': ', 1)[1].split()[0]}.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def run_two(path: Path, model: Path, data: Path, results: Path, *overrides: str) -> None:
    fast = {"data_dir": data, "results_dir": results, "device": "cpu", "gate": False}
    made = biobench.run(str(model), str(path), seeds="1-2", overrides=overrides, **fast)
    assert [r.status for r in made] == ["done", "done"], [r.reason for r in made]


def test_one_yaml_adds_a_similarity_corpus_and_its_scores_are_scipys(
    tiny: Path, tmp_path: Path
) -> None:
    write_sts(tmp_path / "sts")
    path = spec(tmp_path, STS)
    run_two(path, tiny, tmp_path, tmp_path / "out")
    store = Store(tmp_path / "out")
    for record in store.records():
        gold, predictions = store.load_predictions(record)
        by_id = {p.document: p.label_scores[0] for p in predictions}
        truth = np.array([float(d.labels[0]) for d in gold])
        numbers = np.array([by_id[d.id] for d in gold])
        assert 0 <= numbers.min() < numbers.max() <= 5
        distance = np.abs(truth - numbers)
        wanted = {
            "pearson": stats.pearsonr(truth, numbers).statistic,
            "spearman": stats.spearmanr(truth, numbers).statistic,
            "mse": np.mean(distance**2),
            "edrm": 1 - np.mean(distance / np.maximum(numbers, 5 - numbers)),
        }
        assert record.scores == pytest.approx(wanted)
        assert (record.per_label, record.scale) == ({}, (0.0, 5.0))
        assert record.training.curve[0].validation.keys() == wanted.keys()
    assert {r.outcome for r in rescore(store)} == {"unchanged"}
    rows = [r for r in build(tmp_path / "out").rows if r.source == "run"]
    assert [(r.task, r.metric) for r in rows] == [("my_sts", "spearman")], (
        "the board shows the score of this kind"
    )


@pytest.mark.parametrize(
    ("row", "message"),
    [("one,two,", "'' is not a number"), ("one,two,5.5", "'5.5' is outside the scale")],
)
def test_a_row_without_a_usable_number_is_named(row: str, message: str, tmp_path: Path) -> None:
    write_sts(tmp_path / "sts")
    path = tmp_path / "sts" / "dev.csv"
    path.write_bytes(path.read_bytes() + f"{row}\r\n".encode())
    with pytest.raises(DataFormatError) as caught:
        load_data(load_task(spec(tmp_path, STS)), tmp_path)
    assert message in str(caught.value)
    assert f"{path}:10" in str(caught.value)


def test_regression_needs_a_scale_and_a_score_that_rises(tmp_path: Path) -> None:
    for old, new, message in (
        ("scale: [0, 5]\n", "", "scale is missing for type 'regression'"),
        ("[0, 5]", "[5, 0]", "does not rise"),
        ("pearson", "mse", "primary 'mse' falls as predictions get better"),
        ("pearson", "macro_f1", "primary 'macro_f1' is not defined for type 'regression'"),
    ):
        with pytest.raises(SpecError, match=message):
            load_task(spec(tmp_path, STS.replace(old, new, 1)))
    with pytest.raises(SpecError, match="scale does not fit type 'multiple_choice'"):
        load_task(spec(tmp_path, MCQA + "scale: [0, 1]\n"))


def test_undefined_correlations_are_zero_and_a_missing_prediction_is_as_wrong_as_can_be() -> None:
    gold = [Document(str(i), str(i), "", "test", labels=(str(i),)) for i in range(5)]

    def values(predictions: list[Prediction], top: float = 4.0) -> dict[str, float]:
        task: Any = {"type": "regression", "labels": ["x"], "gold_labels": ["x"]}
        return compute(**task, gold=gold, predictions=predictions, scale=(0, top)).values

    constant = values([Prediction(d.id, label_scores=(2.0,)) for d in gold])
    assert (constant["pearson"], constant["spearman"], constant["mse"]) == (0.0, 0.0, 2.0)
    perfect = {"pearson": 1.0, "spearman": 1.0, "edrm": 1.0, "mse": 0.0}
    assert values(oracle(gold)) == perfect
    none = values([])
    assert none["mse"] == (16 + 9 + 4 + 9 + 16) / 5
    assert none["pearson"] < 0
    halves = [Prediction(d.id, label_scores=(2.5,)) for d in gold]
    assert values(halves, top=4)["mse"] == 2.25, "a scale may be of whole numbers"


def test_one_yaml_adds_a_choice_corpus_both_ways_to_answer(tiny: Path, tmp_path: Path) -> None:
    write_mcqa(tmp_path / "mcqa")
    path = spec(tmp_path, MCQA)
    run_two(path, tiny, tmp_path, tmp_path / "out")
    run_two(path, tiny, tmp_path, tmp_path / "out", "head.choice=options")
    store = Store(tmp_path / "out")
    records = store.records()
    assert len(records) == 4
    two = {
        d.id for d in load_data(load_task(path), tmp_path).test if d.pieces[2][0] == d.pieces[2][1]
    }
    assert len(two) == 3
    for record in records:
        gold, predictions = store.load_predictions(record)
        chosen = {p.document: set(p.labels) for p in predictions}
        pairs = [(chosen[d.id], set(d.labels)) for d in gold]
        exact = np.mean([a == b for a, b in pairs])
        hamming = np.mean([len(a & b) / len(a | b) for a, b in pairs])
        assert record.scores == pytest.approx({"exact_match": exact, "hamming": hamming})
        assert all(chosen.values()), "some option is always chosen"
        assert all("C" not in chosen[name] for name in two), (
            "an option that is not there is never chosen"
        )
    assert {r.outcome for r in rescore(store)} == {"unchanged"}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"answer": []}, "has no right option"),
        ({"answer": [4]}, "the answer '4' is none of the options"),
        ({"answer": [3], "C": ""}, "the right option 'C' has no text"),
        ({"q": "  "}, "has no text"),
    ],
)
def test_a_question_that_cannot_be_answered_is_named(
    change: dict[str, object], message: str, tmp_path: Path
) -> None:
    write_mcqa(tmp_path / "mcqa")
    path = tmp_path / "mcqa" / "test.jsonl"
    item = {"q": "which", "A": "one", "B": "two", "C": "three", "answer": [1]} | change
    path.write_text(path.read_text(encoding="utf-8") + "\n" + json.dumps(item), encoding="utf-8")
    with pytest.raises(DataFormatError) as caught:
        load_data(load_task(spec(tmp_path, MCQA)), tmp_path)
    assert message in str(caught.value)
    assert "test.jsonl:13" in str(caught.value)


def test_the_gate_of_both_kinds_checks_the_scorer_and_asks_the_text(tmp_path: Path) -> None:
    write_sts(tmp_path / "sts", (40, 8, 40))
    task = load_task(spec(tmp_path, STS))
    verdict = gate(task, load_data(task, tmp_path))
    assert verdict.passed, verdict.reasons
    assert [p.name for p in verdict.policies] == ["training mean", "token overlap", "oracle"]
    scored = {p.name: p.scores for p in verdict.policies}
    assert scored["token overlap"]["pearson"] > 0.9
    data = load_data(task, tmp_path)
    train, test = ([float(d.labels[0]) for d in part] for part in (data.train, data.test))
    assert scored["training mean"]["mse"] == pytest.approx(
        np.mean((np.mean(train) - np.array(test)) ** 2)
    )
    moved = [
        replace(d, labels=other.labels)
        for d, other in zip(data.test, data.test[7:] + data.test[:7], strict=True)
    ]
    broken = gate(task, replace(data, documents={**data.documents, "test": moved}))
    assert not broken.passed
    assert "token overlap" in broken.reasons[0]
    write_mcqa(tmp_path / "mcqa", (40, 8, 40))
    task = load_task(spec(tmp_path, MCQA + "gate: {expect: beyond_words}\n"))
    data = load_data(task, tmp_path)
    verdict = gate(task, data)
    assert verdict.passed, verdict.reasons
    assert "not asked" in verdict.checks[-1].words
    scores = {p.name: p.scores for p in verdict.policies}["every option"]
    assert scores["hamming"] == pytest.approx(
        np.mean([len(d.labels) / len(verdict.labels) for d in data.test])
    )


def test_only_the_passage_is_cut_where_the_spec_says_so(tiny: Path) -> None:
    tokenizer = load_tokenizer(find_checkpoint(str(tiny)))
    document = Document("d", "d", " ".join(["fever"] * 60), "test", query=" ".join(["renal"] * 6))
    cut = encode_pairs([document], tokenizer, 40, shorten="shorten_text")[0]
    question = tokenizer(document.query, add_special_tokens=False)["input_ids"]
    assert (cut.truncated, len(cut.ids), list(cut.ids[1 : 1 + len(question)])) == (
        True,
        40,
        question,
    )
    assert not encode_pairs([document], tokenizer, 200)[0].truncated
    with pytest.raises(ModelError, match=r"first text of document 'd' has \d+ tokens"):
        encode_pairs([document], tokenizer, 16, shorten="shorten_text")


def test_options_are_parted_as_a_pair_is(tiny: Path) -> None:
    tokenizer = load_tokenizer(find_checkpoint(str(tiny)))
    document = Document("d", "d", "fever\ncough", "test", query="renal", pieces=((0, 5), (6, 11)))
    ids = list(encode_pairs([document], tokenizer, 64)[0].ids)
    assert ids.count(tokenizer.sep_token_id) == 3, (
        "after the question, between the options, at the end"
    )


def test_an_empty_passage_and_a_label_unseen_in_training_go_through(tmp_path: Path) -> None:
    rows = [
        {"q": f"does {w} help", "c": [f"{w} does"], "a": "yes" if i % 2 else "no"}
        for i, w in enumerate(WORDS)
    ]
    last = [{"q": "is it", "c": [], "a": "maybe"}, {"q": "was it", "c": [""], "a": "no"}]
    folder = tmp_path / "qa"
    folder.mkdir()
    for name, items in (("train", rows), ("dev", rows), ("test", [*rows, *last])):
        content = {f"{name}{i}": row for i, row in enumerate(items)}
        (folder / f"{name}.json").write_text(json.dumps(content), encoding="utf-8")
    path = write_spec(
        tmp_path / "my_qa.yaml",
        type="text_pair",
        labels=["yes", "no", "maybe"],
        source="{folder: qa, files: {train: train.json, validation: dev.json, test: test.json}}",
        reader="{format: json, layout: keyed, first: q, text: c, label: a, blank_text: kept}",
        **COMMON,
    )
    read = [(d.query, d.text, d.labels) for d in load_data(load_task(path), tmp_path).test[-2:]]
    assert read == [("is it", "", ("maybe",)), ("was it", "", ("no",))]
    (folder / "dev.json").write_text(
        '{"a": {"q": "x", "c": "y", "a": "no"}, "a": {"q": "x", "c": "y", "a": "no"}}'
    )
    with pytest.raises(DataFormatError, match="a key stands twice in one object"):
        load_data(load_task(path), tmp_path)
    (folder / "dev.json").write_text('{"b": {"q": " ", "c": "y", "a": "no"}}')
    with pytest.raises(DataFormatError, match="document 'b' has no first text"):
        load_data(load_task(path), tmp_path)
