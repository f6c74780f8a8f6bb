"""What `import biobench` shows, and results as data frames."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

import biobench
from biobench.errors import UsageError
from biobench.reporting.frame import Report
from tests.helpers.baselines_make import play
from tests.helpers.report_make import save_runs
from tests.helpers.submission_make import honest_run


def test_the_names_are_shown_and_callable() -> None:
    names = ("run", "compare", "load_task", "results", "predictions", "validate", "report")
    assert set(dir(biobench)) >= {*names}
    assert all(callable(getattr(biobench, name)) for name in names)


@pytest.mark.parametrize(
    "name", ["run", "compare", "load_task", "results", "predictions", "report", "validate"]
)
def test_help_shows_an_example_and_what_each_argument_of_run_is(name: str) -> None:
    function = getattr(biobench, name)
    said = inspect.getdoc(function) or ""
    example = next(line for line in said.splitlines() if line.startswith(">>> "))
    assert f"{name}(" in example
    if name == "run":
        for argument in set(inspect.signature(function).parameters) - {"reporter"}:
            assert f"\n{argument}: " in said


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    save_runs(tmp_path, "org/mine", "gad", {42: 0.7, 43: 0.8})
    return tmp_path


def test_one_row_a_run_and_metric(folder: Path) -> None:
    frame = biobench.results(folder).to_dataframe()
    assert len(frame) == 6
    assert not frame.duplicated(["model", "task", "seed", "metric", "label"]).any()
    means = frame.groupby("metric")["value"].mean()
    assert means[["macro_f1", "weighted_f1"]].tolist() == pytest.approx([0.75, 0.375])
    labels = biobench.results(folder).to_dataframe(labels=True)
    assert set(labels[labels["label"] != ""]["metric"]) >= {"f1"}


def test_results_and_reports_show_themselves_in_few_lines(folder: Path) -> None:
    results = biobench.results(folder)
    assert repr(results).splitlines()[0] == "runs: 2, models: 1, tasks: 1"
    report = results.report()
    assert "org/mine" in repr(report)
    assert report._repr_html_().startswith("<pre>")
    published = results.report(sources=["published"])
    assert len(published.rows) > 100
    assert len(repr(report).splitlines()) <= len(repr(published).splitlines()) <= 30


@pytest.mark.parametrize(
    ("name", "given", "wrong", "nearest"),
    [
        ("run", ("org/mine",), "task", "tasks"),
        ("compare", ("a", "b"), "result_dir", "results_dir"),
        ("load_task", ("gad",), "override", "overrides"),
        ("report", ("results",), "task", "tasks"),
    ],
)
def test_a_wrong_argument_names_the_nearest_one(
    name: str, given: tuple[str, ...], wrong: str, nearest: str
) -> None:
    message = rf"{name}\(\) has no argument '{wrong}'; .*{nearest}"
    with pytest.raises(TypeError, match=message):
        getattr(biobench, name)(*given, **{wrong: []})


def test_an_unknown_average_is_refused(folder: Path) -> None:
    asked: list[Callable[[], object]] = [
        partial(biobench.report, folder, "makro"),
        partial(biobench.results(folder).report, "makro"),
        partial(biobench.compare, "a", "b", results_dir=folder, average="makro"),
    ]
    for ask in asked:
        with pytest.raises(UsageError, match="unknown average 'makro'") as refused:
            ask()
        assert refused.value.hint == "did you mean 'macro'?"


def test_runs_of_a_task_that_fails_its_gate_are_not_missing_in_silence(folder: Path) -> None:
    play(folder, "gad", 0.3, why="says nothing")
    with pytest.warns(UserWarning, match="runs of gad are left out, the task fails its gate: "):
        assert biobench.results(folder).to_dataframe().empty


def test_the_report_is_that_of_the_command(folder: Path) -> None:
    report = biobench.report(str(folder), models=["org/mine"])
    assert isinstance(report, Report)
    assert biobench.report(str(folder), models="org/mine").rows == report.rows
    for keyword, wrong in (("models", "org/mien"), ("tasks", "gda"), ("sources", "runs")):
        with pytest.raises(UsageError, match=f"{keyword}: '{wrong}' is not known"):
            biobench.report(str(folder), **{keyword: wrong})
    (row,) = report.rows
    assert (row.mean, row.n_seeds) == (pytest.approx(0.75), 2)
    with pytest.raises(UsageError, match="no results folder"):
        biobench.report(str(folder / "nowhere"))


def test_predictions_with_text_and_errors(tmp_path: Path) -> None:
    record = honest_run(tmp_path)
    frame = biobench.predictions("org/tiny", record.task.id, results_dir=tmp_path)
    assert len(frame) == record.task.test_documents
    assert frame["text"].str.len().min() > 0
    wrong = frame[frame["wrong"] > 0]
    assert all(set(g) != set(s) for g, s in zip(wrong["gold"], wrong["said"], strict=True))
