"""`tasks` and `data`: a corpus of one's own, missing data and where it was looked for, splits for
other scripts.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from biobench.data.catalog import load_task
from tests.helpers.cli_make import FAST, Run

ROOT = Path(__file__).resolve().parent.parent.parent
HERE = "--data-dir corpora"


@pytest.fixture
def made(biobench: Run, fixtures: Path, tmp_path: Path) -> Path:
    shutil.copytree(fixtures / "iob", tmp_path / "corpora" / "iob")
    biobench("tasks new corpora/iob/train.tsv --id ours").ok()
    return tmp_path / "ours.yaml"


def test_columns_are_named_and_an_edited_spec_is_counted_again(biobench, tmp_path):
    rows = [
        f"{i}\tA note on patient {i} of the ward.\t{'a;b' if i % 3 else 'b'}\tp{i // 2}"
        for i in range(40)
    ]
    (tmp_path / "ward").mkdir()
    (tmp_path / "ward" / "all.tsv").write_text("no\tnote\tkinds\twho\n" + "\n".join(rows) + "\n")
    options = "--text note --label kinds --group who --language de --separator ';'"
    biobench("tasks new ward/all.tsv --id ward", options).ok()
    spec = (tmp_path / "ward.yaml").read_text()
    for line in (
        "language: de",
        "columns: {text: note, label: kinds, group: who}",
        "labels: [a, b]",
    ):
        assert line in spec
    (tmp_path / "ward.yaml").write_text(spec.replace("[0.8, 0.1, 0.1]", "[0.6, 0.2, 0.2]"))
    validate = ("tasks", "validate", "ward.yaml", "--data-dir .")
    assert [biobench(*validate, *more).status for more in ((), ("--recount",), ())] == [2, 0, 0]
    counted = (tmp_path / "ward.yaml").read_text()
    assert ("train: {documents: 24" in counted, counted.count("counts:")) == (True, 1)


def test_a_folder_of_corpora_in_the_environment_hinders_no_new_task(biobench, made, monkeypatch):
    monkeypatch.setenv("BIOBENCH_DATA_DIR", str(Path("corpora").resolve()))
    biobench("tasks new corpora/iob/train.tsv --id other").ok()
    biobench("tasks validate other.yaml").ok()
    biobench("tasks new corpora/iob/train.tsv --id third --data-dir corpora").ok()
    biobench("tasks new corpora/iob/train.tsv --id fourth --data-dir .").ok()
    drafted = yaml.safe_load(Path("fourth.yaml").read_text())
    assert drafted["source"]["folder"] == "corpora/iob"
    biobench("tasks validate fourth.yaml --data-dir .").ok()
    elsewhere = biobench("tasks new corpora/iob/train.tsv --id fifth --data-dir corpora/iob")
    assert elsewhere.refusal().endswith("does not lie below --data-dir corpora/iob")


def test_from_a_data_file_to_a_run(biobench, made, tiny):
    """The walk of docs/tasks.md on a small corpus."""
    assert "exists already" in biobench("tasks new corpora/iob/train.tsv --id ours").refusal()
    elsewhere = biobench("tasks new corpora/iob/train.tsv --id other --revision v1").refusal()
    assert "goes with hub:ORG/NAME" in elsewhere
    biobench("tasks validate", made, HERE).ok()
    assert biobench("tasks show", made, HERE, "--json").json()["samples"]
    screen, whole = (biobench("tasks show", made, HERE, *more).ok() for more in ((), ("--full",)))
    assert len(screen.out.splitlines()) <= 24 < len(whole.out.splitlines())
    assert "(Disease)" in screen.out, "samples say what is marked"
    assert "did you mean 'ours.yaml'?" in biobench("run", tiny, "--task ours").err
    both = biobench("run", tiny, "--task ours.yaml --task gad", HERE)
    assert both.refusal() == "task gad: no data below corpora"
    assert "or link a folder that lies elsewhere into corpora" in both.err
    epoch = "--seeds 1 --set training.epochs=1 --json"
    assert biobench("run", tiny, "--task ours.yaml", HERE, epoch).ok().json()[0]["status"] == "done"
    rows = biobench("report --task ours.yaml --format json").json()
    assert {row["task"] for row in rows} == {"ours"}, "a task is named here as it is in `run`"


AGREED = """access: agreement
obtain:
  needs: the agreement of the clinic
  pages: ["https://example.org/agreement"]
  steps: ["Sign it."]"""


def test_own_data_under_an_agreement_is_rescored_and_compared_with_its_spec(
    biobench, made, tiny, tmp_path
):
    """What needs the gold, which stays with the data, needs the spec too; the message says what
    finds it.
    """
    shutil.copytree(tiny, tmp_path / "other")
    config = json.loads((tmp_path / "other" / "config.json").read_text())
    (tmp_path / "other" / "config.json").write_text(json.dumps(config | {"layer_norm_eps": 1e-6}))
    made.write_text(re.sub("^access: .*$", AGREED, made.read_text(), flags=re.MULTILINE))
    both = "--task ours.yaml --task demo_topic"
    biobench("run", tiny, tmp_path / "other", both, HERE, "--seeds 1,2", *FAST, "--no-gate").ok()
    outcomes = {row["task"]: row["outcome"] for row in biobench("rescore", HERE, "--json").json()}
    assert outcomes == {"ours": "unavailable", "demo_topic": "unchanged"}, (
        "its spec is nowhere to be found"
    )
    row = biobench("rescore", HERE, "--task ours.yaml --json").json()[0]
    assert (row["task"], row["outcome"], "macro_f1" in row["scores"]) == ("ours", "unchanged", True)
    assert "holds no run of demo_ner" in biobench("rescore --task demo_ner").refusal()

    pair = ("compare", tiny.name, "other", HERE, "--json")
    (note,) = [n for n in biobench(*pair).json()["notes"] if "test-set noise" in n]
    assert "the spec of ours is not available" in note
    assert "name its file, as in --task my_task.yaml" in note
    known = biobench(*pair, "--task ours.yaml").json()
    assert not [n for n in known["notes"] if "test-set noise" in n]
    assert known["pairs"][0]["tasks"][0]["documents"] is not None


def test_the_list_of_tasks_is_by_language_and_fits_the_terminal(biobench, monkeypatch):
    rows = biobench("tasks list --json").json()
    assert [row["language"] for row in rows] == sorted(row["language"] for row in rows)
    assert {"version", "access", "data"} <= rows[0].keys()
    monkeypatch.setenv("COLUMNS", "80")
    head, *lines = biobench("tasks list").out.splitlines()
    assert head.split() == ["id", "data", "language", "type", "name"]
    assert [line.split()[0] for line in lines] == [row["id"] for row in rows]
    assert max(map(len, lines)) == 80


def test_data_that_is_not_there_is_wrong_where_its_folder_was_given(biobench, made, monkeypatch):
    said = biobench("tasks validate ours.yaml --data-dir elsewhere")
    assert "ours.yaml: data missing" in said.refusal()
    assert "put train.tsv" in said.err
    (row,) = biobench("tasks validate ours.yaml --data-dir elsewhere --json").json()
    assert (row["valid"], row["state"]) == (False, "missing")
    monkeypatch.setenv("BIOBENCH_DATA_DIR", "all_corpora")
    said = biobench("tasks validate ours.yaml").ok()
    assert said.out.startswith("ours.yaml: valid, data missing\n  - put train.tsv")
    assert "into all_corpora/iob" in said.out
    # one's own data under an agreement is nowhere to be asked for
    own = "obtain: {needs: unknown, pages: [], steps: []}"
    made.write_text(made.read_text().replace("access: open", f"access: agreement\n{own}"))
    put = "put train.tsv, devel.tsv, test.tsv into elsewhere/iob, or name the folder above it"
    assert put in biobench("tasks validate ours.yaml --data-dir elsewhere").err
    steps = "data status ours.yaml --steps --data-dir elsewhere"
    assert steps.rpartition(" --data")[0] in biobench("tasks show ours.yaml").out
    assert f"1. {put.capitalize()}" in biobench(steps).out


def test_a_folder_of_specs_may_hold_some_without_data(biobench, tmp_path):
    said = biobench("tasks validate", ROOT / "tasks" / "en", "--data-dir", tmp_path).ok()
    assert "deid.yaml: valid, data agreement\n  - the data needs a signed agreement" in said.out
    assert str(tmp_path / "gad_10fold") in said.out
    said = biobench("tasks validate", ROOT / "tasks" / "en" / "deid.yaml", "--data-dir", tmp_path)
    assert (said.status, str(tmp_path / "deid") in said.err) == (2, True)


def test_open_data_can_be_laid_by_hand(biobench, tmp_path):
    said = biobench("data status bc5cdr hoc --data-dir", tmp_path)
    assert (
        said.out == f"bc5cdr: missing, biobench data fetch bc5cdr --data-dir {tmp_path}\n"
        f"hoc: missing, biobench data fetch hoc --data-dir {tmp_path}\n"
    )
    said = biobench("data status bc5cdr hoc --steps --data-dir", tmp_path).out
    assert (
        f"Or by hand: put train.tsv, devel.tsv, test.tsv into {tmp_path / 'mtl_bc5cdr_iob'} and "
        f"CDR_Training" in said
    )
    assert f"into {tmp_path / 'bc5cdr_pubtator'}\n" in said
    (tmp_path / "mtl_ncbi_disease_iob").mkdir()
    for name in ("train.tsv", "devel.tsv", "test.tsv"):
        (tmp_path / "mtl_ncbi_disease_iob" / name).touch()
    said = biobench("run dummy --task ncbi_disease --data-dir", tmp_path)
    missing = tmp_path / "ncbi_disease_pubtator" / "train" / "NCBItrainset_corpus.txt"
    assert f"file '{missing}' of the original release is missing" in said.refusal()
    assert "https://" not in said.err, "long lists of addresses are among the steps"


def test_verify_without_a_task_takes_all_that_are_there(biobench, monkeypatch, tmp_path):
    from biobench.data import catalog

    paths = {
        n: p for n, p in catalog.spec_paths().items() if n in ("demo_ner", "demo_topic", "gad")
    }
    monkeypatch.setattr(catalog, "spec_paths", lambda: paths)
    said = biobench("data verify --data-dir", tmp_path, "--json")
    assert [row["task"] for row in said.json()] == ["demo_ner", "demo_topic"]
    assert "task gad: no data below" in said.err
    assert said.status == (0 if all(row["clean"] for row in said.json()) else 1)
    assert biobench("data verify gad --data-dir", tmp_path).status == 2


def test_a_new_task_becomes_clean_by_the_documented_way(biobench, made, tmp_path):
    """A corpus with a text in two splits: `verify` names it, the page says what to write, and then
    it is clean.
    """
    test = tmp_path / "corpora" / "iob" / "test.tsv"
    first = (tmp_path / "corpora" / "iob" / "train.tsv").read_text().strip().split("\n\n")[0]
    test.write_text(first + "\n\n" + test.read_text())
    spec = made.read_text()
    made.write_text(spec[: spec.index("counts:")])
    said = biobench("data verify ours.yaml --data-dir corpora")
    assert said.status == 0, "a text that occurs twice is a finding"
    assert "! duplicates.test-train: 1 test text that occurs verbatim in train" in said.out
    (line,) = re.findall(r"declare it in the spec: (findings: \{.+\})", said.out)
    assert "duplicates.test-train" in yaml.safe_load(line)["findings"]
    made.write_text(made.read_text() + line + "\n")
    assert "- duplicates.test-train: 1" in biobench("data verify ours.yaml --data-dir corpora").out
    assert "\nfindings: {" in (ROOT / "docs" / "tasks.md").read_text()


IOB1 = "gout\tI-X\nthen\tO\n\nflu\tB-X\nand\tO\nasthma\tI-X\nor\tO\nlupus\tI-X\n\n" * 3


def write_splits(folder: Path, content: str) -> None:
    folder.mkdir()
    for name in ("train", "dev", "test"):
        (folder / f"{name}.tsv").write_text(content)


def test_a_new_task_shows_what_was_seen_and_what_is_dropped(biobench, tmp_path):
    write_splits(tmp_path / "tags", IOB1)
    said = biobench("tasks new tags --id seen").ok().out
    for line in (
        "scheme: IOB1",
        "tags: 27 of 36 mentions begin with I-",
        "labels: 1: X 36",
        "mentions: 36 kept, 0 dropped",
        "finding: twice.test: 4 test texts that repeat another",
    ):
        assert line in said
    spec = (tmp_path / "seen.yaml").read_text().replace("IOB1", "IOB2")
    spec = spec[: spec.index("counts:")]
    (tmp_path / "seen.yaml").write_text(spec)
    here = ("seen.yaml", "--data-dir .")
    said = biobench("tasks validate", *here).ok().out
    assert "27 mentions that units, tokens or decoding cannot express" in said
    assert "! dropped.test: 9 of 12 mentions in test begin with I-" in said
    assert "! dropped.train: 9" in biobench("data verify", *here).ok().out
    gate = biobench("tasks gate", *here, "--results-dir results")
    assert (gate.status, "NO  18 of 24 mentions begin with I-" in gate.out) == (1, True)


def test_no_spec_is_written_where_nothing_reads_cleanly(biobench):
    rows = [f"a text {i}\t{'ab'[i % 2]}" for i in range(20)]
    Path("all.tsv").write_text(
        "\n".join(["text\tlabel", *rows[:4], "extra\tfield\there", *rows[4:]])
    )
    said = biobench("tasks new all.tsv --id bad")
    assert said.refusal().startswith("all.tsv:6: the row has 3 fields")
    assert not Path("bad.yaml").exists()


@pytest.mark.parametrize(
    ("content", "tags"),
    [
        (IOB1, "I-X O | B-X O I-X O I-X"),
        (IOB1, "B-X O | B-X O B-X O B-X"),
        (IOB1.replace("-X", ""), "I O | B O I O I"),
        (IOB1.replace("-X", ""), "B-Entity O | B-Entity O B-Entity O B-Entity"),
        ("hay\tB_X\nfever\tE_X\n\n\nflu\tS_X\nor\tO\n\n" * 3, "B_X E_X | S_X O"),
        ("hay\tX\nfever\tX\n\n\nno\tO\nor\tO\nflu\tX\nnot\tO\nso\tO\n\n" * 3, "X X | O O X O O"),
    ],
)
def test_predicted_tags_are_read_as_the_gold_is(content, tags, biobench, tmp_path):
    """A file's own tags are a perfect answer, in its scheme and spelling."""
    write_splits(tmp_path / "tags", content)
    biobench("tasks new tags --id tagged").ok()
    sentences = [sentence.split() for sentence in tags.split("|")] * 3
    answers = [{"document": f"test-{i}", "tags": t} for i, t in enumerate(sentences, start=1)]
    lines = "".join(json.dumps(answer) + "\n" for answer in answers)
    (tmp_path / "gold.jsonl").write_text(lines)
    options = "--task tagged.yaml --data-dir . --model me --no-gate --json"
    scored = biobench("score --predictions gold.jsonl", options).json()
    assert scored[0]["scores"]["macro_f1"] == 1.0


