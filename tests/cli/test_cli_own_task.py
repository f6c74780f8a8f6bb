"""A corpus of one's own: a YAML outside the project, with no change of code."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from tests.helpers.cli_make import FAST, Run


def test_from_a_data_file_to_a_run(biobench: Run, tiny: Path, fixtures: Path, tmp_path: Path) -> None:
    """The walk of docs/tasks.md on a small corpus."""
    shutil.copytree(fixtures / "iob", tmp_path / "corpora" / "iob")
    biobench("tasks", "new", "corpora/iob/train.tsv", "--id", "my_task").ok()
    assert (tmp_path / "my_task.yaml").is_file()
    again = biobench("tasks", "new", "corpora/iob/train.tsv", "--id", "my_task")
    assert "exists already" in again.refusal()
    biobench("tasks", "validate", "my_task.yaml", "--data-dir", "corpora").ok()
    shown = biobench("tasks", "show", "my_task.yaml", "--data-dir", "corpora", "--json").json()
    assert shown["samples"]
    arguments = ("--data-dir", "corpora", "--seeds", "1", "--set", "training.epochs=1", "--json")
    said = biobench("run", tiny, "--task", "my_task.yaml", *arguments).ok()
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


def test_own_data_under_an_agreement_is_rescored_and_compared_with_its_spec(
    biobench: Run, tiny: Path, fixtures: Path, tmp_path: Path
) -> None:
    """What needs the gold, which stays with the data, needs the spec too; the message says what finds it."""
    shutil.copytree(fixtures / "iob", tmp_path / "corpora" / "iob")
    shutil.copytree(tiny, tmp_path / "other")
    config = json.loads((tmp_path / "other" / "config.json").read_text("utf-8"))
    (tmp_path / "other" / "config.json").write_text(json.dumps(config | {"layer_norm_eps": 1e-6}), encoding="utf-8")
    biobench("tasks", "new", "corpora/iob/train.tsv", "--id", "ours").ok()
    spec = tmp_path / "ours.yaml"
    lines = [AGREED.rstrip() if r.startswith("access: ") else r for r in spec.read_text("utf-8").splitlines()]
    spec.write_text("\n".join(lines) + "\n", encoding="utf-8")
    there, both = ("--data-dir", "corpora"), ("--task", "ours.yaml", "--task", "demo_topic")
    for model in (tiny, tmp_path / "other"):
        said = biobench("run", model, *both, *there, "--seeds", "1,2", *FAST, "--no-gate").ok()
    outcomes = {row["task"]: row["outcome"] for row in biobench("rescore", *there, "--json").json()}
    assert outcomes == {"ours": "unavailable", "demo_topic": "unchanged"}, "its spec is nowhere to be found"
    row = biobench("rescore", *there, "--task", "ours.yaml", "--json").json()[0]
    assert (row["task"], row["outcome"], "macro_f1" in row["scores"]) == ("ours", "unchanged", True)
    assert "holds no run of demo_ner" in biobench("rescore", "--task", "demo_ner").refusal()

    pair = ("compare", tiny.name, "other", *there, "--json")
    (note,) = [n for n in biobench(*pair).json()["notes"] if "test-set noise" in n]
    assert "the spec of ours is not at hand" in note
    assert "name its file, as in --task my_task.yaml" in note
    known = biobench(*pair, "--task", "ours.yaml").json()
    assert not [n for n in known["notes"] if "test-set noise" in n]
    assert known["pairs"][0]["tasks"][0]["documents"] is not None

    test = next((tmp_path / "corpora").rglob("test.tsv"))
    test.write_text("not\ta\ttag line\n" + test.read_text("utf-8"), encoding="utf-8")
    said = biobench("rescore", *there, "--task", "ours.yaml")
    assert said.status == 1
    assert "test.tsv:1: " in said.out
    assert "failed" in said.out
