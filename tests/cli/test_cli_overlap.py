"""Contamination from end to end: text, toy checkpoint, ledger, record, report."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from biobench.data.catalog import load_task
from biobench.data.load import load_data
from biobench.report.frame import build
from biobench.store import Store
from tests.helpers.cli_make import FAST, Run
from tests.helpers.generators import diamed, meddialog

SMALL = (
    *("base.config.hidden_size=32", "base.config.intermediate_size=32", "base.config.num_hidden_layers=2"),
    *("base.config.num_attention_heads=2", "base.config.local_attention=16", "base.tokenizer.vocabulary=500"),
    *("corpus.sequence_length=48", "phases.0.tokens=1536", "phases.1.tokens=1536"),
    *("phases.0.schedule.warmup=500", "corpus.sources=[{id: own, path: text.jsonl}]"),
)
LEAKED = 3
"""Test documents put into the training text: two as they are, one inside a longer text."""


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A corpus of seven test documents, and training text beside it that holds three of them."""
    # the generated needle documents, which are excluded too, take half a minute to write
    monkeypatch.setattr("biobench.data.catalog.list_tasks", lambda: [load_task("diamed")])
    folder = tmp_path / "data"
    diamed(folder)
    test = sorted(load_data(load_task("diamed"), folder).test, key=lambda d: len(d.text.split()))
    filler = [" ".join(f"w{i}x{j}" for j in range(60)) + "." for i in range(200)]
    texts = [*filler, test[0].text, test[1].text, f"Avant. {test[-1].text} Après."]
    lines = "".join(json.dumps({"text": text}) + "\n" for text in texts)
    (tmp_path / "text.jsonl").write_text(lines, encoding="utf-8")
    return folder


def pretrain(biobench: Run, out: str, data: Path, *more: str) -> Path:
    """A toy checkpoint trained on the text; its model folder."""
    sets = [part for text in SMALL for part in ("--set", text)]
    biobench("pretrain", "toy_detour", *sets, "--out", out, "--data-dir", data, *more).ok()
    return Path(out) / "model"


def run(biobench: Run, model: Path, data: Path, seeds: str = "1-2") -> None:
    biobench("run", model, "--task", "diamed", "--data-dir", data, "--seeds", seeds, "--no-gate", *FAST[2:]).ok()


def test_a_leak_stands_in_the_record_and_on_the_report(biobench: Run, data: Path, tmp_path: Path) -> None:
    model = pretrain(biobench, "leaky", data, "--no-exclude-tasks")
    run(biobench, model, data)
    before = Store("results").records()[0].contamination
    assert before is not None
    assert (before.corpus, before.test, before.excluded) == ("toy_detour", None, False)
    assert any("has not been compared" in note for note in build("results").notes)

    said = biobench("analyze", "overlap", "leaky", "--task", "diamed", "--data-dir", data, "--json").ok()
    rows = {row["split"]: row for row in said.json()}
    assert (rows["test"]["seen"], rows["test"]["exact"], rows["test"]["excluded"]) == (LEAKED, 2, False)
    assert rows["validation"]["seen"] == 0
    for record in Store("results").records():
        assert record.contamination is not None
        assert record.contamination.seen == LEAKED
        assert record.contamination.corpus_hash == before.corpus_hash
        assert record.contamination.base == "fresh weights"

    row = next(r for r in biobench("report", "--format", "json").json() if r["source"] == "run")
    documents = rows["test"]["documents"]
    assert (row["contamination"]["test"]["seen"], row["contamination"]["test"]["documents"]) == (LEAKED, documents)
    markdown = biobench("report", "--format", "md").out
    line = next(line for line in markdown.splitlines() if line.startswith("| leaky/model"))
    assert "†" in line
    assert f"† leaky/model on diamed: {LEAKED} of {documents} test documents" in markdown.replace("\\", "")
    page = biobench("report", "--format", "html").out
    assert f"† leaky/model on diamed: {LEAKED} of {documents} test documents" in page

    # a run made after the measurement has it from the start
    run(biobench, model, data, "3")
    assert {r.contamination.seen for r in Store("results").records() if r.contamination} == {LEAKED}
    assert len(Store("results").records()) == 3


