"""The demo's tasks with unseen names: what a name is cannot be learnt from their training
splits."""

import json
import re
import subprocess
import sys

import pytest
from typer.main import get_command

from biobench.cli.demo import BOARD, TASKS, print_results, say
from biobench.cli.main import app
from biobench.core.packages import read_words
from biobench.data.catalog import load_task
from biobench.data.load import load_data
from biobench.reporting.frame import build
from biobench.schema.contamination import Contamination
from tests.helpers.report_make import save_runs
from trainer.corpus.embedded import documents

CONDITIONS = read_words("biobench.core", "conditions.json")
NAMES = {
    name: kind
    for c in CONDITIONS
    for kind, pairs in (("Drug", c["drugs"]), ("Symptom", c["symptoms"]), ("Test", [c["test"]]))
    for pair in pairs
    for name in pair
}


def test_no_mention_stands_in_two_splits():
    data = load_data(load_task("demo_names"), None)
    mentions = {
        split: {(d.text[s.start : s.end], s.label) for d in split_documents for s in d.spans}
        for split, split_documents in data.documents.items()
    }
    assert len(mentions["train"]) > 20
    assert len(mentions["test"]) > 15
    texts = {split: {text for text, _ in found} for split, found in mentions.items()}
    assert not texts["test"] & (texts["train"] | texts["validation"])
    assert not texts["train"] & texts["validation"]
    assert all(NAMES[text] == label for found in mentions.values() for text, label in found)


def test_the_label_is_the_kind_of_the_first_name():
    for split_documents in load_data(load_task("demo_first"), None).documents.values():
        assert split_documents
        for document in split_documents:
            places = {
                m.start(): kind
                for name, kind in NAMES.items()
                for m in re.finditer(re.escape(name), document.text)
            }
            assert document.labels == (places[min(places)].lower(),)


def test_pretraining_text_holds_every_test_name():
    text = "\n".join(documents(3000, seed=0)).casefold()
    data = load_data(load_task("demo_names"), None)
    unseen = {d.text[s.start : s.end] for d in data.documents["test"] for s in d.spans}
    assert [name for name in unseen if name.casefold() not in text] == []


@pytest.mark.parametrize("task", TASKS)
def test_pretraining_text_holds_no_test_sentence(task):
    words = " ".join("\n".join(documents(3000, seed=0)).casefold().split())
    tests = load_data(load_task(task), None).documents["test"]
    sentences = [" ".join(d.text.casefold().split()).rstrip(" .") for d in tests]
    assert len(sentences) == 80
    assert [sentence for sentence in sentences if sentence in words] == []


def test_the_demo_ends_with_one_table_three_notes_and_the_boards_address(
    tmp_path, capsys, monkeypatch
):
    """On a store of made-up scores: what a report would say besides is left to `report --notes`."""
    for model, score in (("toy-detour", 0.8), ("toy-mlm-twin", 0.7), ("toy-untrained", 0.2)):
        for task in TASKS:
            text = Contamination(corpus="toy", corpus_hash="0" * 64)
            save_runs(
                tmp_path,
                model,
                task,
                {42: score, 43: score + 0.01, 44: score - 0.01},
                contamination=text,
            )
    assert len(build(tmp_path, "macro", tasks=TASKS).notes) >= 6
    for width in ("80", "120"):
        monkeypatch.setenv("COLUMNS", width)
        print_results(str(tmp_path))
        say("word " * 60)
        output = capsys.readouterr().out
        assert all(len(line) <= int(width) for line in output.splitlines())
        assert output.count("toy-detour") == 1
        assert 1 <= output.count("\n* ") <= 3
        assert "the pretraining text holds the test names" in output
        assert "has not been compared" not in output
    (port,) = [
        p.default for p in get_command(app).commands["leaderboard"].params if p.name == "port"
    ]
    assert f"http://localhost:{port}" == BOARD


@pytest.mark.slow
def test_the_demo_shows_what_pretraining_brings(tmp_path):
    """The whole demo, about two minutes: pretrained above untrained on both tasks, and above the
    baselines.
    """

    def biobench(*arguments: object) -> str:
        call = [
            sys.executable,
            "-m",
            "biobench",
            *map(str, arguments),
            "--results-dir",
            str(tmp_path / "demo"),
        ]
        return subprocess.run(call, capture_output=True, text=True, check=True).stdout

    output = biobench("demo")
    assert "Their ledgers: matched." in output
    assert "toy-detour scores higher than toy-mlm-twin." in " ".join(output.split())
    report = json.loads(biobench("report", "--average", "macro", "--format", "json"))
    rows = {(r["model"], r["task"]): r["mean"] for r in report if r["metric"] == "macro_f1"}
    for task in ("demo_names", "demo_first"):
        assert rows["toy-detour", task] > rows["toy-untrained", task] + 0.2
    assert rows["toy-detour", "demo_names"] > rows["training dictionary", "demo_names"] + 0.4
