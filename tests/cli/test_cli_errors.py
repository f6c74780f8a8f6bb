"""Input errors: exit 2, one line that names the place, a hint, no traceback; nothing on stdout."""

import errno
import os
import subprocess
import threading
from pathlib import Path
from typing import Any, get_args

import pytest
import torch
import yaml

from biobench.cli.report import SOURCES
from biobench.errors import DataFormatError
from biobench.reporting.groups import Source
from tests.helpers.cli_make import FAST, SCRIPT
from tests.helpers.report_make import save_run

BAD = Path(__file__).resolve().parent.parent / "fixtures" / "bad"
CASES: list[dict[str, Any]] = yaml.safe_load((BAD / "cases.yaml").read_text())


def test_validate_names_every_bad_spec_of_a_folder(biobench):
    said = biobench("tasks validate", BAD, "--data-dir", BAD / "data", "--json")
    assert said.status == 2
    assert {Path(r["path"]).name for r in said.json() if not r["valid"]} == {
        c["spec"] for c in CASES
    } | {"cases.yaml"}
    for case in CASES[:2]:
        place = f"{case['at']}:{case['line']}: " if case["line"] else case["at"]
        assert (
            place
            in biobench(
                "run dummy --task", BAD / case["spec"], "--data-dir", BAD / "data"
            ).refusal()
        )


ARGUMENTS = [
    ("run", "Missing argument 'MODEL'", "biobench run --help"),
    ("run TINY --sed 1 --task demo_ner", "--sed", "biobench run --help"),
    ("runn TINY", "unknown command 'runn'", "did you mean 'run'?"),
    ("run TINY", "no task is named", "--task"),
    ("run TINY --keep-model --task demo_ner", "--keep-model has no value", "--keep-model DIR"),
    ("run TINY --task demo_nre", "unknown task 'demo_nre'", "did you mean 'demo_ner'"),
    (
        "run TINY --task nowhere.yaml",
        "nowhere.yaml: cannot be read: No such file or directory",
        "check the path",
    ),
    ("run TINY --suite english", "unknown suite 'english'", "en"),
    (
        "run TINY --task demo_ner --seeds 50-42",
        "--seeds",
        "write 42-50, not 50-42",
    ),
    ("run TINY --task demo_ner --limit 0", "--limit", "biobench run --help"),
    ("run TINY --task demo_ner --device tpu", "tpu", "cpu"),
    ("run TINY --task demo_ner --seeds-at-once 0", "unknown --seeds-at-once '0'", "1, 2, ..."),
    (
        "run TINY --task demo_ner --set training.epoch=1",
        "unknown key 'epoch'",
        "epochs",
    ),
    (
        "run TINY --task demo_ner --set learning_rate=1",
        "learning_rate",
        "'training.learning_rate'?",
    ),
    (
        "run TINY --task demo_ner --set training.epochs",
        "is not KEY=VALUE",
        "training.epochs=1",
    ),
    ("tasks show demo_nre", "unknown task 'demo_nre'", "demo_ner"),
    ("run demo_ner --task TINY", "unknown task", "a model's stands before --task"),
    ("run TINY/config.json --task demo_ner", "a checkpoint is a folder", "unpack an archive"),
    ("tasks validate nowhere.yaml", "nowhere.yaml: no YAML file is there", "a folder of specs"),
    ("data fetch nope", "unknown task 'nope'", "biobench tasks list"),
    ("verify-submission nope", "'nope' is not a folder", "submit"),
    ("report --format pdf", "Invalid value for '--format': 'pdf' is not one of", ""),
    ("rescore", "results: there is no results folder", "--results-dir"),
    (
        "status --results-dir nowhere",
        "there is no results folder 'nowhere'",
        "--results-dir",
    ),
]


@pytest.mark.parametrize(
    ("arguments", "words", "hint"), ARGUMENTS, ids=[row[0] for row in ARGUMENTS]
)
def test_arguments_are_refused_in_one_line(arguments, words, hint, biobench, tiny, tmp_path):
    said = biobench(arguments.replace("TINY", str(tiny)))
    assert words in said.refusal()
    assert hint in said.err.splitlines()[1]
    assert list(tmp_path.iterdir()) == [], "a refused command leaves nothing behind"


