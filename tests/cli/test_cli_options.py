"""One language of options, and refusals that come before anything heavy is loaded."""

from __future__ import annotations

import os
from pathlib import Path
from typing import get_args

import pytest
import torch

from biobench.cli.report import SOURCES
from biobench.report.groups import Source
from tests.helpers.cli_make import FAST, Run
from tests.helpers.report_make import save_run


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("learning_rate=1e-4", "training.learning_rate"),
        ("epoch=1", "training.epochs"),
        ("max_length=64", "protocol.max_length"),
    ],
)
def test_a_field_given_without_its_group(given: str, meant: str, biobench: Run) -> None:
    said = biobench("run", "org/m", "--task", "gad", "--set", given)
    said.refusal()
    assert said.err.splitlines()[1] == f"hint: did you mean '{meant}'?"


def test_tasks_with_a_comma_and_a_run_folder_as_model(biobench: Run, tiny: Path, tmp_path: Path) -> None:
    run = tmp_path / "runs" / "mine"
    run.mkdir(parents=True)
    (run / "model").symlink_to(tiny)
    said = biobench(
        "run", "runs/mine", "--task", "demo_ner,demo_topic", "--seeds", "1", "--dry-run", "--json", *FAST
    ).ok()
    assert [(r["task"], r["status"]) for r in said.json()] == [("demo_ner", "planned"), ("demo_topic", "planned")]


def test_a_run_folder_names_its_model_in_results(biobench: Run, tmp_path: Path) -> None:
    model = tmp_path / "runs" / "mine" / "model"
    model.mkdir(parents=True)
    (model / "config.json").write_text("{}", encoding="utf-8")
    save_run(tmp_path / "results", "mine/model", "gad", 42, 0.8)
    biobench("export", "runs/mine", "--format", "bibtex").ok()


def test_the_sources_of_the_report_are_those_of_its_type() -> None:
    assert get_args(Source) == SOURCES


@pytest.mark.parametrize("command", ["run", "speed"])
def test_threads_are_set_before_the_command_begins(
    command: str, biobench: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Options from the request and options of a command alone take different ways."""
    for name in ("OMP_NUM_THREADS", "OMP_WAIT_POLICY", "GOMP_SPINCOUNT"):
        monkeypatch.setenv(name, "7")  # restored after the test
    before = torch.get_num_threads()
    try:
        assert biobench(command, "no/such/folder/here", "--threads", "3", "--offline").status == 2
        assert os.environ["OMP_NUM_THREADS"] == "3"
        assert torch.get_num_threads() == 3
        assert biobench(command, "org/m", "--threads", "0").status == 2
    finally:
        torch.set_num_threads(before)
