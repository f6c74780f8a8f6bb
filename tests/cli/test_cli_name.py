"""`run --name`: what records, reports and comparisons call a model, without another key."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import biobench as package
from biobench.report.table import build
from biobench.store import Store
from biobench.workflows.reproduce import Again
from tests.helpers.cli_make import Said
from tests.helpers.tiny import make_tiny_encoder

Run = Callable[..., Said]
OPTIONS = ("--task", "demo_topic", "--limit", "16", "--set", "training.epochs=1", "--no-gate", "--device", "cpu")


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return make_tiny_encoder(tmp_path / "tiny")


def names() -> set[str]:
    return {record.model.id for record in Store("results").records()}


def test_a_name_stands_in_the_record_and_the_report_and_changes_no_key(
    model: Path, biobench: Run, tmp_path: Path
) -> None:
    (line,) = biobench("run", model, "--name", "Our encoder, v2", *OPTIONS, "--seeds", "42", "--json").json()
    assert (line["model"], line["status"]) == ("Our encoder, v2", "done")
    (record,) = Store("results").records()
    assert (record.model.id, record.model.source) == ("Our encoder, v2", "tiny")
    again = Again(results_dir="again", models=tmp_path, device="cpu")
    assert again.model_of(record) == str(tmp_path / "tiny"), "a run is made again from its checkpoint, not its name"
    (plain,) = biobench("run", model, *OPTIONS, "--seeds", "42", "--json").json()
    assert (plain["key"], plain["status"], plain["model"]) == (line["key"], "skipped", "Our encoder, v2")
    assert plain["reason"] == "the same run is stored already, under the name 'Our encoder, v2'"
    assert {row.model for row in build("results").rows if row.source == "run"} == {"Our encoder, v2"}
    assert "Our encoder, v2" in biobench("report", "--source", "run").out


def test_a_stored_run_takes_the_name_that_is_asked_for(model: Path, biobench: Run) -> None:
    biobench("run", model, *OPTIONS, "--seeds", "42")
    before = Store("results").records()[0]
    assert (before.model.id, before.model.source) == ("tiny", None)
    dry = biobench("run", model, "--name", "ours", *OPTIONS, "--seeds", "42-43", "--dry-run", "--json").json()
    assert [line["status"] for line in dry] == ["skipped", "planned"]
    assert names() == {"tiny"}, "a dry run changes nothing"
    lines = biobench("run", model, "--name", "ours", *OPTIONS, "--seeds", "42-43", "--json").json()
    assert [(line["status"], line["model"]) for line in lines] == [("skipped", "ours"), ("done", "ours")]
    assert lines[0]["reason"].endswith("; it was called 'tiny' and now 'ours'")
    assert names() == {"ours"}, "both seeds are one line of the report"
    again = next(r for r in Store("results").records() if r.seed == 42)
    assert again.model_copy(update={"model": before.model}) == before, "nothing else has changed"
    assert len([row for row in build("results").rows if row.source == "run"]) == 1


def test_two_models_have_two_names(model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    other = make_tiny_encoder(tmp_path / "other")
    results = package.run(
        [model, other], "demo_topic", name=["A", "B"], seeds="42-43", limit=16, overrides="training.epochs=1",
        gate=False, device="cpu", parallel=1,
    )  # fmt: skip
    assert [r.model for r in results] == ["A", "A", "B", "B"]
    assert package.compare("A [limit 16, training.epochs=1]", "B [limit 16, training.epochs=1]").tasks == (
        "demo_topic",
    )


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (("--name", "a\tb"), "--name is no name"),
        (("--name", "a\u202eb"), "--name is no name"),
        (("--name", ""), "--name is no name"),
        (("--name", " a"), "--name is no name"),
        (("--name", "x" * 201), "--name is no name"),
        (("--name", "a", "--name", "b"), "2 --name for 1 model"),
    ],
)
def test_what_is_no_name_is_refused(given: tuple[str, ...], words: str, model: Path, biobench: Run) -> None:
    assert biobench("run", model, *given, *OPTIONS).refusal() == words
    assert not Path("results").exists()


def test_the_longest_name_is_one(model: Path, biobench: Run) -> None:
    (line,) = biobench("run", model, "--name", "é" * 200, *OPTIONS, "--seeds", "42", "--dry-run", "--json").json()
    assert line["model"] == "é" * 200


def test_one_name_for_two_models_is_refused(model: Path, biobench: Run) -> None:
    said = biobench("run", model, "dummy", "--name", "a", "--name", "a", *OPTIONS)
    assert said.refusal() == "--name 'a' stands twice"