def test_debug_shows_the_traceback(biobench):
    said = biobench("tasks show demo_nre --debug")
    assert (said.status, "Traceback" in said.err) == (2, True)
    assert said.err.splitlines()[-1].startswith("hint: ")


def test_a_full_disk_behind_the_output_is_one_line():
    """Before, it ended in a traceback."""
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [SCRIPT, "tasks", "schema"], stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    words = ["the output: No space left on device", "hint: free space, or write elsewhere"]
    assert (done.returncode, done.stderr.splitlines()) == (2, words)


def test_a_damaged_record_is_named(biobench, tiny):
    arguments = ("run", tiny, "--task demo_ner --seeds 1", *FAST)
    record = Path(biobench(*arguments, "--json").json()[0]["predictions"]).with_suffix(".json")
    record.write_text(record.read_text()[:100])
    said = biobench(*arguments)
    assert (said.status, record.name in said.err) == (2, True)
    assert said.err.splitlines()[-1].startswith("hint: ")
    said = biobench("status").ok()
    counts, reason = said.out.splitlines()
    assert counts == "results: 0 done, 0 running, 0 failed, 0 stopped, 1 corrupt"
    assert reason.startswith(f"corrupt: demo_ner · {record.stem[:8]}: ")
    (run,) = biobench("status", "--json").json()["runs"]
    assert (run["state"], run["key"]) == ("corrupt", record.stem)
    said = biobench("rescore")
    assert (said.status, record.name in said.out + said.err) == (1, True)


NAMED = {
    "model": "run NAME --task demo_topic",
    "task": "run dummy --task NAME",
    "data": "run dummy --task gad --data-dir NAME",
    "against": "run dummy --task demo_topic --against NAME",
    "results": "report --results-dir NAME",
    "compare": "compare own-encoder NAME",
    "errors": "errors NAME --task gad",
    "export": "export NAME",
    "verify": "verify-submission . --against NAME",
    "recipe": "pretrain NAME",
    "ledger": "ledger NAME NAME",
    "new": "tasks new NAME --id made",
    "fetch": "data fetch NAME",
    "reproduce": "reproduce NAME",
    "speed": "speed NAME",
}


@pytest.mark.parametrize("what", NAMED)
def test_a_name_of_any_length_or_signs_is_refused_in_one_line(what, biobench, tmp_path):
    """Before, 300 letters were a traceback in 16 of these, and the signs reached the terminal in
    12.
    """
    save_run(tmp_path / "results", "own-encoder", "gad", 42, 0.8)
    for name in ("x" * 300, "\x1b]0;title\x07\x1b[31m", "a\u202eb", "a\udc80b"):
        said = biobench(*(name if word == "NAME" else word for word in NAMED[what].split()))
        assert said.status in (1, 2), said
        printed = said.out + said.err
        assert "Traceback" not in printed
        assert not {"\x1b", "\x07", "\u202e"} & set(printed)
        if said.status == 2 and said.err:
            assert len(said.err.splitlines()) == 2
            assert said.err.splitlines()[1].startswith("hint: ")


def test_what_a_file_holds_is_shown_as_escapes():
    error = DataFormatError(
        "label '\x1b[2Jé\u200b' is unknown", hint="see\x00 it", file="a\x1bb.tsv", line=3
    )
    assert str(error) == r"a\x1bb.tsv:3: label '\x1b[2Jé\u200b' is unknown"
    assert (error.hint, error.file) == (r"see\x00 it", "a\x1bb.tsv")


WRITING = ("report", "--format md")
"""A command that writes, without its --output."""


@pytest.mark.parametrize("name", ["nowhere/x.md", f"{'x' * 300}.md"])
def test_a_file_that_cannot_be_written(name, biobench):
    said = biobench(*WRITING, "--output", name)
    assert said.refusal().startswith(f"{name} cannot be written: ")
    assert said.err.splitlines()[1] == "hint: choose another --output"


