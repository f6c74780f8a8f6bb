"""A corpus of one's own: a YAML outside the project, with no change of code."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

from tests.helpers.cli_make import FAST, Said


def test_from_a_data_file_to_a_run(biobench: Callable[..., Said], tiny: Path, fixtures: Path, tmp_path: Path) -> None:
    """The walk of docs/tasks.md on a small corpus."""
    shutil.copytree(fixtures / "iob", tmp_path / "corpora" / "iob")
    made = biobench("tasks", "new", "corpora/iob/train.tsv", "--id", "my_task")
    assert made.status == 0, made.err
    assert (tmp_path / "my_task.yaml").is_file()
    again = biobench("tasks", "new", "corpora/iob/train.tsv", "--id", "my_task")
    assert "exists already" in again.refusal()
    valid = biobench("tasks", "validate", "my_task.yaml", "--data-dir", "corpora")
    assert valid.status == 0, valid.err
    shown = biobench("tasks", "show", "my_task.yaml", "--data-dir", "corpora", "--json").json()
    assert shown["samples"]
    arguments = ("--data-dir", "corpora", "--seeds", "1", "--set", "training.epochs=1", "--json")
    said = biobench("run", tiny, "--task", "my_task.yaml", *arguments)
    assert said.status == 0, said.err
    assert said.json()[0]["status"] == "done"
    rows = biobench("report", "--task", "my_task.yaml", "--format", "json").json()
    assert {row["task"] for row in rows} == {"my_task"}, "a task is named here as it is in `run`"


AGREED = """\
access: agreement
obtain:
  needs: the agreement of the clinic
  pages: ["https://example.org/agreement"]
  steps: ["Sign it."]
"""


def test_own_data_under_an_agreement_is_rescored_with_its_spec(
    biobench: Callable[..., Said], tiny: Path, fixtures: Path, tmp_path: Path
) -> None:
    shutil.copytree(fixtures / "iob", tmp_path / "corpora" / "iob")
    assert biobench("tasks", "new", "corpora/iob/train.tsv", "--id", "ours").status == 0
    spec = tmp_path / "ours.yaml"
    lines = [AGREED.rstrip() if r.startswith("access: ") else r for r in spec.read_text("utf-8").splitlines()]
    spec.write_text("\n".join(lines) + "\n", encoding="utf-8")
    there = ("--data-dir", "corpora")
    for task in ("ours.yaml", "demo_topic"):
        said = biobench("run", tiny, "--task", task, *there, "--seeds", "1", *FAST)
        assert said.status == 0, said.err
    outcomes = {row["task"]: row["outcome"] for row in biobench("rescore", *there, "--json").json()}
    assert outcomes == {"ours": "unavailable", "demo_topic": "unchanged"}, "its spec is nowhere to be found"
    (row,) = biobench("rescore", *there, "--task", "ours.yaml", "--json").json()
    assert (row["task"], row["outcome"], row["scores"]["macro_f1"]) == ("ours", "unchanged", row["scores"]["macro_f1"])
    assert "holds no run of demo_ner" in biobench("rescore", "--task", "demo_ner").refusal()
    test = next((tmp_path / "corpora").rglob("test.tsv"))
    test.write_text("not\ta\ttag line\n" + test.read_text("utf-8"), encoding="utf-8")
    said = biobench("rescore", *there, "--task", "ours.yaml")
    assert said.status == 1
    assert "test.tsv:1: " in said.out
    assert "failed" in said.out


def test_own_data_under_an_agreement_is_compared_with_its_spec(
    biobench: Callable[..., Said], tiny: Path, fixtures: Path, tmp_path: Path
) -> None:
    """Test-set noise needs the gold, which stays with the data; the message says what finds it."""
    shutil.copytree(fixtures / "iob", tmp_path / "corpora" / "iob")
    shutil.copytree(tiny, tmp_path / "other")
    assert biobench("tasks", "new", "corpora/iob/train.tsv", "--id", "ours").status == 0
    spec = tmp_path / "ours.yaml"
    lines = [AGREED.rstrip() if r.startswith("access: ") else r for r in spec.read_text("utf-8").splitlines()]
    spec.write_text("\n".join(lines) + "\n", encoding="utf-8")
    config = json.loads((tmp_path / "other" / "config.json").read_text("utf-8"))
    (tmp_path / "other" / "config.json").write_text(json.dumps(config | {"layer_norm_eps": 1e-6}), encoding="utf-8")
    there = ("--data-dir", "corpora")
    names = []
    for model in (tiny, tmp_path / "other"):
        said = biobench("run", model, "--task", "ours.yaml", *there, "--seeds", "1,2", *FAST, "--no-gate", "--json")
        assert said.status == 0, said.err
        names.append(said.json()[0]["model"])
    (note,) = [n for n in biobench("compare", *names, *there, "--json").json()["notes"] if "test-set noise" in n]
    assert "the spec of ours is not at hand" in note
    assert "name its file, as in --task my_task.yaml" in note
    found = biobench("compare", *names, *there, "--task", "ours.yaml", "--json").json()
    assert not [n for n in found["notes"] if "test-set noise" in n]
    assert found["pairs"][0]["tasks"][0]["documents"] is not None


def test_pairs_of_texts_from_a_data_file_to_a_run(biobench: Callable[..., Said], tiny: Path, tmp_path: Path) -> None:
    rows = [{"premise": f"fever {i} days", "hypothesis": "it is" + " not" * (i % 2), "label": "yn"[i % 2]}
            for i in range(60)]  # fmt: skip
    (tmp_path / "corpora" / "nli").mkdir(parents=True)
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    (tmp_path / "corpora" / "nli" / "all.jsonl").write_text(lines, encoding="utf-8")
    assert biobench("tasks", "new", "corpora/nli/all.jsonl", "--id", "my_pairs").status == 0
    shown = biobench("tasks", "show", "my_pairs.yaml", "--data-dir", "corpora", "--json").json()
    assert (shown["samples"][0]["first"][:5], shown["samples"][0]["text"][:5]) == ("fever", "it is")
    arguments = ("--task", "my_pairs.yaml", "--data-dir", "corpora", "--seeds", "1", "--set", "training.epochs=1")
    said = biobench("run", tiny, *arguments, "--json")
    assert said.status == 0, said.err
    assert said.json()[0]["status"] == "done"
    refused = biobench("run", tiny, *arguments, "--set", "protocol.long_documents=stride")
    assert "'stride' does not fit pairs of texts" in refused.out + refused.err