def test_rows_hold_the_gold_in_the_form_of_predictions(biobench, tmp_path):
    biobench("data export demo_ner --split test --out test.jsonl")
    rows = [json.loads(line) for line in (tmp_path / "test.jsonl").read_text().splitlines()]
    assert len(rows[0]["tokens"]) == len(rows[0]["tags"])
    (start, end), *_ = rows[0]["tokens"]
    assert rows[0]["words"][0] == rows[0]["text"][start:end]
    answers = [{"document": row["document"], "spans": row["spans"]} for row in rows]
    (tmp_path / "gold.jsonl").write_text("".join(json.dumps(row) + "\n" for row in answers))
    options = "--task demo_ner --model me --no-gate --json"
    assert (
        biobench("score --predictions gold.jsonl", options).json()[0]["scores"]["macro_f1"] == 1.0
    )


def test_the_example_script_trains_and_is_scored(biobench, tiny, tmp_path):
    for split in ("train", "validation", "test"):
        biobench("data export demo_topic --split", split, "--out", f"{split}.jsonl").ok()
    quiet = {
        "HF_HUB_OFFLINE": "1",
        "HF_DATASETS_CACHE": str(tmp_path / "cache"),
        "CUDA_VISIBLE_DEVICES": "",
    }
    command = [sys.executable, ROOT / "docs" / "examples" / "own_training.py", tiny]
    done = subprocess.run(
        command, cwd=tmp_path, env=os.environ | quiet, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[-2000:]
    biobench(
        "score --predictions predictions.jsonl --task demo_topic --model me --no-gate",
    ).ok()


@pytest.mark.parametrize(
    ("header", "text", "options", "reason"),
    [
        ("patient", "a text", (), "column 'patient'"),
        ("date_de_naissance", "a text", (), "column 'date_de_naissance'"),
        ("subject_name", "a text", (), "several texts of one group"),
        ("case", "a text", (), "several texts of one group"),
        ("other", "Mme Martin seen 03/02/2021:", (), "dates and names of persons in the texts"),
        ("other", "Monsieur n° 12 - 34 ans:", (), "ages of persons in the texts"),
        ("other", "a 61-year-old man:", (), "ages of persons in the texts"),
        ("other", "Mr Smith aged 56:", (), "ages of persons in the texts"),
        ("other", "a text", ("--clinical",), "--clinical"),
        ("other", "published 03/02/2021:", (), ""),
    ],
)
def test_a_new_task_needs_an_agreement_where_its_data_may_be_about_persons(
    header, text, options, reason, biobench, tmp_path
):
    rows = [f"{text} {['fever', 'pain'][i % 2]} {i},{'ab'[i % 2]},{i // 2}" for i in range(40)]
    content = "\n".join([f"text,label,{header}", *rows])
    (tmp_path / "all.csv").write_text(content)
    said = biobench("tasks", "new", "all.csv", "--id", "new", *options).ok()
    spec = load_task(tmp_path / "new.yaml").spec
    assert spec.access == ("agreement" if reason else "open")
    assert (f"access: agreement ({reason})" in said.out) == bool(reason)
    assert reason in (tmp_path / "new.yaml").read_text()
    said = biobench("tasks", "validate", "new.yaml", "--data-dir", tmp_path.parent).ok()
    obtain = "obtain, " if reason else ""
    assert f"- still to fill in: {obtain}licence, homepage, citation" in said.out
