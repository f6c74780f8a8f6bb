"""Freeze reports, recovery and stability from scores that are chosen, and the chart of a CKA
analysis from its JSON.
"""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest

from biobench.cli.main import app
from biobench.errors import SpecError, TrainingError, UsageError
from biobench.reporting.details.mechanism import cka_chart
from biobench.runs.options import RunRequest
from biobench.runs.result import RunResult
from biobench.workflows.mechanism import frozen_layers, paired_report, stability, stored_scores
from tests.helpers.ledger_make import ledger, write
from tests.helpers.report_make import save_runs
from tests.helpers.view_make import cka

SEEDS = range(42, 47)
RNG = np.random.default_rng(0)
NOISE = {seed: float(RNG.normal(scale=0.01)) for seed in SEEDS}


def scores(level: float, wobble: float = 0.002) -> dict[str, dict[int, float]]:
    """Two tasks around a level; seeds that are good for one model are good for all."""
    rng = np.random.default_rng(int(1000 * level))
    return {
        task: {
            seed: level + shift + NOISE[seed] + float(rng.normal(scale=wobble)) for seed in SEEDS
        }
        for task, shift in (("demo_ner", 0.0), ("demo_topic", 0.1))
    }


TABLE = {"detour": scores(0.62), "twin": scores(0.58), "low": scores(0.59), "mid": scores(0.615)}


def test_differences_are_over_shared_seeds_and_tasks() -> None:
    report = paired_report(
        TABLE, reference="detour", twin="twin", frozen={"low": "layers 0-7 in detour"}
    )
    rows = {row.model: row for row in report.rows}
    assert [rows[model].role for model in TABLE] == ["reference", "twin", "frozen", "frozen"]
    by_task = {
        model: np.array([list(of_seeds.values()) for of_seeds in TABLE[model].values()])
        for model in TABLE
    }
    wanted = (by_task["detour"] - by_task["twin"]).mean()
    test = rows["detour"].to_twin
    assert test.estimate == pytest.approx(wanted)
    # Welch over seeds, task by task
    variances = [by_task[model].var(axis=1, ddof=1).sum() for model in ("detour", "twin")]
    assert test.se == pytest.approx((sum(variances) / len(SEEDS)) ** 0.5 / 2)
    assert rows["twin"].to_twin is rows["detour"].to_reference is None
    low = rows["low"]
    assert low.frozen == "layers 0-7 in detour"
    assert low.kept.value == pytest.approx((by_task["low"] - by_task["twin"]).mean() / wanted)
    assert low.kept.value in low.kept.interval


def test_only_shared_seeds_and_tasks_count() -> None:
    later_seeds = {seed: TABLE["low"]["demo_ner"][seed] for seed in range(43, 47)}
    fewer = TABLE | {"low": {"demo_ner": later_seeds}}
    report = paired_report(fewer, reference="detour", twin="twin")
    assert (report.tasks, report.seeds) == (("demo_ner",), (43, 44, 45, 46))
    for lacking, low in {"task": {"other": {42: 0.5}}, "seed": {"demo_ner": {1: 0.5}}}.items():
        with pytest.raises(UsageError, match=f"no {lacking} in common"):
            paired_report(TABLE | {"low": low}, reference="detour", twin="twin")


def test_a_gain_that_may_be_nothing_leaves_recovery_without_interval() -> None:
    flat = {"donor": scores(0.60, 0.03), "recipient": scores(0.601, 0.03), "hybrid": scores(0.61)}
    kept = paired_report(flat, reference="donor", twin="recipient").rows[2].kept
    assert kept.interval is None
    assert kept.note


def test_stability_measures_the_spread_within_seeds() -> None:
    def at(level: float) -> dict[str, dict[int, float]]:
        return {"demo_ner": {seed: level + NOISE[seed] for seed in SEEDS}}

    rates = {1e-5: (0.60, 0.50), 5e-5: (0.61, 0.60), 1e-4: (0.62, 0.40)}
    _, _, (steady, shaky) = stability(
        {r: {"steady": at(a), "shaky": at(b)} for r, (a, b) in rates.items()}
    )
    # the seeds' own ups and downs, the same at every rate, are no spread over rates
    assert steady.test.estimate == pytest.approx(0.01)
    assert shaky.test.estimate == pytest.approx(0.1)
    assert (steady.best_rate, shaky.best_rate) == (1e-4, 5e-5)
    assert shaky.range == pytest.approx(0.2)
    assert steady.to_first is None
    assert shaky.to_first.estimate == pytest.approx(0.09)


