"""A word planted in the texts, mentions, ids and groups of data under an agreement never leaves its
folder.

It is searched as bytes, in archives and in the columns of tables, in everything that the commands
write: results, reports, pages, packs, caches and temporary folders, and what stands on the
terminal.
"""

import json
import traceback
from pathlib import Path
from typing import Any, NoReturn

import pytest

from biobench.errors import DataFormatError, withholding
from tests.helpers.cli_make import Run, Said
from tests.helpers.marked import marked
from tests.helpers.private_make import WORD, private_tasks
from tests.helpers.tiny import make_tiny_encoder


@pytest.fixture
def private(tmp_path: Path, tiny: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the tasks, with every cache and temporary folder below it, and two encoders."""
    for name, folder in (("TMPDIR", "tmp"), ("XDG_CACHE_HOME", "xdg"), ("HF_HOME", "hf")):
        (tmp_path / folder).mkdir()
        monkeypatch.setenv(name, str(tmp_path / folder))
    monkeypatch.setattr("tempfile.tempdir", None)
    private_tasks(tmp_path)
    (tmp_path / "one").symlink_to(tiny)
    return tmp_path


def found(folder: Path) -> list[str]:
    """Everything but the data folder in which the word stands."""
    return marked(folder, WORD, (folder / "data",))


def silent(said: Said) -> Said:
    """The command's answer, which quotes nothing."""
    assert WORD.lower() not in (said.out + said.err).lower()
    assert "Traceback" not in said.err
    return said


TASKS = "--task own_notes.yaml --task own_spans.yaml"


def run(biobench: Run, model: str, *more: str) -> Said:
    where = "--data-dir data --results-dir results --device cpu --parallel 1"
    return biobench("run", model, where, *more)


def test_open_data_would_be_seen(private, biobench):
    """The same run without the agreement keeps ids and gold, and the search finds them."""
    for path in private.glob("own_*.yaml"):
        text = path.read_text().splitlines()
        path.write_text(
            "\n".join(x for x in text if not x.startswith("obtain")).replace("agreement", "open")
        )
    run(biobench, "one", "--task own_notes.yaml --seeds 1").ok()
    assert any(hit.startswith("results/runs/") for hit in found(private))


def test_nothing_that_the_commands_write_or_print_holds_the_word(private, biobench):
    make_tiny_encoder(private / "two")
    for model, more in (("one", ()), ("two", ("--seeds 1",))):
        said = silent(run(biobench, model, TASKS, "--json", *more)).ok()
        assert {row["status"] for row in said.json()} == {"done"}
    results, data = "--results-dir results", "--data-dir data"
    silent(biobench("tasks gate own_notes.yaml", data, results))
    silent(biobench("data verify own_notes.yaml", data))
    assert silent(biobench("tasks show own_spans.yaml", data)).status == 0
    for form in ("table", "csv", "json"):
        assert silent(biobench("report", results, "--format", form, "--notes")).status == 0
    assert silent(biobench("report", results, "--format html --out report.html")).status == 0
    assert (
        silent(biobench("report", results, data, TASKS, "--probabilities --format json")).status
        == 0
    )
    silent(biobench("compare one two", results, data))
    for task in ("own_notes", "own_spans"):
        said = silent(biobench("errors one --task", f"{task}.yaml", results, data)).ok()
        assert "the data is under an agreement" in said.out
        page = f"{task}.html"
        assert (
            silent(
                biobench("errors one --task", f"{task}.yaml", results, data, "--html", page)
            ).status
            == 0
        )
    asked = biobench("errors one --task own_notes.yaml --include-agreement", results, data).ok()
    assert WORD in asked.out, "the owner of the data may ask for it"
    assert silent(biobench("rescore", results, data)).status == 0
    assert silent(biobench("status", results)).status == 0
    silent(biobench("export one --format eval-results --dataset org/bench", results))
    assert "4 runs packed" in silent(biobench("submit one", results, "--out pack")).out
    silent(biobench("verify-submission pack", data))
    assert list(private.glob("results/runs/own_*/*.parquet"))
    assert list(private.glob("pack/**/*.parquet"))
    assert not list(private.glob("results/cache/tokens/*")), (
        "tokens of text under an agreement are never kept"
    )
    assert found(private) == []


def test_a_run_that_falls_over_quotes_nothing(private, biobench, monkeypatch):
    def fall(loaded: Any, prepared: Any, *_: Any) -> NoReturn:
        raise ValueError(f"cannot use {prepared.test.documents[0].text!r}")

    monkeypatch.setattr("biobench.runs.execute.finetune", fall)
    said = run(biobench, "one", TASKS, "--json", "--debug")
    assert said.status == 1
    assert {(row["status"], "ValueError" in row["reason"]) for row in said.json()} == {
        ("failed", True)
    }
    assert WORD.lower() not in (said.out + said.err).lower()
    assert found(private) == []


@pytest.mark.parametrize("fault", ["no split", "missing", "twice"])
def test_ids_that_fit_no_split_are_not_quoted(private, biobench, fault):
    """Groups are patients; `splits.ids_file` was read by no reader, and its errors named them."""
    groups = [f"{WORD}who{i}" for i in range(300)]
    parts = {"train": groups[:200], "validation": groups[200:250], "test": groups[250:]}
    if fault == "no split":
        parts["train"] = parts["train"][1:]
    if fault == "missing":
        parts["train"].append(f"{WORD}nobody")
    if fault == "twice":
        parts["train"].append(groups[-1])
    (private / "ids.json").write_text(json.dumps(parts))
    spec = private / "own_notes.yaml"
    kept = [x for x in spec.read_text().splitlines() if not x.startswith("splits")]
    spec.write_text("\n".join([*kept, "splits: {ids_file: ids.json}"]))
    said = silent(biobench("tasks validate own_notes.yaml --data-dir data"))
    assert said.status == 2
    assert ("(value withheld)" in said.out + said.err) == (fault != "twice")


@pytest.mark.parametrize(
    "line",
    [
        {"document": f"{WORD}id0", "labels": [f"{WORD}label"]},
        {"document": f"{WORD}nobody", "labels": ["A"]},
        {"document": f"{WORD}id0", "labels": {f"{WORD}": 1}},
        {"document": f"{WORD}id0", "labels": ["A"], "label_scores": {f"{WORD}": 0.5}},
        {"document": f"{WORD}id0", "labels": ["A"], "label_scores": {f"{WORD}": "x"}},
        {"document": f"{WORD}id0", "labels": "A"},
    ],
)
def test_predictions_made_elsewhere_are_not_quoted(private, biobench, line):
    (private / "own.jsonl").write_text(json.dumps(line) + "\n")
    words = "--task own_notes.yaml --model mine --data-dir data --no-gate"
    said = silent(biobench("score --predictions own.jsonl", words))
    assert said.status == 2


def test_texts_are_written_where_one_says_so_alone(private, biobench):
    data = "--data-dir data"
    for words in (
        ("data export own_notes.yaml --out copy.jsonl", data),
        ("score", "--task own_notes.yaml --documents copy.jsonl", data),
    ):
        said = silent(biobench(*words))
        assert (said.status, "--include-agreement" in said.err) == (2, True)
        assert not (private / "copy.jsonl").exists()
        biobench(*words, "--include-agreement").ok()
        assert WORD in (private / "copy.jsonl").read_text()
        (private / "copy.jsonl").unlink()


def test_an_error_withholds_what_it_holds_of_a_corpus():
    with pytest.raises(DataFormatError) as shown, withholding(False):
        raise DataFormatError("document {} is odd", hint="mend it", value="patient 7")
    assert str(shown.value) == "document 'patient 7' is odd"
    try:
        {}["patient 7"]
    except KeyError as error:
        with pytest.raises(DataFormatError) as hidden, withholding(True):
            raise DataFormatError(
                "document {} is odd", hint="mend it", value="patient 7"
            ) from error
    assert str(hidden.value) == "document (value withheld) is odd"
    assert "patient 7" not in "".join(traceback.format_exception(hidden.value))
