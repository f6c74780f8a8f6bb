"""Input errors: exit 2, one line that names the place, a hint, no traceback; nothing on stdout."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.helpers.cli_make import SCRIPT, Run

BAD = Path(__file__).resolve().parent.parent / "fixtures" / "bad"
CASES: list[dict[str, Any]] = yaml.safe_load((BAD / "cases.yaml").read_text(encoding="utf-8"))


def names_the_place(line: str, case: dict[str, Any]) -> None:
    """The line of a refusal begins with the file (and line) of its case and says what the case expects."""
    found = re.match(r"(?P<file>[^:]+)(?::(?P<line>\d+))?: ", line)
    assert found, line
    assert found["file"].endswith(case["at"]), line
    if case["line"] is not None:
        assert found["line"] == str(case["line"]), line
    for word in case["words"]:
        assert word in line


@pytest.mark.parametrize("case", CASES, ids=lambda c: str(c["spec"]))
def test_run_refuses(case: dict[str, Any], biobench: Run, tiny: Path) -> None:
    said = biobench("run", tiny, "--task", BAD / case["spec"], "--data-dir", BAD / "data", "--json")
    names_the_place(said.refusal(), case)


@pytest.mark.parametrize("case", CASES, ids=lambda c: str(c["spec"]))
def test_validate_refuses(case: dict[str, Any], biobench: Run) -> None:
    said = biobench("tasks", "validate", BAD / case["spec"], "--data-dir", BAD / "data")
    names_the_place(said.refusal(), case)


def test_validate_names_every_bad_spec_of_a_folder(biobench: Run) -> None:
    said = biobench("tasks", "validate", BAD, "--data-dir", BAD / "data", "--json")
    assert said.status == 2
    rows = said.json()
    assert {Path(r["path"]).name for r in rows if not r["valid"]} == {c["spec"] for c in CASES} | {"cases.yaml"}


ARGUMENTS = [
    (["run"], "Missing argument 'MODEL'", "biobench run --help"),
    (["run", "TINY", "--sed", "1", "--task", "demo_ner"], "--sed", "biobench run --help"),
    (["runn", "TINY"], "runn", "biobench --help"),
    (["run", "TINY"], "no task is named", "--task"),
    (["run", "TINY", "--task", "demo_nre"], "unknown task 'demo_nre'", "did you mean 'demo_ner'"),
    (["run", "TINY", "--task", "nowhere.yaml"], "there is no file 'nowhere.yaml'", "biobench tasks list"),
    (["run", "TINY", "--suite", "english"], "unknown suite 'english'", "en"),
    (["run", "./no/such/model", "--task", "demo_ner"], "no such folder", "folder"),
    (["run", "owner/no-such-model", "--task", "demo_ner", "--offline"], "owner/no-such-model", "give the folder"),
    (["run", "TINY", "--task", "demo_ner", "--seeds", "50-42"], "--seeds", "write 42-50, not 50-42"),
    (["run", "TINY", "--task", "demo_ner", "--limit", "0"], "--limit 0", "at least 1"),
    (["run", "TINY", "--task", "demo_ner", "--limit", "x"], "--limit", "biobench run --help"),
    (["run", "TINY", "--task", "demo_ner", "--device", "tpu"], "tpu", "cpu"),
    (["run", "TINY", "--task", "demo_ner", "--parallel", "two"], "two", "auto"),
    (["run", "TINY", "--task", "demo_ner", "--set", "training.epoch=1"], "unknown key 'epoch'", "epochs"),
    (["run", "TINY", "--task", "demo_ner", "--set", "training.epochs"], "is not KEY=VALUE", "training.epochs=1"),
    (["tasks", "show", "demo_nre"], "unknown task 'demo_nre'", "demo_ner"),
    (["tasks", "validate", "nowhere.yaml"], "nowhere.yaml", ""),
    (["report", "--format", "pdf"], "pdf", ""),
    (["rescore"], "results: there is no results folder", "--results-dir"),
    (["status", "--results-dir", "nowhere"], "there is no results folder 'nowhere'", "--results-dir"),
    (["rescore", "--results-dir", "nope", "--json"], "there is no results folder 'nope'", "--results-dir"),
]


@pytest.mark.parametrize(("arguments", "words", "hint"), ARGUMENTS, ids=[" ".join(a) for a, _, _ in ARGUMENTS])
def test_arguments_are_refused_in_one_line(
    arguments: list[str], words: str, hint: str, biobench: Run, tiny: Path, tmp_path: Path
) -> None:
    said = biobench(*(str(tiny) if a == "TINY" else a for a in arguments))
    assert words in said.refusal()
    assert hint in said.err.splitlines()[1]
    assert list(tmp_path.iterdir()) == [], "a refused command leaves nothing behind"


def test_debug_shows_the_traceback(biobench: Run) -> None:
    said = biobench("tasks", "show", "demo_nre", "--debug")
    assert said.status == 2
    assert "Traceback" in said.err
    assert said.err.splitlines()[-1].startswith("hint: ")


def test_a_full_disk_behind_the_output_is_one_line() -> None:
    """Before, it ended in a traceback."""
    command = [SCRIPT, "tasks", "schema"]
    with open("/dev/full", "w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stderr.splitlines()) == (
        2,
        ["the output: No space left on device", "hint: free space, or write elsewhere"],
    )


def test_a_damaged_record_is_named(biobench: Run, tiny: Path) -> None:
    arguments = ("run", tiny, "--task", "demo_ner", "--limit", "8", "--seeds", "1", "--set", "training.epochs=1")
    first = biobench(*arguments, "--json")
    record = Path(first.json()[0]["predictions"]).with_suffix(".json")
    record.write_text(record.read_text()[:100])
    said = biobench(*arguments)
    assert said.status == 2
    assert record.name in said.err
    assert said.err.splitlines()[-1].startswith("hint: ")
    rescored = biobench("rescore")
    assert rescored.status == 1
    assert record.name in rescored.out + rescored.err
