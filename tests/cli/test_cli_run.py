"""`run`, `rescore` and the Python face: statuses, exit codes, keys, and what is never done twice."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import biobench as library
from biobench.errors import DataUnavailableError
from tests.helpers.cli_make import FAST, Said, process

FIELDS = {
    *("model", "task", "task_version", "seed", "status", "reason", "key", "scores", "primary", "seconds"),
    *("peak_memory_bytes", "truncated_documents", "lost_gold", "predictions"),
}
"""What `run --json` promises of each run."""


def records(folder: Path) -> dict[str, bytes]:
    """Every file below runs/ with its bytes."""
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in sorted(folder.glob("runs/*/*"))}


def statuses(rows: list[dict[str, Any]]) -> list[str]:
    """The status of each row."""
    return [row["status"] for row in rows]


def suite_of(folder: Path, *tasks: str) -> Path:
    """The file of a suite of these tasks."""
    file = folder / "suite.yaml"
    file.write_text(f"id: mine\ntasks: [{', '.join(tasks)}]\n")
    return file


def test_json_stands_alone_on_stdout(tiny: Path, tmp_path: Path) -> None:
    arguments = ("run", tiny, "--task", "demo_ner", "--task", "demo_topic", "--seeds", "1,2", "--json", *FAST)
    said = process(*arguments, cwd=tmp_path)
    assert said.status == 0, said.err
    rows = said.json()
    assert statuses(rows) == ["done"] * 4
    for row in rows:
        assert set(row) >= FIELDS
        assert set(row["scores"]) >= {"macro_f1", "micro_f1", "weighted_f1"}
        assert all(0.0 <= v <= 1.0 for v in row["scores"].values())
        assert row["primary"] in row["scores"]
        assert row["seconds"] > 0
        assert row["peak_memory_bytes"] > 0
        assert (tmp_path / row["predictions"]).is_file()
    assert len({row["key"] for row in rows}) == 4
    assert "\r" not in said.err, "no progress bar where there is no terminal"


def test_the_same_command_trains_nothing_again(biobench: Callable[..., Said], tiny: Path, tmp_path: Path) -> None:
    arguments = ("run", tiny, "--task", "demo_topic", "--seeds", "1-2", "--json", *FAST)
    first = biobench(*arguments).json()
    before = records(tmp_path / "results")
    mtimes = {p: p.stat().st_mtime_ns for p in (tmp_path / "results").glob("runs/*/*")}
    again = biobench(*arguments)
    assert again.status == 0
    rows = again.json()
    assert statuses(rows) == ["skipped"] * 2
    assert all(row["reason"] for row in rows)
    assert [(r["key"], r["scores"]) for r in rows] == [(r["key"], r["scores"]) for r in first]
    assert records(tmp_path / "results") == before
    assert {p: p.stat().st_mtime_ns for p in mtimes} == mtimes


def test_a_changed_protocol_and_a_limit_have_keys_of_their_own(
    biobench: Callable[..., Said], tiny: Path, tmp_path: Path
) -> None:
    base = ("run", tiny, "--task", "demo_topic", "--seeds", "1", "--json")
    plain = biobench(*base, *FAST).json()[0]
    before = records(tmp_path / "results")
    rate = biobench(*base, *FAST, "--set", "training.learning_rate=3e-5").json()[0]
    limit = biobench(*base, *FAST, "--limit", "32").json()[0]
    seed = biobench(*base[:5], "2", "--json", *FAST).json()[0]
    rows = [plain, rate, limit, seed]
    assert statuses(rows) == ["done"] * 4
    assert len({r["key"] for r in rows}) == 4
    after = records(tmp_path / "results")
    assert before.items() <= after.items(), "the earlier run stays as it was"
    written = json.loads((tmp_path / rate["predictions"]).with_suffix(".json").read_text())
    assert written["protocol"]["training"]["learning_rate"] == 3e-5
    assert "training.learning_rate=3e-5" in written["overrides"]
    assert json.loads((tmp_path / limit["predictions"]).with_suffix(".json").read_text())["limit"] == 32


def test_the_same_value_written_otherwise_is_the_same_run(biobench: Callable[..., Said], tiny: Path) -> None:
    base = ("run", tiny, "--task", "demo_topic", "--seeds", "1", "--json", *FAST)
    first = biobench(*base, "--set", "training.learning_rate=5e-4").json()[0]
    second = biobench(*base, "--set", "training.learning_rate=0.0005").json()[0]
    assert (second["status"], second["key"]) == ("skipped", first["key"])


def test_force_makes_it_anew_with_the_same_scores(biobench: Callable[..., Said], tiny: Path, tmp_path: Path) -> None:
    base = ("run", tiny, "--task", "demo_ner", "--seeds", "1", "--json", *FAST)
    first = biobench(*base).json()[0]
    stamp = (tmp_path / first["predictions"]).with_suffix(".json").stat().st_mtime_ns
    forced = biobench(*base, "--force").json()[0]
    assert forced["status"] == "done"
    assert (forced["key"], forced["scores"]) == (first["key"], first["scores"])
    assert (tmp_path / first["predictions"]).with_suffix(".json").stat().st_mtime_ns > stamp


def test_dry_run_trains_nothing(biobench: Callable[..., Said], tiny: Path, tmp_path: Path) -> None:
    base = ("run", tiny, "--suite", suite_of(tmp_path, "demo_ner", "gad"), "--json", *FAST)
    said = biobench(*base, "--seeds", "1,2", "--dry-run")
    assert said.status == 0
    assert sorted(statuses(said.json())) == ["planned", "planned", "unavailable"]
    assert not (tmp_path / "results").exists()
    made = biobench(*base, "--seeds", "1").json()
    rows = biobench(*base, "--seeds", "1,2", "--dry-run").json()
    assert sorted(statuses(rows)) == ["planned", "skipped", "unavailable"]
    assert {r["key"] for r in made if r["key"]} <= {r["key"] for r in rows}
    shown = biobench(*base[: -len(FAST) - 1], *FAST, "--dry-run").out
    (line,) = [line.split() for line in shown.splitlines() if "demo_ner" in line]
    assert line[2:5] == ["42-43", "planned", "2"]
    assert float(line[5]) > 0, "tokens"
    assert line[-4:] == ["s", "limit", "24,", "training.epochs=1"]


def test_a_task_of_a_suite_without_data_fails_nothing_unless_strict(
    biobench: Callable[..., Said], tiny: Path, tmp_path: Path
) -> None:
    base = ("run", tiny, "--suite", suite_of(tmp_path, "gad", "demo_topic", "deid"), "--seeds", "1", "--json", *FAST)
    said = biobench(*base)
    assert said.status == 0
    by_task = {row["task"]: row for row in said.json()}
    assert by_task["demo_topic"]["status"] == "done"
    assert by_task["gad"]["status"] == by_task["deid"]["status"] == "unavailable"
    assert "biobench data fetch gad" in by_task["gad"]["reason"]
    assert "agreement" in by_task["deid"]["reason"]
    assert by_task["gad"]["scores"] == {}
    assert "gad" in biobench(*base, "--strict").refusal()


def test_named_tasks_without_data_are_listed_with_their_steps(biobench: Callable[..., Said], tmp_path: Path) -> None:
    said = biobench("run", "org/m", "--task", "gad", "--task", "demo_topic", "--task", "deid")
    assert said.refusal() == "tasks gad, deid: no data below data"
    hint = said.err.splitlines()[-1]
    assert "gad: run `biobench data fetch gad`" in hint
    assert "deid: the data needs a signed agreement" in hint
    with pytest.raises(DataUnavailableError, match="task gad: no data") as caught:
        library.run("org/m", ["gad"], results_dir=tmp_path / "results")
    assert "hint: run `biobench data fetch gad`" in caught.value.__notes__[0]
    assert not (tmp_path / "results").exists()


def own_task(folder: Path, documents: int, task_id: str = "own") -> Path:
    """A BRAT corpus of six notes, cut 2 / 2 / 2, one mention in test and two in train without a whole token."""
    corpus = folder / "store" / "own"
    corpus.mkdir(parents=True, exist_ok=True)
    for number in range(6):
        own = "T2\tDisease 8 13\tthrax\n" if number in (0, 1, 5) else ""
        (corpus / f"{number}.txt").write_text("gout; anthrax today\n" * 2)
        (corpus / f"{number}.ann").write_text(f"T1\tDisease 0 4\tgout\n{own}")
    spec = folder / f"{task_id}.yaml"
    spec.write_text(
        f"""id: {task_id}