def test_freeze_report_reads_the_store(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for model, table in TABLE.items():
        for task, by_seed in table.items():
            save_runs(tmp_path, model, task, by_seed)
    found = stored_scores(["detour", "low"], tmp_path, ["demo_ner"])
    assert found["low"]["demo_ner"] == pytest.approx(TABLE["low"]["demo_ner"])
    command = ["analyze", "freeze-report", *TABLE, "--results-dir", str(tmp_path)]
    app([*command, "--json"], standalone_mode=False)
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert [r["model"] for r in rows] == ["detour", "twin", "low", "mid"]
    assert rows[3]["kept"]["value"] > rows[2]["kept"]["value"]
    app(command, standalone_mode=False)
    assert "to twin" in capsys.readouterr().out
    with pytest.raises(UsageError, match="one frozen run or more are needed"):
        app([*command[:4], *command[-2:]], standalone_mode=False)
    with pytest.raises(UsageError, match="no results of a model 'nobody'"):
        app([*command, "nobody"], standalone_mode=False)


def test_the_frozen_layers_are_those_of_the_ledger(tmp_path: Path) -> None:
    assert frozen_layers("low") == ""
    held = ledger("low")
    first, *rest = held.phases
    phases = (first.model_copy(update={"frozen_layers": "0-7"}), *rest)
    write(tmp_path / "ledger.json", held.model_copy(update={"phases": phases}))
    assert frozen_layers(str(tmp_path)) == f"layers 0-7 in {first.name}"


def test_stability_command_runs_every_rate(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: list[tuple[str, str]] = []

    def run(request: RunRequest, _: Any) -> list[RunResult]:
        (model,), setting = request.model, request.overrides[-1]
        asked.append((model, setting))
        drop = 2000 * float(setting.partition("=")[2]) if model == "shaky" else 0
        of_seeds = {seed: {"macro_f1": 0.6 - drop + NOISE[seed]} for seed in SEEDS}
        task = request.tasks[0]
        return [RunResult(model, task, 1, s, "done", scores=of_seeds[s]) for s in SEEDS]

    monkeypatch.setattr("biobench.runs.api.make_runs", run)
    # the models are names alone
    monkeypatch.setattr("biobench.workflows.mechanism.check_runs", lambda *_: None)
    command = ["analyze", "stability", "steady", "shaky", "--task", "demo_ner"]
    command += ["--learning-rates", "1e-5,1e-4"]
    app([*command, "--json"], standalone_mode=False)
    spreads = json.loads(capsys.readouterr().out)["spreads"]
    assert asked[0] == ("steady", "training.learning_rate=1e-05")
    assert len(asked) == 4
    assert [spread["range"] for spread in spreads] == pytest.approx([0, 0.18])
    app(command, standalone_mode=False)
    assert "sd over rates" in capsys.readouterr().out
    with pytest.raises(UsageError, match="not understood"):
        app([*command[:-1], "high"], standalone_mode=False)

    failed = [RunResult("steady", "demo_ner", 1, 42, "failed", reason="out of memory")]
    monkeypatch.setattr("biobench.runs.api.make_runs", lambda *_: failed)
    with pytest.raises(TrainingError, match="out of memory"):
        app(command, standalone_mode=False)


def test_a_rate_that_cannot_be_trained_is_refused_before_any_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(
        "biobench.runs.api.make_runs", Mock(side_effect=AssertionError("a run was begun"))
    )
    command = ["analyze", "stability", "some/model", "--task", "demo_ner"]
    command += ["--learning-rates", "1e-5,-1"]
    monkeypatch.setattr(
        "biobench.runs.plan.find_checkpoint", lambda model, **_: SimpleNamespace(id=model)
    )
    monkeypatch.setattr("biobench.runs.plan._key", lambda *_: "key")
    with pytest.raises(SpecError, match="should be greater than 0"):
        app(command, standalone_mode=False)


def drawn(chart: Any) -> dict[str, Any]:
    """The chart's Vega-Lite, which holds only what JSON has."""
    text: dict[str, Any] = json.loads(json.dumps(chart.to_dict(), allow_nan=False))
    return text


def test_a_pair_alone_has_its_layers_in_percent_and_noise_a_line_and_a_ratio_without_an_end() -> (
    None
):
    analysis = cka(2)
    lines = [line | {"noise": None, "ratio": None} for line in analysis["lines"]]
    chart = drawn(cka_chart(analysis | {"lines": lines}))
    assert "vconcat" not in chart
    (rows,) = chart["datasets"].values()
    assert [(r["layer"], r["what"]) for r in rows] == [("0", "the pair"), ("1", "the pair")]
    assert [rows[1][name] for name in ("value", "low", "high")] == pytest.approx([14, 12, 16])
    analysis["lines"][0]["ratio"]["high"] = None
    chart = drawn(cka_chart(analysis))
    points = [point for rows in chart["datasets"].values() for point in rows]
    ratios = [(p["layer"], p["value"], p["high"]) for p in points if p.get("what") == "ratio"]
    high = analysis["lines"][1]["ratio"]["high"]
    assert ratios == [("0", 3.0, 1e300), ("1", 3.0, high)]
    assert [p.get("what") for p in points].count("seed noise") == 2
    assert "pair / noise" in json.dumps(chart)
