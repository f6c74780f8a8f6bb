"""`run --name`: what records, reports and comparisons call a model, without another key."""

from __future__ import annotations

from pathlib import Path

import pytest

from biobench.report.frame import build
from biobench.runs.options import RunRequest
from biobench.store import Store
from biobench.workflows.reproduce import Again
from tests.helpers.cli_make import Run

OPTIONS = ("--task", "demo_topic", "--limit", "16", "--set", "training.epochs=1", "--no-gate", "--device", "cpu")


def names() -> set[str]:
    return {record.model.id for record in Store("results").records()}


def test_a_name_stands_in_the_record_and_the_report_and_changes_no_key(
    tiny: Path, biobench: Run, tmp_path: Path
) -> None:
    (line,) = biobench("run", tiny, "--name", "Our encoder, v2", *OPTIONS, "--seeds", "42", "--json").json()
    assert (line["model"], line["status"]) == ("Our encoder, v2", "done")
    (record,) = Store("results").records()
    assert (record.model.id, record.model.source) == ("Our encoder, v2", "tiny")
    again = Again(RunRequest(device="cpu"), tiny.parent)
    assert again.model_of(record) == str(tiny), "a run is made again from its checkpoint, not its name"
    (plain,) = biobench("run", tiny, *OPTIONS, "--seeds", "42", "--json").json()
    assert (plain["key"], plain["status"], plain["model"]) == (line["key"], "skipped", "Our encoder, v2")
    assert plain["reason"] == "the same run is stored already, under the name 'Our encoder, v2'"
    assert {row.model for row in build("results").rows if row.source == "run"} == {"Our encoder, v2"}
    assert "Our encoder, v2" in biobench("report", "--source", "run").out


def test_a_stored_run_takes_the_name_that_is_asked_for(tiny: Path, biobench: Run) -> None:
    biobench("run", tiny, *OPTIONS, "--seeds", "42")
    before = Store("results").records()[0]
    assert (before.model.id, before.model.source) == ("tiny", None)
    dry = biobench("run", tiny, "--name", "ours", *OPTIONS, "--seeds", "42-43", "--dry-run", "--json").json()
    assert [line["status"] for line in dry] == ["skipped", "planned"]
    assert names() == {"tiny"}, "a dry run changes nothing"
    lines = biobench("run", tiny, "--name", "ours", *OPTIONS, "--seeds", "42-43", "--json").json()
    assert [(line["status"], line["model"]) for line in lines] == [("skipped", "ours"), ("done", "ours")]
    assert lines[0]["reason"].endswith(", under the name 'tiny', and is now 'ours'")
    assert names() == {"ours"}, "both seeds are one line of the report"
    again = next(r for r in Store("results").records() if r.seed == 42)
    assert again.model_copy(update={"model": before.model}) == before, "nothing else has changed"
    assert len([row for row in build("results").rows if row.source == "run"]) == 1


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (("--name", "a\u202eb"), "--name is no name"),
        (("--name", ""), "--name is no name"),
        (("--name", "x" * 201), "--name is no name"),
        (("--name", "a", "--name", "b"), "2 --name for 1 model"),
    ],
)
def test_what_is_no_name_is_refused(given: tuple[str, ...], words: str, tiny: Path, biobench: Run) -> None:
    assert biobench("run", tiny, *given, *OPTIONS).refusal() == words
    assert not Path("results").exists()


def test_each_model_has_a_name_of_its_own(tiny: Path, biobench: Run) -> None:
    both = ("run", tiny, "dummy", *OPTIONS, "--seeds", "42", "--dry-run")
    lines = biobench(*both, "--name", "é" * 200, "--name", "B", "--json").json()
    assert [line["model"] for line in lines] == ["é" * 200, "B"]
    assert biobench(*both, "--name", "a", "--name", "a").refusal() == "--name 'a' occurs twice"
