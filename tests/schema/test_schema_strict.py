"""Strict specs: every mistake is one line with the place, the value and a suggestion."""

import json
from pathlib import Path

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from biobench.data.catalog import load_task, spec_paths, task_json_schema
from biobench.errors import SpecError
from biobench.schema.strict import suggest
from biobench.schema.task import parse_seeds
from biobench.schema.yaml12 import parse_file, plain

GOOD = """\
id: my_task
version: 1
name: My task
language: no
type: single_label
source:
  id: here
  folder: mine
  files: {train: train.tsv, validation: dev.tsv, test: test.tsv}
reader: {format: tsv, columns: {text: text, label: label}}
labels: [no, yes, 0042, 1e3]
unit: line
training: {epochs: 3, learning_rate: 5e-5}
head: {kind: sequence}
metric: {primary: macro_f1, paper: micro_f1}
access: open
licence: CC BY 4.0
homepage: https://example.org
citation: Nobody, 2026.
"""


def write(folder: Path, old: str = "", new: str = "") -> Path:
    """GOOD with one replacement, as a file."""
    assert old in GOOD
    path = folder / "my_task.yaml"
    path.write_text(GOOD.replace(old, new, 1) if old else GOOD, encoding="utf-8")
    return path


def test_labels_are_text_and_numbers_are_numbers(tmp_path):
    spec = load_task(write(tmp_path)).spec
    assert spec.labels == ["no", "yes", "0042", "1e3"]
    assert spec.language == "no"
    assert spec.training.learning_rate == 5e-5
    assert spec.corpus_id == "my_task"


RATIOS = "splits: {ratios: [0.8, 0.1, 0.1], seed: 1}"
CASES = [
    ("name: My task", "title: My task", 3, "unknown key 'title'", "known: "),
    ("epochs: 3", "epoch: 3", 13, "unknown key 'epoch'", "did you mean 'epochs'"),
    ("name: My task\n", "", None, "'name' is missing in the spec", "add `name"),
    (
        "learning_rate: 5e-5",
        "warmup_ratio: 0.1",
        13,
        "'learning_rate' is missing in training",
        "add `learning_rate",
    ),
    (
        "unit: line",
        f"unit: line\n{RATIOS}",
        13,
        "'method' is missing in splits",
        "add `method: ...",
    ),
    (
        "unit: line",
        "unit: line\nsplits: {ratios: [0.8, 0.1], seed: 1, method: sklearn}",
        13,
        "three",
        "0.1, 0.1",
    ),
    ("version: 1", "version: true", 2, "got True", "schema"),
    (
        "epochs: 3",
        "epochs: 0",
        13,
        "training.epochs: input should be greater than 0, got 0",
        "schema",
    ),
    ("learning_rate: 5e-5", "learning_rate: .inf", 13, "training.learning_rate", "schema"),
    (
        "learning_rate: 5e-5",
        "learning_rate: 5e-5, evaluate_every: 0",
        13,
        "evaluate_every: input should be greater than or equal to 1, got 0",
        "schema",
    ),
    (
        "learning_rate: 5e-5",
        "learning_rate: 5e-5, adapter: {method: lora, targets: []}",
        13,
        "training.adapter.targets: list should have at least 1 item",
        "schema",
    ),
    (
        "learning_rate: 5e-5",
        "learning_rate: 5e-5, max_steps: 9",
        13,
        "either epochs or max_steps",
        "for example",
    ),
    (
        "type: single_label",
        "type: single-label",
        5,
        "got 'single-label'",
        "did you mean 'single_label'",
    ),
    (
        "labels: [no, yes, 0042, 1e3]",
        "labels: [no]",
        11,
        "labels of a classification must be at least two",
        "list them all",
    ),
    (
        "labels: [no, yes, 0042, 1e3]",
        "labels: {topk: 3}",
        11,
        "unknown key 'topk'",
        "did you mean 'top_k'",
    ),
    ("primary: macro_f1", "primary: macro", 15, "got 'macro'", "did you mean 'macro_f1'"),
    (
        "paper: micro_f1",
        "paper: micro_f1_positive",
        15,
        "micro_f1_positive needs it",
        "name the label",
    ),
    (
        "paper: micro_f1",
        "paper: micro_f1, negative_label: non",
        15,
        "'non' is not a label",
        "did you mean 'no'",
    ),
    (
        "train: train.tsv",
        "training: train.tsv",
        9,
        "source.files.training: input should be 'train'",
        "did you mean 'train'",
    ),
    ("unit: line", "unit: line\nseeds: 50-42", 13, "run backwards", "write 42-50, not 50-42"),
]


