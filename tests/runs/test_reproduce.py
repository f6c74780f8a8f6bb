"""`biobench reproduce`: bit for bit where all is the same, and no wrong agreement where something
is not.
"""

from __future__ import annotations

import contextlib
import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from biobench.runs.api import run
from biobench.store import Store
from tests.helpers.cli_make import FAST, QUICK, Run
from tests.helpers.tiny import make_tiny_encoder


@pytest.fixture(scope="module")
def once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with one run of `models/tiny` on demo_ner in `results`."""
    root = tmp_path_factory.mktemp("once")
    make_tiny_encoder(root / "models" / "tiny")
    with contextlib.chdir(root):
        run("models/tiny", ["demo_ner"], seeds=3, **QUICK)
    return root


@pytest.fixture
def stored(once: Path, biobench: Run, tmp_path: Path) -> Path:
    """The record of that run in the working folder."""
    for name in ("models", "results"):
        shutil.copytree(once / name, tmp_path / name)
    return next((tmp_path / "results" / "runs" / "demo_ner").glob("[!.]*.json"))


def rewritten(path: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """The record with a change."""
    record = json.loads(path.read_text())
    change(record)
    path.write_text(json.dumps(record))


def test_the_same_machine_gives_the_same_bits(biobench: Run, stored: Path) -> None:
    said = biobench("reproduce", stored, "--models models/tiny --json")
    (row,) = said.json()
    assert (said.status, row["agreement"], row["again"]) == (0, "identical", row["stored"])


def test_other_weights_data_or_engine_are_not_run(
    biobench: Run, stored: Path, tmp_path: Path
) -> None:
    shutil.rmtree(tmp_path / "models")
    make_tiny_encoder(tmp_path / "models" / "tiny", window=64)
    rewritten(stored, lambda r: r["task"].update(data_hash="0" * 64) or r.update(engine_version=1))
    said = biobench("reproduce", stored, "--models models --json")
    (row,) = said.json()
    assert (said.status, row["agreement"], row["again"]) == (1, "not run", None)
    for part in ("weights ", "data ", "engine "):
        assert part in row["reason"], row["reason"]
    assert not (tmp_path / "reproduced").exists()


def test_an_own_task_is_named_with_its_spec(biobench: Run, stored: Path) -> None:
    moved = f"runs/ours/{stored.stem}.parquet"
    rewritten(stored, lambda r: r["task"].update(id="ours") or r.update(predictions=moved))
    own = stored.parents[1] / "ours" / stored.name
    shutil.move(stored.parent, own.parent)
    said = biobench("reproduce", own, "--models models")
    assert said.status == 1
    assert "task ours is not shipped; name its spec with --task ours.yaml" in said.out


def test_a_score_that_the_predictions_do_not_give_does_not_agree(
    biobench: Run, stored: Path
) -> None:
    rewritten(stored, lambda r: r["scores"].update(macro_f1=0.875))
    said = biobench("reproduce", stored, "--models models")
    assert said.status == 1
    assert "macro_f1 87.50, again " in said.out
    assert (
        "does not agree (the predictions are the same, the record's score is not theirs)"
        in said.out
    )
    rewritten(stored, lambda r: r.update(seed=4))
    (row,) = biobench("reproduce", stored, "--models models --json").json()
    assert (row["agreement"], ": key " in row["reason"]) == ("not run", True), (
        "another seed than its key says"
    )


def test_predictions_that_are_not_the_records_are_no_evidence(biobench: Run, stored: Path) -> None:
    rewritten(stored, lambda r: r.update(predictions_sha256="0" * 64))
    said = biobench("reproduce", stored, "--models models")
    assert said.status == 1
    assert "not run (" in said.out
    assert "is not the file that was stored with the record" in said.out


def test_what_is_missing_for_one_record_stops_no_other(
    biobench: Run, stored: Path, tmp_path: Path
) -> None:
    make_tiny_encoder(tmp_path / "models" / "gone", window=64)
    biobench("run models/gone --task demo_ner --seeds 3 --no-gate", *FAST)
    shutil.rmtree(tmp_path / "models" / "gone")
    said = biobench("reproduce results --models models")
    assert said.status == 1
    gone, tiny, summary = said.out.splitlines()
    assert f"not run (no such folder: {tmp_path}/models/gone; " in gone
    assert tiny.endswith("agrees, the same predictions bit for bit")
    assert summary == "1 of 2 runs agree, 1 bit for bit, 1 not run"
    assert "2 runs, " in said.err


def test_a_model_without_a_folder_is_named(
    biobench: Run, stored: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    said = biobench("reproduce", stored, "--offline")
    assert said.status == 1
    assert "name its folder with --models" in said.out


@pytest.mark.parametrize("name", ["../models/tiny", "/etc", "~/models"])
def test_a_record_names_no_folder_elsewhere_as_its_model(
    biobench: Run, stored: Path, name: str
) -> None:
    rewritten(stored, lambda record: record["model"].update(id=name))
    for options in ([], ["--models models"]):
        said = biobench("reproduce", str(stored), "--results-dir again", *options)
        assert "as its model, which is no id of the hub" in said.out + said.err
        assert said.status == 1


@pytest.mark.parametrize(
    "override",
    [
        "splits={ids_file: /dev/zero}",
        "source.folder=../..",
        "source.original={folder: /etc, files: {all: x}}",
    ],
)
def test_the_overrides_of_a_record_lead_nowhere(biobench: Run, stored: Path, override: str) -> None:
    """Read from a device, it would take all memory."""
    rewritten(stored, lambda record: record.update(overrides=[override]))
    said = biobench("reproduce", str(stored), "--results-dir again --models models")
    assert said.status == 1
    assert "not run (--set " in said.out


@pytest.mark.parametrize(("field", "words"), [("type", "no kind of task"), ("primary", "no score")])
def test_a_record_of_another_kind_or_score_is_one_line(
    biobench: Run, stored: Path, field: str, words: str
) -> None:
    rewritten(stored, lambda record: record["task"].update({field: "never"}))
    said = biobench("reproduce", str(stored), "--results-dir again --models models")
    assert words in said.out + said.err
    assert "Traceback" not in said.err
    again = biobench("rescore --results-dir results")
    assert (again.status, "Traceback" in again.err) == (1 if field == "type" else 0, False)


def test_the_record_or_the_option_says_how_many_threads(
    biobench: Run, stored: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before, a number of threads in the environment, which torch had read, came before both."""
    monkeypatch.setattr("biobench.cli.reproduce.prepare_threads", lambda threads: None)
    rewritten(
        stored,
        lambda r: (
            r["provenance"].update(threads=3) or r["provenance"]["packages"].update(torch="0.0")
        ),
    )
    for options, threads in (((), []), (("--threads 2",), ["threads 3 then, 2 now"])):
        (row,) = biobench("reproduce", stored, "--models models --json", *options).json()
        assert [line for line in row["machine"] if line.startswith("threads ")] == threads
        assert any(line.startswith("torch 0.0 then, ") for line in row["machine"])
        shutil.rmtree(tmp_path / "reproduced")


