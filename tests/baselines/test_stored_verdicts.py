"""The verdict as command, in the results folder, before a run, and in the report."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from biobench.cli.main import app
from biobench.data.catalog import load_task
from biobench.data.load import load_data
from biobench.errors import StoreError
from biobench.reporting.frame import build
from biobench.reporting.results import fingerprint, load
from biobench.runs.api import run
from biobench.schema.baseline import BASELINE_VERSION
from biobench.schema.document import TaskData
from biobench.store.baselines import find_baseline, scan_baselines
from tests.helpers.broken_corpora import (
    broken,
    characters_moved,
    labels_shuffled,
    tokens_moved,
    write_brat,
    write_iob,
    write_tsv,
)
from tests.helpers.tiny import make_tiny_encoder


def asked(root: Path, *arguments: str | Path) -> tuple[int, str]:
    """Exit status and output of `biobench tasks gate ...` on data and results below `root`."""
    said = CliRunner().invoke(
        app,
        [
            "tasks",
            "gate",
            *map(str, arguments),
            "--data-dir",
            str(root),
            "--results-dir",
            str(root / "results"),
        ],
    )
    if said.exception is not None and not isinstance(said.exception, SystemExit):
        raise said.exception
    return said.exit_code, said.output


def demo(name: str) -> TaskData:
    return load_data(load_task(name), None)


def test_specs_as_written_pass_and_broken_ones_fail(tmp_path: Path) -> None:
    ner, topic = demo("demo_ner"), demo("demo_topic")
    for spec in (write_iob(tmp_path, "tokens", ner), write_brat(tmp_path, "spans", ner)):
        status, out = asked(tmp_path, spec)
        assert status == 0, out
        assert f"{spec.stem} passes its gate" in out
    bad = {
        write_tsv(
            tmp_path, "topic_shuffled", broken(topic, labels_shuffled(1))
        ): "permuted among the documents",
        write_brat(
            tmp_path, "spans_shifted", broken(ner, characters_moved(1))
        ): "offsets are shifted",
        write_iob(tmp_path, "tokens_shifted", broken(ner, tokens_moved(1))): "offsets are shifted",
    }
    for spec, why in bad.items():
        status, out = asked(tmp_path, spec)
        assert status == 1, out
        assert f"{spec.stem} FAILS its gate" in out
        assert any(line.startswith("NO") and why in line for line in out.splitlines()), out


def test_json_and_what_is_stored(tmp_path: Path) -> None:
    status, out = asked(tmp_path, "demo_topic", "--json")
    said = json.loads(out)
    assert status == 0
    assert (said["task"], said["passed"], said["reasons"]) == ("demo_topic", True, [])
    (path,) = (tmp_path / "results" / "floors" / "demo_topic").iterdir()
    assert path == Path(said.pop("file"))
    said.pop("reasons")
    assert json.loads(path.read_text(encoding="utf-8")) == said
    found = find_baseline(tmp_path / "results", "demo_topic", said["task_hash"], said["data_hash"])
    assert found.model_dump(mode="json") == said
    other_spec = find_baseline(tmp_path / "results", "demo_topic", "another", said["data_hash"])
    assert other_spec == found, "a changed training field leaves the documents as they are"
    assert (
        find_baseline(tmp_path / "results", "demo_topic", said["task_hash"], "other data") is None
    )


def test_damaged_and_foreign_files(tmp_path: Path) -> None:
    asked(tmp_path, "demo_topic")
    results = tmp_path / "results"
    (path,) = (results / "floors" / "demo_topic").iterdir()
    (record,), _ = scan_baselines(results)
    old = path.read_text(encoding="utf-8")
    path.write_text(
        old.replace(f'"floor_version": {BASELINE_VERSION}', '"floor_version": 1'), encoding="utf-8"
    )
    assert scan_baselines(results) == ([], []), "another version of the gate counts as not asked"
    path.write_text(old[:100], encoding="utf-8")
    with pytest.raises(StoreError, match="is not JSON"):
        find_baseline(results, "demo_topic", record.task_hash, record.data_hash)
    assert "not JSON" in build(results).findings[0].what
    path.write_text(old, encoding="utf-8")
    path.rename(path.with_name("0" * 32 + ".json"))
    _, (finding,) = scan_baselines(results)
    assert "another task" in finding.what


def test_a_run_asks_once_and_the_report_shows_baselines(tmp_path: Path) -> None:
    model = str(make_tiny_encoder(tmp_path / "tiny"))
    results = tmp_path / "results"

    def made(seed: int, **more: Any) -> None:
        fast = {"device": "cpu", "overrides": ["training.epochs=1"], "limit": 24}
        (one,) = run(model, "demo_topic", seeds=seed, results_dir=results, **fast, **more)
        assert one.status == "done", one.reason

    made(1, gate=False)
    assert not (results / "floors").exists()
    assert any("no gate verdict" in note for note in build(results).notes)
    state = fingerprint(results)
    made(2)
    assert fingerprint(results) != state
    (path,) = (results / "floors" / "demo_topic").iterdir()
    first = path.stat().st_mtime_ns
    (record,), _ = scan_baselines(results)
    assert record.test_documents == 80, "a limited run asks the gate on all data"
    made(3)
    assert path.stat().st_mtime_ns == first
    report = build(results, "macro", tasks=["demo_topic"])
    assert not any("no gate verdict" in note for note in report.notes)
    rows = {(r.source, r.model): r for r in report.rows}
    assert {m for s, m in rows if s == "baseline"} == {
        "majority class",
        "random labels",
        "length only",
        "bag of words",
    }
    assert rows["baseline", "majority class"].mean == pytest.approx(
        record.policies[0].scores["macro_f1"]
    )
    assert rows["oracle", "oracle"].mean == 1
    assert any(s == "run" for s, _ in rows)


def test_a_run_on_a_broken_task_is_kept_but_not_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = write_tsv(tmp_path, "shuffled", broken(demo("demo_topic"), labels_shuffled(1)))
    model, results = make_tiny_encoder(tmp_path / "tiny"), tmp_path / "results"
    fast = [
        "--seeds",
        "1",
        "--limit",
        "24",
        "--set",
        "training.epochs=1",
        "--device",
        "cpu",
        "--json",
    ]
    folders = ["--data-dir", str(tmp_path), "--results-dir", str(results)]
    said = CliRunner().invoke(app, ["run", str(model), "--task", str(spec), *fast, *folders])
    assert said.exit_code == 0, said.output
    failure, done = map(said.stderr.index, ("shuffled fails its gate, reports will not", ": done"))
    assert failure < done, "it is said before the run"
    assert said.stderr.endswith("shuffled fails its gate, reports will not rank it\n")
    with monkeypatch.context() as elsewhere:
        elsewhere.setattr("biobench.runs.gates.announce", lambda *_: None)
        again = CliRunner().invoke(app, ["run", str(model), "--task", str(spec), *fast, *folders])
    assert "rank it: bag of words and" in again.stderr, "another process found it"
    (row,) = json.loads(said.stdout)
    assert Path(row["predictions"]).is_file()
    report = build(results, tasks=["shuffled"])
    assert {r.source for r in report.rows} == {"baseline", "oracle"}
    why = "shuffled fails its gate, so its runs (1) are neither shown nor averaged: "
    assert report.notes[0].startswith(why)
    assert report.notes[0].endswith("declare `gate: {expect: chance}` in the spec")
    dry = CliRunner().invoke(
        app, ["run", str(model), "--task", str(spec), *fast, *folders, "--dry-run"]
    )
    assert "shuffled fails its gate, reports will not rank it: " in dry.stderr
    changed = ["--set", "gate.expect=chance", "--dry-run"]
    dry = CliRunner().invoke(
        app, ["run", str(model), "--task", str(spec), *fast, *folders, *changed]
    )
    assert "fails its gate" not in dry.stderr, "the stored verdict answers another question"
    (named,) = {refusal.group.model for refusal in load(results).refusals}
    mistakes = CliRunner().invoke(app, ["errors", named, "--task", str(spec), *folders])
    assert mistakes.exit_code == 0, mistakes.output
    assert "shuffled fails its gate, reports leave this run out: " in mistakes.stdout