@pytest.mark.parametrize(
    ("old", "new", "line", "words", "hint"), CASES, ids=[c[1] or "missing name" for c in CASES]
)
def test_a_mistake_is_one_line_with_its_place(tmp_path, old, new, line, words, hint):
    path = write(tmp_path, old, new)
    with pytest.raises(SpecError) as caught:
        load_task(path)
    error = caught.value
    assert words in error.what
    assert hint in error.hint
    assert error.file == str(path)
    if line is not None:
        assert error.line == line
        assert str(error).startswith(f"{path}:{line}: ")
    assert "\n" not in str(error)


def test_several_mistakes_are_told_at_once(tmp_path):
    path = write(tmp_path, "type: single_label", "type: single-label")
    text = path.read_text().replace("learning_rate: 5e-5", "learning_rat: 5e-5")
    path.write_text(text.replace("primary: macro_f1", "primary: macro"))
    with pytest.raises(SpecError) as caught:
        load_task(path)
    message = str(caught.value)
    assert message.startswith(f"{path}:13: unknown key 'learning_rat'; line ")
    assert "; line 5: type: input should be" in message
    assert "; line 15: metric.primary: input should be" in message
    assert caught.value.hint == "did you mean 'learning_rate'?"


def test_a_wrong_override_is_blamed_and_not_the_file(tmp_path):
    path = write(tmp_path)
    with pytest.raises(SpecError) as caught:
        load_task(path, ["training.epochs=abc"])
    assert str(caught.value).startswith("--set training.epochs=abc: training.epochs: ")
    assert caught.value.file is None
    with pytest.raises(SpecError, match="unknown key 'epoch'"):
        load_task(path, ["training.epoch=1"])
    broken = write(tmp_path, "version: 1", "version: one")
    with pytest.raises(SpecError) as caught:
        load_task(broken, ["training.epochs=2"])
    assert caught.value.line == 2


def test_overrides_follow_the_rules_of_the_file(tmp_path):
    path = write(tmp_path)
    changed = load_task(
        path, ["training.learning_rate=3e-5", "labels=[on, off, 007]", "language=no"]
    ).spec
    assert changed.training.learning_rate == 3e-5
    assert changed.labels == ["on", "off", "007"]
    assert (
        load_task(path, ["training.epochs=null", "training.max_steps=10"]).spec.training.max_steps
        == 10
    )
    assert load_task(path).spec.training.learning_rate == 5e-5
    for text in ("training.epochs", "=3", "training.epochs.x=1", "labels.9=x"):
        with pytest.raises(SpecError, match="--set"):
            load_task(path, [text])


def test_every_shipped_spec_fits_the_json_schema():
    schema = task_json_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    for path in spec_paths().values():
        # The schema describes the typed document; texts that YAML would read as numbers are quoted
        # in it.
        data = json.loads(json.dumps(plain(parse_file(path).data)))
        found = [
            e.message
            for e in validator.iter_errors(data)
            if "is not of type 'string'" not in e.message
        ]
        assert not found, f"{path}: {found[0]}"


def test_the_json_schema_refuses_an_unknown_key(tmp_path):
    validator = jsonschema.Draft202012Validator(task_json_schema())
    data = plain(parse_file(write(tmp_path, "unit: line", "unit: line\ntitel: x")).data)
    assert any("titel" in e.message for e in validator.iter_errors(data))


@given(st.lists(st.integers(0, 10_000), min_size=1, max_size=8, unique=True))
def test_seeds_round_trip(seeds):
    assert parse_seeds(",".join(map(str, seeds))) == seeds


@pytest.mark.parametrize(
    ("text", "seeds"), [("42-46", [42, 43, 44, 45, 46]), ("1,5-7", [1, 5, 6, 7]), ("7-7", [7])]
)
def test_seed_ranges(text, seeds):
    assert parse_seeds(text) == seeds


@pytest.mark.parametrize("text", ["", "a", "5-1", "1,1", "1-3,2", "-1", "1-", "0-5000", "1.5"])
def test_bad_seeds(text):
    with pytest.raises(ValueError, match="seeds"):
        parse_seeds(text)


def test_suggestions():
    assert suggest("macro", ["macro_f1", "micro_f1"]) == "did you mean 'macro_f1'?"
    assert suggest("NCBI_DISEASE", ["gad", "ncbi_disease"]) == "did you mean 'ncbi_disease'?"
    assert suggest("Name", ["NAME", "name", "Named"]) == "did you mean 'Named'?", (
        "what is spelled alike comes first"
    )
    assert suggest("quaero", ["gad", "quaero_medline"]) == "did you mean 'quaero_medline'?"
    assert suggest("nope", ["phenotype"]) == "known: phenotype", "half of it is not near"
    assert suggest("zzz", ["b", "a"], otherwise="list them") == "list them"
    assert suggest("zzz", ["b", "a"]) == "known: a, b"
    assert suggest("zzz", []) == "there is none to choose from"
