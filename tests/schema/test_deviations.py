"""Specs select as the protocol they are compared with, and say what else they do otherwise."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest
from typer.testing import CliRunner

from biobench.cli.main import app
from biobench.data.catalog import list_tasks, load_task, task_json_schema
from biobench.data.hashing import task_hash
from biobench.errors import SpecError

ALL = [t.id for t in list_tasks()]
SUITES = [t.id for t in list_tasks() if t.path.parent.name in ("fr", "en")]


@pytest.mark.parametrize("name", SUITES)
def test_selection_is_that_of_the_compared_protocol(name: str) -> None:
    spec = load_task(name).spec
    weighted = spec.id == "diamed" or (spec.language == "en" and not spec.is_ner)
    assert spec.metric.selection == ("weighted_f1" if weighted else "micro_f1")
    assert spec.metric.primary == "macro_f1"


@pytest.mark.parametrize("name", [n for n in SUITES if load_task(n).spec.language == "en"])
def test_specs_whose_selection_changed_have_a_new_version(name: str) -> None:
    assert load_task(name).spec.version >= 2


@pytest.mark.parametrize("name", SUITES)
def test_no_deviation_of_the_spec_s_own_fields_is_untold(name: str) -> None:
    """What the fields show and the compared protocol has otherwise stands in the list, and no claim fails them."""
    spec = load_task(name).spec
    told = {d.aspect: d for d in spec.deviations}
    assert {"head", "seeds"} <= set(told)
    assert ("patience" in told) == (spec.training.patience is not None)
    assert told["seeds"].here == spec.seeds.replace("-", " to ")
    if "epochs" in told:
        assert told["epochs"].here == str(spec.training.epochs)
    if spec.language == "en" and spec.is_ner:
        decode = {spec.reader_of(source).model_dump().get("decode") for source in spec.all_sources}
        assert ("decoding" in told) == ("strict" in decode)
        assert "truncation" in told
    if "window" in told:
        assert f"{spec.protocol.max_length:,} tokens" in told["window"].here
    if "batch" in told:
        assert told["batch"].here.startswith(f"{spec.training.batch_size} ")


def test_deviations_describe_and_enter_no_hash(tmp_path: Path) -> None:
    text = load_task("gad").path.read_text(encoding="utf-8")
    start, end = text.index("deviations:\n"), text.index("counts:\n")
    bare = tmp_path / "gad.yaml"
    bare.write_text(text[:start] + text[end:], encoding="utf-8")
    assert load_task(bare).spec.deviations == []
    assert task_hash(load_task(bare), "fold1") == task_hash(load_task("gad"), "fold1")


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ('{aspect: patiense, here: "3", compared: "none"}', "patiense"),
        ('{aspect: patience, here: "3"}', "compared"),
        ('{aspect: patience, here: "3", compared: "5"}\n  - {aspect: patience, here: "4", compared: "5"}', "twice"),
    ],
)
def test_a_wrong_entry_is_refused_with_its_line(tmp_path: Path, entry: str, said: str) -> None:
    text = load_task("demo_topic").path.read_text(encoding="utf-8")
    spec = tmp_path / "demo_topic.yaml"
    spec.write_text(text + f"deviations:\n  - {entry}\n", encoding="utf-8")
    with pytest.raises(SpecError, match=said) as caught:
        load_task(spec)
    assert caught.value.file == str(spec)
    assert caught.value.line


def test_the_json_schema_knows_deviations() -> None:
    schema = task_json_schema()
    wanted = schema["properties"]["deviations"]
    assert wanted["type"] == "array"
    checker = jsonschema.Draft202012Validator(schema["$defs"]["Deviation"] | {"$defs": schema["$defs"]})
    good = {"aspect": "head", "here": "a", "compared": "b"}
    assert checker.is_valid(good)
    assert not checker.is_valid(good | {"aspect": "heat"})
    assert not checker.is_valid(good | {"more": "c"})


@pytest.mark.parametrize("name", ALL)
def test_tasks_show_prints_them_or_none_known(name: str, tmp_path: Path) -> None:
    options = ["--data-dir", str(tmp_path)]
    text = CliRunner().invoke(app, ["tasks", "show", name, *options]).stdout
    plain = json.loads(CliRunner().invoke(app, ["tasks", "show", name, *options, "--json"]).stdout)
    deviations = load_task(name).spec.deviations
    assert plain["deviations"] == [d.model_dump() for d in deviations]
    if not deviations:
        assert "deviations: none known" in text.splitlines()
    for d in deviations:
        assert f"  {d.aspect}: here: {d.here}; compared: {d.compared}" in text.splitlines()
