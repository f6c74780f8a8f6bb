"""Small things of `run` and data: the dummy, overrides of one task, plug-ins, lengths, empty
text."""

import sys
import types
from collections.abc import Callable, Iterator
from importlib.metadata import EntryPoint

import pytest

from biobench.core import packages as plugin_module
from biobench.core.packages import plugins
from biobench.data.catalog import load_task, spec_paths, tasks_folder
from biobench.data.suite import suite_tasks
from biobench.errors import SpecError
from biobench.runs.provenance import _DRIVER, _found
from biobench.schema.document import Document, Prediction
from biobench.schema.kind import PLUGIN_METRICS
from biobench.score.compute import compute
from tests.helpers.cli_make import FAST


def test_the_dummy_tries_a_task_without_a_checkpoint(biobench, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    base = (
        "run",
        "dummy",
        "--task demo_ner --task demo_topic --seeds 1 --json",
        *FAST,
    )
    assert [(row["status"], row["model"]) for row in biobench(*base).json()] == [
        ("done", "dummy")
    ] * 2
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "another"))
    assert [row["status"] for row in biobench(*base).json()] == ["skipped", "skipped"], (
        "made anew it is the same model"
    )


def test_the_driver_is_read_from_its_file(tmp_path):
    text = (
        "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15  Tue Mar  5 22:23:56 UTC 2024\n"
    )
    (tmp_path / "version").write_text(text)
    assert _found(_DRIVER, tmp_path / "version") == "550.54.15"


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., None]]:
    """`installed(group, name, value)`: an entry point as another package would declare it."""
    points: list[EntryPoint] = []
    monkeypatch.setattr(
        plugin_module, "entry_points", lambda group: [p for p in points if p.group == group]
    )

    def install(group: str, name: str, value: str) -> None:
        points.append(EntryPoint(name, value, group))
        plugins.cache_clear()

    yield install
    points.clear()
    plugins.cache_clear()


def test_a_package_brings_a_folder_of_tasks_but_no_member_of_a_suite(
    installed, monkeypatch, tmp_path
):
    text = (
        (tasks_folder() / "demo" / "demo_ner.yaml")
        .read_text()
        .replace("id: demo_ner", "id: their_ner")
    )
    (tmp_path / "fr").mkdir()
    (tmp_path / "fr" / "their_ner.yaml").write_text(text)
    vars(package := types.ModuleType("their_tasks")).update(__path__=[str(tmp_path)])
    monkeypatch.setitem(sys.modules, "their_tasks", package)
    installed("biobench.tasks", "theirs", "their_tasks")
    assert load_task("their_ner").path == tmp_path / "fr" / "their_ner.yaml"
    assert "their_ner" not in {task.id for task in suite_tasks("fr")}
    (tmp_path / "fr" / "their_ner.yaml").rename(tmp_path / "demo_ner.yaml")
    with pytest.raises(SpecError, match="which there is already"):
        spec_paths()


def test_a_package_brings_a_metric(monkeypatch):
    monkeypatch.setitem(PLUGIN_METRICS, "covered", lambda run: len(run.predictions) / len(run.gold))
    gold = [Document(str(i), "g", "", "test", labels=("A",)) for i in range(4)]
    scores = compute(
        type="single_label",
        labels=("A", "B"),
        gold_labels=("A",),
        gold=gold,
        predictions=[Prediction("0", labels=("A",))],
    )
    assert scores.values["covered"] == 0.25
    assert load_task("demo_topic", ["metric.primary=covered"]).spec.metric.primary == "covered"


def test_a_plug_in_that_does_not_load_is_named(installed):
    installed("biobench.readers", "broken", "no_such_module_anywhere")
    with pytest.raises(SpecError, match=r"plug-in 'broken' .* cannot be loaded"):
        plugins("biobench.readers")
