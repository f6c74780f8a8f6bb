"""A kind of task that is one file: found by being there, trained, decided, scored and rescored by
what it says.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

import biobench
import biobench.kinds
from biobench.data.catalog import load_task, task_json_schema
from biobench.data.load import load_data
from biobench.errors import SpecError
from biobench.kinds import get_kind
from biobench.kinds.base import register
from biobench.kinds.labels import SingleLabel
from biobench.schema.kind import KINDS
from biobench.score import rescore
from biobench.store import Store
from tests.helpers.spec_make import write_spec
from tests.helpers.tiny import make_tiny_encoder

CONTRIBUTING = Path(__file__).parent.parent.parent / "CONTRIBUTING.md"


def example() -> str:
    """The file that CONTRIBUTING shows."""
    blocks = re.findall(r"```python\n(.*?)```", CONTRIBUTING.read_text(encoding="utf-8"), re.DOTALL)
    (found,) = [block for block in blocks if "@register" in block]
    return str(found)


@pytest.fixture
def graded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The example as a file among the kinds, and a spec that names it."""
    folder = tmp_path / "kinds"
    folder.mkdir()
    (folder / "graded.py").write_text(example(), encoding="utf-8")
    monkeypatch.setattr(biobench.kinds, "__path__", [*biobench.kinds.__path__, str(folder)])
    import_module("biobench.kinds.graded")
    rows = [
        f"{number}\t{text} {number}\t{grade}"
        for number in range(8)
        for grade, text in GRADES.items()
    ]
    (tmp_path / "train.tsv").write_text(
        "\n".join(["id\ttext\tgrade", *rows]) + "\n", encoding="utf-8"
    )
    yield write_spec(
        tmp_path / "shades.yaml",
        type="graded",
        labels="[low, middle, high]",
        protocol="{max_length: 64}",
        source="{folder: ., files: {train: train.tsv, validation: train.tsv, test: train.tsv}}",
        reader="{format: tsv, columns: {text: text, label: grade}}",
        head="{kind: sequence, pooling: mean}",
        training="{epochs: 40, learning_rate: 2e-3, batch_size: 8, precision: fp32}",
        metric="{primary: within_one, selection: macro_f1, paper: macro_f1}",
    )
    del KINDS["graded"], sys.modules["biobench.kinds.graded"]


GRADES = {
    "low": "no fever",
    "middle": "some fever and cough",
    "high": "sepsis shock and fever at home",
}


def test_one_file_makes_a_kind_that_runs_from_the_spec_to_the_rescored_record(
    graded: Path, tmp_path: Path
) -> None:
    data = load_data(load_task(graded), tmp_path)
    assert get_kind("graded").outputs(data.labels) == ("grade",)
    model = make_tiny_encoder(tmp_path / "tiny")
    (result,) = biobench.run(
        str(model),
        str(graded),
        seeds=1,
        data_dir=tmp_path,
        results_dir=tmp_path / "out",
        device="cpu",
        gate=False,
    )
    assert result.status == "done", result.reason
    store = Store(tmp_path / "out")
    (record,) = store.records()
    gold, said = store.load_predictions(record)
    order = {label: place for place, label in enumerate(record.task.labels)}
    by_id = {p.document: p for p in said}
    near = [abs(order[d.labels[0]] - order[by_id[d.id].labels[0]]) <= 1 for d in gold]
    assert record.scores["within_one"] == sum(near) / len(near) > 0.9
    assert record.scores["macro_f1"] > 0.8, "it learns with one output and a loss of its own"
    assert {len(p.label_scores) for p in said} == {1}
    assert [r.outcome for r in rescore(store)] == ["unchanged"]


def test_specs_know_the_kind_and_its_metric_as_soon_as_it_is_there(graded: Path) -> None:
    schema = task_json_schema()
    assert "graded" in schema["properties"]["type"]["enum"]
    assert "within_one" in json.dumps(schema["$defs"]["TaskMetrics"])
    with pytest.raises(
        SpecError, match=r"metric\.primary 'accuracy' is not defined for type 'graded'"
    ):
        load_task(graded, ["metric.primary=accuracy"])
    with pytest.raises(SpecError, match=r"head\.kind 'token' does not fit type 'graded'"):
        load_task(graded, ["head={kind: token}"])


def test_two_kinds_of_one_name_are_refused() -> None:
    with pytest.raises(ValueError, match="'single_label'"):
        register(type("Again", (SingleLabel,), {"name": "single_label"}))
    assert type(get_kind("single_label")) is SingleLabel
