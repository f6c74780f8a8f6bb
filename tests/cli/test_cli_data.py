"""Data on the command line: what is missing and where it was looked for, all tasks at once, steps by hand."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
import yaml

from tests.helpers.cli_make import Run

ROOT = Path(__file__).resolve().parent.parent.parent
ADDING = (ROOT / "docs" / "tasks.md").read_text(encoding="utf-8")


@pytest.fixture
def made(biobench: Run, fixtures: Path, tmp_path: Path) -> Path:
    shutil.copytree(fixtures / "iob", tmp_path / "corpora" / "iob")
    biobench("tasks", "new", "corpora/iob/train.tsv", "--id", "ours").ok()
    return tmp_path / "ours.yaml"


def test_data_that_is_not_there_is_wrong_where_its_folder_was_given(
    biobench: Run, made: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = biobench("tasks", "validate", "ours.yaml", "--data-dir", "elsewhere")
    assert said.status == 2
    assert "ours.yaml: data missing" in said.refusal()
    assert "put train.tsv" in said.err
    (row,) = biobench("tasks", "validate", "ours.yaml", "--data-dir", "elsewhere", "--json").json()
    assert (row["valid"], row["state"]) == (False, "missing")
    biobench("tasks", "validate", "ours.yaml", "--data-dir", "corpora").ok()
    monkeypatch.setenv("BIOBENCH_DATA_DIR", "all_corpora")
    said = biobench("tasks", "validate", "ours.yaml").ok()
    assert said.out.startswith("ours.yaml: valid, data missing\n  - put train.tsv")
    assert "into all_corpora/iob" in said.out


def test_a_folder_of_specs_may_hold_some_without_data(biobench: Run, tmp_path: Path) -> None:
    said = biobench("tasks", "validate", ROOT / "tasks" / "en", "--data-dir", tmp_path).ok()
    assert "deid.yaml: valid, data agreement\n  - the data needs a signed agreement" in said.out
    assert str(tmp_path / "gad_10fold") in said.out
    said = biobench("tasks", "validate", ROOT / "tasks" / "en" / "deid.yaml", "--data-dir", tmp_path)
    assert (said.status, str(tmp_path / "deid") in said.err) == (2, True)


def test_open_data_can_be_laid_by_hand(biobench: Run, tmp_path: Path) -> None:
    said = biobench("data", "status", "bc5cdr", "hoc", "--data-dir", tmp_path)
    assert said.out == "bc5cdr: missing, biobench data fetch bc5cdr\nhoc: missing, biobench data fetch hoc\n"
    said = biobench("data", "status", "bc5cdr", "hoc", "--steps", "--data-dir", tmp_path).out
    assert f"Or by hand: put train.tsv, devel.tsv, test.tsv into {tmp_path / 'mtl_bc5cdr_iob'} and CDR_Training" in said
    assert f"into {tmp_path / 'bc5cdr_pubtator'}\n" in said


def test_verify_without_a_task_takes_all_that_are_there(
    biobench: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from biobench.data import catalog

    paths = {n: p for n, p in catalog.spec_paths().items() if n in ("demo_ner", "demo_topic", "gad")}
    monkeypatch.setattr(catalog, "spec_paths", lambda: paths)
    said = biobench("data", "verify", "--data-dir", tmp_path, "--json")
    assert [row["task"] for row in said.json()] == ["demo_ner", "demo_topic"]
    assert "task gad: no data below" in said.err
    assert said.status == (0 if all(row["clean"] for row in said.json()) else 1)
    assert biobench("data", "verify", "gad", "--data-dir", tmp_path).status == 2


def test_a_new_task_becomes_clean_by_the_documented_way(biobench: Run, made: Path, tmp_path: Path) -> None:
    """A corpus with a text in two splits: `verify` names it, the page says what to write, and then it is clean."""
    test = tmp_path / "corpora" / "iob" / "test.tsv"
    first = (tmp_path / "corpora" / "iob" / "train.tsv").read_text("utf-8").strip().split("\n\n")[0]
    test.write_text(first + "\n\n" + test.read_text("utf-8"), encoding="utf-8")
    spec = made.read_text("utf-8")
    made.write_text(spec[: spec.index("counts:")], encoding="utf-8")
    said = biobench("data", "verify", "ours.yaml", "--data-dir", "corpora")
    assert said.status == 0, "a text that stands twice is a finding"
    assert "! duplicates.test-train: 1 test texts that stand verbatim in train" in said.out
    (line,) = re.findall(r"declared in the spec: (findings: \{.+\})", said.out)
    assert "duplicates.test-train" in yaml.safe_load(line)["findings"]
    made.write_text(made.read_text("utf-8") + line + "\n", encoding="utf-8")
    assert "- duplicates.test-train: 1" in biobench("data", "verify", "ours.yaml", "--data-dir", "corpora").out
    assert "\nfindings: {" in ADDING