def test_documents_kept_out_of_the_text_are_said_to_be(biobench: Run, data: Path) -> None:
    model = pretrain(biobench, "clean", data)
    assert (model / "exclusion.json").is_file()
    run(biobench, model, data)
    told = Store("results").records()[0].contamination
    assert told is not None
    assert (told.excluded, told.test) == (True, None)
    report = build("results")
    assert any("were excluded from its training text 'toy_detour'" in note for note in report.notes)

    said = biobench("analyze", "overlap", model / "ledger.json", "--task", "diamed", "--data-dir", data, "--json").ok()
    assert [(r["seen"], r["excluded"]) for r in said.json()] == [(0, True)] * 2
    assert any("none of" in note and "all of them were excluded" in note for note in build("results").notes)
    rows = [r for r in biobench("report", "--format", "json").json() if r["source"] == "run"]
    assert not any(row["contamination"]["test"]["seen"] for row in rows)

    # the list belongs to the task's data as it was, and to that run
    listed = json.loads((model / "exclusion.json").read_text())
    for change in ({"exclusion_hash": "0"}, {"ngram": 20}, {"tasks": {}}):
        (model / "exclusion.json").write_text(json.dumps(listed | change))
        assert not told_again(model, listed["tasks"]["diamed"]["data_hash"])
    (model / "exclusion.json").write_text(json.dumps(listed))
    assert told_again(model, listed["tasks"]["diamed"]["data_hash"])
    assert not told_again(model, "another")

    # other documents to exclude, or another text, are not those of the run
    ask = ("analyze", "overlap", "clean", "--task", "diamed", "--data-dir", data)
    cases = (exclusions := data / "DiaMED" / "splits" / "validation.json").read_text(encoding="utf-8")
    exclusions.write_text(cases.replace('"clinical_case": "', '"clinical_case": "Ajout. ', 1), encoding="utf-8")
    assert "not those that the run excluded" in biobench(*ask).refusal()
    exclusions.write_text(cases, encoding="utf-8")
    with Path("text.jsonl").open("a") as stream:
        stream.write('{"text": "One line more."}\n')
    assert "cannot be shown to be the text of this run" in biobench(*ask).refusal()


def told_again(model: Path, data_hash: str) -> bool:
    """What a new results folder would say of the checkpoint."""
    from biobench.runs.provenance import contamination

    found = contamination(model, "any", "diamed", data_hash, "nowhere")
    assert found is not None
    return found.excluded


def test_text_is_given_to_a_model_by_name(biobench: Run, tiny: Path, data: Path, tmp_path: Path) -> None:
    run(biobench, tiny, data)
    assert Store("results").records()[0].contamination is None
    said = biobench("analyze", "overlap", "text.jsonl", "--task", "diamed", "--data-dir", data, "--model", tiny).ok()
    assert "2 stored runs" in said.err
    assert {r.contamination.seen for r in Store("results").records() if r.contamination} == {LEAKED}
    # text without a leak does not hide the one that has it
    (tmp_path / "other.txt").write_text("Nothing of the kind.")
    biobench("analyze", "overlap", "other.txt", "--task", "diamed", "--data-dir", data, "--model", tiny)
    assert len(list(Path("results/overlap/diamed").iterdir())) == 2
    assert {r.contamination.seen for r in Store("results").records() if r.contamination} == {LEAKED}
    # without a model the figures are printed and nothing is kept
    said = biobench("analyze", "overlap", "text.jsonl", "--task", "diamed", "--data-dir", data, "--results-dir", "new")
    assert "2 of 7 documents verbatim" in said.out
    assert not Path("new").exists()


def test_tasks_that_nobody_guarded_are_named_and_can_be_counted_later(
    biobench: Run, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Trained without the data of a task, then compared with it: what the run guarded is not what is at hand now."""
    tasks = [load_task("diamed"), load_task("meddialog_fr")]
    monkeypatch.setattr("biobench.data.catalog.list_tasks", lambda: tasks)
    meddialog(tmp_path / "other")
    secret = load_data(load_task("meddialog_fr"), tmp_path / "other").test[0].reading
    with (tmp_path / "text.jsonl").open("a", encoding="utf-8") as stream:
        stream.write(json.dumps({"text": f"{secret} {secret}"}) + "\n")
    sets = [part for text in SMALL for part in ("--set", text)]
    start = ("pretrain", "toy_detour", *sets, "--out", "half", "--data-dir", data)
    refused = biobench(*start, "--require-tasks", "diamed,meddialog_fr")
    assert refused.status != 0
    assert "the documents of meddialog_fr are not available" in refused.err
    assert "unknown task 'diamid'" in biobench(*start, "--require-tasks", "diamid").refusal()
    said = biobench(*start, "--require-tasks", "diamed").ok()
    assert "1 task NOT guarded" in said.err
    assert "(--data-dir DIR): meddialog_fr" in said.err
    assert f"removed from the corpus: {LEAKED} documents" in said.err
    listed = json.loads(Path("half/exclusion.json").read_text())
    assert (list(listed["tasks"]), listed["not_guarded"]) == (["diamed"], ["meddialog_fr"])
    assert listed["tasks"]["diamed"]["removed"] == LEAKED
    assert f"removed from the corpus because of diamed: {LEAKED} documents" in said.err
    assert "Tasks that were not guarded (1)" in Path("half/model/README.md").read_text()

    for name in (tmp_path / "other").iterdir():
        name.rename(data / name.name)
    said = biobench("analyze", "overlap", "half", "--task", "meddialog_fr", "--data-dir", data, "--json").ok()
    assert {r["split"]: r["seen"] for r in said.json()}["test"] >= 1
