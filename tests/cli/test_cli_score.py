"""`biobench score`: predictions of any system stand beside the runs, and what does not fit is
refused with its line.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from biobench.data.catalog import load_task
from biobench.data.load import load_data
from biobench.schema.document import TaskData
from biobench.store import Store
from tests.helpers.cli_make import Run, Said

Rows = list[dict[str, Any]]


def demo(task: str) -> TaskData:
    return load_data(load_task(task), None)


def gold(task: str) -> Rows:
    """A perfect answer in the documented format."""
    data = demo(task)
    if task == "demo_ner":
        return [{"document": d.id, "spans": [s._asdict() for s in d.spans]} for d in data.test]
    return [{"document": d.id, "labels": list(d.labels)} for d in data.test]


def write(path: Path, rows: Rows) -> Path:
    """The rows as JSON Lines."""
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def call(biobench: Run, file: Path, task: str, *more: str, name: str = "my LLM") -> Said:
    """The command on a file."""
    return biobench(
        "score --predictions", file, "--task", task, "--model", name, "--no-gate", *more
    )


@pytest.mark.parametrize("task", ["demo_ner", "demo_topic"])
def test_a_perfect_answer_scores_one_and_stands_as_outside(biobench, tmp_path, task):
    rows = gold(task)[::-1]  # order does not matter
    said = call(biobench, write(tmp_path / "p.jsonl", rows), task, "--json").ok()
    (row,) = said.json()
    assert (row["model"], row["task"], row["status"]) == ("my LLM", task, "done")
    assert row["scores"]["macro_f1"] == 1.0
    (record,) = Store("results").records()
    assert record.origin == record.provenance.device == record.model.architecture == "outside"
    report = biobench("report --format json").json()
    (shown,) = [r for r in report if r["model"] == "my LLM" and not r["task"].startswith("avg_")]
    assert (shown["source"], shown["mean"], shown["seconds"], shown["parameters"]) == (
        "external",
        1.0,
        None,
        None,
    )
    assert "external" in biobench("report --format md").out
    assert call(biobench, tmp_path / "p.jsonl", task, "--json").json()[0]["status"] == "skipped"
    assert biobench("rescore --json").json()[0]["outcome"] == "unchanged"


def test_one_wrong_label_costs_what_it_is_worth(biobench, tmp_path):
    rows = gold("demo_topic")
    labels = demo("demo_topic").labels
    rows[0]["labels"] = [next(label for label in labels if label != rows[0]["labels"][0])]
    row = call(biobench, write(tmp_path / "p.jsonl", rows), "demo_topic", "--json").json()[0]
    assert row["scores"]["accuracy"] == pytest.approx(1 - 1 / len(rows))
    refused = call(
        biobench, write(tmp_path / "p.jsonl", gold("demo_topic")), "demo_topic"
    ).refusal()
    assert "other predictions of 'my LLM'" in refused
    forced = call(biobench, tmp_path / "p.jsonl", "demo_topic", "--force", "--json").json()[0]
    assert forced["scores"]["accuracy"] == 1.0
    assert (
        call(biobench, tmp_path / "p.jsonl", "demo_topic", "--seed", "1", "--json").json()[0]["key"]
        != forced["key"]
    )


def refused(biobench: Run, rows: Rows, task: str, words: str) -> None:
    """The answer is refused with these words, and nothing is stored."""
    refusal = call(biobench, write(Path("p.jsonl"), rows), task).refusal()
    assert (words in refusal, "p.jsonl" in refusal) == (True, True), refusal
    assert not Path("results").exists()


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda r: r[1:], "test documents have no prediction, such as"),
        (lambda r: [*r, r[0]], "was predicted before, on line 1"),
        (lambda r: [r[0], "no object"], ":2: is not a JSON object"),
    ],
)
def test_every_document_is_answered_once(biobench, spoil, words):
    refused(biobench, spoil(gold("demo_topic")), "demo_topic", words)


CHANCES = dict.fromkeys(("cardiology", "gastroenterology", "neurology", "pneumology"), 1.5)


@pytest.mark.parametrize(
    ("task", "changed", "words"),
    [
        ("demo_topic", {"document": "nobody"}, ":1: document 'nobody' is not one of the test"),
        ("demo_topic", {"labels": ["Cardio"]}, ":1: 'Cardio' is not a label of the task"),
        ("demo_topic", {"labels": []}, ":1: gives 0 labels in a task of one label"),
        ("demo_topic", {"lables": ["x"]}, ":1: unknown key 'lables'"),
        ("demo_topic", {"label_scores": CHANCES}, "got 1.5"),
        ("demo_ner", {"spans": None}, "needs a list 'spans'"),
        ("demo_ner", {"start": 0, "end": 10**6, "label": "Disease"}, "leaves the text"),
        (
            "demo_ner",
            {"start": 0.5, "end": 3, "label": "Disease"},
            "spans.0.start: input should be a valid integer, got 0.5",
        ),
        ("demo_ner", {"start": 0, "end": 3, "label": "disease"}, "is not a label"),
    ],
)
def test_what_does_not_fit_is_refused(biobench, task, changed, words):
    if "start" in changed:
        changed = {"spans": [changed]}
    row, *rows = gold(task)
    refused(biobench, [{**row, **changed}, *rows], task, words)


def test_the_documents_to_answer_hold_no_gold(biobench, tmp_path):
    biobench("score --task demo_ner --documents", tmp_path / "d.jsonl").ok()
    rows = [json.loads(line) for line in (tmp_path / "d.jsonl").read_text().splitlines()]
    assert [r["document"] for r in rows] == [d.id for d in demo("demo_ner").test]
    assert set(rows[0]) == {"document", "text", "tokens"}