version: 1
name: Own notes
language: en
type: token_ner
source:
  id: notes
  folder: own
  files: {{train: "[01].txt", validation: "[23].txt", test: "[45].txt"}}
reader: {{format: brat, tokens: words}}
labels: [Disease]
splits: official
unit: document
training: {{epochs: 1, learning_rate: 5e-5}}
head: {{kind: token}}
metric: {{primary: macro_f1, paper: micro_f1}}
access: open
licence: none
homepage: https://example.org
citation: none
counts:
  train: {{documents: 2, mentions: 2}}
  test: {{documents: {documents}}}
"""
    )
    return spec


def test_data_that_contradict_the_spec_are_told_and_refused_by_strict(
    biobench: Callable[..., Said], tiny: Path, tmp_path: Path
) -> None:
    fast = ("--set", "training.epochs=1", "--device", "cpu", "--parallel", "1", "--seeds", "1", "--no-gate")
    spec = own_task(tmp_path, documents=3)
    base = ("run", tiny, "--task", spec, "--data-dir", tmp_path / "store", "--json", *fast)
    problem = "counts.test.documents: the spec says 3, source 'notes' has 2"
    for extra in (("--dry-run",), ("--limit", "1"), ()):
        said = biobench(*base, *extra)
        assert said.status == 0, said.err
        assert said.err.count(f"warning: own: {problem}") == 1
    held = [json.loads(content) for name, content in records(tmp_path / "results").items() if name.endswith(".json")]
    assert [record["count_problems"] for record in held] == [[problem]] * 2
    assert [record["unexpressed_gold"] for record in held] == [{"train": {"Disease": 2}, "test": {"Disease": 1}}] * 2
    report = " ".join(biobench("report").out.split())
    assert f"warning: own, source notes: 1 counts of the data contradict its spec ({problem})" in report
    assert "own, source notes: 3 gold mentions of the corpus, 1 of them in test, cannot be expressed" in report
    refused = biobench(*base, "--strict").refusal()
    assert f"{spec}:" in refused
    assert problem in refused
    # What stands in the spec's counts is no part of a run's identity: the right ones make nothing anew.
    own_task(tmp_path, documents=2)
    again = biobench(*base, "--strict")
    assert statuses(again.json()) == ["skipped"]
    assert "warning" not in again.err


def test_mentions_that_vanish_are_told_by_validate_and_verify(biobench: Callable[..., Said], tmp_path: Path) -> None:
    spec = own_task(tmp_path, documents=2)
    told = "3 mentions that units and tokens cannot express, in no score: train 2 (Disease 2); test 1 (Disease 1)"
    data = ("--data-dir", tmp_path / "store")
    counted = {"train": {"Disease": 2}, "test": {"Disease": 1}}
    for command, name in (("tasks", "validate"), ("data", "verify")):
        said = biobench(command, name, spec, *data)
        assert said.out.count(told) == 1, said.out
        assert biobench(command, name, spec, *data, "--json").json()[0]["unexpressed"] == counted
    assert biobench("tasks", "show", spec, *data, "--json").json()["unexpressed"] == counted
    for path in (tmp_path / "store" / "own").glob("*.ann"):
        path.write_text(path.read_text().replace("8 13\tthrax", "6 13\tanthrax"))
    assert "cannot express" not in biobench("tasks", "validate", spec, *data).out


def test_a_run_that_fails_costs_only_itself(biobench: Callable[..., Said], tiny: Path, tmp_path: Path) -> None:
    base = ("run", tiny, "--task", "demo_topic", "--seeds", "1", "--json", *FAST)
    good = biobench(*base)
    failed = biobench(*base, "--set", "training.learning_rate=1e30", "--set", "training.max_grad_norm=1e30")
    assert failed.status == 1
    row = failed.json()[0]
    assert row["status"] == "failed"
    assert row["reason"]
    assert not (tmp_path / "results" / "runs" / "demo_topic" / f"{row['key']}.json").exists()
    assert biobench(*base).json()[0]["scores"] == good.json()[0]["scores"]


def test_deleted_scores_come_back_identical(biobench: Callable[..., Said], tiny: Path, tmp_path: Path) -> None:
    biobench("run", tiny, "--task", "demo_ner", "--task", "demo_topic", "--seeds", "1-2", "--json", *FAST)
    before = records(tmp_path / "results")
    for name, content in before.items():
        if name.endswith(".json"):
            record = json.loads(content)
            assert record["scores"]
            assert record["per_label"]
            for part in ("scores", "per_label"):
                del record[part]
            (tmp_path / "results" / name).write_text(json.dumps(record))
    said = biobench("rescore", "--json")
    assert said.status == 0, said.err
    assert len(said.json()) == 4
    assert records(tmp_path / "results") == before


def test_the_library_and_the_command_agree(biobench: Callable[..., Said], tiny: Path, tmp_path: Path) -> None:
    row = biobench("run", tiny, "--task", "demo_topic", "--seeds", "1", "--json", *FAST).json()[0]
    found = library.run(
        str(tiny), "demo_topic", seeds=1, results_dir="results", device="cpu", limit=24, overrides=["training.epochs=1"]
    )
    assert [(r.status, r.key, r.scores) for r in found] == [("skipped", row["key"], row["scores"])]
    assert library.load_task("demo_topic").id == "demo_topic"


def test_a_model_by_another_path_is_the_same_run(
    biobench: Callable[..., Said], tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = biobench("run", tiny, "--task", "demo_topic", "--seeds", "1", "--json", *FAST).json()[0]
    (tmp_path / "elsewhere").symlink_to(tiny, target_is_directory=True)
    second = biobench("run", "./elsewhere", "--task", "demo_topic", "--seeds", "1", "--json", *FAST).json()[0]
    assert (second["status"], second["key"]) == ("skipped", first["key"])


def test_the_table_for_people(biobench: Callable[..., Said], tiny: Path, tmp_path: Path) -> None:
    suite = suite_of(tmp_path, "demo_ner", "gad")
    said = biobench("run", tiny, "--suite", suite, "--seeds", "1", *FAST)
    assert said.status == 0
    assert "demo_ner" in said.out
    assert "done" in said.out
    assert "unavailable" in said.out
    assert re.search(r"demo_ner: macro_f1 \d\.\d\d, below the baseline 100\.00 \(training dictionary\)", said.out)
    printed = library.run(tiny, suite=str(suite), seeds=1, limit=24, overrides="training.epochs=1", device="cpu")
    assert ["tiny", "demo_ner", "1", "skipped"] in [line.split()[:4] for line in str(printed).splitlines()]
    assert "<td>skipped</td>" in printed._repr_html_()
    report = biobench("report", "--format", "json").json()
    mine = [r for r in report if r["source"] == "run"]
    assert mine
    wanted = {"model", "task", "metric", "mean", "sd", "low", "high", "n_seeds", "source"}
    assert all(set(r) >= wanted for r in mine)