def test_predictions_that_differ_agree_within_the_interval_alone(
    biobench: Run, stored: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store(stored.parents[2])
    (record,) = store.records()
    gold, predictions = store.stored_predictions(record)
    changed = [replace(predictions[0], spans=(), span_scores=()), *predictions[1:]]
    assert changed != predictions
    store.save(record, gold, changed)
    for interval, agreement, status in (
        ((0.0, 1.0), "within", 0),
        ((2.0, 3.0), "outside", 1),
        (None, "within", 0),
    ):
        monkeypatch.setattr(
            "biobench.workflows.reproduce._interval", lambda *_, given=interval: given
        )
        said = biobench("reproduce", stored, "--models models --json")
        (row,) = said.json()
        assert (row["agreement"], said.status, row["same"] < 1) == (agreement, status, True)


def test_nothing_to_reproduce_is_one_line(biobench: Run, stored: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert "no record here" in biobench("reproduce", tmp_path / "empty").refusal()
    assert "no record here" in biobench("reproduce", tmp_path / "nowhere").refusal()
    same = biobench("reproduce", stored, "--models models --results-dir", stored.parents[2])
    assert "the records lie here" in same.err
    for option, value in (("--models", "nowhere"), ("--data-dir", "nowhere"), ("--device", "tpu")):
        said = biobench("reproduce", stored, *({"--models": "models"} | {option: value}).popitem())
        assert (said.status, value in said.err, "hint: " in said.err) == (2, True, True), said.err