def test_a_file_stays_what_it_was_where_the_new_one_cannot_be_written(
    biobench, tmp_path, monkeypatch
):
    """As on a disk that is full: before, the file was empty afterwards."""

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    (tmp_path / "x.out").write_text("yesterday's")
    with monkeypatch.context() as patch:
        patch.setattr("biobench.core.files.os.fsync", full)
        assert (
            biobench(*WRITING, "--output x.out").refusal()
            == "x.out cannot be written: No space left on device"
        )
    assert (tmp_path / "x.out").read_text() == "yesterday's"
    assert [p.name for p in tmp_path.iterdir() if p.name.endswith(".tmp")] == []
    biobench(*WRITING, "--output x.out").ok()
    assert (tmp_path / "x.out").stat().st_size > 100


def test_a_pipe_or_a_link_is_written_to_and_not_replaced(biobench, tmp_path):
    save_run(tmp_path / "results", "own-encoder", "gad", 42, 0.8)
    pipe, link, text = tmp_path / "pipe", tmp_path / "link", list[str]()
    os.mkfifo(pipe)
    link.symlink_to(tmp_path / "behind.md")
    reader = threading.Thread(target=lambda: text.append(pipe.read_text()))
    reader.start()
    biobench("export own-encoder --output", pipe).ok()
    reader.join(timeout=60)
    biobench("export own-encoder --output", link).ok()
    assert pipe.is_fifo()
    assert link.is_symlink()
    assert text == [(tmp_path / "behind.md").read_text()]
    assert len(text[0]) > 100


def test_a_folder_for_the_models_is_refused_before_anything_is_trained(biobench, tmp_path):
    """Before, after the first run had been trained, and its state was the only thing left of it."""
    (tmp_path / "file").touch()
    said = biobench("run dummy --task demo_topic --seeds 1", *FAST, "--keep-model file/below")
    assert said.refusal().startswith("file/below: cannot be written: ")
    assert said.err.endswith("hint: check the path, or choose another --keep-model\n")
    assert "started" not in said.err


def test_tasks_with_a_comma_and_a_run_folder_as_model(biobench, tiny, tmp_path):
    run = tmp_path / "runs" / "mine"
    run.mkdir(parents=True)
    (run / "model").symlink_to(tiny)
    rows = biobench("run runs/mine --task demo_ner,demo_topic --seeds 1 --dry-run --json").json()
    assert [(r["task"], r["status"]) for r in rows] == [
        ("demo_ner", "planned"),
        ("demo_topic", "planned"),
    ]


def test_a_run_folder_names_its_model_in_results(biobench, tmp_path):
    model = tmp_path / "runs" / "mine" / "model"
    model.mkdir(parents=True)
    (model / "config.json").write_text("{}")
    save_run(tmp_path / "results", "mine/model", "gad", 42, 0.8)
    biobench("export runs/mine --format bibtex").ok()


def test_the_help_of_the_report_names_every_source(biobench):
    shown = " ".join(biobench("report --help").ok().out.replace("│", " ").split())
    assert f"Only these rows: {', '.join(get_args(Source))}." in shown
    assert get_args(Source) == SOURCES


@pytest.mark.parametrize("command", ["run", "speed"])
def test_threads_are_set_before_the_command_begins(command, biobench, monkeypatch):
    """Options from the request and options of a command alone take different ways."""
    for name in ("OMP_NUM_THREADS", "OMP_WAIT_POLICY", "GOMP_SPINCOUNT"):
        monkeypatch.setenv(name, "7")  # restored after the test
    before = torch.get_num_threads()
    try:
        assert biobench(command, "no/such/folder/here", "--threads 3 --offline").status == 2
        assert os.environ["OMP_NUM_THREADS"] == "3"
        assert torch.get_num_threads() == 3
        assert biobench(command, "org/m", "--threads 0").status == 2
    finally:
        torch.set_num_threads(before)
